"""This module measures rules without a key on Spark: cut along time on two cores, against one place and one core.

Runs of a query in one place and in slices take turns in one session, so that whatever else the machine does meets both;
those on one core have a session of their own. Beside seconds on the clock stands the processor time of the engines,
which a busy machine changes less: that of one place, over that of the busier of two cores if the slices are shared out
well. All answers are compared with those of the local engine, by their number and by sums.

PYTHONPATH=. python -m bench.slices [--events 2000000] [--queries pairs hour during chain] [--repeat 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import ephemera
from ephemera.engine.cluster import message
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.time_slices import WORTHWHILE, Slicing
from ephemera.kernels.event_columns import END
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.exchange import shipments_of
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session

NEVER = Slicing(least=math.inf)
ROWS = 131_072
PROGRAMS = {
    "pairs": "p(x, y) <- i: a(x), j: b(y), i before j, {i, j} within 10, x > y;",
    "hour": "p(x, avg(y)) <- i: a(x), w: extend-begin(i, 1 hour), x < 20, while w: collect b(y);",
    "during": "p(x, y) <- i: a(x), j: c(y, _), i during j;",
    "chain": "p(x, z) <- i: a(x), j: c(x, z), k: b(z), {i, j, k} within 1 min;",
}
"""A rule without a key within ten seconds, an average over all events of an hour, an interval join, a chain over two
keys."""
DECLARED = "EVENT a(x: int); EVENT b(y: int); EVENT c(x: int, y: int) LASTS AT MOST 20; "
_ADDED = pa.schema(
    [*((name, pa.int64()) for name in ("count", "whole", "place")), ("broken", pa.float64()), ("cpu", pa.float64())]
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
class Figures:
    """How one query went: seconds of the fastest runs, and the processor time of engines."""

    query: str
    answers: int
    slices: int
    one_core: float
    one_place: float
    in_slices: float
    cpu_one_place: float
    cpu_busier: float
    """Of two cores, the processor time of the one that had more to do."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run: the answers, in how many slices, and the processor time of the engine in each place."""

    sums: Sums
    slices: int
    cpu: Mapping[int, float]


def stream(events: int) -> pa.Table:
    """Two events a second, in the order of their ends: points, and one in ten that lasts up to twenty seconds."""
    dice = np.random.default_rng(7)
    ends = np.sort(dice.integers(0, events // 2, events))
    kinds = dice.choice(3, events, p=[0.45, 0.45, 0.1])
    lengths = np.where(kinds == 2, dice.integers(0, 20, events), 0)
    table = {
        "event": pa.array(np.array(list("abc"))[kinds]),
        "begin": ends - lengths,
        "end": ends,
        "x": dice.integers(0, 1_000, events),
        "y": dice.integers(0, 1_000, events),
    }
    return pa.table(table)


@dataclass(frozen=True, slots=True)
class _AddUp:
    spread: DistributedProgram

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in shipments_of(given):
            if isinstance(one, message.EngineStats):
                yield _row(place=one.place, cpu=one.stats["cpu"])
            if isinstance(one, message.Answers):
                events = message.unpack(one.events, self.spread.compiled.plan.catalogue)
                values = [c for name, c in events.batch.columns.items() if name.startswith("@")]
                whole = sum(int(c.values.sum()) for c in values if c.kind == "int") + int(events.batch[END].sum())
                broken = sum(float(c.values.sum()) for c in values if c.kind == "float")
                yield _row(count=len(events), whole=whole % 2**32, broken=broken, place=-1)


def _row(**values: float) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict.fromkeys(_ADDED.names, 0) | values], schema=_ADDED)


def local(program: ephemera.Program, events: pa.Table) -> Sums:
    """What the local engine answers."""
    found = program.run(events, emit=["p"])
    columns = {name: found.column(name) for name in found.column_names if name not in ("event", "begin", "end", "time")}
    ends = pc.sum(found.column("end" if "end" in found.column_names else "time")).as_py() * 1_000_000
    whole = sum(pc.sum(c).as_py() for c in columns.values() if pa.types.is_integer(c.type))
    broken = sum(pc.sum(c).as_py() for c in columns.values() if pa.types.is_floating(c.type))
    return Sums(found.num_rows, (whole + ends) % 2**32, broken)


def on_spark(spark: SparkSession, program: ephemera.Program, path: Path, slicing: Slicing) -> Run:
    """A program over a file on Spark."""
    job = Job(program._planned(["p"]))
    started = start(spark, [job], [Input(str(path))], slicing=slicing)
    (spread,) = started.spreads
    rows = map_in_arrow(started.shipped, _AddUp(spread), from_arrow_schema(_ADDED)).collect()
    sums = Sums(sum(r["count"] for r in rows), sum(r.whole for r in rows) % 2**32, math.fsum(r.broken for r in rows))
    slices = max((len(one) for one in spread.slices.values()), default=1)
    return Run(sums, slices, {r.place: r.cpu for r in rows if r.place >= 0})


def fastest(works: Mapping[str, Callable[[], Run]], right: Sums, repeat: int) -> dict[str, tuple[float, Run]]:
    """The fastest of several runs of each kind, which take turns and must be right, behind one that warms up."""
    best: dict[str, tuple[float, Run]] = {}
    for number in range(repeat + 1):
        for name, work in works.items():
            began = time.perf_counter()
            found = work()
            taken = time.perf_counter() - began
            if not found.sums.agree(right):
                raise SystemExit(f"wrong answers {name}: {found.sums}, not {right}")
            if number and (name not in best or taken < best[name][0]):
                best[name] = (taken, found)
    return best


def busier(cpu: Mapping[int, float]) -> float:
    """The processor time of the busier of two cores that take the longest slices first."""
    cores = [0.0, 0.0]
    for one in sorted(cpu.values(), reverse=True):
        cores[cores.index(min(cores))] += one
    return max(cores)


def main() -> None:
    """Measures, and prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=2_000_000)
    options.add_argument("--queries", nargs="+", default=list(PROGRAMS), help="only these")
    options.add_argument("--repeat", type=int, default=2, help="warm runs of which the fastest counts")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    programs = {name: ephemera.compile(DECLARED + PROGRAMS[name]) for name in chosen.queries}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "events.parquet"
        events = stream(chosen.events)
        pq.write_table(events, path, row_group_size=ROWS)
        right = {name: local(program, events) for name, program in programs.items()}
        found: dict[str, dict[str, tuple[float, Run]]] = {name: {} for name in programs}
        for cores, ways in ((1, {"one core": NEVER}), (2, {"one place": NEVER, "slices": WORTHWHILE})):
            spark = session(f"local[{cores}]")
            for name, program in programs.items():
                works = {way: partial(on_spark, spark, program, path, slicing) for way, slicing in ways.items()}
                found[name] |= fastest(works, right[name], chosen.repeat)
            spark.stop()
    rows = [_figures(name, one) for name, one in found.items()]
    titles = (
        "answers|slices|one core s|one place s|slices s|one core / slices|CPU of one place s|of the busier core s|ratio"
    )
    print(f"| | {' | '.join(titles.split('|'))} |")
    print("|---" + "|--:" * 9 + "|")
    for row in rows:
        seconds = f"{row.one_core:.2f} | {row.one_place:.2f} | {row.in_slices:.2f} | {row.one_core / row.in_slices:.2f}"
        cpu = f"{row.cpu_one_place:.2f} | {row.cpu_busier:.2f} | {row.cpu_one_place / row.cpu_busier:.2f}"
        print(f"| {row.query} | {row.answers:,} | {row.slices} | {seconds} | {cpu} |")
    if chosen.json is not None:
        told = {"events": chosen.events, "queries": [asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(told, indent=1) + "\n")


def _figures(query: str, found: Mapping[str, tuple[float, Run]]) -> Figures:
    one_core, one_place, slices = (found[way] for way in ("one core", "one place", "slices"))
    return Figures(
        query,
        answers=slices[1].sums.count,
        slices=slices[1].slices,
        one_core=one_core[0],
        one_place=one_place[0],
        in_slices=slices[0],
        cpu_one_place=sum(one_place[1].cpu.values()),
        cpu_busier=busier(slices[1].cpu),
    )


if __name__ == "__main__":
    main()
