"""This module runs the live benchmark: programs on Structured Streaming against Spark's own join of streams.

Both read the same Parquet files, one for each batch, in the same session on two cores, and write their answers to
Parquet files, which must hold the right answers in the end. The duration of a batch is what Spark tells of it, from
looking for new files to the commit. Each query is run once in short before it counts, so that Java is warm.

PYTHONPATH=. python -m bench.live [--parts large small chain hot] [--batches 500] [--keys 100000] [--cores 2]
    [--sizes 250000 1000000] [--stores memory rocksdb] [--set KEY=VALUE …] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench import native
from bench.feeds import Feed, chain, pairs, queried
from bench.process import family
from bench.reference import Answers
from ephemera import sinks, sources
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program
from ephemera.spark.live.query import FILES
from ephemera.spark.live.report import BatchReport
from ephemera.spark.runtime.session import session

SMALL = 1_000
"""Events in a small batch."""
PART = 50
"""So many batches at the beginning and at the end are compared."""
GROUP = 125_000
"""Rows of a group in the files, so that several tasks can read one."""
COLD = 2
"""So many batches of each run do not count."""
STAMPS = ("event", "begin", "end")
"""Columns of our answers that the others do not have."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a query went: the milliseconds of each batch that counts, the CPU time of one, and what it wrote."""

    name: str
    events: int
    """In a batch."""
    millis: tuple[float, ...]
    cpu: float
    """Milliseconds of all processes for a batch, on average."""
    answers: int
    reports: tuple[BatchReport, ...] = ()

    @property
    def rate(self) -> float:
        """Million events in a second."""
        return self.events * len(self.millis) / sum(self.millis) / 1e3

    @property
    def median(self) -> float:
        return statistics.median(self.millis)

    @property
    def ends(self) -> tuple[float, float]:
        """The medians of the first and of the last batches."""
        return statistics.median(self.millis[:PART]), statistics.median(self.millis[-PART:])

    @property
    def written(self) -> tuple[float, float]:
        """The bytes of state that the first and the last batches wrote, merging included; the mean."""
        told = [report.state.fresh + report.state.merged for report in self.reports] or [0]
        return statistics.fmean(told[:PART]), statistics.fmean(told[-PART:])

    def line(self) -> str:
        first, last = self.ends
        own = f"{self.written[0]:,.0f} | {self.written[1]:,.0f}" if self.reports else "|"
        times = f"{self.rate:.3f} | {self.median:,.0f} | {self.cpu:,.0f} | {first:,.0f} | {last:,.0f}"
        return f"| {self.name} | {len(self.millis)} × {self.events:,} | {self.answers:,} | {times} | {own} |"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "events": self.events,
            "answers": self.answers,
            "millis": self.millis,
            "cpu": self.cpu,
            "state": [[r.state.fresh, r.state.merged, r.state.live, r.state.segments] for r in self.reports],
        }


HEAD = """\
| | batches | answers | M events/s | median ms | CPU ms | first ms | last ms | first bytes | last bytes |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


# ---- one query ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bench:
    """Where queries are run."""

    spark: SparkSession
    scratch: Path

    @contextmanager
    def fed(self, feed: Feed, batch: int) -> Iterator[Path]:
        """A folder with a file for each batch."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch, suffix=".parquet"))
        count = len(feed) // batch
        for number in range(count):
            path = folder / f"{number:06d}.parquet"
            rows = feed.table.slice(number * batch, batch if number < count - 1 else None)
            pq.write_table(rows, path, row_group_size=GROUP)
            os.utime(path, (1e9 + number, 1e9 + number))  # they are read in this order
        yield folder
        shutil.rmtree(folder)

    def ours(self, name: str, feed: Feed, batch: int) -> Run:
        """The program of a feed."""
        program = Program(check(Source("bench.eq", feed.program)))
        reports: list[BatchReport] = []

        def begin(folder: Path, work: Path) -> StreamingQuery:
            made = program.stream(
                self.spark, sources.Folder(str(folder), most_files=1), sinks.Folder(f"{work}/out", format="parquet"),
                checkpoint=f"{work}/checkpoint", emit=[feed.query],
            )  # fmt: skip
            return made.start(reports.append).query

        run = self._run(name, feed, batch, begin)
        if any(report.late or report.bad or report.dead for report in reports):
            raise SystemExit(f"{name}: some events were late or bad")
        return replace(run, reports=tuple(reports))

    def spark_join(self, name: str, feed: Feed, batch: int, store: str) -> Run:
        """Spark's own join for the answers of Q1."""

        def begin(folder: Path, work: Path) -> StreamingQuery:
            reading = self.spark.readStream.schema(feed.schema).option("maxFilesPerTrigger", 1)
            own = {"store": store, "checkpoint": f"{work}/checkpoint", "output": f"{work}/out"}
            return native.start(reading.parquet(str(folder)), feed.within, **own)

        return self._run(f"{name}, {store}", feed, batch, begin)

    def _run(self, name: str, feed: Feed, batch: int, begin: Callable[[Path, Path], StreamingQuery]) -> Run:
        work = Path(tempfile.mkdtemp(dir=self.scratch))
        with self.fed(feed, batch) as folder:
            before = _cpu()
            query = begin(folder, work)
            query.processAllAvailable()
            told = [dict(p) for p in query.recentProgress if p["numInputRows"]]
            query.stop()
        cpu = 1e3 * (_cpu() - before) / max(1, len(told))
        found = answers_in(work / "out")
        shutil.rmtree(work)
        if not found.agree(feed.right):
            raise SystemExit(f"{name}: wrong answers: {found}, not {feed.right}")
        millis = tuple(float(p["durationMs"]["triggerExecution"]) for p in told)
        return Run(name, batch, millis[COLD:], cpu, found.count)


def answers_in(folder: Path) -> Answers:
    """What some files hold: how many answers, and the sum of all ids in them."""
    count = ids = 0
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        count += table.num_rows
        ids += sum(pc.sum(table[n]).as_py() or 0 for n in table.column_names if n not in STAMPS)
    return Answers(count, ids)


def _cpu() -> float:
    return sum(process.cpu for process in family())


# ---- the parts of the benchmark ------------------------------------------------------------------------------


def large(bench: Bench, chosen: argparse.Namespace) -> Iterator[Run]:
    """Large batches of Q1, ours and Spark's, and of Q2."""
    for size in chosen.sizes:
        feed = queried("Q1", chosen.keys, (COLD + chosen.many) * size)
        bench.ours("warm", feed, size)
        ours = bench.ours("Q1", feed, size)
        yield ours
        best = 0.0
        for store in chosen.stores:
            bench.spark_join("warm", feed, size, store)
            theirs = bench.spark_join("Spark's join", feed, size, store)
            yield theirs
            best = max(best, theirs.rate)
        if best:
            print(f"    Q1 at {size:,}: {ours.rate / best:.1f} times the events/s of Spark's join")
        yield bench.ours("Q2", queried("Q2", chosen.keys, (COLD + chosen.many) * size), size)


def small(bench: Bench, chosen: argparse.Namespace) -> Iterator[Run]:
    """Small batches of Q1, ours and Spark's."""
    short = queried("Q1", chosen.keys, chosen.warm * SMALL)
    feed = queried("Q1", chosen.keys, (COLD + chosen.batches) * SMALL)
    bench.ours("warm", short, SMALL)
    ours = bench.ours("Q1", feed, SMALL)
    yield ours
    best = float("inf")
    for store in chosen.stores:
        bench.spark_join("warm", short, SMALL, store)
        theirs = bench.spark_join("Spark's join", feed, SMALL, store)
        yield theirs
        best = min(best, theirs.median)
    if chosen.stores:
        print(f"    Q1 at {SMALL:,}: {ours.median / best:.2f} times the duration of Spark's join")


def stages(bench: Bench, chosen: argparse.Namespace) -> Iterator[Run]:
    """Small batches of a program of two stages."""
    bench.ours("warm", chain(chosen.warm * SMALL), SMALL)
    yield bench.ours("order, shipping, tracking", chain((COLD + chosen.batches) * SMALL), SMALL)


def hot(bench: Bench, chosen: argparse.Namespace) -> Iterator[Run]:
    """A key with a fifth of all events, and none such with about as many answers."""
    size = min(chosen.sizes)
    count = (COLD + chosen.many) * size
    skewed = pairs(chosen.keys, count, hot=0.2)
    plain = pairs(chosen.keys, count, like=skewed.right.count)
    bench.ours("warm", skewed, size)
    hotter = bench.ours("Q1, a key with 20 %", skewed, size)
    yield hotter
    even = bench.ours("Q1, none, as many answers", plain, size)
    yield even
    quiet = bench.ours("Q1, none, few answers", pairs(chosen.keys, count), size)
    yield quiet
    print(
        f"    a hot key: {hotter.median / even.median:.2f} times the duration of as many answers without one,", end=" "
    )
    print(f"{hotter.median / quiet.median:.2f} times that of few answers")


PARTS: dict[str, Callable[[Bench, argparse.Namespace], Iterator[Run]]] = {
    "large": large,
    "small": small,
    "chain": stages,
    "hot": hot,
}


def main() -> None:
    """Measures, and prints a table."""
    chosen = _options().parse_args()
    more = {
        "spark.sql.shuffle.partitions": str(chosen.cores),
        "spark.sql.files.openCostInBytes": str(1 << 20),  # so that two tasks read a file of a few megabytes
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }
    more |= dict(pair.split("=", 1) for pair in chosen.set)
    spark = session(f"local[{chosen.cores}]", more=more)
    spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", FILES)  # for both
    runs: list[Run] = []
    print(HEAD, flush=True)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        for part in chosen.parts:
            for run in PARTS[part](Bench(spark, Path(scratch)), chosen):
                print(run.line(), flush=True)
                runs.append(run)
    print(f"    {time.perf_counter() - begin:,.0f} s, load {os.getloadavg()[1]:.1f}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([run.as_json() for run in runs]) + "\n")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options.add_argument("--sizes", type=int, nargs="+", default=[250_000, 1_000_000], help="events in large batches")
    options.add_argument("--many", type=int, default=8, help="large batches that count")
    options.add_argument("--batches", type=int, default=500, help="small batches that count")
    options.add_argument("--warm", type=int, default=100, help="small batches before those")
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--stores", nargs="*", choices=list(native.STORES), default=list(native.STORES))
    options.add_argument("--cores", type=int, default=2)
    options.add_argument("--set", nargs="*", default=[], help="settings of Spark, KEY=VALUE")
    options.add_argument("--json", type=Path)
    return options


if __name__ == "__main__":
    main()
