"""This module shows that Parquet files are read in Python as Spark and the local engine read them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read import parquet
from ephemera.spark.read.scan import Input

DECLARED = "EVENT a(x: int, v: string); EVENT b(x: int, v: string); EVENT c(x: int);\n"
PROGRAMS = {
    "pairs": "p(x, v) <- i: a(x, v), j: b(x, _), {i, j} within 4;",
    "a constant": 'p(x) <- i: a(x, "r"), j: b(x, w), {i, j} within 4;',
    "any type": "DETECT p { var L } ON event e: var L {{ x { 1 } }} END",
    "nothing of it": "p(1) <- i: c(_);",
}
ROWS = pa.table(
    {
        "event": ["a", "b", "a", "c", "other", None, "b", "a", "a", "strange"],
        "time": [1, 2, 3, 4, 5, 6, 7, 8, None, 10],
        "x": [1, 1, 2, 1, 2, 2, None, 1, 1, 1],
        "v": ["r", "s", None, "r", "t", "u", "v", "r", "x", "y"],
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "events.parquet"
    found.mkdir()
    pq.write_table(ROWS.slice(0, 6), found / "one.parquet", row_group_size=2)
    pq.write_table(ROWS.slice(6), found / "two.parquet", row_group_size=3)
    return found


@pytest.mark.parametrize("rules", PROGRAMS.values(), ids=PROGRAMS.keys())
@pytest.mark.parametrize("way", ["Python", "Spark"])
def test_answers_are_those_of_the_local_engine(
    spark: SparkSession, folder: Path, rules: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parquet.units(spark, [str(folder)]) is not None
    if way == "Spark":
        monkeypatch.setattr(parquet, "units", lambda _spark, _paths: None)
    program = ephemera.compile(DECLARED + rules)
    started = start(spark, [Job(program._compiled)], [Input(str(folder))], 2)
    computed = Computed(started)
    expected = program.run_all(ROWS).answers
    stamps = [json.loads(row.line)["time"] for row in computed.lines().collect()]
    pairs = [tuple(stamp) if isinstance(stamp, list) else (stamp, stamp) for stamp in stamps]
    assert sorted(pairs) == sorted(zip(expected["begin"].to_pylist(), expected["end"].to_pylist(), strict=True))
    if way == "Python":
        reasons = [letter for _, letter in computed.letters() if "rule" not in letter]
        assert "an event has a name in the column `event`" in {letter["reason"] for letter in reasons}
        assert {"event": None, "time": 6, "x": 2, "v": "u"} in [json.loads(letter["event"]) for letter in reasons]


def test_folders_of_folders_and_clusters_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    assert parquet.units(spark, [str(tmp_path)]) is None
    assert parquet.units(spark, [str(tmp_path / "none.parquet")]) is None
