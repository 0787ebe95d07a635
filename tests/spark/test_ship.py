from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from ephemera.language import compile
from ephemera.spark.runtime.java import find_java, home_for_spark
from ephemera.spark.runtime.ship_package import missing, packed
from tests.spark.history import PROGRAM, events_of, write_history
from tests.spark.machine import SOURCES, bare_python, cluster, run_python
from tests.spark.running import local, plain

SCRIPT = """
import json, os, sys
import pyarrow as pa
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session
from ephemera.spark.runtime.ship_package import missing, ship

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


@pytest.mark.slow
def test_workers_without_the_package_run_it_and_both_do_work(master: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python")
    script = "import numpy, pyarrow, lxml, ephemera"
    bare = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    alone = subprocess.run([python, "-c", script], env=bare, capture_output=True, text=True, check=False)
    assert "No module named 'ephemera'" in alone.stderr
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": str(python)}
    run = run_python(SCRIPT, environment, master)
    assert (run.returncode, run.stderr) == (0, "")
    rows = json.loads(run.stdout)
    assert sorted(json.loads(answer)["data"] for answer, _, _ in rows) == [[n] for n in range(8)]
    assert all("ephemera-" in file and ".zip" in file for _, file, _ in rows)
    assert len({where for _, _, where in rows}) == 2


@pytest.mark.slow
def test_workers_that_lack_what_it_stands_on_are_told_of(master: str, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python", without=["numpy"])
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": str(python)}
    run = run_python(SCRIPT, environment, master)
    assert run.returncode == 1
    assert "the Python of the workers has no numpy" in run.stderr
    assert "Traceback" not in run.stderr


DRIVER = """
import json, sys
from ephemera.language import compile
from ephemera.engine.cluster.message import EngineStats
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.runtime.exchange import is_a, of_rows
from ephemera.spark.read.scan import Input
from ephemera.spark.batch.job import Job, start
from ephemera.spark.runtime.session import session

program, history = sys.argv[1:3]
spark = session(*sys.argv[3:])
started = start(spark, [Job(compile(program)._compiled)], [Input(history)])
for row in Computed(started).lines().collect():
    print(json.dumps(["answer", json.loads(row.line)]))
for told in of_rows(started.shipped.where(is_a(EngineStats)).collect()):
    print(json.dumps(["stats", told.stats]))
"""


@pytest.mark.slow
def test_a_program_of_two_levels_answers_on_a_cluster_as_in_one_process(master: str, tmp_path: Path) -> None:
    write_history(tmp_path / "orders.parquet", 5_000)
    python = bare_python(tmp_path / "python")
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": str(python)}
    run = run_python(DRIVER, environment, PROGRAM, str(tmp_path / "orders.parquet"), master)
    assert (run.returncode, run.stderr) == (0, "")
    _is_right(run.stdout, tmp_path / "orders.parquet")


@pytest.mark.slow
def test_a_script_that_is_submitted_with_the_package_as_a_zip_runs(master: str, tmp_path: Path) -> None:
    write_history(tmp_path / "orders.parquet", 5_000)
    (tmp_path / "driver.py").write_text(DRIVER, encoding="utf-8")
    python = str(bare_python(tmp_path / "python"))
    names = {"JAVA_HOME": str(home_for_spark(find_java())), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"} | names
    environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master]
    submit += [
        "--py-files",
        str(packed(tmp_path)),
        str(tmp_path / "driver.py"),
        PROGRAM,
        str(tmp_path / "orders.parquet"),
    ]
    run = subprocess.run(submit, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    _is_right(run.stdout, tmp_path / "orders.parquet")


def _is_right(told: str, history: Path) -> None:
    rows = [json.loads(line) for line in told.splitlines()]
    assert plain([line for kind, line in rows if kind == "answer"]) == local(compile(PROGRAM), events_of(history))
    for level in (0, 1):
        assert len([line for kind, line in rows if kind == "stats" and line["level"] == level and line["events"]]) > 1


def test_the_same_sources_make_the_same_zip(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = packed(tmp_path), packed(tmp_path / "a")
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"ephemera/pipeline.py", "ephemera/pipeline.pyc"} <= set(names)
    assert not any("__pycache__" in name for name in names)


def test_other_failures_are_not_explained_away() -> None:
    assert missing(ValueError("No module named 'shop'")) is None
    assert "has no google-re2" in str(missing(ValueError("No module named 're2'")))
    assert "has no pyarrow" in str(missing(ValueError("[PACKAGE_NOT_INSTALLED] PyArrow >= 18 must be installed")))
