"""This module packs events for the way between partitions: some rows of one label as one Arrow message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ephemera.kernels.columns import Batch, Column, from_arrow, to_arrow
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events
from ephemera.rules.nodes import Catalogue

OUT, SCATTERED, DEAD, STATS, BAD, READ, LATE, HEARD = -1, -2, -3, -4, -5, -6, -7, -8
"""Groups that are none: answers, answers that may be there twice, dead letters, what an engine
tells of itself, what was no event, a word of how many events were read, what came too late, and a word of how far the
sources have come, which is the first thing that a place opens."""

_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Shipment:
    """Events on their way to a group in a place, or a word about them."""

    program: int
    group: int
    place: int
    first: int
    """The earliest end among them; shipments are opened in this order."""
    count: int
    label: str
    arity: int | None
    rule: int
    """For messages the rule that sends them, counted from 1; otherwise 0."""
    load: bytes | pa.Buffer


def pack(events: Events, program: int, group: int, place: int, rule: int = 0) -> Shipment:
    """Events as a shipment; how they were numbered does not matter any more."""
    columns = {n: c for n, c in events.batch.columns.items() if n != REFERENCE}
    begins, ends = events.batch[BEGIN], events.batch[END]
    if begins is ends or bool((begins == ends).all()):
        del columns[BEGIN]
    table = to_arrow(Batch({n: _narrow(c) for n, c in columns.items()}, len(events)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    load = sink.getvalue().to_pybytes()
    return Shipment(program, group, place, int(ends.min()), len(events), events.label, events.arity, rule, load)


def _narrow(c: Column) -> Column:
    """Whole numbers in half the room, where they fit."""
    if c.kind != "int" or not len(c) or int(c.values.max()) > _LARGEST or int(c.values.min()) < -_LARGEST:
        return c
    return Column(c.values.astype(np.int32), "int")


def unpack(shipment: Shipment, catalogue: Catalogue) -> Events:
    """The events of a shipment."""
    with pa.ipc.open_stream(shipment.load) as reader:
        batch = from_arrow(reader.read_all())
    if BEGIN not in batch.columns:
        batch = Batch({BEGIN: batch.columns[END], **batch.columns}, len(batch))
    return Events(shipment.label, batch, shipment.arity, catalogue.attributes(shipment.label))
