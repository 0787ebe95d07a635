"""This module defines what travels between places: a closed union of shipments, each of which says what it holds.

Events travel packed: some rows of one label as one Arrow message. How shipments are written on their way, and in which
order a place takes them, is for whoever carries them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.cluster.source_progress import PlaceProgress
from ephemera.formats.json_events import BadEvent
from ephemera.kernels.columns import Batch, Column, Ints, from_arrow, to_arrow
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import DeadLetter

_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PackedEvents:
    """Some events of one label."""

    label: str
    arity: int | None
    count: int
    first: int
    """The earliest end among them; places open what came to them in this order."""
    load: bytes | pa.Buffer


@dataclass(frozen=True, slots=True)
class _ToPlace:
    """All that travels is of a program, and goes to a place."""

    program: int
    place: int


@dataclass(frozen=True, slots=True)
class EventsFor(_ToPlace):
    """Events on their way to a group in a place."""

    group: int
    home: int
    """The place where they belong; in others engines are at work on slices of time of what belongs there."""
    events: PackedEvents


@dataclass(frozen=True, slots=True)
class Answers(_ToPlace):
    """Answers; the rule is the one that sends them if they are messages, counted from 1, and otherwise 0."""

    rule: int
    events: PackedEvents


@dataclass(frozen=True, slots=True)
class MessagesToSend(_ToPlace):
    """Messages on their way to whoever delivers them, besides being answers like others."""

    rule: int
    events: PackedEvents


@dataclass(frozen=True, slots=True)
class ScatteredAnswers(_ToPlace):
    """Answers that several places may give, on their way to the place where those that are equal meet."""

    rule: int
    events: PackedEvents


@dataclass(frozen=True, slots=True)
class _Letters(_ToPlace):
    """What could not be used: how much of it, and for the first a line of JSON with the reason.

    Where dead letters are stored, one says how many of them there are; on the way there each travels alone.
    """

    count: int
    first: bytes


@dataclass(frozen=True, slots=True)
class BadInput(_Letters):
    """What was no event of a program."""


@dataclass(frozen=True, slots=True)
class LateInput(_Letters):
    """Events that came behind the bound of their source."""


@dataclass(frozen=True, slots=True)
class UndefinedHead(_Letters):
    """Heads of rules that had no value."""


@dataclass(frozen=True, slots=True)
class StoredAnswers(_ToPlace):
    """How many answers of a label a place has stored."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class EngineStats(_ToPlace):
    """What engines tell of themselves, as JSON has it."""

    stats: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadCount(_ToPlace):
    """How many events of a type were read; those of types that no rule awaits have the label ''."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class ReadNotes(_ToPlace):
    """What is to be said of what was read, and which keys it had."""

    notes: tuple[str, ...]
    keys: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceProgress(_ToPlace):
    """What a reader has seen of a batch: the first thing that a place opens."""

    seen: PlaceProgress


DeadLetters: TypeAlias = BadInput | LateInput | UndefinedHead
"""What could not be used."""
Shipment: TypeAlias = (
    SourceProgress
    | ReadCount
    | ReadNotes
    | EngineStats
    | BadInput
    | LateInput
    | UndefinedHead
    | StoredAnswers
    | ScatteredAnswers
    | Answers
    | EventsFor
    | MessagesToSend
)
"""Whatever travels."""


def run_groups(
    shipments: Iterable[Shipment],
    runs_here: Callable[[int, int], bool],
    run: Callable[[int, int, int, Iterable[EventsFor]], Iterator[Shipment]],
    always: Iterable[tuple[int, int, int]] = (),
) -> Iterator[Shipment]:
    """What groups make of the shipments to a place, which are in order; what is for no group that runs here passes on.

    A group is named by its program and its number, and what it runs on by its home. Those that `always` run do so even
    if nothing is for them.
    """
    left = set(always)
    for target, several in groupby(shipments, key=_group_of):
        if target is None or not runs_here(*target[:2]):
            yield from several
            continue
        left.discard(target)
        yield from run(*target, cast("Iterator[EventsFor]", several))
    for target in sorted(left):
        yield from run(*target, ())


def _group_of(shipment: Shipment) -> tuple[int, int, int] | None:
    return (shipment.program, shipment.group, shipment.home) if isinstance(shipment, EventsFor) else None


def pack(events: Events) -> PackedEvents:
    """Events for the way; how they were numbered does not matter any more."""
    columns = {n: c for n, c in events.batch.columns.items() if n != REFERENCE}
    begins, ends = events.batch[BEGIN], events.batch[END]
    if begins is ends or bool((begins == ends).all()):
        del columns[BEGIN]
    table = to_arrow(Batch({n: _narrow(c) for n, c in columns.items()}, len(events)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return PackedEvents(events.label, events.arity, len(events), int(ends.min()), sink.getvalue().to_pybytes())


def _narrow(c: Column) -> Column:
    """Whole numbers in half the room, where they fit."""
    if c.kind != "int" or not len(c) or int(c.values.max()) > _LARGEST or int(c.values.min()) < -_LARGEST:
        return c
    return Column(c.values.astype(np.int32), "int")


def letter_line(letter: DeadLetter) -> bytes:
    """A head without a value as a line of JSON."""
    return json.dumps(letter.told(), ensure_ascii=False).encode()


def bad_line(bad: BadEvent) -> bytes:
    """What is no event as a line of JSON, with the reason."""
    letter = json.dumps({"reason": bad.reason, "event": bad.original}, ensure_ascii=False)
    return letter.encode("utf-8", "backslashreplace")


def ends_of(packed: PackedEvents) -> Ints:
    """When the events end, without looking at what else they have."""
    with pa.ipc.open_stream(packed.load) as reader:
        return np.asarray(reader.read_all().column(END), dtype=np.int64)


def unpack(packed: PackedEvents, catalogue: Catalogue) -> Events:
    """The events as they were before."""
    with pa.ipc.open_stream(packed.load) as reader:
        batch = from_arrow(reader.read_all())
    if BEGIN not in batch.columns:
        batch = Batch({BEGIN: batch.columns[END], **batch.columns}, len(batch))
    return Events(packed.label, batch, packed.arity, catalogue.attributes(packed.label))
