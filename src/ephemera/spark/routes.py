"""This module brings events from the rows of Spark to engines: columns become events that are sent to partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ephemera.engine.events import BEGIN, END, Events, of_events, position
from ephemera.engine.shipments import BAD, READ, Shipment
from ephemera.engine.spread import Spread
from ephemera.io.jsonl import BadEvent
from ephemera.kernels.columns import Batch, Column, column, ints, objects
from ephemera.spark.failures import told_by
from ephemera.spark.flat import Held
from ephemera.spark.places import batches
from ephemera.spark.reading import Form, read_rest
from ephemera.terms.events import Event
from ephemera.terms.values import Time

_SOME = 20_000
"""Events that are read one by one are routed so many at a time."""


@dataclass(frozen=True, slots=True)
class FromColumns:
    """Routes events that Spark holds by columns."""

    spread: Spread
    held: Mapping[tuple[str, str], Held]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        count = 0
        for batch in given:
            count += batch.num_rows
            yield from self.spread.route(self.events(batch))
        yield read_shipment(self.spread, count)

    def events(self, batch: pa.RecordBatch) -> Iterator[Events]:
        """The events of a batch, label by label."""
        labels = sorted({label for label, _ in self.held} | self._bare())
        codes = pc.index_in(batch.column("event"), value_set=pa.array(labels, pa.string())).to_numpy(
            zero_copy_only=False
        )
        for number, label in enumerate(labels):
            here = codes == number
            if here.any():
                rows = None if here.all() else np.flatnonzero(here)
                yield self._of_label(label, batch if rows is None else batch.take(pa.array(rows)))

    def _bare(self) -> set[str]:
        """The event types of which no attribute is asked for."""
        return set(self.spread.compiled.rules.resolved.catalogue.events)

    def _of_label(self, label: str, batch: pa.RecordBatch) -> Events:
        catalogue = self.spread.compiled.rules.resolved.catalogue
        names = list(catalogue.attributes(label) or ())
        columns = {BEGIN: ints(_numbers(batch.column("s"))), END: ints(_numbers(batch.column("e")))}
        for k, name in enumerate(names):
            held = self.held.get((label, name))
            if held is not None:
                columns[position(k)] = _column(batch.column(held.column), held)
        return Events(label, Batch(columns, batch.num_rows), len(names), names)


def _numbers(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def _column(values: pa.Array, held: Held) -> Column:
    if held.kind == "time":
        return column([None if v is None else Time(v) for v in values.to_pylist()])
    if values.null_count or held.kind == "bool":
        return column(values.to_pylist())
    if held.kind == "string":
        return Column(objects(values.to_pylist()), "text")
    return Column(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)), held.kind)


@dataclass(frozen=True, slots=True)
class FromRest:
    """Reads and routes what Spark could not vouch for, one by one."""

    spread: Spread
    form: Form

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        found: list[Event] = []
        count = 0
        for batch in given:
            count += batch.num_rows
            for event in read_rest(self.spread.compiled, self.form, batch):
                if isinstance(event, BadEvent):
                    yield bad_shipment(self.spread, event)
                else:
                    found.append(event)
                if len(found) >= _SOME:
                    yield from self._shipped(found)
                    found = []
        yield from self._shipped(found)
        yield read_shipment(self.spread, count)

    def _shipped(self, events: list[Event]) -> Iterator[Shipment]:
        return self.spread.route(of_events(events, self.spread.compiled.plan.catalogue.attributes))


def read_shipment(spread: Spread, count: int) -> Shipment:
    """A word of how many events were read."""
    return Shipment(spread.number, READ, 0, 0, count, "", None, 0, b"")


def bad_shipment(spread: Spread, bad: BadEvent) -> Shipment:
    """What is no event of a program, with the reason."""
    load = json.dumps({"reason": bad.reason, "event": bad.original}, ensure_ascii=False)
    return Shipment(spread.number, BAD, 0, 0, 0, bad.label or "", None, 0, load.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True)
class FromLines:
    """Reads and routes lines of several programs, each with the number of its program."""

    spreads: Mapping[int, Spread]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        for batch in given:
            events: dict[int, list[Event]] = {}
            pairs = zip(batch.column("program").to_pylist(), batch.column("line").to_pylist(), strict=True)
            for number, line in pairs:
                event = self.spreads[number].compiled.read(line)
                if isinstance(event, BadEvent):
                    yield bad_shipment(self.spreads[number], event)
                else:
                    events.setdefault(number, []).append(event)
            for number, found in events.items():
                spread = self.spreads[number]
                yield from spread.route(of_events(found, spread.compiled.plan.catalogue.attributes))
