"""This module shows what runs on Spark Connect: a real server, whose workers lack the package, and clients of it.

A process has sessions of Connect or others, never both, so that each client is a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import SMALL
from tests.spark.machine import SOURCES, bare_python, connect_server, run_python

ROOT = SOURCES.parent
PAGE = ROOT / "docs" / "spark.md"
SUITE = {
    "tests/spark/test_frames.py": None,
    "tests/spark/test_local_data.py": None,
    "tests/spark/test_telling.py": "takes_a_frame or warn_of_bad_rows",
    "tests/spark/test_zones.py": "whatever_the_session_has",
}
"""Tests that take a session, which may as well be one of Connect; and which of them do."""
CLIENT = """
import json, warnings
import ephemera
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.spark.test_frames import ORDERS, ROWS, SCHEMA, rows_of

spark = SparkSession.builder.getOrCreate()
settings = spark.conf.getAll
program = ephemera.compile(ORDERS)
frame = spark.createDataFrame([tuple(row.values()) for row in ROWS], SCHEMA).repartition(3)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    found = program.run(frame).toArrow()
expected = program.run_all(frame.toArrow()).answers
told = {
    "answers": found.num_rows,
    "same": rows_of(found) == rows_of(expected),
    "warned": sorted({str(one.message) for one in warned if issubclass(one.category, ephemera.EphemeraWarning)}),
    "settings": spark.conf.getAll == settings,
    "java": SparkContext._gateway is not None,
}
try:
    program.stream(spark, "arriving")
except ephemera.EphemeraError as error:
    told["refused"] = str(error)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with connect_server(folder, bare_python(folder / "python"), SMALL) as url:
        yield url


def client_of(server: str) -> dict[str, str]:
    """The environment of a client, which has no Java."""
    path = os.pathsep.join((str(SOURCES), str(ROOT)))
    return {**{n: v for n, v in os.environ.items() if n != "JAVA_HOME"}, "PYTHONPATH": path, "SPARK_REMOTE": server}


def test_a_client_has_the_answers_of_the_local_engine_and_is_told_what_it_cannot_have(server: str) -> None:
    run = run_python(CLIENT, client_of(server))
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["answers"] > 30
    assert (told["same"], told["settings"], told["java"]) == (True, True, False)
    (warned,) = told["warned"]
    assert warned.startswith("some rows could not be used, the first: `*` takes numbers;")
    assert told["refused"].startswith("a live query does not run on Spark Connect: ")
    assert "run it with `spark-submit`" in told["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("path", SUITE, ids=lambda path: Path(path).stem)
def test_what_is_shown_of_other_sessions_holds_for_those_of_connect(server: str, path: str) -> None:
    chosen = SUITE[path]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *(["-k", chosen] if chosen else [])]
    command = [sys.executable, "-m", "pytest", *options, path]
    run = subprocess.run(
        command, cwd=ROOT, env=client_of(server), capture_output=True, text=True, timeout=500, check=False
    )
    assert run.returncode == 0, run.stdout


# ---- what the page prints ------------------------------------------------------------------------------------

CONNECT, PIPELINE = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
INSIDE = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
import ephemera

program = ephemera.compile("EVENT order(id: string); seen(i) <- o: order(i);")


@dp.materialized_view
def seen_orders():
    return program.run(SparkSession.active().table("events"))
"""


@pytest.mark.slow
def test_the_client_of_the_page_runs(server: str) -> None:
    assert CONNECT.count("sc://host:15002") == 1
    run = run_python(CONNECT.replace("sc://host:15002", server), client_of(server))
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_answers_are_a_materialized_view_of_a_pipeline(server: str, tmp_path: Path) -> None:
    rows = "[('order', 1, 'a', 250), ('order', 2, 'b', 3), ('order', 3, 'a', 101)]"
    store = f"spark.createDataFrame({rows}, 'event string, time long, id string, qty int').write.saveAsTable('events')"
    assert client(server, store) == []
    told = pipeline(server, tmp_path / "inside", INSIDE)
    assert told.returncode != 0
    assert "a program does not run in the query function of a pipeline" in told.stderr
    told = pipeline(server, tmp_path / "above", PIPELINE)
    assert told.returncode == 0, told.stdout + told.stderr
    read = "print(sorted(map(tuple, spark.table('large_orders').select('event', 'begin', 'end', 'i').collect())))\n"
    read += "print(sorted(map(tuple, spark.table('large_by_order').collect())))"
    assert client(server, read) == ["[('large', 1, 1, 'a'), ('large', 3, 3, 'a')]", "[('a', 2)]"]


def client(server: str, script: str) -> list[str]:
    """What a client says."""
    opening = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    run = run_python(opening + script, client_of(server))
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def pipeline(server: str, folder: Path, definitions: str) -> subprocess.CompletedProcess[str]:
    """What a pipeline with these definitions says."""
    (folder / "definitions").mkdir(parents=True)
    (folder / "definitions" / "rules.py").write_text(definitions, encoding="utf-8")
    libraries = [{"glob": {"include": "definitions/**"}}]
    spec = {"name": "rules", "storage": (folder / "storage").as_uri(), "libraries": libraries}
    (folder / "spark-pipeline.yml").write_text(json.dumps(spec), encoding="utf-8")  # which is YAML, too
    command = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(folder / "spark-pipeline.yml")]
    return subprocess.run(command, env=client_of(server), capture_output=True, text=True, timeout=300, check=False)
