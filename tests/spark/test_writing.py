from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from ephemera.connect.atomic_files import CannotWrite, layout, whole_folder, write_file
from ephemera.spark.batch.job_output import write_folder
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from tests.spark.machine import PATIENCE, SOURCES

SCHEMA = "event string, s bigint, e bigint, data string, line string"


def answers(spark: SparkSession) -> DataFrame:
    rows = [(n % 3, 100 - n, 100 - n % 7, f"[{n}]") for n in range(50)]
    given = [(f"e{k}", s, e, data, f"{e} {s} e{k} {data} ü") for k, s, e, data in rows]
    return spark.createDataFrame(given, SCHEMA).repartition(4)


def failing(spark: SparkSession) -> DataFrame:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise ValueError("on purpose")

    return map_in_arrow(answers(spark), fail, SCHEMA)


def lines_of(frame: DataFrame) -> Iterator[bytes]:
    return (f"{row[0]}\n".encode() for row in frame.select("line").toLocalIterator())


def test_one_file_holds_all_answers_and_stands_alone(spark: SparkSession, tmp_path: Path) -> None:
    given = answers(spark)
    (tmp_path / "new").mkdir()
    write_file(lines_of(given), tmp_path / "new" / "answers.jsonl")
    lines = (tmp_path / "new" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(r["line"] for r in given.collect())
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["answers.jsonl"]


def test_folders_hold_all_answers(spark: SparkSession, tmp_path: Path) -> None:
    given = answers(spark)
    write_folder(given, tmp_path / "lines", "json")
    write_folder(given.drop("line"), tmp_path / "answers.parquet", "parquet")
    write_folder(given.drop("line"), tmp_path / "answers.csv", "csv")
    lines = [line for p in (tmp_path / "lines").glob("part-*") for line in p.read_text(encoding="utf-8").splitlines()]
    assert sorted(lines) == sorted(r["line"] for r in given.collect())
    assert pq.read_table(tmp_path / "answers.parquet").num_rows == 50
    assert spark.read.csv(str(tmp_path / "answers.csv"), header=True).count() == 50
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answers.csv", "answers.parquet", "lines"]


def test_a_run_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Py4JJavaError, match="on purpose"):
        write_file(lines_of(failing(spark)), tmp_path / "answers.jsonl")
    with pytest.raises(PythonException, match="on purpose"):
        write_folder(failing(spark), tmp_path / "answers.parquet", "parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "answers"
    write_folder(answers(spark).limit(1), target, "json")
    with pytest.raises(PythonException, match="on purpose"):
        write_folder(failing(spark), target, "json")
    assert spark.read.text(str(target)).count() == 1
    write_folder(answers(spark), target, "json")
    assert spark.read.text(str(target)).count() == 50
    assert [p.name for p in tmp_path.iterdir()] == ["answers"]


def test_a_link_to_a_folder_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "to").symlink_to("answers")
    for count in (1, 2):
        write_folder(answers(spark).limit(count), tmp_path / "to", "json")
        assert spark.read.text(str(tmp_path / "answers")).count() == count
    assert (tmp_path / "to").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answers", "to"]


def test_a_folder_with_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    with pytest.raises(CannotWrite, match="is a folder with other things in it"), whole_folder(tmp_path / "home"):
        pass
    assert (tmp_path / "home" / "letter").exists()


KILLED = """
import sys, time
from pathlib import Path
from ephemera.connect.atomic_files import whole_folder

with whole_folder(Path(sys.argv[1])) as part:
    part.mkdir()
    (part / "part-0").write_text("half")
    print("written", flush=True)
    time.sleep(600)
"""


def test_a_run_that_is_killed_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    target = tmp_path / "answers"
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", KILLED, str(target)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert not target.exists()
    assert all(p.name.startswith(".") for p in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("target", "form"),
    [("a.jsonl", "file"), ("a.jsonl/", "json"), ("a", "json"), ("a.parquet", "parquet"), ("a.csv", "csv")],
)
def test_the_name_says_how_answers_are_written(target: str, form: str) -> None:
    assert layout(target) == form
