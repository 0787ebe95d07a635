"""Programs that run live in this process are taken anew when their files change: `run --watch`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ephemera.cli import watched
from ephemera.cli.main import app

DECLARED = "TIME UNIT 1 hour;\nEVENT order(id: string);\nEVENT shipped(id: string);\n"
SEEN = "seen(id) <- o: order(id);\n"
LATE = "late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);\n"
Step = str | Callable[[], object]


def order(time: int, key: str) -> str:
    return json.dumps({"event": "order", "time": time, "data": [key]})


@dataclass
class Watched:
    """A live run of a program file over steps: lines that come, and what is done between them."""

    path: Path
    steps: list[Step] = field(default_factory=list)

    def chunks(self, *_: Any, **__: Any) -> Iterator[tuple[dict[int, str | None], list[bytes]]]:
        """The lines, each in a round of its own; between them time for two looks at the file."""
        for step in self.steps:
            if isinstance(step, str):
                yield {0: None}, [step.encode()]
                continue
            step()
            yield {0: None}, []
            yield {0: None}, []

    def written(self, text: str) -> Callable[[], object]:
        """A step that writes the program."""
        return lambda: self.path.write_text(text, encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched(tmp_path / "p.eq")
    found.path.write_text(DECLARED + SEEN, encoding="utf-8")
    monkeypatch.setattr("ephemera.cli.stream._chunks", found.chunks)
    monkeypatch.setattr(watched, "LOOK", 0.0)
    return found


def done(run: Watched, *options: str) -> tuple[list[Any], str]:
    """The answers of a run, and what it told."""
    command = ["run", str(run.path), "--mode", "stream", "--engine", "local", "--watch", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(one) for one in result.stdout.splitlines()]
    return [(one["event"], next(iter(one["data"]))) for one in answers], result.stderr


def test_a_changed_program_is_taken_between_two_rounds_and_told(run: Watched) -> None:
    run.steps = [order(1, "a"), run.written(DECLARED + LATE.replace("late", "gone")), order(3, "b")]
    answers, told = done(run, "--look-back", "from-now")
    assert answers == [("gone", "a"), ("gone", "b")]  # the first order waits: at 1 nothing has ended before it came
    assert f"{run.path} has changed:\n  removed  `seen` (rule 1)\n  added    `gone` (rule 1), exact from " in told


def test_a_broken_program_is_told_and_the_one_before_goes_on(run: Watched) -> None:
    run.steps = [order(1, "a"), run.written(DECLARED + "seen(id) <- o: ordre(id"), order(3, "b")]
    answers, told = done(run)
    assert answers == [("seen", "a"), ("seen", "b")]
    assert "error[syntax]" in told
    assert f"{run.path} has changed, and is not taken: the program before goes on" in told


def test_a_program_that_would_keep_things_for_ever_is_not_taken(run: Watched) -> None:
    run.steps = [order(1, "a"), run.written(DECLARED + "both(x) <- o: order(x), s: shipped(x);"), order(3, "b")]
    answers, told = done(run)
    assert answers == [("seen", "a"), ("seen", "b")]
    assert "error[unbounded-relevance]" in told


def test_what_lacks_is_told_and_an_archive_helps(run: Watched, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"
    archive.write_text(order(1, "a") + "\n" + order(3, "b") + "\n", encoding="utf-8")
    run.steps = [order(1, "a"), order(3, "b"), run.written(DECLARED + SEEN + LATE), order(20, "c")]
    answers, told = done(run)
    assert answers == [("seen", key) for key in "abc"]
    assert "`late` (rule 2) needs 6h of `order`, nothing of it is kept" in told
    assert "the program before goes on" in told
    run.path.write_text(DECLARED + SEEN, encoding="utf-8")
    answers, told = done(run, "--look-back", str(archive))
    assert sorted(answers) == [("late", key) for key in "abc"] + [("seen", key) for key in "abc"]
    assert "added    `late` (rule 2), exact from " in told


def test_an_archive_that_is_not_there_is_told(run: Watched, tmp_path: Path) -> None:
    run.steps = [order(1, "a"), order(3, "b"), run.written(DECLARED + SEEN + LATE), order(20, "c")]
    answers, told = done(run, "--look-back", f"{tmp_path}/none/")
    assert answers == [("seen", key) for key in "abc"]
    assert f"cannot read {tmp_path}/none/: No such file or directory" in told
    assert "is not taken: the program before goes on" in told


def test_what_is_written_again_as_it_was_is_no_change(run: Watched) -> None:
    run.steps = [order(1, "a"), run.written(DECLARED + SEEN), lambda: os.utime(run.path, (9, 9)), order(3, "b")]
    answers, told = done(run)
    assert answers == [("seen", "a"), ("seen", "b")]
    assert "has changed" not in told


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no such signal")
def test_a_hangup_has_files_looked_at_at_once(run: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "LOOK", 3600.0)

    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    run.steps = [order(1, "a"), hang_up, run.written(DECLARED + "new(id) <- o: order(id);\n"), hang_up, order(3, "b")]
    before = signal.getsignal(signal.SIGHUP)
    answers, told = done(run, "--look-back", "from-now")
    assert answers == [("new", "a"), ("new", "b")]
    assert f"{run.path} is as it was" in told
    assert "added    `new` (rule 1)" in told
    assert signal.getsignal(signal.SIGHUP) == before


def test_another_place_for_answers_is_not_taken(run: Watched, tmp_path: Path) -> None:
    run.steps = [order(1, "a"), run.written(DECLARED + SEEN + f'WRITE seen TO "{tmp_path}/x.jsonl";'), order(3, "b")]
    answers, told = done(run)
    assert answers == [("seen", "a"), ("seen", "b")]
    assert "where answers go (`WRITE`) stays as it is" in told


def test_messages_that_nobody_would_deliver_are_not_taken(run: Watched) -> None:
    message = 'RAISE to(recipient="desk", transport="python") { bell { id { var I } } } ON event s: seen(var I) END'
    run.steps = [order(1, "a"), run.written(DECLARED + SEEN + message), order(3, "b")]
    answers, told = done(run)
    assert answers == [("seen", "a"), ("seen", "b")]
    assert "messages are being delivered, and there would be others" in told
    run.path.write_text(DECLARED + SEEN, encoding="utf-8")
    run.steps[1] = run.written(DECLARED + SEEN + message)
    answers, told = done(run, "--no-deliver", "--look-back", "from-now")
    assert answers == [("seen", "a"), ("bell", "id"), ("seen", "b"), ("bell", "id")]
    assert "is not taken" not in told


def test_a_table_that_is_new_is_read(run: Watched, tmp_path: Path) -> None:
    (tmp_path / "vip.csv").write_text("id\nb\n", encoding="utf-8")
    table = 'TABLE vip(id: string) FROM "vip.csv";\n'
    run.steps = [order(1, "a"), run.written(DECLARED + table + "new(id) <- o: order(id), vip(id);\n"), order(3, "b")]
    answers, _ = done(run, "--look-back", "from-now")
    assert answers == [("new", "b")]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--mode", "batch", "--watch"], "--watch is for live runs"),
        (["--mode", "stream", "--look-back", "from-now"], "--look-back says how rules begin that are added"),
        (["--mode", "stream", "--engine", "spark", "--watch", "--input"], "ephemera change CHECKPOINT PROGRAM"),
    ],
    ids=["batch", "alone", "spark"],
)
def test_where_nothing_can_be_watched_that_is_said(tmp_path: Path, options: list[str], why: str) -> None:
    program = tmp_path / "p.eq"
    program.write_text(DECLARED + SEEN, encoding="utf-8")
    more = [str(tmp_path)] if options[-1] == "--input" else []
    result = CliRunner().invoke(app, ["run", str(program), *options, *more])
    assert result.exit_code == 2
    assert why in result.stderr
