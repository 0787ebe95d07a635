"""This module shows that sessions of somebody else's, whatever they are set to, give the answers of the local engine.

Each is opened in a process of its own, as a notebook or a script would, and is as before when the runs are over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from ephemera.spark.runtime.java import find_java, home_for_spark
from tests.spark.machine import SOURCES, run_python, spark_environment

OWN = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
SCRIPT = """
import json, os, sys
import pyarrow as pa
import ephemera
from pyspark.sql import SparkSession

RULES = '''
TIME ZONE "Europe/Berlin";
EVENT a(E: int, Event: string, id: string, ID: int, at: time);
pair(e, x, n, t) <- i: a(e, x, u, n, t), j: a(e, _, u, _, _), i before j, {i, j} within 3h;
alone(e, x) <- i: a(e, x, _, _, _), w: extend(i, 1h), while w: not a(_, "other", _, _, _);
'''
builder = SparkSession.builder
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
before = spark.conf.getAll, dict(os.environ), dict(spark.sparkContext.getConf().getAll())


def rows(table):
    return sorted(map(str, table.to_pylist()))


program = ephemera.compile(RULES)
hours = [f"2026-03-29 0{hour}:30:00" for hour in (0, 1, 4, 5)]
events = [
    {"event": "a", "time": hour.replace(" ", "T"), "data": [k % 2, "other" if k == 3 else "own", "u", k, None]}
    for k, hour in enumerate(hours)
]
frame = spark.sql(
    " UNION ALL ".join(
        f"SELECT 'a' label, TIMESTAMP_NTZ'{hour}' time, {k % 2} E, '{'other' if k == 3 else 'own'}' what, 'u' id, "
        f"{k} number, TIMESTAMP_LTZ'2026-07-01 09:00:00' at"
        for k, hour in enumerate(hours)
    )
).toDF("event", "time", "E", "Event", "id", "ID", "at")
table = frame.toArrow()
expected = program.run(table)
told = {"answers": expected.num_rows, "frame": rows(program.run(frame).toArrow()) == rows(expected)}
if sys.argv[2:] != ["frame"]:
    told["table"] = rows(program.run(table, engine="spark")) == rows(expected)
    told["list"] = program.run(events, engine="spark") == program.run(events)
after = spark.conf.getAll, dict(os.environ), dict(spark.sparkContext.getConf().getAll())
told["settings"] = before == after
told["master"] = spark.sparkContext.master
print("told " + json.dumps(told))
spark.stop()
"""


def told_by(run: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert run.returncode == 0, run.stderr
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("told ")]
    told: dict[str, object] = json.loads(line.removeprefix("told "))
    return told


def is_right(told: dict[str, object], master: str, *kinds: str) -> None:
    assert told == {"answers": 4, "master": master, "settings": True, **dict.fromkeys(kinds, True)}


def environment() -> dict[str, str]:
    """What somebody has who runs Spark from the environment at hand."""
    java = {"JAVA_HOME": str(home_for_spark(find_java())), "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **java, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": sys.executable}


@pytest.mark.slow
def test_a_session_with_settings_of_its_own_gives_the_same_and_keeps_them() -> None:
    settings = {"spark.master": "local[2]", **OWN}
    is_right(told_by(run_python(SCRIPT, environment(), json.dumps(settings), "frame")), "local[2]", "frame")


@pytest.mark.slow
def test_so_does_one_whose_executors_are_other_processes() -> None:
    settings = {"spark.master": "local-cluster[2,1,1024]", **OWN}
    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_SCALA_VERSION": "2.13"}
    run = run_python(SCRIPT, {**environment(), **home}, json.dumps(settings))
    is_right(told_by(run), "local-cluster[2,1,1024]", "frame", "table", "list")


@pytest.mark.slow
def test_a_script_that_is_submitted_has_the_settings_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    submit += [option for name, value in OWN.items() for option in ("--conf", f"{name}={value}")]
    own = {"PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    run = subprocess.run(
        [*submit, str(tmp_path / "script.py"), "{}"],
        env={**spark_environment(tmp_path), **own},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    is_right(told_by(run), "local[2]", "frame", "table", "list")
