"""This module kills Java, and gives workers a Python that lacks everything, in real sessions; one line says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.spark.machine import PATIENCE, SOURCES

pytestmark = pytest.mark.slow
PROGRAM = "EVENT a(x: int); p(x) <- i: a(x);"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}
BATCH = """
import os, signal, sys
from pyspark import SparkContext
from ephemera.spark.batch.one_task import SmallRun
from ephemera.cli.main import main

before = SmallRun.__init__

def killed(self, *given, **more):
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    before(self, *given, **more)

SmallRun.__init__ = killed
sys.argv = ["ephemera", "run", *sys.argv[1:], "--master", "local[1]"]
main()
"""
PYTHON = """
import os, signal, sys
import ephemera
from ephemera import sinks
from ephemera.spark.runtime.session import session
from pyspark import SparkContext

spark = session("local[1]")
program = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);")
frame = spark.createDataFrame([("a", 1, 1)], "event string, time bigint, x bigint")
query = program.stream(spark, sys.argv[1], sink=sinks.Callback(print)).start()
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
again = lambda: program.stream(spark, sys.argv[1], sink=sinks.Callback(print)).start()
for call in (lambda: query.wait(60), query.stop, query.progress, again, lambda: program.run_all(frame),
             lambda: program.run(frame)):
    try:
        call()
    except ephemera.EphemeraError as error:
        print(error)
print(query.is_active)
"""
WORKERS = """
import ephemera, sys
from ephemera import sinks
from ephemera.spark.runtime.java import find_java, home_for_spark
import os
os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
program = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);")
frame = spark.createDataFrame([("a", 1, 1)], "event string, time bigint, x bigint")
for call in (lambda: program.run(frame), lambda: program.run_all(frame),
             lambda: program.stream(spark, sys.argv[1], sink=sinks.Callback(print)).start()):
    try:
        call()
    except ephemera.EphemeraError as error:
        print(error)
"""
ENDED = "Java ended (killed by SIGKILL) while Spark was at work"


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    given = ENVIRONMENT | environment
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=300, check=False)


def test_a_batch_of_the_command_line_says_that_java_ended(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(PROGRAM)
    (tmp_path / "e.jsonl").write_text(json.dumps({"event": "a", "time": 1, "data": [1]}))
    ran = run(BATCH, str(tmp_path / "p.eq"), "--input", str(tmp_path / "e.jsonl"))
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith(ENDED)
    assert len(ran.stderr.splitlines()) == 1


def test_a_live_run_of_the_command_line_says_that_java_ended(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    events = [{"event": "a", "time": time, "data": [time]} for time in (1, 2)]  # the second makes the first certain
    (tmp_path / "in" / "e.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    options = ["--mode", "stream", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    command = [sys.executable, "-m", "ephemera", "run", str(tmp_path / "p.eq"), *options, "--master", "local[1]"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        last = time.monotonic() + PATIENCE
        while not list((tmp_path / "out").glob("*.jsonl")) and process.poll() is None and time.monotonic() < last:
            time.sleep(0.1)
        assert list((tmp_path / "out").glob("*.jsonl"))
        os.kill(_java_of(process.pid), signal.SIGKILL)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert next(line for line in told.splitlines() if "--checkpoint" not in line).startswith(ENDED)
    assert "Traceback" not in told


def _java_of(process: int) -> int:
    """The Java that a process has started."""
    for child in (Path("/proc") / str(process) / "task").glob("*/children"):
        for number in child.read_text().split():
            if Path(f"/proc/{number}/comm").read_text().strip() == "java":
                return int(number)
    raise AssertionError("there is no Java")


def test_python_says_that_java_ended(tmp_path: Path) -> None:
    ran = run(PYTHON, str(tmp_path))
    lines = ran.stdout.splitlines()
    assert (len(lines), lines[-1]) == (7, "False"), ran.stderr
    assert all(line.startswith(ENDED) for line in lines[:-1])


def test_a_session_whose_workers_run_a_bare_python_is_refused_in_one_line(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    ran = run(WORKERS, str(tmp_path), PYSPARK_PYTHON=bare)
    lines = ran.stdout.splitlines()
    assert len(lines) == 3, ran.stderr
    assert all(line.startswith(f"the Python of the workers, {bare}, has no lxml") for line in lines)
    assert all(f"set PYSPARK_PYTHON={sys.executable} before" in line for line in lines)
