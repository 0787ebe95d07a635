"""This module runs spread programs on Spark: events are routed in Arrow batches, shuffled, and met by engines.

What travels are shipments: rows of Spark that hold some events as one Arrow message. So Spark shuffles and sorts few
rows, and nothing is converted on the way. Each exchange carries everything along, so that there is one chain from the
input to the answers, and each stage runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

from ephemera.engine.cluster.message import SCATTERED, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.packed_programs import Programs

SCHEMA = "program int, group int, place int, first bigint, count bigint, label string, arity int, rule int, load binary"
_ARROW = pa.schema(
    [
        ("program", pa.int32()),
        ("group", pa.int32()),
        ("place", pa.int32()),
        ("first", pa.int64()),
        ("count", pa.int64()),
        ("label", pa.string()),
        ("arity", pa.int32()),
        ("rule", pa.int32()),
        ("load", pa.binary()),
    ]
)
NAMES = [f.name for f in fields(Shipment)]
_BYTES = 8 << 20
"""About so much goes to Spark at a time."""


def batches(shipments: Iterable[Shipment]) -> Iterator[pa.RecordBatch]:
    """Shipments as rows of Spark."""
    rows: list[Shipment] = []
    size = 0
    for shipment in shipments:
        rows.append(shipment)
        size += len(shipment.load) + 100
        if size >= _BYTES:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[Shipment]) -> pa.RecordBatch:
    columns: list[list[object]] = [[getattr(row, name) for row in rows] for name in NAMES[:-1]]
    columns.append([load if isinstance(load := row.load, bytes) else load.to_pybytes() for row in rows])
    arrays = [pa.array(values, f.type) for values, f in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def shipments_of(given: Iterable[pa.RecordBatch]) -> Iterator[Shipment]:
    """The shipments of rows of Spark, one after the other."""
    for batch in given:
        columns = [batch.column(name).to_pylist() for name in NAMES[:-1]]
        loads = batch.column("load")
        for k, row in enumerate(zip(*columns, strict=True)):
            yield Shipment(*row, loads[k].as_buffer())  # type: ignore[call-arg]


def of_rows(rows: Iterable[Row]) -> list[Shipment]:
    """The shipments of rows that were collected."""
    return [Shipment(*(row[name] for name in NAMES)) for row in rows]


@dataclass(frozen=True, slots=True)
class Level:
    """What runs in each partition between two exchanges: the engines of one level of all programs."""

    spreads: Mapping[int, DistributedProgram]
    level: int
    alone: frozenset[tuple[int, int, int]]
    """The programs, groups and places of engines that run even if no event comes to them."""

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self._run(shipments_of(given), place_of_task())))

    def _run(self, shipments: Iterator[Shipment], place: int) -> Iterator[Shipment]:
        left = {(program, group) for program, group, where in self.alone if where == place}
        for (program, group), own in groupby(shipments, key=lambda s: (s.program, s.group)):
            spread = self.spreads[program]
            if group >= 0 and spread.stages.groups[group].level == self.level:
                left.discard((program, group))
                yield from spread.run(group, place, own)
            else:
                yield from own
        for program, group in sorted(left):
            yield from self.spreads[program].run(group, place, ())


@dataclass(frozen=True, slots=True)
class Gathering:
    """What runs behind the last level: answers that several partitions may have given are given once."""

    spreads: Mapping[int, DistributedProgram]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", gathered(shipments_of(given), self.spreads, place_of_task())))


def gathered(
    shipments: Iterable[Shipment], spreads: Mapping[int, DistributedProgram], place: int
) -> Iterator[Shipment]:
    """Shipments, which come by program and group, with what several places may have given each once."""
    for (program, group), own in groupby(shipments, key=lambda s: (s.program, s.group)):
        if group == SCATTERED:
            yield from spreads[program].gather(place, own)
        else:
            yield from own


def place_of_task() -> int:
    """The place of the task at work."""
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def run_levels(routed: DataFrame, spreads: Sequence[DistributedProgram], programs: Programs, places: int) -> DataFrame:
    """All that comes of events that have been routed."""
    frame = routed
    for level in range(max((s.stages.levels for s in spreads), default=0)):
        frame = exchanged(frame, places, Level(programs, level, _alone(spreads, level)))
    if any(spread.needs_gathering for spread in spreads):
        frame = exchanged(frame, places, Gathering(programs))
    return frame


def _alone(spreads: Sequence[DistributedProgram], level: int) -> frozenset[tuple[int, int, int]]:
    return frozenset(
        (spread.number, number, spread.pinned(number))
        for spread in spreads
        for number, group in enumerate(spread.stages.groups)
        if group.level == level and spread.needs_no_events(number)
    )


def exchanged(
    frame: DataFrame, places: int, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> DataFrame:
    """What a function makes of shipments in their places, each of which gets them by program, group and time."""
    ordered = frame.repartitionById(places, "place").sortWithinPartitions("program", "group", "first")
    return map_in_arrow(ordered, function, SCHEMA)
