"""This module shows that runs on Spark are never silent about data: what they lacked and what they could not use."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

import ephemera
from ephemera.cli.main import app
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.ship_package import OtherPython, missing, ship

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: string, kind: string);
EVENT shipped(id: string);
EVENT spare(x: int);
late(id) <- o: order(id, k), w: extend(o, 6), while w: not shipped(id);
worse(id) <- l: late(id), s: shipped(id), {l, s} within 20;
gone(1 / 0) <- o: order("a", k);
RAISE to(recipient="b", transport="console") { alarm { var I } } ON event l: late {{ var I }} END
"""
ROWS = [("order", 1, "a", "new"), ("order", 2, "b", "new"), (None, 3, "c", "new")]
COLUMNS = "event string, time bigint, id string, kind string"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def notes(*options: str) -> list[str]:
    result = CliRunner().invoke(app, ["run", *options, "--progress"])
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("note: ")]


LINES = "".join(json.dumps({"event": e or 5, "time": t, "data": [i, k]}) + "\n" for e, t, i, k in ROWS)


def test_a_batch_tells_what_never_came_and_what_never_matched(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    program, events = write(tmp_path, "shop.eq", SHOP), write(tmp_path, "e.jsonl", LINES)
    assert notes(program, "--input", events) == [
        "note: never came: `shipped`",
        f"note: never matched: rule 2 `worse` ({program}:7)",
    ]
    assert notes(program, "--input", events, "--emit", "gone") == ["note: 1 rule was not run: nobody asked for `worse`"]


def test_of_a_type_that_is_filtered_where_it_is_read_nothing_is_claimed(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    text = 'EVENT order(id: string, kind: string); old(i) <- o: order(i, "old");'
    program = write(tmp_path, "p.eq", text)
    events = write(tmp_path, "e.csv", "event,time,id,kind\norder,1,a,new\n")
    assert notes(program, "--input", events) == [f"note: never matched: rule 1 `old` ({program}:1)"]


def test_a_live_run_tells_both_at_its_end(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    program = write(tmp_path, "shop.eq", SHOP)
    write(tmp_path, "in/e.jsonl", LINES)
    options = ["--mode", "stream", "--trigger", "once", "--input", str(tmp_path / "in")]
    told = notes(program, *options, "--output", str(tmp_path / "out"))
    assert told[0] == "note: never came: `shipped`, `spare`"
    # Once ends before the time of the last event has passed, so nothing is late yet.
    assert "rule 2 `worse`" in told[1]
    assert "rule 3" not in told[1]


STRANGE = [("order", 1, "a", "new"), ("Order", 2, "b", "new"), ("shiped", 3, "a", "new")]
MISNAMED = (
    "events `Order` were passed over, since no rule reads them; did you mean `order`?",
    "events `shiped` were passed over, since no rule reads them; did you mean `shipped`, which never came?",
)


def test_a_type_that_is_spelled_otherwise_than_one_that_rules_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    columns = dict(zip(("event", "time", "id", "kind"), zip(*STRANGE, strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), tmp_path / "e.parquet")
    started = start(spark, [Job(ephemera.compile(SHOP)._compiled)], [Input(str(tmp_path / "e.parquet"))])
    assert Computed(started).summary.warnings == MISNAMED
    lines = "".join(json.dumps({"event": e, "time": t, "data": [i, k]}) + "\n" for e, t, i, k in STRANGE)
    program = write(tmp_path, "shop.eq", SHOP)
    write(tmp_path, "in/e.jsonl", lines)
    options = [
        "--mode",
        "stream",
        "--trigger",
        "once",
        "--input",
        str(tmp_path / "in"),
        "--output",
        str(tmp_path / "o"),
    ]
    result = CliRunner().invoke(app, ["run", program, *options])
    assert [line for line in result.stderr.splitlines() if line.startswith("warning: ")] == [
        f"warning: {told}" for told in MISNAMED
    ]


def test_run_all_takes_a_frame_and_has_all_that_came_of_it(spark: SparkSession) -> None:
    program = ephemera.compile(SHOP, "shop.eq")
    run = program.run_all(spark.createDataFrame(ROWS, COLUMNS))
    assert sorted(row["event"] for row in run.answers.collect()) == ["alarm", "alarm", "late", "late"]
    assert sorted((m["event"], m["recipient"]) for m in run.messages) == [("alarm", "b")] * 2
    assert [json.loads(bad.original)["id"] for bad in run.bad] == ["c"]
    assert [dead.rule for dead in run.undefined] == [3]
    assert (run.read, run.late, run.never_came, run.never_matched) == (3, [], ("shipped",), (2,))
    assert run.notes == ("never came: `shipped`", "never matched: rule 2 `worse` (shop.eq:7)")
    only = program.run_all(spark.createDataFrame(ROWS, COLUMNS), emit=["late"])
    assert {row["event"] for row in only.answers.collect()} == {"late"}


def test_the_answers_of_run_warn_of_bad_rows_when_they_are_read(spark: SparkSession) -> None:
    answers = ephemera.compile(SHOP).run(spark.createDataFrame(ROWS, COLUMNS), emit=["late"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert answers.count() == 2
    (only,) = [one for one in told if issubclass(one.category, ephemera.EphemeraWarning)]
    assert "some rows could not be used, the first: " in str(only.message)
    assert "run_all(…).bad" in str(only.message)


def test_unbounded_programs_are_refused_live_and_warned_of_on_frames(spark: SparkSession) -> None:
    program = ephemera.compile("EVENT a(x: int); EVENT b(x: int); pair(x) <- i: a(x), j: b(x);")
    with pytest.raises(ephemera.ProgramError, match="unbounded-relevance"):
        program.stream(spark, "in")
    frame = spark.createDataFrame([("a", 1, 1)], "event string, time bigint, x bigint")
    with pytest.warns(ephemera.EphemeraWarning, match="kept forever"):
        program.run(frame)
    assert program.run(frame, allow_unbounded=True).columns == ["event", "begin", "end", "x"]


# ---- the Python of the workers -----------------------------------------------------------------------------


class Session:
    """What of a session says which Python its workers run."""

    def __init__(self, python: str, master: str = "local[2]") -> None:
        self.pythonExec, self.master = python, master
        self.sparkContext = self


def test_a_python_of_the_workers_that_lacks_something_is_told_with_the_cure(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(OtherPython) as told:
        ship(Session(bare))  # type: ignore[arg-type]
    lacking = "lxml, msgspec, numpy, pyarrow, google-re2"
    assert f"{bare}, has no {lacking}; set PYSPARK_PYTHON={sys.executable}" in str(told.value)
    with pytest.raises(OtherPython, match="does not start"):
        ship(Session(str(tmp_path / "no-python")))  # type: ignore[arg-type]
    assert ship(Session(sys.executable)) is None  # type: ignore[arg-type]


def test_a_python_of_another_version_is_told(tmp_path: Path) -> None:
    other = tmp_path / "python2"
    other.write_text("#!/bin/sh\necho '[[2, 7], []]'\n", encoding="utf-8")
    other.chmod(0o755)
    with pytest.raises(OtherPython, match=rf"the workers run Python 2\.7 \({other}\), and this is 3"):
        ship(Session(str(other)))  # type: ignore[arg-type]
    spoken = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.13, PySpark"
    assert str(missing(RuntimeError(spoken))).startswith("the workers run Python 3.9, and this is 3.13; ")


# ---- a Java that ended -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "told"), [("kill -9 $$", "killed by SIGKILL"), ("exit 3", "exit code 3")])
def test_a_java_that_ended_is_told_as_that(monkeypatch: pytest.MonkeyPatch, status: str, told: str) -> None:
    class Gateway:
        proc: Any = subprocess.Popen(["/bin/sh", "-c", status])

    monkeypatch.setattr(SparkContext, "_gateway", Gateway)
    line = str(failure(Py4JNetworkError("Answer from Java side is empty")))
    assert line.startswith(f"Java ended ({told}) while Spark was at work")
    assert "\n" not in line


def test_where_java_was_started_by_others_a_broken_connection_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert str(failure(ConnectionRefusedError(111, "Connection refused"))).startswith("Java ended while")
    assert "Java ended" not in str(failure(RuntimeError("something else")))
