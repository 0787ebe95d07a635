"""This module holds the events of one step: each once, whoever gave it, with a reference that tells it from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ephemera.algebra.nodes import TERM
from ephemera.engine.events import REFERENCE, Events, distinct, flat_values, position
from ephemera.kernels.columns import Column, Ints, column, ints
from ephemera.terms.events import Event, event_of_both
from ephemera.terms.values import Value


class Pool:
    """What is released or derived in a step, by label; readers take up what they have not seen yet.

    Events from outside have references from 0 upwards, derived ones from -1 downwards.
    """

    def __init__(self, next_reference: int, next_derived: int) -> None:
        self.next_reference = next_reference
        self.next_derived = next_derived
        self._events: dict[str, list[Events]] = {}
        self._read: dict[tuple[str, str], int] = {}

    def add(self, parts: Sequence[Events], *, derived: bool = True) -> int:
        """More events; says how many of them are new."""
        total = 0
        for new in distinct(parts):
            fresh = self._unknown(new)
            if len(fresh):
                references = self._references(len(fresh), derived=derived)
                batch = fresh.batch.with_columns({REFERENCE: ints(references)})
                self._events.setdefault(fresh.label, []).append(Events(fresh.label, batch, fresh.arity, fresh.names))
                total += len(fresh)
        return total

    def _references(self, count: int, *, derived: bool) -> Ints:
        if derived:
            self.next_derived -= count
            return np.arange(self.next_derived + count, self.next_derived, -1)
        self.next_reference += count
        return np.arange(self.next_reference - count, self.next_reference)

    def _unknown(self, new: Events) -> Events:
        known = self._events.get(new.label)
        if not known or not len(new):
            return new
        seen = {e.key: (k, row) for k, part in enumerate(known) for row, e in enumerate(part.events())}
        events = new.events()
        mask = np.fromiter((event.key not in seen for event in events), dtype=np.bool_, count=len(new))
        for row in np.flatnonzero(~mask).tolist():
            number, other = seen[events[row].key]
            known[number] = _met(known[number], other, events[row])
        return new if mask.all() else new.take(mask)

    def unread(self, reader: str, label: str | None) -> list[Events]:
        """The events of a label, or of any, that a reader has not taken yet."""
        found: list[Events] = []
        for name in list(self._events) if label is None else [label]:
            parts = self._events.get(name, [])
            found += parts[self._read.get((reader, name), 0) :]
            self._read[reader, name] = len(parts)
        return found


def _met(part: Events, row: int, other: Event) -> Events:
    """The events, one of which meets another that equals it: integers for doubles."""
    event = part.take(np.array([row])).events()[0]
    both = event_of_both(event, other)
    if both is event:
        return part
    if part.arity is None:
        values: dict[str, Value] = {TERM: both.term}
    else:
        values = {position(k): v for k, v in enumerate(flat_values(both.term, part.names) or ())}
    columns = {name: _with(part.batch.columns[name], row, value) for name, value in values.items()}
    return replace(part, batch=part.batch.with_columns(columns))


def _with(c: Column, row: int, value: Value) -> Column:
    """A column with another value in a row."""
    values: list[Value] = c.tolist()
    values[row] = value
    return column(values)
