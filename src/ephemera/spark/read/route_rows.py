"""This module brings events from the rows of Spark to engines: columns become events that are sent to partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as FrameColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ephemera.algebra.attributes import position
from ephemera.base.suggest import suggestion
from ephemera.engine.cluster.message import BadInput, ReadCount, ReadNotes, Shipment, bad_line
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.lacking import UNREAD
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import Keys, read_event
from ephemera.kernels.columns import Batch, Column, column, ints, objects, stack
from ephemera.kernels.event_columns import BEGIN, END, Events, of_events
from ephemera.kernels.history import FAR
from ephemera.rules.nodes import Catalogue
from ephemera.spark.read.flat_events import BEGIN as BEGINS
from ephemera.spark.read.flat_events import EVENT, AttributeColumn, Form, ScannedEvents
from ephemera.spark.read.scan import apart, read_rest
from ephemera.spark.runtime.exchange import batches
from ephemera.spark.runtime.failures import told_by
from ephemera.terms.events import Event
from ephemera.terms.values import Time

_SOME = 20_000
"""Events that are read one by one are routed so many at a time."""
_LEAST, _MOST = 100_000, 1_000_000
"""So many events are gathered before they go, in order or not."""
_PIECE, _PIECES = 8_192, 64
"""Rows that are worth a shipment, and into how many pieces of time events without an order are cut at most."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """Routes the events of a source to programs that declare them alike; the rest is read for each program."""

    spreads: Sequence[DistributedProgram]
    form: Form
    held: Mapping[tuple[str, str], AttributeColumn]
    labels: Sequence[str]
    """What the numbers in the column `event` stand for."""
    only: str | None = None
    """The type of all that names none, if it is of a stream that carries one."""

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        waiting = Waiting(self.spreads[0].places)
        counts = [ReadCounts(spread) for spread in self.spreads]
        for batch in given:
            vouched, rest = apart(batch, self.form)
            if vouched.num_rows:
                parts = list(self.events(vouched))
                for own in counts:
                    own.add_columns(parts)
                    own.add_others(vouched.num_rows - sum(map(len, parts)))
                yield from self._all(waiting.add(parts))
            for spread, own in zip(self.spreads, counts, strict=True) if rest.num_rows else ():
                yield from self._one_by_one(spread, rest, own)
        yield from self._all(waiting.take())
        yield from (word for own in counts for word in own.told())

    def _all(self, parts: list[Events]) -> Iterator[Shipment]:
        for spread in self.spreads:
            yield from spread.route(parts)

    def _one_by_one(self, spread: DistributedProgram, rest: pa.RecordBatch, counts: ReadCounts) -> Iterator[Shipment]:
        """Events that are read one by one, and counted, bad ones included."""
        events = read_rest(spread.compiled.carrying(self.only), self.form, rest, keys=counts.keys)
        while several := list(islice(events, _SOME)):
            for event in several:
                if isinstance(event, BadEvent):
                    counts.add_bad(event)
                    yield bad_input(spread, event)
            good = [event for event in several if isinstance(event, Event)]
            parts = list(of_events(good, spread.compiled.plan.catalogue.attributes))
            counts.add(parts)
            yield from spread.route(parts)

    def events(self, batch: pa.RecordBatch) -> Iterator[Events]:
        """The events of a batch, label by label."""
        numbers = batch.column("event").to_numpy(zero_copy_only=False)
        for number, label in enumerate(self.labels):
            here = numbers == number
            if here.any():
                rows = None if here.all() else np.flatnonzero(here)
                yield self._of_label(label, batch if rows is None else batch.take(pa.array(rows)))

    @property
    def _catalogue(self) -> Catalogue:
        return self.spreads[0].compiled.rules.resolved.catalogue

    def _of_label(self, label: str, batch: pa.RecordBatch) -> Events:
        names = list(self._catalogue.attributes(label) or ())
        ends = ints(_numbers(batch.column("e")))
        columns = {BEGIN: ints(_numbers(batch.column("s"))) if "s" in batch.schema.names else ends, END: ends}
        for k, name in enumerate(names):
            held = self.held.get((label, name))
            if held is not None:
                columns[position(k)] = _column(batch.column(held.column), held)
        return Events(label, Batch(columns, batch.num_rows), len(names), names)


def numbered(source: ScannedEvents, labels: Sequence[str]) -> DataFrame:
    """The frame of a source as readers take it: types by their numbers, and one stamp where that says all."""
    frame = source.frame.drop(BEGINS) if source.is_point else source.frame
    return frame.withColumn(EVENT, _number(frame[EVENT], labels)) if source.has_columns else frame


def _number(event: FrameColumn, labels: Sequence[str]) -> FrameColumn:
    """Which of some labels an event has: numbers travel faster than texts."""
    found = f.lit(-1)
    for number, label in enumerate(labels):
        found = f.when(event == label, f.lit(number)).otherwise(found)
    return found


class Waiting:
    """Events on their way, until there are enough of them for shipments of some size, each of a short time.

    Engines open shipments in the order of their first events, and hold what lies ahead of the next. So events that come
    in no order are gathered, sorted and cut along time; then little of what is held is far ahead.
    """

    def __init__(self, places: int) -> None:
        self._parts: dict[tuple[str, int | None], list[Events]] = {}
        self._rows = 0
        self._enough = max(_LEAST, _PIECE * places)
        self._is_ordered = True
        self._last = -FAR

    def add(self, parts: list[Events]) -> list[Events]:
        """More events; gives what is ready to go, which is all before a jump back in time, as between two files."""
        first = min((int(part.batch[END].min()) for part in parts), default=self._last)
        ready = self.take() if self._is_ordered and first < self._last else []
        for part in parts:
            ends = part.batch[END]
            self._is_ordered = self._is_ordered and bool((ends[1:] >= ends[:-1]).all())
            self._parts.setdefault((part.label, part.arity), []).append(part)
            self._rows += len(part)
            self._last = max(self._last, int(ends.max()))
        return ready + (self.take() if self._rows >= (self._enough if self._is_ordered else _MOST) else [])

    def take(self) -> list[Events]:
        """All that waits."""
        found: list[Events] = []
        for parts in self._parts.values():
            whole = _stacked(parts)
            found += [whole] if self._is_ordered else _along_time(whole)
        self._parts, self._rows, self._is_ordered, self._last = {}, 0, True, -FAR
        return found


def _stacked(parts: list[Events]) -> Events:
    first = parts[0]
    return Events(first.label, stack([p.batch for p in parts]), first.arity, first.names)


def _along_time(events: Events) -> list[Events]:
    order = np.argsort(events.batch[END], kind="stable")
    pieces = max(1, min(_PIECES, len(order) // _PIECE))
    return [events.take(rows) for rows in np.array_split(order, pieces)]


def _numbers(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def _column(values: pa.Array, held: AttributeColumn) -> Column:
    if held.kind == "time":
        return column([None if v is None else Time(v) for v in values.to_pylist()])
    if values.null_count or held.kind == "bool":
        return column(values.to_pylist())
    if held.kind == "string":
        return Column(objects(values.to_pylist()), "text")
    return Column(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)), held.kind)


class ReadCounts:
    """How many events were read for a program: of each type that should come, or is called like one, and of others."""

    def __init__(self, spread: DistributedProgram) -> None:
        self._spread = spread
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._passed: set[str] = set()
        self.keys = Keys(spread.plan)
        """Which keys the events had that were objects of JSON."""
        self._local = spread.compiled.rules.resolved.catalogue.local
        self._assumed = self._local.assumed

    def add(self, parts: Sequence[Events]) -> None:
        """Events that were read."""
        for part in parts:
            self._counts[self._known(part.label)] += len(part)

    def add_columns(self, parts: Sequence[Events]) -> None:
        """Events that were read by columns, which have all keys."""
        for part in parts:
            self.keys.saw(part.label)
        self.add(parts)

    def add_bad(self, bad: BadEvent) -> None:
        """One that is none; still its type has come."""
        self._counts[self._known(bad.label or "")] += 1

    def pass_over(self, labels: Iterable[str]) -> None:
        """Events of these types are there, and are not read."""
        self._passed.update(known for label in labels if (known := self._known(label)))

    def _known(self, label: str) -> str:
        """What counts of a name."""
        awaited = self._spread.plan.awaited
        if label in awaited:
            return label
        if label not in self._names and len(self._names) < UNREAD:
            self._names[label] = label if suggestion(label, awaited) is not None else ""
        return self._names.get(label, "")

    def add_others(self, count: int) -> None:
        """Events that no rule asks for."""
        self._counts[""] += count

    def told(self) -> Iterator[Shipment]:
        """Words of how many there were, and of what is to be said of them."""
        for label, count in {**dict.fromkeys(sorted(self._passed), 0), **self._counts}.items():
            if count or label:
                yield ReadCount(self._spread.number, 0, label, count)
        notes, keys = self._local.note_since(self._assumed), self.keys.told()
        if notes or keys:
            yield ReadNotes(self._spread.number, 0, notes, keys)


def notes_of(shipments: Iterable[Shipment]) -> tuple[str, ...]:
    """What is to be said of the input, from what was told of reading it."""
    read = (shipment for shipment in shipments if isinstance(shipment, ReadNotes))
    return tuple(dict.fromkeys(note for one in read for note in one.notes))


def bad_input(spread: DistributedProgram, bad: BadEvent) -> BadInput:
    """What is no event of a program, with the reason."""
    return BadInput(spread.number, 0, 1, bad_line(bad))


@dataclass(frozen=True, slots=True)
class FromLines:
    """Reads and routes lines of several programs, each with the number of its program."""

    spreads: Mapping[int, DistributedProgram]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        for batch in given:
            events: dict[int, list[Event]] = {}
            pairs = zip(batch.column("program").to_pylist(), batch.column("line").to_pylist(), strict=True)
            for number, line in pairs:
                event = read_event(line, self.spreads[number].compiled)
                if isinstance(event, BadEvent):
                    yield bad_input(self.spreads[number], event)
                elif event is not None:
                    events.setdefault(number, []).append(event)
            for number, found in events.items():
                spread = self.spreads[number]
                yield from spread.route(of_events(found, spread.compiled.plan.catalogue.attributes))
