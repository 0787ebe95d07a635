"""This module shows two live queries in one session: each keeps its shards while the other is at work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import ephemera
from ephemera.spark.live import task
from ephemera.spark.live.report import BatchReport
from ephemera.spark.runtime.map_in_arrow import mapped, prepared
from tests.spark.test_live import OVERDUE, Place, event

ORDERED_TWICE = """
TIME UNIT 1 sec;
EVENT order(id: string, qty: int);
twice(id) <- o: order(id, _), p: order(id, _), o before p, {o, p} within 10;
"""


def kept_by_worker(spark: SparkSession) -> list[str]:
    """Which queries the process of small batches keeps shards of."""

    def kept(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"run": [query.run for query in task._SHARDS.kept()]})

    frame = spark.range(1).coalesce(1)
    looking = prepared(spark, kept, "run string", frame.columns, pool="alone")
    return [row["run"] for row in mapped(frame, looking).collect()]


def _place(folder: Path) -> Place:
    folder.mkdir()
    return Place(folder)


def test_two_queries_in_turn_load_no_state_and_answer_rightly(spark: SparkSession, tmp_path: Path) -> None:
    places = [_place(tmp_path / name) for name in ("a", "b")]
    programs = [ephemera.compile(text) for text in (OVERDUE, ORDERED_TWICE)]
    reports: list[list[BatchReport]] = [[], []]
    asked = list(zip(places, programs, reports, strict=True))
    queries = [place.stream(spark, program, small=1_000).start(own.append) for place, program, own in asked]
    for turn in range(4):
        for place, query in zip(places, queries, strict=True):
            # a0 … a3, 5 seconds apart, each ordered once more after 9 and never shipped
            place.put(event("order", 5 * turn, f"a{turn}", 1), event("order", 5 * turn + 4, f"a{turn - 1}", 1))
            query.drain()
    assert [[report.in_one_task for report in own] for own in reports] == [[False, *[True] * 3]] * 2
    # The first batch of a start is never run in one task; its shards come to the one process with the second.
    assert [[report.state.loads for report in own[2:]] for own in reports] == [[0, 0]] * 2
    first, second = (str(query.query.runId) for query in queries)
    assert kept_by_worker(spark) == [first, second]
    queries[0].stop()
    places[1].put(event("order", 40, "a3", 1))
    queries[1].drain()
    assert kept_by_worker(spark) == [second]
    queries[1].stop()
    overdue = [[5 * k, 5 * k + 6, f"a{k}"] for k in range(3)] + [[5 * k + 4, 5 * k + 10, f"a{k - 1}"] for k in range(2)]
    assert sorted([*line["time"], *line["data"]] for line in places[0].lines("out")) == sorted(overdue)
    twice = [[5 * k, 5 * k + 9, f"a{k}"] for k in range(3)]
    assert sorted([*line["time"], *line["data"]] for line in places[1].lines("out")) == twice
