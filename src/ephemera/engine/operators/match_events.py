"""This module matches events with patterns: flat ones column by column, all others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import EVENT, begin, end, event_of, is_occurrence, occurrence, position, reference
from ephemera.algebra.nodes import Calendar
from ephemera.engine.operators.match_rows import RowMatch, row_matchers
from ephemera.kernels.columns import UNBOUND, Batch, Column, Mask, column, constant, ints, objects, stack
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events
from ephemera.kernels.keys import joins, meeting
from ephemera.kernels.tail import RowBatch, of_rows
from ephemera.rules.nodes import Catalogue
from ephemera.rules.scope import pattern_bindings
from ephemera.terms.atoms import Names, match_event
from ephemera.terms.events import Event
from ephemera.terms.nodes import AnyEvent, Atom, Bool, Null, Number, Pattern, Text, Var

OCCURRENCE: str = occurrence(EVENT)
"""The column that holds the events themselves, where a pattern has to be tested again."""


class Matcher:
    """A simple event query: some patterns of which any may match."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        catalogue: Catalogue,
        *,
        keeps_events: bool,
        only: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """`only` leaves those matches that rules ask for, where the pattern stands for several."""
        self._only = only
        self._patterns = patterns
        self._catalogue = catalogue
        self._keeps_events = keeps_events
        self._by_row = None if keeps_events else row_matchers(patterns)
        self._variables = sorted(frozenset[str]().union(*(pattern_bindings(p).bound for p in patterns)))

    def match(self, events: Events) -> Batch | None:
        """The ways in which the events match, or None if there are none."""
        if self._by_row is not None and isinstance(events.batch, RowBatch):
            return self._rows(events.batch, self._by_row.get((events.label, events.arity), ()))
        found = [m for p in self._patterns if (m := self._one(p, events)) is not None and len(m)]
        if not found:
            return None
        batch = stack(found)
        if self._only is not None:
            batch = self._only(batch)
        return batch if len(batch) else None

    def _rows(self, events: RowBatch, matchers: Sequence[RowMatch]) -> Batch | None:
        found = [m for matcher in matchers for row in events.given if (m := matcher(row)) is not None]
        if not found:
            return None
        batch: Batch = RowBatch(found)
        if self._only is not None:
            batch = self._only(batch)
        return batch if len(batch) else None

    def _one(self, pattern: Pattern, events: Events) -> Batch | None:
        match pattern:
            case AnyEvent(label):
                return self._kept(events, {}) if str(label) == events.label else None
            case Atom(label, arguments) if events.arity is not None:
                if str(label) != events.label or len(arguments) != events.arity:
                    return None
                return self._flat(pattern, events)
            case _:
                return self._terms(pattern, events)

    def _kept(self, events: Events, variables: dict[str, Column]) -> Batch:
        columns = {name: events.batch.columns[name] for name in (BEGIN, END, REFERENCE)}
        if self._keeps_events:
            columns[OCCURRENCE] = Column(objects(events.events()), "any")
        return Batch({**columns, **variables}, len(events))

    def _flat(self, pattern: Atom, events: Events) -> Batch:
        mask: Mask | None = None
        variables: dict[str, Column] = {}
        for k, argument in enumerate(pattern.arguments):
            values = events.batch.columns.get(position(k))
            if values is None:  # nobody asks for it, so it was not read
                continue
            match argument:
                case Var(name) if name in variables:
                    agree = joins(variables[name], values)
                    mask = _both(mask, agree)
                    variables[name] = _meeting_where(agree, variables[name], values)
                case Var(name):
                    variables[name] = values
                case Text(value) | Number(value) | Bool(value):
                    mask = _both(mask, joins(values, constant(value, len(values))))
                case Null():
                    mask = np.zeros(len(events), dtype=np.bool_)
                case _:
                    continue
        batch = self._kept(events, variables)
        return batch if mask is None or mask.all() else batch.take(mask)

    def _terms(self, pattern: Pattern, events: Events) -> Batch | None:
        rows: list[int] = []
        found: list[dict[str, object]] = []
        for row, event in enumerate(events.events()):
            for substitution in match_event(pattern, event, {}, self._catalogue.attributes):
                rows.append(row)
                found.append(dict(substitution))
        if not rows:
            return None
        variables = {name: column([s.get(name, UNBOUND) for s in found]) for name in self._variables}  # type: ignore[misc]
        return self._kept(events, {}).take(np.array(rows)).with_columns(variables)


def _both(a: Mask | None, b: Mask) -> Mask:
    return b if a is None else a & b


def _meeting_where(agree: Mask, own: Column, values: Column) -> Column:
    """What values become that meet where they agree; what they are elsewhere does not matter."""
    if own.kind in ("int", "text") or agree.all():
        return meeting(own, values)
    pairs = zip(agree.tolist(), own.tolist(), values.tolist(), strict=True)
    return meeting(own, column([b if both else a for both, a, b in pairs]))


def with_events(batch: Batch) -> Batch:
    """The batch with the events themselves in place of references, where it has them."""
    events: dict[str, Column] = {reference(event_of(n)): c for n, c in batch.columns.items() if is_occurrence(n)}
    if not events:
        return batch
    kept = {n: c for n, c in batch.columns.items() if not is_occurrence(n)}
    return Batch({**kept, **events}, len(batch))


def timer_tuples(calendar: Calendar, events: Iterable[Event], attributes: Callable[[str], Names]) -> Batch | None:
    """The tuples of an absolute timer for its events, which are told apart by when they begin."""
    opens, closes = begin(calendar.name), end(calendar.name)
    rows: list[dict[str, Any]] = [
        {opens: event.time.begin, closes: event.time.end, **substitution}
        for event in events
        for substitution in match_event(calendar.pattern, event, {}, attributes)
    ]
    if not rows:
        return None
    batch = of_rows(rows)
    return batch.with_columns({reference(calendar.name): ints(batch[opens])})
