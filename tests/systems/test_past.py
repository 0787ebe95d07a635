"""A past is read before a live run goes on: nothing is lost and nothing comes twice where the two overlap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.cli.main import app
from ephemera.connect.live.partitions import Partitions
from ephemera.connect.live.past import Past, ReadPast, is_known
from ephemera.connect.live.reads import Read
from ephemera.connect.live.run import LiveProgram, LiveRun
from ephemera.connect.source import Memory, Table
from ephemera.connect.systems.file_target import FileTarget
from ephemera.connect.written_places import Written
from ephemera.engine.engine import Found
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode import Noticed
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import Keys
from ephemera.language import compile
from ephemera.program import Program
from tests.engine.living import STREAMS, arriving
from tests.strategies.cases import sample
from tests.systems.past_shop import EVENTS, SHOP, told
from tests.systems.test_live_run import Given

# ---- what it answers ---------------------------------------------------------------------------------------


def in_two(program: Program, past: Sequence[dict[str, Any]], live: Sequence[dict[str, Any]], **more: Any) -> list[str]:
    """The answers to a past and what is read live behind it."""
    engine = program.engine(allow_unbounded=True)
    found: list[dict[str, Any]] = []

    def give(parts: Sequence[Found]) -> None:
        found.extend(answer for part in parts for answer in engine.answers(part))

    source = Memory(past)
    noticed = [Noticed(Keys(engine.compiled.physical))]
    (bounds,) = ReadPast([engine], [Past(source)], noticed, give, found.clear, **more).read()
    found += engine.send_many(live)
    assert all(is_known(one.event, engine, bounds) for one in engine.late)
    return sorted(json.dumps(answer) for answer in (*found, *engine.finish()))


@pytest.mark.parametrize("most", [None, 3], ids=["at once", "in slices"])
def test_random_programs_answer_in_two_what_they_answer_at_once(
    monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    monkeypatch.setattr("ephemera.connect.live.past.SLICE", most or 100_000)
    dice = Random(11)
    answered = came_again = 0
    for number, case in enumerate(islice((case for case in sample(160) if case is not None), 120)):
        if case.tables:
            continue
        program = compile(case.program + (STREAMS if number % 2 else ""))
        ordered = arriving(case.events, dice) if number % 2 else sorted(case.events, key=lambda e: e.time.end)
        lines = [write_event(event, program.catalogue, as_numbers=True) for event in ordered]
        engine = program.engine(allow_unbounded=True)
        right = sorted(json.dumps(answer) for answer in (*engine.send_many(lines), *engine.finish()))
        cut = dice.randrange(len(lines) + 1)
        again = dice.randrange(cut + 1)
        past = dice.sample(lines[:cut], cut)
        if right:
            found = in_two(program, past, lines[again:], window=dice.choice([0, 1 << 20]))
            assert found == right, case.program
            answered += len(right)
            came_again += cut - again
    assert answered > 500
    assert came_again > 100


# ---- between systems ---------------------------------------------------------------------------------------


def run(folder: Path, past: Sequence[Any] | None, live: Sequence[Any], text: str = SHOP) -> LiveRun:
    program = ephemera.compile(text)
    own = LiveProgram(program.engine(), program._world())
    writes = [Written(FileTarget(folder / "answers.jsonl"))]
    ran = LiveRun([own], [Read(Given(live))], writes, str(folder / "state"), tell=TOLD.append)
    ran.past = () if past is None else (Past(Memory(past)),)
    ran.run(lambda: False, once=True)
    return ran


TOLD: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    TOLD.clear()


def answers(folder: Path) -> list[str]:
    return sorted((folder / "answers.jsonl").read_text().splitlines())


@pytest.mark.parametrize("cut", [0, 1, 17, 39, 40])
@pytest.mark.parametrize("again", [0, 5, 40])
def test_a_run_behind_a_past_writes_what_one_over_all_does(tmp_path: Path, cut: int, again: int) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    run(whole, None, EVENTS)
    ran = run(parts, list(reversed(EVENTS[:cut])), EVENTS[max(cut - again, 0) :])
    assert answers(parts) == answers(whole)
    assert ran.totals.letters == 0
    last = EVENTS[cut - 1]["time"] if cut else -1
    assert ran.totals.known == sum(event["time"] < last - 3 for event in EVENTS[max(cut - again, 0) : cut])


def test_a_past_is_read_once(tmp_path: Path) -> None:
    run(tmp_path, EVENTS[:20], EVENTS[:30])
    before = answers(tmp_path)
    run(tmp_path, EVENTS[:20], EVENTS)  # of which the first thirty have been read
    assert TOLD == ["the past was read by an earlier start; this one goes on live"]
    assert len(before) < len(answers(tmp_path)) == len(set(answers(tmp_path)))
    run(tmp_path, None, [*EVENTS, told("order", 1, 99), told("order", 90, 90)])  # which knows of the past, too
    (tmp_path / "whole").mkdir()
    run(tmp_path / "whole", None, [*EVENTS, told("order", 90, 90)])
    assert answers(tmp_path) == answers(tmp_path / "whole")


def test_what_is_known_is_no_letter_and_what_is_late_is_one(tmp_path: Path) -> None:
    ran = run(tmp_path, EVENTS[:20], [told("order", 3, 1), told("order", 50, 2), told("order", 30, 3)])
    assert (ran.totals.known, ran.totals.letters) == (1, 1)


def test_a_checkpoint_without_a_past_gets_none(tmp_path: Path) -> None:
    run(tmp_path, None, EVENTS[:10])
    with pytest.raises(EphemeraError, match=r"begun without a past, and goes on without one: leave out `--then`"):
        run(tmp_path, EVENTS[:5], EVENTS)


def test_a_past_without_a_column_is_refused() -> None:
    rows = [{"event": "order", "time": 1, "nr": 4}]
    program = ephemera.compile(SHOP)
    engine = program.engine()
    noticed = [Noticed(Keys(engine.compiled.physical))]
    past = [Past(Table(pa.Table.from_pylist(rows)))]
    with pytest.raises(WrongColumns, match="id"):
        ReadPast([engine], past, noticed, lambda _: None, lambda: None).read()


def test_a_past_that_can_be_read_once_is_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ephemera.connect.live.past.SLICE", 3)
    engine = ephemera.compile(SHOP).engine()
    noticed = [Noticed(Keys(engine.compiled.physical))]
    past = [Past(Memory(iter(reversed(EVENTS))))]
    found: list[Found] = []
    ReadPast([engine], past, noticed, found.extend, found.clear, window=0).read()
    given = [answer for one in found for answer in engine.answers(one)]
    assert sorted(map(json.dumps, given)) == sorted(map(json.dumps, ephemera.compile(SHOP).engine().send_many(EVENTS)))


def test_a_run_that_is_stopped_in_its_past_has_written_nothing(tmp_path: Path) -> None:
    ran = LiveRun(
        [LiveProgram(ephemera.compile(SHOP).engine(), ephemera.compile(SHOP)._world())],
        [Read(Given(EVENTS[10:]))],
        [Written(FileTarget(tmp_path / "answers.jsonl"))],
        str(tmp_path / "state"),
        past=[Past(Memory(EVENTS[:20]))],
    )
    ran.run(lambda: True, once=True)
    assert not (tmp_path / "answers.jsonl").exists() or not answers(tmp_path)
    with pytest.raises(EphemeraError, match=r"the past of .* has not been read to its end"):
        run(tmp_path, None, EVENTS[10:])
    run(tmp_path, EVENTS[:20], EVENTS[10:])
    (tmp_path / "whole").mkdir()
    run(tmp_path / "whole", None, EVENTS)
    assert answers(tmp_path) == answers(tmp_path / "whole")


def test_a_silent_source_of_which_only_the_past_is_known_moves_on_by_the_clock() -> None:
    text = "EVENT a(x: int); STREAM s CARRIES a IDLE 10 sec; b(x) <- i: a(x);"
    partitions = Partitions(ephemera.compile(text).catalogue, ["s"], 0)
    second = 1_000_000
    partitions.behind_the_past({"s": 5 * second}, 100 * second)
    assert partitions.reached((), 109 * second) == {"s": 5 * second}
    assert partitions.reached((), 112 * second) == {"s": 7 * second}
    assert partitions.reached((), 113 * second) == {"s": 8 * second}


# ---- from the command line ---------------------------------------------------------------------------------


def command(folder: Path, *options: str, lines: Sequence[Any] = ()) -> Result:
    (folder / "shop.eq").write_text(SHOP)
    given = "".join(json.dumps(event) + "\n" for event in lines)
    return CliRunner().invoke(app, ["run", str(folder / "shop.eq"), *options], input=given)


def written(folder: Path, name: str, events: Sequence[Any]) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return str(path)


def test_lines_follow_a_past(tmp_path: Path) -> None:
    past = written(tmp_path, "past/a.jsonl", EVENTS[:25])
    found = command(tmp_path, "--input", str(tmp_path / "past"), "--then", "-", lines=EVENTS[15:])
    whole = command(tmp_path, "--engine", "local", "--input", written(tmp_path, "all.jsonl", EVENTS))
    assert sorted(found.stdout.splitlines()) == sorted(whole.stdout.splitlines())
    told = found.stderr.splitlines()
    last = EVENTS[24]["time"]
    assert told[0] == f"the past: 25 events, the last of which ends at {last}; from there on they are read live"
    known = sum(event["time"] < last - 3 for event in EVENTS[15:25])
    assert f"passed over as known: {known} of what was read live, which ended by the time that the past covers" in told
    assert past


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--then", "-"], "there is no past to read: name files or a folder with --input"),
        (["--input", "-", "--then", "-"], "the past is read from files that are there, and `-` is none"),
        (["--input", "socket://127.0.0.1:9", "--then", "-"], "`socket://127.0.0.1:9` is none; name it with --then"),
        (["--input", "kafka://127.0.0.1:9/t", "--then", "-"], "`kafka://127.0.0.1:9/t` is a system: read live"),
        (["--input", "nowhere", "--then", "-"], "cannot read nowhere: there is no such file or folder"),
    ],
)
def test_what_can_be_no_past_is_refused(tmp_path: Path, options: list[str], why: str) -> None:
    found = command(tmp_path, *options)
    assert (found.exit_code, why in found.stderr) == (2, True), found.stderr


def test_keys_that_the_whole_past_lacks_are_told(tmp_path: Path) -> None:
    past = [{"event": "order", "time": k, "data": {"ident": k}} for k in range(5)]
    found = command(tmp_path, "--input", written(tmp_path, "a.jsonl", past), "--then", "-", "--strict")
    assert "`id` was missing in all 5 events" in found.stderr
    assert found.exit_code == 1


def test_a_mode_that_is_not_live_is_refused_with_a_past(tmp_path: Path) -> None:
    past = written(tmp_path, "a.jsonl", EVENTS)
    found = command(tmp_path, "--mode", "batch", "--input", past, "--then", "-")
    assert (found.exit_code, "--mode batch is not one: leave one of them out" in found.stderr) == (2, True)


def test_messages_of_a_past_that_is_out_of_order_are_sent_once_all_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ephemera.connect.live.past.SLICE", 2)
    monkeypatch.setattr("ephemera.connect.time_order.WINDOW", 0)
    taken: list[Any] = []
    text = (
        SHOP + 'RAISE to(recipient="desk", transport="python") { bell { id { var I } } } ON event l: overdue(var I) END'
    )
    engine = ephemera.compile(text).engine(deliver={"desk": taken.append})
    held: list[Any] = []
    noticed = [Noticed(Keys(engine.compiled.physical))]
    ReadPast([engine], [Past(Memory(list(reversed(EVENTS))))], noticed, held.append, held.clear, window=0).read()
    assert not taken
    given = [answer for parts in held for one in parts for answer in engine.answers(one)]
    engine.stop()
    assert len(taken) == sum(answer["event"] == "bell" for answer in given) > 0


def test_a_folder_of_several_formats_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "in/a.jsonl", EVENTS)
    (tmp_path / "in" / "b.csv").write_text("event,time,id\n")
    found = command(tmp_path, "--mode", "stream", "--input", str(tmp_path / "in"))
    assert found.exit_code == 2
    assert "holds files of several formats, csv, json; name them apart, by patterns such as" in found.stderr
