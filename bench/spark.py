"""This module runs the benchmark on Spark: programs against hand-written SQL, on the same files in the same session.

Each query is run several times, warm, and the fastest run counts; both must give the right answers. The answers are
counted and added up where they are, by both.

PYTHONPATH=. python -m bench.spark [--events 5000000] [--keys 1000 100000] [--hot 0.2] [--queries Q1 Q3] [--repeat 3]
    [--no-sql] [--cores 2] [--limit 60] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.data import Stream
from bench.queries import Case, cases
from bench.reference import Answers
from bench.spark_queries import variants
from ephemera.base.span import Source
from ephemera.engine.cluster import message
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.pipeline import check
from ephemera.program import Program
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.exchange import shipments_of
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session

ROWS = 262_144
"""Rows of a group in the files, so that several tasks can read one."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How one query went: seconds of the fastest run, ours and of each way to write it in SQL."""

    name: str
    answers: int
    ours: float
    sql: Mapping[str, float]
    memory: float
    """The most that a Python worker took, in MB."""

    @property
    def best(self) -> float | None:
        return min(self.sql.values()) if self.sql else None


@dataclass(frozen=True, slots=True)
class _AddUp:
    """The number of answers and the sums of their values, in each partition."""

    spread: DistributedProgram

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = ids = 0
        means = peak = 0.0
        for shipment in shipments_of(given):
            if isinstance(shipment, message.EngineStats):
                peak = max(peak, shipment.stats.get("peak_mb", 0.0))
            if isinstance(shipment, message.Answers):
                events = message.unpack(shipment.events, self.spread.compiled.plan.catalogue)
                count += len(events)
                for name, c in events.batch.columns.items():
                    if name.startswith("@"):
                        ids += int(c.values.sum()) if c.kind == "int" else 0
                        means += float(c.values.sum()) if c.kind == "float" else 0.0
        yield pa.RecordBatch.from_pydict({"count": [count], "ids": [ids], "means": [means], "peak": [peak]})


def ours(spark: SparkSession, text: str, query: str, path: Path) -> tuple[Answers, float]:
    """What a program finds for a query, and the memory of the largest worker."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    program = Program(check(Source("bench.eq", text)))
    started = start(spark, [Job(program._planned([query]))], [Input(str(path))])
    added = map_in_arrow(
        started.shipped, _AddUp(started.spreads[0]), "count bigint, ids bigint, means double, peak double"
    )
    row = added.agg(f.sum("count"), f.sum("ids"), f.sum("means"), f.max("peak")).collect()[0]
    return Answers(row[0], row[1], row[2]), row[3]


def sql(spark: SparkSession, query: str) -> Answers:
    """What a query in SQL finds."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    frame: DataFrame = spark.sql(query)
    mean = f.sum("mean") if "mean" in frame.columns else f.lit(0.0)
    row = frame.agg(f.count("ids"), f.sum("ids"), mean).collect()[0]
    return Answers(row[0], row[1], row[2])


def save(stream: Stream, path: Path) -> None:
    """A stream as a Parquet file, in the order of time."""
    letters = np.array(list(stream.types))
    table = pa.table(
        {
            "event": pa.array(letters[stream.kind]),
            "time": stream.end,
            "id": stream.id,
            "x": stream.x,
            "v": stream.v,
        }
    )
    pq.write_table(table, path, row_group_size=ROWS)


def timed(work: Callable[[], Any], right: Answers, repeat: int, limit: float) -> tuple[float, Any]:
    """The fastest of several runs, each of which must be right, and what the last one gave; a slow one is enough."""
    best, found = float("inf"), None
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        found = work()
        taken = time.perf_counter() - begin
        answers = found[0] if isinstance(found, tuple) else found
        if not answers.agree(right):
            raise SystemExit(f"wrong answers: {answers}, not {right}")
        best = min(best, taken)
        if taken > limit:
            break
    return best, found


def timed_sql(spark: SparkSession, query: str, right: Answers, repeat: int, limit: float) -> float:
    """The same for SQL; what takes longer than the limit is ended, and counts as endless."""
    context = spark.sparkContext
    stop = threading.Timer(limit * (repeat + 1), context.cancelAllJobs)
    stop.start()
    try:
        return timed(lambda: sql(spark, query), right, repeat, limit)[0]
    except Exception as error:
        if "cancel" not in str(error).lower():
            raise
        return float("inf")
    finally:
        stop.cancel()


def main() -> None:
    """Measures, and prints a table."""
    chosen = _options().parse_args()
    spark = session(
        f"local[{chosen.cores}]", more={"spark.sql.shuffle.partitions": str(2 * chosen.cores)}, is_alone=True
    )
    rows: list[dict[str, Any]] = []
    print("| | answers | ours s | M events/s | best SQL s | ours / SQL | worker MB | SQL |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(chosen.keys, chosen.hot, chosen.queries):
            if not case.keys:
                continue
            path = Path(scratch) / f"{case.stream_name}.parquet"
            stream = case.stream(chosen.events)
            if not path.exists():
                save(stream, path)
            row = measured(spark, case, stream, path, chosen)
            ratio = "" if row.best is None else f"{row.ours / row.best:.2f}"
            ways = ", ".join(f"{name} {seconds:.2f}" for name, seconds in row.sql.items())
            best = "" if row.best is None else f"{row.best:.2f}"
            rate = chosen.events / row.ours / 1e6
            figures = f"{row.answers:,} | {row.ours:.2f} | {rate:.2f} | {best} | {ratio} | {row.memory:.0f} | {ways}"
            print(f"| {row.name} | {figures} |", flush=True)
            rows.append(
                {"name": row.name, "answers": row.answers, "ours": row.ours, "sql": dict(row.sql), "mb": row.memory}
            )
    if chosen.json is not None:
        chosen.json.write_text(
            json.dumps({"events": chosen.events, "cores": chosen.cores, "queries": rows}, indent=1) + "\n"
        )


def measured(spark: SparkSession, case: Case, stream: Stream, path: Path, chosen: argparse.Namespace) -> Figures:
    """One query, ours and in SQL."""
    right = case.answers(stream)
    del stream
    spark.read.parquet(str(path)).createOrReplaceTempView("events")
    name = "Q1" if case.query == "Q1h" else case.query
    taken, (_, memory) = timed(lambda: ours(spark, case.program, case.query, path), right, chosen.repeat, chosen.limit)
    ways = {} if chosen.no_sql else variants(name, case.within)
    found = {way: timed_sql(spark, text, right, chosen.repeat, chosen.limit) for way, text in ways.items()}
    return Figures(case.name, right.count, taken, found, memory)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=5_000_000)
    options.add_argument("--keys", type=int, nargs="+", default=[1_000, 100_000])
    options.add_argument("--hot", type=float, default=0.2, help="the share of one key; 0 leaves out its queries")
    options.add_argument("--queries", nargs="+", default=["Q1", "Q2", "Q3", "Q4", "Q1h"], help="only these")
    options.add_argument("--repeat", type=int, default=3, help="warm runs of which the fastest counts")
    options.add_argument("--cores", type=int, default=2)
    options.add_argument("--limit", type=float, default=60.0, help="a run that takes more seconds is not repeated")
    options.add_argument("--no-sql", action="store_true")
    options.add_argument("--json", type=Path)
    return options


if __name__ == "__main__":
    main()
