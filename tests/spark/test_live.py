"""This module shows live queries as people use them: files arrive, answers appear, another start goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera import sinks, sources
from ephemera.program import Program
from ephemera.spark.live.checkpoint import WrongCheckpoint
from ephemera.spark.live.report import BatchReport
from tests.spark.machine import PATIENCE

OVERDUE = """
TIME UNIT 1 sec;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
overdue(id) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id), q < 10;
"""


class Place:
    """A folder with all that a query needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        self._count = 0

    def put(self, *events: dict[str, Any] | str) -> None:
        """Some events arrive, as one file."""
        lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
        waiting = self.folder / "waiting"
        waiting.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self._count += 1
        shutil.move(waiting, self.folder / "in" / f"{self._count:04d}.jsonl")

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What was written, sorted."""
        files = sorted(Path(self[name]).glob("*.jsonl"))
        found = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [json.loads(line) for line in sorted(found)]

    def stream(self, spark: SparkSession, program: Program | None = None, **more: Any) -> Any:
        chosen = program or ephemera.compile(OVERDUE)
        asked = {"sink": sinks.Folder(self["out"]), "dead_letters": self["dead"], "checkpoint": self["check"], **more}
        return chosen.stream(spark, self["in"], **asked)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def event(label: str, time: object, *values: object) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(values)}


def test_answers_come_in_the_batch_that_makes_them_certain(spark: SparkSession, place: Place) -> None:
    reports: list[BatchReport] = []
    place.put(event("order", 1, "a", 3), event("order", 2, "b", 3))
    query = place.stream(spark).start(reports.append)
    query.drain()
    assert place.lines("out") == []
    place.put(event("shipped", 5, "a"), "rubbish", event("order", 8.5, "c", 3))
    query.drain()
    assert place.lines("out") == [{"event": "overdue", "time": [2, 8], "data": ["b"]}]
    place.put(event("order", 3, "late", 1), event("order", 100, "d", 1))
    query.drain()
    query.stop()
    assert place.lines("out") == [
        {"event": "overdue", "time": [2, 8], "data": ["b"]},
        {"event": "overdue", "time": [8.5, 14.5], "data": ["c"]},
    ]
    reasons = [(letter["reason"], letter["event"]) for letter in place.lines("dead")]
    assert len(reasons) == 2
    assert ("it came behind the bound of its source", json.dumps(event("order", 3, "late", 1))) in reasons
    totals = query.totals
    assert (totals.events, totals.bad, totals.late, totals.batches) == (7, 1, 1, 3)
    assert sum(totals.answers.values()) == 2
    assert query.progress()["ephemera"]["dead_letters"]["late"] == 1
    assert [h.reach for r in reports[-1:] for h in r.histories if h.name.startswith("shipped")] == [6_000_000]


def test_another_start_goes_on_where_the_last_one_stopped(spark: SparkSession, place: Place) -> None:
    place.put(event("order", 1, "a", 3), event("order", 2, "b", 3))
    place.stream(spark, trigger="once").start().wait()
    assert place.lines("out") == []
    place.put(event("shipped", 6, "b"), event("order", 20, "c", 3))
    place.stream(spark, trigger="once").start().wait()
    assert place.lines("out") == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]
    other = ephemera.compile(OVERDUE.replace("extend(o, 6)", "extend(o, 7)"))
    with pytest.raises(WrongCheckpoint, match=r"another program(.|\n)*another checkpoint"):
        place.stream(spark, other).start()
    place.put(event("order", 30, "d", 3))
    place.stream(spark, trigger="once", shards=5).start().wait()  # state is cut once more
    assert [line["data"] for line in place.lines("out")] == [["a"], ["c"]]


def test_a_streaming_frame_with_columns_is_read(spark: SparkSession, place: Place) -> None:
    rows = [("order", 1, "a", 3), ("shipped", 4, "a", None), ("order", 2, "b", 3), ("noise", 3, "x", 1)]
    schema = "event string, time bigint, id string, qty int"
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(place["rows/1"])
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place["rows/*"])
    given: list[dict[str, Any]] = []
    query = (
        ephemera.compile(OVERDUE)
        .stream(spark, frame, sink=sinks.Callback(given.append), checkpoint=place["check"])
        .start()
    )
    query.drain()
    spark.createDataFrame([("order", 50, "z", 1), (None, 51, "z", 1)], schema).write.parquet(place["rows/2"])
    query.drain()
    query.stop()
    assert [(a["event"], a["time"], a["data"]) for a in given] == [("overdue", [2, 8], ["b"])]
    assert len(given[0]["key"]) == 32
    assert (query.totals.events, query.totals.bad) == (6, 1)


def test_a_silent_source_holds_no_one_back(spark: SparkSession, place: Place) -> None:
    program = ephemera.compile(OVERDUE + "STREAM shop CARRIES order, shipped WATERMARK 1 sec IDLE 1 sec;")
    place.put(event("order", 1, "a", 3), event("order", 2, "b", 30))
    query = place.stream(spark, program, trigger="1 second").start()
    _until(lambda: bool(place.lines("out")), query)
    query.stop()
    assert place.lines("out") == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]


def _until(condition: Callable[[], bool], query: Any) -> None:
    for _ in range(600):
        if condition():
            return
        assert not query.wait(0.1)
    raise AssertionError("it took too long")


def test_a_failure_says_which_event_and_which_rule(spark: SparkSession, place: Place) -> None:
    growing = "EVENT order(id: int); p(n) <- o: order(n); p(2 * n) <- s: p(n); p(2 * n + 1) <- s: p(n);"
    place.put({"event": "order", "time": 1, "data": [7]}, {"event": "order", "time": 5, "data": [8]})
    query = place.stream(spark, ephemera.compile(growing)).start()
    with pytest.raises(ephemera.EphemeraError, match=r"the recursion does not end(.|\n)*the last event taken in was"):
        query.wait()


def test_what_cannot_stream_is_refused(spark: SparkSession, place: Place) -> None:
    frame = spark.createDataFrame([("order", 1)], "event string, time bigint")
    with pytest.raises(ephemera.EphemeraError, match="does not stream"):
        ephemera.compile(OVERDUE).stream(spark, frame, checkpoint=place["check"]).start()
    with pytest.raises(ephemera.EphemeraError, match=r"there is no .*nowhere.*make the folder"):
        ephemera.compile(OVERDUE).stream(spark, place["nowhere"], checkpoint=place["other"]).start()
    with pytest.raises(ephemera.EphemeraError, match="gopher"):
        ephemera.compile(OVERDUE).stream(spark, place["in"], checkpoint="gopher://old/place").start()


def test_parquet_files_that_arrive_are_read(spark: SparkSession, place: Place) -> None:
    folder = Path(place["rows.parquet"])
    folder.mkdir()
    schema = "event string, time bigint, id string, qty int"

    def put(name: str, rows: list[tuple[Any, ...]]) -> None:
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(place["made"], mode="overwrite")
        (made,) = Path(place["made"]).glob("*.parquet")
        made.rename(folder / name)

    put("1.parquet", [("order", 1, "a", 3), ("shipped", 4, "a", None), ("order", 2, "b", 3), ("noise", 3, "x", 1)])
    given: list[dict[str, Any]] = []
    program = ephemera.compile(OVERDUE)
    source = sources.Folder(str(folder), most_files=1)
    made = program.stream(spark, source, sinks.Callback(given.append), checkpoint=place["check"])
    query = made.start()
    query.drain()
    put("2 {x}.parquet", [("noise", 50, "z", 1), (None, 51, "z", 1)])
    query.drain()
    query.stop()
    assert [(a["event"], a["time"], a["data"]) for a in given] == [("overdue", [2, 8], ["b"])]
    assert (query.totals.events, query.totals.bad) == (6, 1)


def test_a_small_batch_is_done_in_one_task_and_a_large_one_in_several(spark: SparkSession, place: Place) -> None:
    reports: list[BatchReport] = []
    running = place.stream(spark, small=3).start(reports.append)
    for start in (1, 20, 40, 60, 80):
        orders = 2 if start in {20, 40} else 4
        place.put(*(event("order", start + n, f"{start}-{n}", 3) for n in range(orders)))
        running.drain()
    place.put(event("order", 200, "last", 3))
    running.drain()
    running.stop()
    assert [report.in_one_task for report in reports] == [False, False, True, True, False, False]
    expected = [f"{s}-{n}" for s, many in ((1, 4), (20, 2), (40, 2), (60, 4), (80, 4)) for n in range(many)]
    assert sorted(answer["data"][0] for answer in place.lines("out")) == sorted(expected)
    assert sum(report.events for report in reports) == 17


def test_a_large_batch_in_one_task_uses_all_cores(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet files are read and met in threads; what comes of them does not change."""
    folder = tmp_path / "in.parquet"
    folder.mkdir()
    count = 30_000
    for number in range(3):
        rows = range(number * count, (number + 1) * count)
        ends = pa.array([n // 10 for n in rows], pa.int64())
        kinds = ["order" if n % 3 else "shipped" for n in rows]
        names, many = [f"k{n % 997}" for n in rows], pa.array([n % 12 for n in rows], pa.int64())
        table = pa.table({"event": kinds, "time": ends, "id": names, "qty": many})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=7_000)
    answers: list[list[str]] = []
    for small in (0, 10 * count):
        reports: list[BatchReport] = []
        source, sink = sources.Folder(str(folder), most_files=1), sinks.Folder(str(tmp_path / f"out{small}"))
        asked: dict[str, Any] = {"checkpoint": str(tmp_path / f"check{small}"), "small": small, "shards": 3}
        made = ephemera.compile(OVERDUE).stream(spark, source, sink, **asked)
        running = made.start(reports.append)
        running.drain()
        running.stop()
        assert [report.in_one_task for report in reports] == [False, small > 0, small > 0]
        files = (tmp_path / f"out{small}").glob("*.jsonl")
        answers.append(sorted(line for file in files for line in file.read_text(encoding="utf-8").splitlines()))
    assert answers[0] == answers[1]
    assert len(answers[0]) > count


def test_a_rate_source_is_read_like_any_frame(spark: SparkSession, place: Place) -> None:
    """Ten rows a batch, at one time, which is a second later with each."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("startTimestamp", 100_000)
    frame = rate.load().selectExpr("'order' AS event", "timestamp AS time", "'k' || value AS id", "3 AS qty")
    given: list[dict[str, Any]] = []
    reports: list[BatchReport] = []
    query = ephemera.compile(OVERDUE).stream(spark, frame, sink=sinks.Callback(given.append), checkpoint=place["check"])
    running = query.start(reports.append)
    last = monotonic() + PATIENCE
    while len(given) < 20:
        assert monotonic() < last
        assert not running.wait(1)
    running.stop()
    assert sorted(answer["data"][0] for answer in given[:20]) == sorted(f"k{n}" for n in range(20))
    assert given[0]["time"] == ["1970-01-01T00:01:40Z", "1970-01-01T00:01:46Z"]
    assert {report.events for report in reports} == {10}
