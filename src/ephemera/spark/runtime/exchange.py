"""This module carries shipments through Spark: as rows from stage to stage, with engines where they arrive.

A shipment is a row whose `kind` says what it is; that number is known here and nowhere else. Events stay packed in it,
so that Spark shuffles and sorts few rows, and nothing is converted on the way. Each exchange carries everything along:
there is one chain from the input to the answers, and each stage runs once.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, cast, get_args

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.engine.cluster import message
from ephemera.engine.cluster.message import (
    Answers,
    EventsFor,
    MessagesToSend,
    PackedEvents,
    ScatteredAnswers,
    Shipment,
    run_groups,
)
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import read_word
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow

_KINDS: tuple[type[Shipment], ...] = get_args(Shipment)
"""What the column `kind` counts."""
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_WITH_EVENTS = (EventsFor, Answers, ScatteredAnswers, MessagesToSend)
_ORDER = ("program", "kind", "group", "home", "first")
"""The columns by which a place takes what comes to it; `_position` has their values."""
_ARROW = pa.schema(
    [
        *((name, pa.int32()) for name in ("program", "kind", "group", "home", "place")),
        *((name, pa.int64()) for name in ("first", "count")),
        ("label", pa.string()),
        *((name, pa.int32()) for name in ("arity", "rule")),
        ("load", pa.binary()),
    ]
)
NAMES = list(_ARROW.names)
SCHEMA = from_arrow_schema(_ARROW)
_BYTES = 8 << 20
"""About so much goes to Spark at a time."""


# ---- shipments as rows -------------------------------------------------------------------------------------


def _position(shipment: Shipment) -> tuple[int, int, int, int, int]:
    """Where a shipment stands among those to its place: by program, and those for groups by group, home and time."""
    group, home = (shipment.group, shipment.home) if isinstance(shipment, EventsFor) else (0, 0)
    first = shipment.events.first if isinstance(shipment, _WITH_EVENTS) else 0
    return shipment.program, _NUMBERS[type(shipment)], group, home, first


def in_order(shipments: Iterable[Shipment]) -> list[Shipment]:
    """Shipments as a place takes them, without Spark, which would need a stage of its own to sort a few."""
    return sorted(shipments, key=_position)


def _row(shipment: Shipment) -> tuple[Any, ...]:
    """The columns of a shipment."""
    program, kind, group, home, first = _position(shipment)
    count, label, arity, rule = 0, "", None, 0
    load: bytes | pa.Buffer = b""
    match shipment:
        case EventsFor() | Answers() | ScatteredAnswers() | MessagesToSend():
            events = shipment.events
            count, label, arity, load = events.count, events.label, events.arity, events.load
            rule = 0 if isinstance(shipment, EventsFor) else shipment.rule
        case message.BadInput() | message.LateInput() | message.UndefinedHead():
            count, load = shipment.count, shipment.first
        case message.StoredAnswers() | message.ReadCount():
            count, label = shipment.count, shipment.label
        case message.ReadNotes():
            load = _json({"notes": shipment.notes, "keys": shipment.keys})
        case message.EngineStats():
            load = _json(shipment.stats)
        case message.SourceProgress():
            load = _json(shipment.seen.told())
    data = load if isinstance(load, bytes) else load.to_pybytes()
    return program, kind, group, home, shipment.place, first, count, label, arity, rule, data


def _json(told: object) -> bytes:
    return json.dumps(told, default=str).encode()


def _shipment(row: Sequence[Any]) -> Shipment:
    """The shipment of a row."""
    program, kind, group, home, place, first, count, label, arity, rule, load = row
    match _KINDS[kind]:
        case message.EventsFor:
            return EventsFor(program, place, group, home, PackedEvents(label, arity, count, first, load))
        case message.Answers:
            return Answers(program, place, rule, PackedEvents(label, arity, count, first, load))
        case message.ScatteredAnswers:
            return ScatteredAnswers(program, place, rule, PackedEvents(label, arity, count, first, load))
        case message.MessagesToSend:
            return MessagesToSend(program, place, rule, PackedEvents(label, arity, count, first, load))
        case message.BadInput:
            return message.BadInput(program, place, count, bytes(load))
        case message.LateInput:
            return message.LateInput(program, place, count, bytes(load))
        case message.UndefinedHead:
            return message.UndefinedHead(program, place, count, bytes(load))
        case message.StoredAnswers:
            return message.StoredAnswers(program, place, label, count)
        case message.ReadCount:
            return message.ReadCount(program, place, label, count)
        case message.EngineStats:
            return message.EngineStats(program, place, json.loads(bytes(load)))
        case message.SourceProgress:
            return message.SourceProgress(program, place, read_word(json.loads(bytes(load))))
        case _:
            told = json.loads(bytes(load))
            return message.ReadNotes(program, place, tuple(told["notes"]), told["keys"])


def batches(shipments: Iterable[Shipment]) -> Iterator[pa.RecordBatch]:
    """Shipments as rows of Spark."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for shipment in shipments:
        row = _row(shipment)
        rows.append(row)
        size += len(row[-1]) + 100
        if size >= _BYTES:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def shipments_of(given: Iterable[pa.RecordBatch]) -> Iterator[Shipment]:
    """The shipments of rows of Spark, one after the other."""
    for batch in given:
        columns = [batch.column(name).to_pylist() for name in NAMES[:-1]]
        loads = batch.column("load")
        for k, row in enumerate(zip(*columns, strict=True)):
            yield _shipment((*row, loads[k].as_buffer()))


def answers_of(given: Iterable[pa.RecordBatch]) -> Iterator[Answers]:
    """The answers among rows of Spark."""
    return (shipment for shipment in shipments_of(given) if isinstance(shipment, Answers))


def of_rows(rows: Iterable[Row]) -> list[Shipment]:
    """The shipments of rows that were collected."""
    return [_shipment([row[name] for name in NAMES]) for row in rows]


def is_a(*kinds: type[Shipment]) -> Column:
    """Which rows are shipments of some kinds."""
    return f.col("kind").isin([_NUMBERS[kind] for kind in kinds])


def kind_of(row: Mapping[str, Any]) -> type[Shipment]:
    """The kind of the shipments that a row of a summary is about."""
    return _KINDS[int(row["kind"])]


# ---- programs on their way to workers ------------------------------------------------------------------------


class Programs(Mapping[int, DistributedProgram]):
    """The programs of a run by their numbers, each unpacked where it is used, once in a process.

    A run of one program is not helped by this, but a run of hundreds is: a task meets only a few of them, and the
    processes of workers live longer than their tasks.
    """

    def __init__(self, spreads: Sequence[DistributedProgram]) -> None:
        self._packed = {spread.number: pickle.dumps(spread, pickle.HIGHEST_PROTOCOL) for spread in spreads}

    def __getitem__(self, number: int) -> DistributedProgram:
        return _unpacked(self._packed[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


@lru_cache(maxsize=1_000)
def _unpacked(packed: bytes) -> DistributedProgram:
    """A program by what it was packed as: the same bytes are the same program, whichever run they are of."""
    program: DistributedProgram = pickle.loads(packed)
    return program


# ---- stages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchStage:
    """What runs in each partition behind an exchange: the engines of one level of all programs.

    Behind the last level there is none, and answers that several partitions may have given are given once.
    """

    spreads: Mapping[int, DistributedProgram]
    level: int | None
    alone: frozenset[tuple[int, int, int]] = frozenset()
    """The programs, groups and places of engines that run even if no event comes to them."""

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self._run(shipments_of(given), place_of_task())))

    def _run(self, shipments: Iterator[Shipment], place: int) -> Iterator[Shipment]:
        if self.level is None:
            return gathered(shipments, self.spreads, place)
        always = [(program, group, home) for program, group, home in self.alone if home == place]
        return run_groups(
            shipments,
            lambda program, group: self.spreads[program].stages.groups[group].level == self.level,
            lambda program, group, home, events: self.spreads[program].run(group, home, place, events),
            always,
        )


def gathered(
    shipments: Iterable[Shipment], spreads: Mapping[int, DistributedProgram], place: int
) -> Iterator[Shipment]:
    """Shipments, which are in order, with what several places may have given each once."""
    for program, several in groupby(shipments, key=lambda s: s.program if isinstance(s, ScatteredAnswers) else None):
        if program is None:
            yield from several
        else:
            yield from spreads[program].gather(place, cast("Iterator[ScatteredAnswers]", several))


def place_of_task() -> int:
    """The place of the task at work."""
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def run_levels(routed: DataFrame, spreads: Sequence[DistributedProgram], programs: Programs, places: int) -> DataFrame:
    """All that comes of events that have been routed."""
    frame = routed
    for level in range(max((s.stages.levels for s in spreads), default=0)):
        frame = _exchanged(frame, places, BatchStage(programs, level, _alone(spreads, level)))
    if any(spread.needs_gathering for spread in spreads):
        frame = _exchanged(frame, places, BatchStage(programs, None))
    return frame


def _alone(spreads: Sequence[DistributedProgram], level: int) -> frozenset[tuple[int, int, int]]:
    return frozenset(
        (spread.number, number, spread.pinned(number))
        for spread in spreads
        for number, group in enumerate(spread.stages.groups)
        if group.level == level and spread.needs_no_events(number)
    )


def _exchanged(
    frame: DataFrame, places: int, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> DataFrame:
    """What a function makes of shipments in their places."""
    ordered = frame.repartitionById(places, "place").sortWithinPartitions(*_ORDER)
    return map_in_arrow(ordered, function, SCHEMA)
