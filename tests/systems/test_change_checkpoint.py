"""The programs of a live run in one process change while it is at rest: its checkpoint becomes one of the new ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.cli.main import app
from ephemera.connect.live.change_checkpoint import change_checkpoint, is_of_one_process
from ephemera.connect.live.checkpoint import FORMAT, KIND
from ephemera.connect.live.reads import Read
from ephemera.connect.live.run import LiveProgram, LiveRun
from ephemera.connect.systems.live import Arrived
from ephemera.connect.written_places import Written
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.state.checkpoint_lock import CheckpointHeld, hold
from ephemera.engine.state.durable_files import Posix, seal, unseal
from ephemera.formats.decode import Objects
from tests.engine.following import end_of, told
from tests.engine.following import oracle as oracle_of
from tests.systems.test_live_run import Crash, Given, Kept

DECLARED = "TIME UNIT 1 sec; EVENT a(x: int); EVENT c(x: int); STREAM s CARRIES a, c;"
OLD = DECLARED + "p(x) <- i: a(x), w: extend(i, 4), while w: not c(x);"
MORE = "q(x) <- i: a(x), j: c(x), i before j, {i, j} within 30;"


def events(count: int) -> list[dict[str, Any]]:
    return [{"event": "ac"[t % 3 == 2], "time": t, "data": [t % 4]} for t in range(count)]


def run(folder: Path, text: str, given: Sequence[dict[str, Any]], kept: Kept, **more: Any) -> LiveRun:
    """A run up to the end of what is given."""
    program = ephemera.compile(text)
    own = LiveProgram(program.engine(), program._world())
    found = LiveRun([own], [Read(Given(given))], [Written(kept)], str(folder), **more)
    found.run(lambda: False, once=True)
    return found


def given_to(kept: Kept) -> list[str]:
    """The answers that a target took, one by one."""
    (puts,) = kept.puts.values()
    return [line for _, load in puts for line in load.decode().splitlines()]


def changed(folder: Path, text: str, look_back: Any = "refuse", *, dry_run: bool = False) -> str:
    (found,) = change_checkpoint(str(folder), [ephemera.compile(text)], look_back, dry_run=dry_run)
    return str(found)


def files(folder: Path) -> dict[str, bytes]:
    """What is in a checkpoint, without the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def test_a_run_goes_on_with_the_new_program_and_each_answer_comes_once(tmp_path: Path) -> None:
    every, kept = events(80), Kept("kept")
    run(tmp_path, OLD, every[:40], kept)
    assert is_of_one_process(str(tmp_path))
    assert changed(tmp_path, OLD + MORE, every[:40]).splitlines() == [
        "kept     `p` (rule 1)",
        "added    `q` (rule 2), exact from 38.999999 on",
    ]
    run(tmp_path, OLD + MORE, every, kept)
    answers = given_to(kept)
    wanted = {a for a in oracle_of(OLD + MORE, every) if end_of(a) <= 78_999_999}
    assert told(map(json.loads, answers)) == {a for a in wanted if '"p"' in a or end_of(a) > 38_999_999}
    assert len(answers) == len(set(answers))


def test_the_command_changes_it_and_finds_the_past_of_added_rules_in_files(tmp_path: Path) -> None:
    every, kept, folder = events(80), Kept("kept"), tmp_path / "checkpoint"
    run(folder, OLD, every[:40], kept)
    (tmp_path / "new.eq").write_text(OLD + MORE, encoding="utf-8")
    (tmp_path / "past.jsonl").write_text("".join(json.dumps(one) + "\n" for one in every[:40]), encoding="utf-8")

    def command(*options: str) -> Result:
        return CliRunner().invoke(app, ["change", str(folder), str(tmp_path / "new.eq"), *options])

    before = files(folder)
    refused = command()
    assert (refused.exit_code, "added rules need what is not there" in refused.stderr) == (1, True)
    dry = command("--look-back", str(tmp_path / "past.jsonl"), "--dry-run")
    assert (dry.exit_code, files(folder)) == (0, before), dry.output
    done = command("--look-back", str(tmp_path / "past.jsonl"))
    assert (done.exit_code, done.stdout) == (0, dry.stdout), done.output
    assert done.stdout.splitlines() == ["kept     `p` (rule 1)", "added    `q` (rule 2), exact from 38.999999 on"]
    run(folder, OLD + MORE, every, kept)
    wanted = {a for a in oracle_of(OLD + MORE, every) if end_of(a) <= 78_999_999}
    assert told(map(json.loads, given_to(kept))) == {a for a in wanted if '"p"' in a or end_of(a) > 38_999_999}


@dataclass
class Pieces(Given):
    """Events that come ten at a time."""

    def poll(self, _seconds: float) -> list[Arrived]:
        piece = self.events[self.position : self.position + 10]
        self.position += len(piece)
        self.behind = {"0"} if self.position < len(self.events) else set()
        return [Arrived("0", Objects(list(piece)))] if piece else []


def test_a_run_at_work_takes_a_program_between_two_rounds_and_commits_that_at_once(tmp_path: Path) -> None:
    every, kept = events(80), Kept("kept")
    program, new = ephemera.compile(OLD), ephemera.compile(OLD + MORE)
    own = LiveProgram(program.engine(), program._world())
    found = LiveRun([own], [Read(Pieces(every[:60]))], [Written(kept)], str(tmp_path))
    texts: list[str] = []

    def changing() -> list[int]:
        if found.totals.commits and (tmp_path / "commit.json").exists():
            content = unseal((tmp_path / "commit.json").read_bytes(), KIND, FORMAT, "commit.json")
            texts.append(content["programs"][0]["text"])
        if own.engine.stats().received != 40:
            return []
        own.engine.change(new, look_back=every[:40])
        return [0]

    found.changed, found.pace = changing, 0.0
    found.run(lambda: False, once=True)
    assert texts == [OLD, OLD, OLD, OLD, OLD + MORE]
    run(tmp_path, OLD + MORE, every, kept)
    wanted = {a for a in oracle_of(OLD + MORE, every) if end_of(a) <= 78_999_999}
    answers = given_to(kept)
    assert told(map(json.loads, answers)) == {a for a in wanted if '"p"' in a or end_of(a) > 38_999_999}
    assert len(answers) == len(set(answers))


def test_it_may_change_again_before_it_goes_on_and_leaves_no_files_behind(tmp_path: Path) -> None:
    every, kept = events(40), Kept("kept")
    run(tmp_path, OLD, every, kept)
    before = files(tmp_path)
    changed(tmp_path, OLD + MORE, every)
    changed(tmp_path, OLD)
    changed(tmp_path, OLD + MORE, "from-now")
    changed(tmp_path, OLD)
    assert len(files(tmp_path)) <= len(before) + 1  # one of data that was there, and one that takes its place
    run(tmp_path, OLD, events(60), kept)
    assert not any("-" in name for name in files(tmp_path) if name.endswith(".data"))


def test_what_is_only_asked_touches_nothing_and_needs_no_lock(tmp_path: Path) -> None:
    run(tmp_path, OLD, events(40), Kept("kept"))
    with hold(str(tmp_path)):
        before = files(tmp_path)
        assert "added    `q` (rule 2), exact from 38.999999 on" in changed(
            tmp_path, OLD + MORE, events(40), dry_run=True
        )
        assert files(tmp_path) == before
        with pytest.raises(CheckpointHeld):
            changed(tmp_path, OLD + MORE, events(40))


def test_a_refused_change_leaves_all_as_it_was(tmp_path: Path) -> None:
    run(tmp_path, OLD, events(40), Kept("kept"))
    before = files(tmp_path)
    with pytest.raises(ChangeRefused, match=r"`q` \(rule 2\) needs 30s of `a`, 4s are kept"):
        changed(tmp_path, OLD + MORE)
    assert files(tmp_path) == before


def test_answers_that_were_to_be_put_are_put_by_the_new_program(tmp_path: Path) -> None:
    every, kept = events(40), Kept("kept", crashes=True)
    with pytest.raises(Crash):
        run(tmp_path, OLD, every, kept)
    kept.crashes = False
    assert given_to(kept) == []
    changed(tmp_path, OLD + MORE, every)
    run(tmp_path, OLD + MORE, every, kept)
    wanted = {a for a in oracle_of(OLD, every) if end_of(a) <= 38_999_999}
    assert told(map(json.loads, given_to(kept))) == wanted
    ((number, _),) = next(iter(kept.puts.values()))
    assert number == 1  # as they were first to be put: who has them already passes over


def steps_of(monkeypatch: pytest.MonkeyPatch, at: int | None) -> list[str]:
    """Counts the steps by which files are put and removed; the process ends before one of them."""
    found: list[str] = []
    put, remove = Posix.put, Posix.remove

    def mark(what: str) -> None:
        found.append(what)
        if len(found) - 1 == at:
            raise Crash

    def putting(self: Posix, path: str, chunks: Any, _mark: Callable[[str], None]) -> None:
        put(self, path, chunks, mark)
        mark("put")

    def removing(self: Posix, path: str) -> None:
        mark("remove")
        remove(self, path)

    monkeypatch.setattr(Posix, "put", putting)
    monkeypatch.setattr(Posix, "remove", removing)
    return found


def test_who_is_killed_at_any_step_leaves_the_old_program_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = events(80)
    step, olds, news = 0, 0, 0
    while True:
        folder, kept = tmp_path / str(step), Kept("kept")
        run(folder, OLD, every[:40], kept)
        with monkeypatch.context() as patched:
            steps = steps_of(patched, step)
            with suppress(Crash):
                changed(folder, OLD + MORE, every[:40])
            is_whole = len(steps) <= step
        content = unseal((folder / "commit.json").read_bytes(), KIND, FORMAT, "commit.json")
        text = content["programs"][0]["text"]
        assert text in (OLD, OLD + MORE)
        olds, news = olds + (text == OLD), news + (text != OLD)
        run(folder, text, every, kept)
        wanted = {a for a in oracle_of(text, every) if end_of(a) <= 78_999_999}
        got = told(map(json.loads, given_to(kept)))
        assert got == {a for a in wanted if '"p"' in a or end_of(a) > 38_999_999}
        if is_whole:
            break
        step += 1
    assert olds > 3
    assert news > 2


def test_a_checkpoint_that_does_not_know_its_program_says_what_to_do(tmp_path: Path) -> None:
    run(tmp_path, OLD, events(40), Kept("kept"))
    content = unseal((tmp_path / "commit.json").read_bytes(), KIND, FORMAT, "commit.json")
    del content["programs"]
    (tmp_path / "commit.json").write_bytes(seal(KIND, FORMAT, content))
    with pytest.raises(EphemeraError, match="start its run once more with the programs that it has"):
        changed(tmp_path, OLD + MORE)
    run(tmp_path, OLD, events(41), Kept("other"))
    assert "kept     `p` (rule 1)" in changed(tmp_path, OLD + "q(x) <- i: c(x);")


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([OLD, OLD], "is of 1 programs, and these are 2"),
        (["TABLE t(x: int); " + OLD], "the rows of `TABLE t` are needed"),
    ],
    ids=["more", "tables"],
)
def test_what_cannot_be_changed_so_is_said(tmp_path: Path, texts: list[str], why: str) -> None:
    run(tmp_path, OLD, events(40), Kept("kept"))
    with pytest.raises(EphemeraError, match=why):
        change_checkpoint(str(tmp_path), [ephemera.compile(text) for text in texts], "refuse", dry_run=False)


def test_a_run_of_another_program_says_that_the_checkpoint_can_be_changed(tmp_path: Path) -> None:
    run(tmp_path, OLD, events(40), Kept("kept"))
    with pytest.raises(EphemeraError, match=f"`ephemera change {tmp_path} PROGRAM`"):
        run(tmp_path, OLD + MORE, events(50), Kept("kept"))


def test_a_folder_that_is_no_checkpoint_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(EphemeraError, match=r"is not the checkpoint of a live run in one process"):
        changed(tmp_path / "none", OLD)
    assert not (tmp_path / "none").exists()
