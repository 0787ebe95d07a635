from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ephemera.spark.ship import missing, packed
from tests.spark.machine import SOURCES, bare_python, cluster, run_python

SCRIPT = """
import json, os, sys
import pyarrow as pa
from ephemera.spark.arrow import map_in_arrow
from ephemera.spark.session import session
from ephemera.spark.ship import missing, ship

PROGRAM = "late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);"


def run(batches):
    import ephemera

    for batch in batches:
        events = [{"event": "order", "time": n, "data": [n]} for n in batch["id"].to_pylist()]
        answers = [json.dumps(a) for a in ephemera.compile(PROGRAM).run(events)]
        place = [ephemera.__file__] * len(answers)
        where = [os.environ.get("SPARK_EXECUTOR_DIRS", "")] * len(answers)
        columns = {"answer": answers, "file": place, "where": where}
        yield pa.RecordBatch.from_pydict(columns)


spark = session(sys.argv[1])
ship(spark)
try:
    rows = map_in_arrow(spark.range(0, 8, 1, 4), run, "answer string, file string, where string").collect()
except Exception as error:
    raise SystemExit(str(missing(error) or error))
print(json.dumps([list(row) for row in rows]))
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running.url


def test_workers_without_the_package_run_it_and_both_do_work(master: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python")
    script = "import numpy, pyarrow, lxml, ephemera"
    alone = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    assert "No module named 'ephemera'" in alone.stderr
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": str(python)}
    run = run_python(SCRIPT, environment, master)
    assert (run.returncode, run.stderr) == (0, "")
    rows = json.loads(run.stdout)
    assert sorted(json.loads(answer)["data"] for answer, _, _ in rows) == [[n] for n in range(8)]
    assert all("ephemera-" in file and ".zip" in file for _, file, _ in rows)
    assert len({where for _, _, where in rows}) == 2


def test_workers_that_lack_what_it_stands_on_are_told_of(master: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python", without=["lxml"])
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": str(python)}
    run = run_python(SCRIPT, environment, master)
    assert run.returncode == 1
    assert "the Python of the workers has no lxml" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_same_sources_make_the_same_zip(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = packed(tmp_path), packed(tmp_path / "a")
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"ephemera/pipeline.py", "ephemera/pipeline.pyc"} <= set(names)
    assert not any("__pycache__" in name for name in names)


def test_other_failures_are_not_explained_away() -> None:
    assert missing(ValueError("No module named 'shop'")) is None
    assert "has no pyarrow" in str(missing(ValueError("[PACKAGE_NOT_INSTALLED] PyArrow >= 18 must be installed")))
