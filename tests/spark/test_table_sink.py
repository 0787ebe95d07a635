"""This module shows that tables have each answer of a stream once, and belong to one query."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.spark.runtime.exchange import SCHEMA, batches, of_rows, place_of_task, shipments_of
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink, WrongFolder, counts_of, folder_at
from ephemera.spark.sinks.table_sink import TableSink, WrongTable
from tests.spark.test_sinks import LARGE, LATES, LETTERS, SHOP, given, lines_of, spread_of

TAKEN = "EVENT order(batch: int, count: int); same(batch) <- order(batch, n);"


def shipped(spark: SparkSession, shipments: Sequence[Shipment]) -> DataFrame:
    """What engines ship, in two partitions."""
    rows = list(batches(shipments))

    def give(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows

    return map_in_arrow(spark.range(1, numPartitions=1).toDF("id"), give, SCHEMA).repartition(2)


def failing(spark: SparkSession, shipments: Sequence[Shipment]) -> DataFrame:
    """The same, but it ends badly."""

    def fail(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from given
        raise ValueError("on purpose")

    return map_in_arrow(shipped(spark, shipments), fail, SCHEMA)


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    spark.sql("DROP TABLE IF EXISTS live_answers")
    yield "live_answers"
    spark.sql("DROP TABLE IF EXISTS live_answers")


def sink_of(table: str, spread: DistributedProgram, where: Path) -> TableSink:
    return TableSink(table, forms_of([spread]), str(where))


def rows_of(spark: SparkSession, table: str) -> list[tuple[int, str, str, int]]:
    return sorted((r.batch, r.event, r.i, r.n) for r in spark.table(table).collect())


def test_a_replay_replaces_its_own_answers_and_no_others(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spread = spread_of(SHOP)
    sink = sink_of(table, spread, tmp_path / "t")
    sink.open(spark, "q")
    sink.write(shipped(spark, [*given(spread, LATES), *LETTERS]), 0)
    sink.write(shipped(spark, given(spread, LARGE)), 1)
    sink.write(shipped(spark, LETTERS), 2)
    expected = [(0, "late", a["data"][0], a["data"][1]) for a in LATES] + [(1, "large", "x\ny", 11)]
    assert rows_of(spark, table) == expected
    for mode in ("static", "dynamic"):
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
        sink.write(shipped(spark, given(spread, LARGE)), 1)
        assert rows_of(spark, table) == expected
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    with pytest.raises(PythonException, match="on purpose"):
        sink.write(failing(spark, given(spread, LARGE)), 1)
    spark.catalog.refreshTable(table)  # as another session would see it
    assert [row for row in rows_of(spark, table) if row[0] != 1] == expected[:-1]
    sink.write(shipped(spark, given(spread, LARGE)), 1)
    assert rows_of(spark, table) == expected
    begin = spark.table(table).where("n = 3").first()
    assert begin is not None
    assert begin.begin.astimezone(UTC) == datetime.fromtimestamp(3, UTC)
    assert spark.table(table).columns[-1] == "batch"
    with pytest.raises(WrongTable, match="is the table of query q, and this is query other"):
        TableSink(table, forms_of([spread])).open(spark, "other")
    with pytest.raises(WrongTable, match="other columns than the answers, such as"):
        TableSink(table, forms_of([spread_of(TAKEN)])).open(spark, "q")
    spark.sql(f"DROP TABLE {table}")  # as if the catalog were forgotten with its session
    with pytest.raises(WrongFolder, match="query q wrote"):
        sink.open(spark, "other")
    sink.open(spark, "q")
    assert rows_of(spark, table) == expected
    sink.write(shipped(spark, given(spread, LARGE)), 1)
    assert rows_of(spark, table) == expected


@pytest.mark.parametrize("is_located", [True, False])
def test_what_a_killed_write_left_does_not_come_in_with_the_next(
    spark: SparkSession, table: str, tmp_path: Path, is_located: bool
) -> None:
    spread = spread_of(SHOP)
    sink = sink_of(table, spread, tmp_path / "t") if is_located else TableSink(table, forms_of([spread]))
    sink.open(spark, "q")
    sink.write(shipped(spark, given(spread, LATES)), 0)
    expected = rows_of(spark, table)
    place = location_of(spark, table)
    # A task that was done when the machine died: the next write to the table would take it for one of its own.
    left = place / "_temporary/0/task_202611161646_0007_m_000000"
    shutil.copytree(place / "batch=0", left / "batch=0")
    sink.open(spark, "q")
    assert not left.exists()
    sink.write(shipped(spark, given(spread, LATES)), 0)
    assert rows_of(spark, table) == expected


def location_of(spark: SparkSession, table: str) -> Path:
    (place,) = [
        row.data_type for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect() if row.col_name == "Location"
    ]
    return Path(urlsplit(place).path)


def test_an_attribute_may_have_the_name_of_the_batch(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spread = spread_of(TAKEN)
    sink = sink_of(table, spread, tmp_path / "t")
    sink.open(spark, "q")
    sink.write(shipped(spark, given(spread, [{"event": "same", "time": 1, "data": [7]}])), 3)
    (row,) = spark.table(table).collect()
    assert (row.batch, row.batch_number) == (7, 3)


def test_names_that_are_none_are_refused() -> None:
    forms = forms_of([spread_of(SHOP)])
    for name in ("", "a b", "t; DROP TABLE u", "a.b.c.d"):
        with pytest.raises(WrongTable, match="is no name of a table"):
            TableSink(name, forms).open(None, "q")  # type: ignore[arg-type]
    twice = forms_of([spread_of("EVENT o(x: int, X: int); p(x, X) <- o(x, X);")])
    with pytest.raises(WrongTable, match="does not tell the columns x and X apart"):
        TableSink("t", twice).open(None, "q")  # type: ignore[arg-type]


def test_the_last_stage_writes_files_in_the_tasks_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    spread = spread_of(SHOP)
    sink = FolderSink(
        forms_of([spread]), "q", folder_at(str(tmp_path / "out")), letters=folder_at(str(tmp_path / "dead"))
    )
    sink.open(0)

    def last(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(sink.write(0, place_of_task(), shipments_of(given)))

    for _ in range(2):
        frame = map_in_arrow(shipped(spark, [*given(spread, LATES), *LETTERS]), last, SCHEMA)
        told = of_rows(frame.collect())
        counts = counts_of(told)
        assert (counts.answers, counts.bad, counts.late, counts.dead) == ({(0, "late"): 4}, 1, 1, 1)
        sink.settle(0, told)
        files = [path.read_bytes() for path in sorted((tmp_path / "out").glob("part-*"))]
        assert lines_of(files) == LATES
        letters = [path.read_bytes() for path in sorted((tmp_path / "dead").glob("dead-*"))]
        assert len(lines_of(letters)) == 3
