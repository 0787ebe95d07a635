"""This module runs programs live on Spark from the command line: starts, stops, going on, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import ephemera
from ephemera.cli.main import app
from ephemera.engine.state.durable_files import seal
from ephemera.spark.batch.job import Job
from ephemera.spark.live.host import Host
from ephemera.spark.live.positions import QueryStopping
from ephemera.spark.live.sources import open_inlets
from ephemera.spark.read.scan import Input
from ephemera.spark.sinks.folder_sink import FORMAT, KIND
from tests.spark.machine import PATIENCE, SOURCES

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
TABLE known(id: string) FROM "known.csv";
overdue(id) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id), q < 10, known(id);
large(id, q) <- o: order(id, q), q > 100;
"""
DECLARED = 'EVENT order(id: string, qty: int);\nSTREAM shop FROM "in" CARRIES order;\nseen(i) <- o: order(i, q);'
UNBOUNDED = "pair(x) <- a: a(x), b: b(x);"
ONCE = ("--trigger", "once")


def event(label: str, when: Any, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": when, "data": list(data)}


ORDERS: list[dict[str, Any] | str] = [
    event("order", 1, "a", 3),
    event("order", 1, "stranger", 3),
    event("order", 2, "b", 300),
    "no json",
]
LATER = [event("order", 20, "c", 3), event("order", 1, "late", 3)]
LARGE, OVERDUE = event("large", 2, "b", 300), event("overdue", [1, 7], "a")


class Shop:
    """A folder with programs and events that arrive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        for name, text in (("p.eq", SHOP), ("declared.eq", DECLARED), ("unbounded.eq", UNBOUNDED)):
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "known.csv").write_text("id\na\nb\nc\n", encoding="utf-8")
        (folder / "foreign").mkdir()
        (folder / "foreign" / "letter.txt").write_text("not ours", encoding="utf-8")

    def put(self, name: str, events: Sequence[dict[str, Any] | str]) -> None:
        """A file arrives."""
        lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
        (self.folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        (self.folder / name).replace(self.folder / "in" / name)

    def lines(self, name: str) -> list[dict[str, Any]]:
        files = sorted((self.folder / name).glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]

    def command(self, program: str, *options: str) -> list[str]:
        """A live run; words that begin with an at sign are names in the folder."""
        words = [f"@{program}", "--mode", "stream", *options]
        return ["run", *(str(self.folder / word[1:]) if word.startswith("@") else word for word in words)]

    def run(self, program: str, *options: str) -> Result:
        result = CliRunner().invoke(app, self.command(program, *options))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    @contextmanager
    def started(self, program: str, *options: str) -> Iterator[subprocess.Popen[str]]:
        """A live run in a process of its own."""
        command = [sys.executable, "-m", "ephemera", *self.command(program, *options, "--master", "local[2]")]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONIOENCODING": "utf-8"}
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it may come ignored
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def shared(shop: Shop, spark: SparkSession) -> Shop:
    """The same, with a session that all commands share."""
    assert spark is not None
    return shop


def by_text(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(events, key=json.dumps)


def answers(result: Result) -> list[dict[str, Any]]:
    return by_text([json.loads(line) for line in result.stdout.splitlines()])


def until(claim: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits for what must come."""
    last = time.monotonic() + PATIENCE
    while not claim():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < last
        time.sleep(0.05)


# ---- what is there -----------------------------------------------------------------------------------------


def test_what_is_there_is_taken_once_and_another_start_goes_on(shared: Shop) -> None:
    folders = ["--output", "@out/", "--dead-letter", "@dead/", "--checkpoint", "@check/"]
    options = ["--input", "@in/", *folders, *ONCE, "--progress"]
    shared.put("1.jsonl", ORDERS)
    first = shared.run("p.eq", *options)
    assert (first.exit_code, first.stdout) == (0, "")
    assert first.stderr.splitlines()[-1] == "4 events, 1 bad, 0 late, 0 without a value"
    assert re.search(r"^batch 0: 4 events in .*, 0 answers, 1 dead letter, state ", first.stderr)
    assert shared.lines("out") == []
    shared.put("2.jsonl", LATER)
    assert shared.run("p.eq", *options).exit_code == 0
    again = shared.run("p.eq", *options)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "")
    assert by_text(shared.lines("out")) == by_text([LARGE, OVERDUE])
    assert [letter["reason"] for letter in shared.lines("dead")] == [
        "the JSON cannot be read at column 1: Expecting value",
        "it came behind the bound of its source",
    ]


def test_several_programs_write_their_answers_to_standard_output(shared: Shop) -> None:
    shared.put("1.jsonl", ORDERS)
    shared.put("2.jsonl", LATER)
    programs = ["--input", "@in/*.jsonl", *ONCE, "--emit", "large", "--emit", "seen"]
    result = shared.run("p.eq", "@declared.eq", *programs)
    assert result.exit_code == 0
    seen = [event("seen", when, name) for when, name in ((1, "a"), (1, "stranger"), (2, "b"), (1, "late"))]
    assert answers(result) == by_text([LARGE, *seen])
    assert result.stderr.startswith("without --checkpoint nothing is kept for another start\n")
    assert result.stderr.endswith("; `--dead-letter PATH` keeps them\n")


def test_declared_folders_are_read_and_columns_written(shared: Shop) -> None:
    shared.put("1.jsonl", [event("order", k, f"a{k}", 1) for k in range(1, 4)])
    result = shared.run("declared.eq", "--output", "@out.parquet", *ONCE)
    assert result.exit_code == 0
    table = pq.ParquetDataset(shared.folder / "out.parquet").read()
    assert table.column_names == ["event", "begin", "end", "i"]
    assert sorted(table.column("i").to_pylist()) == ["a1", "a2"]  # whether there is more at 3 is not known yet


def test_times_are_printed_as_the_events_write_them_from_the_first_batch_on(shared: Shop) -> None:
    times = [f"2026-03-01T09:00:0{second}Z" for second in (2, 1, 3)]
    shared.put("1.jsonl", [event("order", when, "a", 1) for when in times])
    result = shared.run("declared.eq", *ONCE)
    assert [json.loads(line)["time"] for line in result.stdout.splitlines()] == sorted(times)[:2]


def test_a_run_that_takes_what_is_there_has_the_sources_of_one_that_goes_on(shop: Shop, spark: SparkSession) -> None:
    program = ephemera.compile(DECLARED.replace("CARRIES order", "CARRIES order IDLE 1 min"))
    jobs, inputs = [Job(program._compiled, program._world())], [Input(str(shop.folder / "in"), "json")]
    both = [open_inlets(spark, jobs, inputs, clock=clock) for clock in (True, False)]
    assert both[0].frame.columns == both[1].frame.columns == ["source0", "source1"]
    assert [len(inlet.readers) for inlet in both] == [2, 2]


def test_what_would_be_kept_forever_is_refused_unless_allowed(shared: Shop) -> None:
    refused = shared.run("unbounded.eq", "--input", "@in/", *ONCE)
    assert (refused.exit_code, "error[unbounded-relevance]" in refused.stderr) == (1, True)
    assert shared.run("unbounded.eq", "--input", "@in/", *ONCE, "--allow-unbounded").exit_code == 0


# ---- mistakes ----------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[Sequence[str], str]] = {
    "no folder": (["--input", "@none/"], "there is no such file or folder"),
    "a pattern in no folder": (["--input", "@none/*.jsonl"], "there is no folder"),
    "no port": (["--input", "socket://127.0.0.1"], "a socket has a host and a port"),
    "a file on Spark": (["--input", "@p.eq", "--engine", "spark"], "is read by the engine `local`"),
    "lines on Spark": (["--input", "-", "--engine", "spark"], "is read by the engine `local`"),
    "a file that grows on Spark": (["--input", "@in/", "--follow", "--engine", "spark"], "--follow is for"),
    "nothing on Spark": (["--engine", "spark"], "there is nothing to read"),
    "a folder and a file": (["--input", "@in/", "--input", "@p.eq"], "a run does one or the other"),
    "a folder on local": (["--input", "@in/", "--engine", "local"], "is read by Spark: leave `--engine` out"),
    "a folder that others use": (["--input", "@in/", "--output", "@foreign"], "holds other things"),
    "letters where others are": (["--input", "@in/", "--dead-letter", "@foreign"], "holds other things"),
    "a file for answers": (["--input", "@in/", "--output", "@out.jsonl"], "is the name of a file"),
    "a file for letters": (["--input", "@in/", "--dead-letter", "@dead.jsonl"], "is the name of a file"),
    "a file as checkpoint": (["--input", "@in/", "--checkpoint", "@declared.eq"], "is a file; name a new folder"),
    "no such place": (["--input", "@in/", "--checkpoint", "gopher://x"], "nothing can be kept at `gopher://x`"),
    "no such time": (["--input", "@in/", "--trigger", "often"], '`--trigger` is such as "1 second"'),
    "no such port": (["--input", "@in/", "--metrics", "x"], "`x` is no port"),
    "a table that is forgotten": (["--input", "@in/", "--output", "table:answers"], "its catalog is in memory"),
    "a pattern without columns": (["--input", "@in/*.parquet"], "it shows the columns"),
    "a folder of another query": (["--input", "@in/", "--output", "@taken", "--checkpoint", "@new"], "this is query"),
}


@pytest.mark.parametrize(("options", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told_in_a_line_with_a_way_out(shared: Shop, options: Sequence[str], told: str) -> None:
    (shared.folder / "taken").mkdir()
    (shared.folder / "taken" / "_ephemera.json").write_bytes(seal(KIND, FORMAT, {"query": "theirs"}))
    result = shared.run("p.eq", *options)
    assert result.exit_code == 2, result.stderr
    assert told in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert "Spark failed" not in result.stderr


def test_the_checkpoint_of_another_program_is_refused_with_what_differs(shared: Shop) -> None:
    assert shared.run("declared.eq", *ONCE, "--checkpoint", "@check").exit_code == 0
    result = shared.run("p.eq", "--input", "@in/", *ONCE, "--checkpoint", "@check")
    assert result.exit_code == 2
    assert result.stderr.startswith("the checkpoint is of another program")
    assert "change it to the new program by `ephemera change " in result.stderr
    assert "start that with another checkpoint" in result.stderr


# ---- stories ---------------------------------------------------------------------------------------------


def test_stories_are_told_as_a_stream_if_asked_for(shared: Shop) -> None:
    stories = Path(__file__).parents[1] / "stories"
    names = ["late-a-watermark-lets-events-come-in-disorder.md", "timer-goes-off-without-an-event.md"]
    given = [str(stories / name) for name in names]
    wrong = shared.folder / "wrong.md"
    wrong.write_text((stories / names[1]).read_text(encoding="utf-8") + "| more | 1 | [] |\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["test", *given, str(wrong), "--engine", "stream"])
    assert result.exit_code == 1
    told = result.output.splitlines()
    assert told[0] == f"{wrong} does not hold on stream:"
    assert told[-1] == "2 passed, 1 failed"


# ---- signals -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_is_told_to_end_says_how_to_go_on(shop: Shop) -> None:
    options = ["--output", "@out/", "--checkpoint", "@check/", "--dead-letter", "@dead/", "--trigger", "100 ms"]
    shop.put("1.jsonl", ORDERS)
    with shop.started("p.eq", "--input", "@in/", *options, "--metrics", "0", "--progress") as process:
        assert process.stderr is not None
        where = re.fullmatch(r"metrics at (http://127.0.0.1:\d+/metrics)\n", process.stderr.readline())
        assert where is not None
        until(lambda: len(shop.lines("dead")) == 1, process)
        shop.put("2.jsonl", LATER)
        until(lambda: len(shop.lines("out")) == 2, process)
        until(lambda: "ephemera_events_total 6.0\n" in _read(where[1]), process)
        assert 'ephemera_source_events_total{source=""} 5.0\n' in _read(where[1])
        process.send_signal(signal.SIGTERM)
        out, told = process.communicate(timeout=PATIENCE)
    *batches, letters, end = told.splitlines()
    assert (process.returncode, out) == (0, "")
    assert end == f"stopped after 2 batches; go on with --checkpoint {shop.folder / 'check'}"
    assert letters == "6 events, 1 bad, 1 late, 0 without a value"
    assert [line.partition(":")[0] for line in batches] == ["batch 0", "batch 1", "note"]
    assert batches[-1] == "note: never came: `shipped`"
    assert by_text(shop.lines("out")) == by_text([LARGE, OVERDUE])


@pytest.mark.slow
def test_ctrl_c_ends_a_run_that_reads_from_a_socket(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"socket://127.0.0.1:{server.getsockname()[1]}"
        with shop.started("p.eq", "--input", address, "--emit", "overdue") as process:
            assert process.stdout is not None
            server.settimeout(PATIENCE)
            talk, _ = server.accept()
            with talk:
                talk.sendall("".join(json.dumps(one) + "\n" for one in [*ORDERS[:3], LATER[0]]).encode())
                assert json.loads(process.stdout.readline()) == OVERDUE
                os.killpg(process.pid, signal.SIGINT)
                out, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert told.splitlines()[:2] == [
        "without --checkpoint nothing is kept for another start",
        "what comes from a socket is read at most once: it is lost if the run fails",
    ]
    assert re.fullmatch(r"stopped after \d+ batch(es)?", told.splitlines()[-1])
    assert len(told.splitlines()) == 3


@pytest.mark.slow
def test_a_run_ends_when_nobody_reads_its_answers_though_no_more_come(shop: Shop) -> None:
    shop.put("1.jsonl", [*ORDERS, *LATER])
    with shop.started("p.eq", "--input", "@in/") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) in (LARGE, OVERDUE)
        process.stdout.close()
        process.wait(PATIENCE)
        told = process.stderr.read().splitlines()
    assert process.returncode == 3
    assert told[-1] == "cannot write standard output: Broken pipe"
    assert len(told) == 3  # with what is said of the checkpoint, and of the dead letters


def test_a_batch_that_would_begin_while_the_query_stops_does_not_wait() -> None:
    nothing: Any = None
    host = Host(nothing, (), nothing, (), nothing)
    with host.paused(PATIENCE), pytest.raises(QueryStopping):
        host(nothing, 0)


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        text: str = answer.read().decode()
    return text
