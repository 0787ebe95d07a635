"""A live run knows its targets again, loses no answers that are left, and tells of events that come too close."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.connect.live.checkpoint import FORMAT, KIND
from ephemera.connect.live.reads import Read, read_once
from ephemera.connect.live.run import LiveProgram, LiveRun
from ephemera.connect.live.target_names import target_names
from ephemera.connect.systems.address import WrongAddress
from ephemera.connect.systems.file_target import FileTarget
from ephemera.connect.systems.live import Arrived, LiveSource, Target
from ephemera.connect.systems.registry import source_at, target_at
from ephemera.connect.systems.source_names import source_key
from ephemera.connect.written_places import Written
from ephemera.engine.state.durable_files import seal, unseal
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.decode import Objects
from ephemera.spark.sinks.target_sink import TargetSink

PROGRAM = "EVENT a(x: int); STREAM s CARRIES a; b(x) <- i: a(x);"


@dataclass
class Given:
    """Events that come one at a time."""

    events: Sequence[dict[str, Any]]
    name: str = "events"
    only: str | None = None

    def open_live(self, position: int | None = None) -> Given:
        self.position = position or 0
        self.behind = {"0"}
        return self

    def poll(self, _seconds: float) -> list[Arrived]:
        rest = self.events[self.position :]
        self.position = len(self.events)
        self.behind = set()
        return [Arrived("0", Objects(list(rest)))] if rest else []

    def confirm(self) -> None:
        pass

    def close(self) -> None:
        pass


class Crash(BaseException):
    """The process ends here."""


@dataclass
class Kept:
    """A target that keeps what it gets by the identity under which it was opened, unless the process ends first."""

    name: str
    puts: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    crashes: bool = False
    position: Any = None

    def open_target(self, identity: str, position: Any = None) -> Kept:
        del position
        self._own = self.puts.setdefault(identity, [])
        return self

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        if self.crashes:
            raise Crash
        self._own.append((number, load))

    def close(self) -> None:
        pass


def event(x: int) -> dict[str, Any]:
    return {"event": "a", "time": x, "data": [x]}


def live(
    targets: Sequence[Target], folder: Path | None = None, text: str = PROGRAM, count: int = 3, **more: Any
) -> LiveRun:
    program = ephemera.compile(text)
    own = LiveProgram(program.engine(), program._world())
    checkpoint = None if folder is None else str(folder / "state")
    writes = [Written(target) for target in targets]
    run = LiveRun([own], [Read(Given([event(x) for x in range(count)]))], writes, checkpoint, **more)
    run.run(lambda: False, once=True)
    return run


def left_by_a_crash(folder: Path, *targets: Kept, **more: Any) -> None:
    """A run that ends when it would put its first answers to the last of its targets."""
    targets[-1].crashes = True
    with pytest.raises(Crash):
        live(targets, folder, **more)
    targets[-1].crashes = False


def test_events_that_come_too_close_are_dead_letters_and_counted() -> None:
    letters: list[dict[str, object]] = []

    def told(_program: int, bad: Any, _late: Any, _dead: Any) -> list[dict[str, object]]:
        letters.extend({"event": json.loads(one.original), "reason": one.reason} for one in bad)
        return []

    kept = Kept("kept")
    run = live([kept], text=PROGRAM.replace(";", " AT LEAST 2 APART;", 1), count=5, letters=told)
    assert [letter["event"] for letter in letters] == [event(1), event(3)]
    assert all("too close" in str(letter["reason"]) or "APART" in str(letter["reason"]) for letter in letters)
    (own,) = run.programs
    assert own.engine.stats().bad == run.totals.letters == 2
    assert [len(one.close) for one in own.engine._engine.separations.values()] == [0]


def test_targets_in_another_order_have_the_same_identity(tmp_path: Path) -> None:
    one, other = Kept("one"), Kept("other")
    left_by_a_crash(tmp_path, one, other)
    live([other, one], tmp_path)
    for target in (one, other):
        ((_, puts),) = target.puts.items()  # one identity, so that the last commit is passed over where it was put
        assert {(number, load) for number, load in puts} == {(1, puts[0][1])}
    assert one.puts.keys() != other.puts.keys()


def test_targets_of_a_query_on_spark_in_another_order_have_the_same_identity() -> None:
    one, other = Kept("one"), Kept("other")
    for targets in ([one, other], [other, one]):
        TargetSink([Written(target) for target in targets], []).open("query", 0)
    assert len(one.puts) == len(other.puts) == 1
    assert one.puts.keys() != other.puts.keys()


def test_answers_that_no_target_would_take_are_told_and_kept(tmp_path: Path) -> None:
    one, other = Kept("one"), Kept("other")
    left_by_a_crash(tmp_path, one, other)
    with pytest.raises(EphemeraError, match="still holds answers for other, of its last commit"):
        live([one], tmp_path)
    live([one, other], tmp_path)
    assert [number for puts in other.puts.values() for number, _ in puts] == [1]
    live([one], tmp_path)  # which has nothing to lose any more


def test_messages_that_nobody_would_deliver_are_told_and_kept(tmp_path: Path) -> None:
    one, messages = Kept("one"), Kept("whatever")
    messages.crashes = True
    with pytest.raises(Crash):
        live([one], tmp_path, messages=messages)
    with pytest.raises(EphemeraError, match="still holds messages, of its last commit"):
        live([one], tmp_path)


@pytest.mark.parametrize("name", ["messages", "dead letters", "standard output"])
def test_a_file_may_be_called_as_the_targets_of_the_run_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = Kept("standard output")
    live([FileTarget(Path(name)), printed], messages=Kept("messages"), dead_letters=Kept("dead letters"))
    assert [json.loads(line)["data"] for line in Path(name).read_text().splitlines()] == [[0], [1]]
    assert [load for puts in printed.puts.values() for _, load in puts] == [Path(name).read_bytes()]


def test_a_target_is_known_by_where_it_writes() -> None:
    def name(where: str) -> tuple[str, str]:
        (found,) = target_names([target_at(where)])
        return found.place, found.identity("run")

    assert name("kafka://127.0.0.1/out?key=id&tls=yes") == name("kafka://127.0.0.1/out")
    assert name("postgres://me@127.0.0.1/shop?table=a") == name("postgresql://me@127.0.0.1/shop?table=a")
    assert name("postgresql://me@127.0.0.1/shop?table=a") != name("postgresql://me@127.0.0.1/shop?table=b")
    assert name("delta:out") != name("delta:other")
    assert name("http://127.0.0.1/a?to=b") != name("http://127.0.0.1/a?to=c")


def test_answers_are_kept_for_one_who_encodes_them_alike() -> None:
    plain, keyed = (str(target_names([target_at(f"kafka://127.0.0.1/out{more}")])[0]) for more in ("", "?key=id"))
    assert plain != keyed


def test_two_that_write_to_one_place_are_told_apart_and_twice_the_same_is_refused() -> None:
    wheres = ["kafka://127.0.0.1/out?key=a", "kafka://127.0.0.1/out?key=b", "kafka://127.0.0.1/other"]
    assert len({name.identity("run") for name in target_names(list(map(target_at, wheres)))}) == 3
    with pytest.raises(WrongAddress, match=r"answers go to `kafka://127.0.0.1/out` twice; name it once"):
        target_names([target_at("kafka://127.0.0.1/out")] * 2)


def test_a_source_that_does_not_answer_is_told_once_and_so_is_its_return() -> None:
    class Away(Given):
        troubles: Sequence[str | None] = (None, "gone", "gone, still", None, "gone", None)
        trouble: str | None = None

        def poll(self, seconds: float) -> list[Arrived]:
            self.trouble, *self.troubles = self.troubles
            found = super().poll(seconds)
            self.behind = {"0"} if self.troubles else set()
            return found

    told: list[str] = []
    program = ephemera.compile(PROGRAM)
    reads = [Read(Away([event(1)], "there"))]
    LiveRun([LiveProgram(program.engine(), program._world())], reads, [], tell=told.append).run(
        lambda: False, once=True
    )
    assert told == ["gone", "there answers again"] * 2


# ---- sources ---------------------------------------------------------------------------------------------------


class Slow(Given):
    """The same, one event at a time."""

    def poll(self, _seconds: float) -> list[Arrived]:
        rest = self.events[self.position : self.position + 1]
        self.position += len(rest)
        self.behind = {"0"} if self.position < len(self.events) else set()
        return [Arrived("0", Objects(list(rest)))] if rest else []


def test_two_programs_that_read_one_place_in_two_ways_miss_nothing_of_it_after_a_restart(tmp_path: Path) -> None:
    """One has a type for what names none, so the two are told apart; the one that is behind is not moved on."""
    found: dict[str, list[int]] = {"b": [], "c": []}
    for _ in range(2):
        programs = [ephemera.compile(PROGRAM), ephemera.compile("EVENT a(x: int); EVENT z(); c(x) <- i: a(x);")]
        own = [LiveProgram(program.engine(), program._world()) for program in programs]
        events = [event(x) for x in range(6)]
        reads = [Read(Slow(events, "t", "a"), {0: "a"}), Read(Given(events, "t"), {1: None})]
        kept, rounds = Kept("kept"), iter(range(3))
        run = LiveRun(own, reads, [Written(kept)], str(tmp_path / "state"), pace=0.0)
        run.run(lambda left=rounds: next(left, None) is None)  # type: ignore[misc]
        for puts in kept.puts.values():
            for line in (line for _, load in puts for line in load.splitlines()):
                found[json.loads(line)["event"]] += json.loads(line)["data"]
    assert found == {"b": [0, 1, 2, 3, 4], "c": [0, 1, 2, 3, 4]}


def test_what_would_have_to_be_read_in_two_ways_is_refused() -> None:
    def reads(*wheres: str) -> list[Read]:
        found = [Read(source_at(where), {number: None}) for number, where in enumerate(wheres)]
        assert all(isinstance(read.source, LiveSource) for read in found)
        return found

    one = "kafka://127.0.0.1/t"
    (read,) = read_once(reads(one, "kafka://me@127.0.0.1:9092/t?start=earliest"), 2).values()
    assert read.readers == {0: None, 1: None}
    with pytest.raises(WrongAddress, match="are the same, and a run reads it once for all programs; write them alike"):
        read_once(reads(one, f"{one}?start=latest"), 2)
    assert len(read_once(reads(one, f"{one}?format=csv&columns=event,time"), 2)) == 2


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("kafka://a/t", "kafka://me@A:9092/t?start=latest&tls=yes", True),
        ("kafka://a,b/t", "kafka://b,a/t", True),
        ("kafka://a/t", "kafka://a/u", False),
        ("kafka://a/t", "kafka://a/t?format=csv&columns=event", False),
        ("delta:a/in", "delta:./a/../a/in/?every=5", True),
        ("delta:s3://b/in", "delta:s3://b/in/", True),
        ("delta:in", "delta:out", False),
        ("postgres://h/d?table=t&order=n", "postgresql://me@h:5432/d?order=n&table=t&every=2", True),
        ("postgresql://h/d?table=t&order=n", "postgresql://h/d?table=t&order=m", False),
        ("mqtt://h/a/+", "mqtt://h:1883/a/+", True),
    ],
)
def test_a_source_is_known_by_where_its_address_leads(one: str, other: str, *, is_same: bool) -> None:
    assert (source_key(source_at(one)) == source_key(source_at(other))) == is_same


def read_live(folder: Path, *sources: Given, told: list[str] | None = None) -> list[int]:
    """The data of the answers of a run that takes what is there."""
    program, kept = ephemera.compile(PROGRAM), Kept("kept")
    own = LiveProgram(program.engine(), program._world())
    run = LiveRun([own], [Read(one) for one in sources], [Written(kept)], str(folder / "state"))
    if told is not None:
        run.tell = told.append
    run.run(lambda: False, once=True)
    assert not run.totals.letters
    lines = [line for puts in kept.puts.values() for _, load in puts for line in load.splitlines()]
    return [x for line in lines for x in json.loads(line)["data"]]


def test_a_source_in_the_place_of_another_is_refused_and_may_be_added_first(tmp_path: Path) -> None:
    old, new = (Given([event(x) for x in range(first, first + 3)], name) for first, name in ((0, "old"), (3, "new")))
    told: list[str] = []
    assert read_live(tmp_path, old) == [0, 1]
    with pytest.raises(EphemeraError, match="how far `old` was read, which is not read now, and nothing of `new`"):
        read_live(tmp_path, new)
    old.events = [*old.events, event(9)]
    assert read_live(tmp_path, old, new, told=told) == [2, 3, 4]
    assert told == [f"`new` is new to the checkpoint `{tmp_path}/state`: it is read from where its address says"]
    told.clear()
    new.events = [*new.events, event(20)]
    assert read_live(tmp_path, new, told=told) == [5, 9]
    assert told == [f"`old` is not read any more: the checkpoint `{tmp_path}/state` forgets how far it was"]


def test_a_system_that_says_what_it_is_goes_on_under_another_name(tmp_path: Path) -> None:
    class Table(Given):
        def identity(self) -> str:
            return "table 7"

    assert read_live(tmp_path, Table([event(x) for x in range(3)], "here")) == [0, 1]
    assert read_live(tmp_path, Table([event(x) for x in range(5)], "there")) == [2, 3]


def test_a_checkpoint_that_knows_sources_by_their_names_only_is_gone_on_with(tmp_path: Path) -> None:
    given = Given([event(x) for x in range(3)])
    assert read_live(tmp_path, given) == [0, 1]
    path = tmp_path / "state" / "commit.json"
    stored = unseal(path.read_bytes(), KIND, FORMAT, str(path))
    del stored["sources"]
    for one in stored["partitions"]:
        one["partitions"] = {f"0/{name.rpartition('/')[2]}": bounds for name, bounds in one["partitions"].items()}
    path.write_bytes(seal(KIND, FORMAT, stored))
    assert read_live(tmp_path, Given([event(x) for x in (0, 1, 2, 3)])) == [2]


def test_partitions_are_known_by_their_source_in_whatever_order_sources_are_named(tmp_path: Path) -> None:
    text = "EVENT a(x: int); STREAM s CARRIES a; b(x) <- i: a(x);"
    ahead, behind = Given([event(100)], "ahead"), Given([event(1)], "behind")
    letters: list[Any] = []

    def run(*sources: Given) -> None:
        program = ephemera.compile(text)
        own = LiveProgram(program.engine(), program._world())

        def late(_number: int, bad: Any, late: Any, dead: Any) -> list[dict[str, object]]:
            letters.extend([*bad, *late, *dead])
            return []

        LiveRun([own], [Read(one) for one in sources], [], str(tmp_path / "state"), late).run(lambda: False, once=True)

    run(ahead, behind)
    behind.events = [event(1), event(2)]
    run(behind, ahead)
    assert not letters


SIGNALLING = """
import os, signal

class Once:
    def __init__(self, address):
        self.path, self.count = "/" + address.path, int(address.options.get("signals", "0"))

    def read(self, position, seconds):
        events = [{"event": "a", "time": x, "data": [x]} for x in range(3)]
        return events[position or 0:], 3

    def write(self, answers, number):
        for _ in range(self.count):
            signal.raise_signal(signal.SIGTERM)
        open(self.path, "w").close()

    def close(self):
        pass
"""


@pytest.mark.parametrize(("count", "code"), [(2, 0), (3, 143)])
def test_a_third_signal_does_not_wait_for_the_end_of_a_commit(tmp_path: Path, count: int, code: int) -> None:
    (tmp_path / "made_up_once.py").write_text(SIGNALLING)
    told = tmp_path / "made_up-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")
    entries = "[ephemera.sources]\nonce = made_up_once:Once\n[ephemera.sinks]\nonce = made_up_once:Once\n"
    (told / "entry_points.txt").write_text(entries)
    (tmp_path / "p.eq").write_text(PROGRAM)
    command = [sys.executable, "-m", "ephemera", "run", "p.eq", "--mode", "stream", "--input", "once://here/in"]
    command += ["--output", f"once://here{tmp_path}/done?signals={count}"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "done").exists() == (count < 3)
