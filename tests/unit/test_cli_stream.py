"""This module shows stream mode on the command line: answers as they become certain, and what happens to the rest."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ephemera.cli.follow import FollowedFile
from ephemera.cli.main import app
from ephemera.cli.stream import _lines

PROGRAM = """
TIME UNIT 1 hour;
EVENT order(id: string);
EVENT shipped(id: string);
overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
"""
UNBOUNDED = "pair(x) <- a: a(x), b: b(x);"


def line(label: str, time: float, *values: object) -> str:
    return json.dumps({"event": label, "time": time, "data": list(values)})


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def run(program: str, *options: str, given: str = "") -> Any:
    return CliRunner().invoke(app, ["run", program, "--mode", "stream", *options], input=given)


def test_answers_come_from_standard_input_and_the_end_decides_the_rest(tmp_path: Path) -> None:
    given = "\n".join([line("order", 1, "a"), line("order", 9, "b"), line("shipped", 10, "b")])
    result = run(write(tmp_path, "p.eq", PROGRAM), given=given)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [json.loads(x) for x in result.stdout.splitlines()] == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]


def test_bad_and_late_events_go_to_the_dead_letters(tmp_path: Path) -> None:
    given = "\n".join([line("order", 9, "b"), "no json", line("order", 2, "c"), line("order", 10, 1, 2)])
    letters = tmp_path / "dead.jsonl"
    result = run(write(tmp_path, "p.eq", PROGRAM), "--dead-letter", str(letters), given=given)
    assert "4 events, 2 bad, 1 late" in result.stderr
    found = [json.loads(x) for x in letters.read_text().splitlines()]
    assert len(found) == 3
    assert any("behind the bound" in letter["reason"] for letter in found)


def test_several_files_are_read_one_after_the_other_and_answers_written_to_one(tmp_path: Path) -> None:
    first = write(tmp_path, "1.jsonl", line("order", 1, "a") + "\n")
    second = write(tmp_path, "2.jsonl", line("order", 30, "b"))
    out = tmp_path / "out.jsonl"
    result = run(write(tmp_path, "p.eq", PROGRAM), "--input", first, "--input", second, "--output", str(out))
    assert result.exit_code == 0
    assert [json.loads(x)["data"] for x in out.read_text().splitlines()] == [["a"], ["b"]]


@pytest.mark.parametrize("option", ["--output", "--dead-letter"])
def test_a_file_that_holds_something_is_not_written_over_live(tmp_path: Path, option: str) -> None:
    kept, program = tmp_path / "out.jsonl", write(tmp_path, "p.eq", PROGRAM)
    kept.write_text("yesterday\n")
    refused = run(program, option, str(kept), given=line("order", 1, "a"))
    assert (refused.exit_code, kept.read_text()) == (2, "yesterday\n")
    assert "is not empty, and a live run that begins anew would write over it; move it away" in refused.stderr
    kept.write_text("")
    assert run(program, option, str(kept), given=line("order", 1, "a")).exit_code == 0


def test_a_live_run_refuses_what_would_be_kept_forever(tmp_path: Path) -> None:
    program = write(tmp_path, "p.eq", UNBOUNDED)
    assert run(program).exit_code == 1
    assert run(program, "--allow-unbounded").exit_code == 0


def test_what_is_bounded_by_begins_alone_is_refused_live_on_spark(tmp_path: Path) -> None:
    """There events are used when they have ended; in this process from their begin on."""
    known = "LASTS ANY ARRIVES AT BEGIN"
    text = f"EVENT a(x: int) {known}; EVENT b(x: int) {known}; q(x) <- i: a(x), j: b(x), i before[0, 3] j;"
    program = write(tmp_path, "p.eq", text)
    (tmp_path / "in").mkdir()
    assert run(program).exit_code == 0
    refused = run(program, "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out", "--checkpoint", f"{tmp_path}/c")
    assert refused.exit_code == 1
    assert "error[unbounded-relevance]" in refused.stderr
    assert refused.stderr.splitlines()[-1].startswith("live on Spark, events are used when they have ended")


def test_a_batch_run_warns_of_it(tmp_path: Path) -> None:
    program = write(tmp_path, "p.eq", UNBOUNDED)
    result = CliRunner().invoke(app, ["run", program, "--engine", "local"], input="")
    assert result.exit_code == 0
    assert "warning[unbounded-relevance]" in result.stderr


@pytest.mark.parametrize("options", [["--engine", "oracle"], ["--input", "nothing.jsonl"]])
def test_what_cannot_be_streamed_is_told(tmp_path: Path, options: list[str]) -> None:
    assert run(write(tmp_path, "p.eq", PROGRAM), *options).exit_code == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--checkpoint", "here"], "--checkpoint is for live runs on Spark"),
        (["--trigger", "once"], "--trigger is for live runs on Spark"),
        (["--metrics", "0"], "--metrics is for live runs on Spark"),
        (["--master", "local[1]"], "--master is for live runs on Spark"),
        (["--output", "answers/"], "the engine `local` writes one file of JSON lines"),
    ],
)
def test_what_only_spark_can_do_is_refused_in_this_process(tmp_path: Path, options: list[str], told: str) -> None:
    result = run(write(tmp_path, "p.eq", PROGRAM), *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(told)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("declared", "options", "named"),
    [
        ("", ["--output", "kafka://127.0.0.1:9/out"], "`kafka://127.0.0.1:9/out`: "),
        ("", ["--output", "delta:out"], "`delta:out`: "),
        ("", ["--output", "a.jsonl", "--output", "delta:out"], "`a.jsonl` among other places: "),
        ('WRITE overdue TO "kafka://127.0.0.1:9/out";', [], "`kafka://127.0.0.1:9/out` with some of them: "),
        ('WRITE overdue TO "a.jsonl";', ["--engine", "local"], "a.jsonl` with some of them: "),
    ],
)
@pytest.mark.parametrize("read", ["standard input", "a file"])
def test_answers_to_lines_that_go_to_systems_or_several_places_are_refused(  # noqa: PLR0913, PLR0917 - parameters
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, options: list[str], named: str, read: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program, given = write(tmp_path, "p.eq", PROGRAM + declared), line("order", 1, "a") + "\n"
    inputs = [] if read == "standard input" else ["--input", write(tmp_path, "e.jsonl", given)]
    before = sorted(tmp_path.iterdir())
    result = run(program, *inputs, *options, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{named}leave out `--mode stream` and add `--engine local`" in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_named_place_takes_the_answers_that_a_program_would_write_elsewhere(tmp_path: Path) -> None:
    program = write(tmp_path, "p.eq", PROGRAM + 'WRITE overdue TO "kafka://127.0.0.1:9/out";')
    result = run(program, "--output", str(tmp_path / "a.jsonl"), given=line("order", 1, "a"))
    assert result.exit_code == 0, result.stderr
    assert json.loads((tmp_path / "a.jsonl").read_text())["data"] == ["a"]


@pytest.mark.parametrize("options", [["--follow"], ["--trigger", "once"], ["--shards", "2"]])
def test_what_only_live_runs_can_do_is_refused_in_batch(tmp_path: Path, options: list[str]) -> None:
    result = CliRunner().invoke(app, ["run", write(tmp_path, "p.eq", PROGRAM), *options])
    assert (result.exit_code, result.stderr) == (2, f"{options[0]} is for live runs: `--mode stream`\n")


def test_declared_files_are_read_if_nothing_is_named(tmp_path: Path) -> None:
    declared = 'STREAM shop FROM "e.jsonl" CARRIES order;\n'
    program = write(tmp_path, "p.eq", PROGRAM.replace("overdue(id)", declared + "overdue(id)", 1))
    write(tmp_path, "e.jsonl", line("order", 1, "a") + "\n")
    result = run(program)
    assert (result.exit_code, json.loads(result.stdout)["data"]) == (0, ["a"])


def test_files_of_other_formats_are_not_taken_for_lines(tmp_path: Path) -> None:
    result = run(write(tmp_path, "p.eq", PROGRAM), "--input", write(tmp_path, "e.csv", "event,time,id\norder,1,a\n"))
    assert result.exit_code == 2
    assert "holds no JSON lines" in result.stderr


def test_a_growing_file_is_followed_until_the_user_stops_it(tmp_path: Path) -> None:
    program, events = write(tmp_path, "p.eq", PROGRAM), write(tmp_path, "e.jsonl", line("order", 1, "a") + "\n")
    command = [sys.executable, "-m", "ephemera", "run", program, "--mode", "stream", "--follow", "--input", events]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it may come ignored
    ) as process:
        try:
            assert process.stdout is not None
            with Path(events).open("a", encoding="utf-8") as file:
                file.write(line("order", 20, "b") + "\n")
            assert json.loads(process.stdout.readline())["data"] == ["a"]
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped: 2 events" in told
    assert "Traceback" not in told


def test_no_event_is_lost_where_a_followed_file_is_emptied(tmp_path: Path) -> None:
    program, events = write(tmp_path, "p.eq", PROGRAM), tmp_path / "e.jsonl"
    events.write_text(line("order", 1, "a") + "\n" + line("order", 20, "b") + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "ephemera", "run", program, "--mode", "stream", "--follow", "--input", str(events)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["data"] == ["a"]
            events.write_text(line("order", 40, "c") + "\n", encoding="utf-8")
            assert json.loads(process.stdout.readline())["data"] == ["b"]
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert f"{events} was emptied and begins anew; it is read from its beginning\n" in told
    assert "stopped: 3 events" in told


def rotations(path: Path) -> dict[str, Callable[[str], None]]:
    """How logs are rotated: each begins a file anew, with some text."""
    new = path.with_name("new.jsonl")

    def replaced(text: str) -> None:
        new.write_text(text, encoding="utf-8")
        new.replace(path)

    def moved(text: str) -> None:
        path.rename(path.with_name("old.jsonl"))
        path.write_text(text, encoding="utf-8")

    def emptied(text: str) -> None:
        path.write_text(text, encoding="utf-8")

    return {"emptied": emptied, "replaced": replaced, "moved": moved}


@pytest.mark.parametrize("how", ["emptied", "replaced", "moved"])
@pytest.mark.parametrize("length", [1, 200], ids=["shorter", "longer"])
def test_a_followed_file_that_begins_anew_is_read_from_its_beginning(tmp_path: Path, how: str, length: int) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("old 1\nold 2\nhalf", encoding="utf-8")
    followed = FollowedFile(path, path.open("rb"))
    chunks = _lines(followed.file, followed, watched=True)

    def next_lines() -> list[bytes]:
        return next(lines for lines in chunks if lines)

    assert next_lines() == [b"old 1", b"old 2"]
    rotations(path)[how]("new 1\n" * length)
    assert next_lines() == [b"half"]
    assert next_lines() == [b"new 1"] * length
    with path.open("a", encoding="utf-8") as file:
        file.write("new 2\n")
    assert next_lines() == [b"new 2"]
    followed.close()


def test_what_was_written_before_a_file_was_moved_is_read_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("old 1\n", encoding="utf-8")
    followed = FollowedFile(path, path.open("rb"))
    chunks = _lines(followed.file, followed, watched=True)
    assert next(chunks) == [b"old 1"]
    with path.open("a", encoding="utf-8") as file:
        file.write("old 2\n")  # which stays here until the file is closed
        path.rename(tmp_path / "old.jsonl")
        assert next(chunks) == []  # the next file is not there yet
        file.write("old 3\n")
    path.write_text("new\n", encoding="utf-8")
    found = [line for _ in range(20) for line in next(chunks)]
    assert found == [b"old 2", b"old 3", b"new"]
    assert capsys.readouterr().err == f"{path} is another file now; it is read from its beginning\n"
    followed.close()


def test_progress_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["run", write(tmp_path, "p.eq", PROGRAM), "--engine", "local", "--progress"], input=line("order", 1, "a")
    )
    assert "100%" in result.stderr


@pytest.mark.parametrize("follow", [False, True], ids=["standard input", "a file that grows"])
def test_a_silent_source_holds_no_one_back_while_nothing_comes(tmp_path: Path, *, follow: bool) -> None:
    program = """
    EVENT order(id: string);
    EVENT scan(id: string);
    STREAM shop CARRIES order;
    STREAM floor CARRIES scan IDLE 20 ms;
    lost(id) <- o: order(id), w: extend(o, 50 ms), while w: not scan(id);
    """
    given = "\n".join([line("scan", 100, "x"), line("order", 100, "a"), line("order", 200, "b"), ""])
    events = write(tmp_path, "e.jsonl", given)
    command = [sys.executable, "-m", "ephemera", "run", write(tmp_path, "p.eq", program), "--mode", "stream"]
    command += ["--follow", "--input", events] if follow else []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not follow:
            process.stdin.write(given)
            process.stdin.flush()
        assert json.loads(process.stdout.readline())["data"] == ["a"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
