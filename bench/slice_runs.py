"""This module runs the cases of the benchmark of slices on so many cores, as it is told, in a process of its own.

A process that is bound to some cores has them for all that it starts, Java and workers included. It is told what to run
line by line, so that two such processes, one with one core and one with two, can take turns while both are warm.

PYTHONPATH=. python -m bench.slice_runs CORES [FIRST]
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import ephemera
from bench.process import family
from bench.slice_cases import CASES
from ephemera import sinks, sources
from ephemera.engine.cluster import message
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.kernels.event_columns import END
from ephemera.spark.batch.job import Job, start
from ephemera.spark.live.report import BatchReport
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.exchange import shipments_of
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session

COLD = 2
"""So many batches of a live run do not count: from them is learned how the others are best done."""
MICROSECONDS = 1_000
"""In a millisecond, in which streams count."""
_ADDED = pa.schema(
    [
        *((name, pa.int64()) for name in ("count", "whole", "place")),
        *((n, pa.float64()) for n in ("broken", "cpu", "mb")),
    ]
)


@dataclass(frozen=True, slots=True)
class Sums:
    """Answers in short: how many, the sum of their ends and whole numbers, that of their fractions."""

    count: int
    whole: int
    broken: float

    def agree(self, other: Sums) -> bool:
        """Whether they are those of the same answers."""
        same = (self.count, self.whole) == (other.count, other.whole)
        return same and math.isclose(self.broken, other.broken, rel_tol=1e-9)


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run: of batch all of it counts, live the batch in the middle."""

    seconds: float
    sums: Sums
    slices: int
    engines: float
    """Seconds that processors were busy in engines."""
    cpu: float
    """Seconds that processors were busy at all."""
    memory: tuple[float, float]
    """MB of the largest worker, when the run had begun and when it was over."""


def local(name: str, events: pa.Table) -> Sums:
    """What the local engine answers."""
    return sums_of(ephemera.compile(CASES[name].program).run(events, emit=["p"]))


def sums_of(found: pa.Table) -> Sums:
    """Answers of a table in short."""
    stamp = "end" if "end" in found.column_names else "time"
    columns = [found.column(n) for n in found.column_names if n not in ("event", "begin", "end", "time")]
    stamps = found.column(stamp)
    is_time = pa.types.is_timestamp(stamps.type)
    ends = (pc.sum(stamps.cast(pa.int64())).as_py() or 0) * (1 if is_time else MICROSECONDS)
    whole = sum(pc.sum(c).as_py() or 0 for c in columns if pa.types.is_integer(c.type))
    broken = sum(pc.sum(c).as_py() or 0 for c in columns if pa.types.is_floating(c.type))
    return Sums(found.num_rows, (whole + ends) % 2**32, broken)


@dataclass(frozen=True, slots=True)
class _AddUp:
    spread: DistributedProgram

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in shipments_of(given):
            if isinstance(one, message.EngineStats):
                yield _row(place=one.place, cpu=one.stats["cpu"], mb=one.stats["peak_mb"])
            if isinstance(one, message.Answers):
                events = message.unpack(one.events, self.spread.compiled.plan.catalogue)
                values = [c for name, c in events.batch.columns.items() if name.startswith("@")]
                whole = sum(int(c.values.sum()) for c in values if c.kind == "int") + int(events.batch[END].sum())
                broken = sum(float(c.values.sum()) for c in values if c.kind == "float")
                yield _row(count=len(events), whole=whole % 2**32, broken=broken, place=-1)


def _row(**values: float) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict.fromkeys(_ADDED.names, 0) | values], schema=_ADDED)


def in_batch(spark: SparkSession, name: str, path: str) -> Run:
    """A program over a file."""
    before, began = _cpu(), time.perf_counter()
    job = Job(ephemera.compile(CASES[name].program)._planned(["p"]))
    started = start(spark, [job], [Input(path)])
    (spread,) = started.spreads
    rows = map_in_arrow(started.shipped, _AddUp(spread), from_arrow_schema(_ADDED)).collect()
    taken = time.perf_counter() - began
    sums = Sums(sum(r["count"] for r in rows), sum(r.whole for r in rows) % 2**32, math.fsum(r.broken for r in rows))
    slices = max((len(one) for one in spread.slices.values()), default=1)
    peaks = [r.mb for r in rows if r.place >= 0]
    return Run(taken, sums, slices, sum(r.cpu for r in rows), _cpu() - before, (min(peaks), max(peaks)))


def live(spark: SparkSession, name: str, folder: str) -> Run:
    """A program over a folder, of which each file is a batch; the last only ends it."""
    work = Path(tempfile.mkdtemp())
    reports: list[BatchReport] = []
    memory: list[float] = []

    def watch(report: BatchReport) -> None:
        reports.append(report)
        memory.append(_largest())

    before = _cpu()
    source, sink = sources.Folder(folder, most_files=1), sinks.Folder(f"{work}/out", format="parquet")
    program = ephemera.compile(CASES[name].program)
    running = program.stream(spark, source, sink, checkpoint=f"{work}/checkpoint", emit=["p"]).start(watch)
    running.query.processAllAvailable()
    told = [dict(p) for p in running.query.recentProgress if p["numInputRows"]]
    running.query.stop()
    cpu = _cpu() - before
    found = [pq.read_table(one) for one in sorted((work / "out").glob("*.parquet"))]
    shutil.rmtree(work)
    seconds = [p["durationMs"]["triggerExecution"] / 1_000 for p in told][COLD:-1]
    counted = reports[COLD:-1]
    return Run(
        statistics.median(seconds),
        sums_of(pa.concat_tables(found)),
        max(report.slices for report in counted),
        statistics.median(report.busy for report in counted),
        cpu / len(told),
        (memory[COLD], memory[-1]),
    )


def _cpu() -> float:
    return sum(process.cpu for process in family())


def _largest() -> float:
    """MB of the largest worker."""
    own = os.getpid()
    return max((one.memory for one in family() if one.number != own and "java" not in one.name), default=0.0)


def main() -> None:
    """Runs what it is told, and tells what came of it."""
    cores, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if there:
        os.sched_setaffinity(0, there[first : first + cores])
    spark = session(f"local[{cores}]", more={"spark.driver.memory": "2g"}, is_alone=True)
    for line in sys.stdin:
        told: dict[str, Any] = json.loads(line)
        run = {"batch": in_batch, "live": live}[told["way"]](spark, told["name"], told["path"])
        print(json.dumps(asdict(run)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
