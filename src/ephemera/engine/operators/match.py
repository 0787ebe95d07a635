"""This module matches events with patterns: flat ones column by column, a few row by row, all others one by one.

What a pattern asks of a row is found out once. `Query` is the operator of a simple event query, `AbsoluteTimer` that of
a timer of the clock: each writes what it finds into its own history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import EVENT, begin, end, event_of, is_occurrence, occurrence, position, reference
from ephemera.algebra.nodes import Calendar
from ephemera.algebra.scalar import Formula
from ephemera.algebra.truth import Tester
from ephemera.engine.operators.join_constants import known_constants
from ephemera.kernels.columns import UNBOUND, Batch, Column, Mask, column, constant, ints, objects, stack
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events
from ephemera.kernels.filter import Filter
from ephemera.kernels.history import History
from ephemera.kernels.keys import joins, meeting
from ephemera.kernels.tail import Row, RowBatch, of_rows, plain_key
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.nodes import Catalogue
from ephemera.rules.scope import pattern_bindings
from ephemera.terms.atoms import Names, match_event
from ephemera.terms.events import Event
from ephemera.terms.nodes import AnyEvent, Atom, Bool, Null, Number, Pattern, Text, Var
from ephemera.terms.values import equal, merged

OCCURRENCE: str = occurrence(EVENT)
"""The column that holds the events themselves, where a pattern has to be tested again."""
RowMatch = Callable[[Row], Row | None]
"""The tuple of an event that matches, or None."""


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
        self._by_row = None if keeps_events else _row_matchers(patterns)
        self._variables = sorted(frozenset[str]().union(*(pattern_bindings(p).bound for p in patterns)))

    def match(self, events: Events) -> Batch | None:
        """The ways in which the events match, or None if there are none."""
        batch: Batch | None
        if self._by_row is not None and isinstance(events.batch, RowBatch):
            matchers = self._by_row.get((events.label, events.arity), ())
            rows = [m for matcher in matchers for row in events.batch.given if (m := matcher(row)) is not None]
            batch = RowBatch(rows) if rows else None
        else:
            parts = [part for p in self._patterns if (part := self._one(p, events)) is not None and len(part)]
            batch = stack(parts) if parts else None
        if batch is not None and self._only is not None:
            batch = self._only(batch)
        return batch if batch is not None and len(batch) else None

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


def _row_matchers(patterns: Sequence[Pattern]) -> Mapping[tuple[str, int | None], Sequence[RowMatch]] | None:
    """For each label and arity how its events are matched, or None if some pattern cannot be matched by rows."""
    found: dict[tuple[str, int | None], list[RowMatch]] = {}
    for pattern in patterns:
        if not isinstance(pattern, Atom):
            return None
        found.setdefault((str(pattern.label), len(pattern.arguments)), []).append(_matcher(pattern))
    return found


def _matcher(pattern: Atom) -> RowMatch:
    bound: dict[str, str] = {}
    again: list[tuple[str, str]] = []
    constants: list[tuple[str, Any]] = []
    for k, argument in enumerate(pattern.arguments):
        match argument:
            case Var(name) if name in bound:
                again.append((name, position(k)))
            case Var(name):
                bound[name] = position(k)
            case Text(value) | Number(value) | Bool(value):
                constants.append((position(k), plain_key(value)))
            case Null():
                return lambda _row: None
            case _:
                continue
    named = [(BEGIN, BEGIN), (END, END), (REFERENCE, REFERENCE), *bound.items()]

    def found(row: Row) -> Row | None:
        for place, value in constants:
            if plain_key(row[place]) != value:
                return None
        matched: dict[str, Any] = {name: row[place] for name, place in named}
        for name, place in again:
            if equal(matched[name], row[place]) is not True:
                return None
            matched[name] = merged(matched[name], row[place])
        return matched

    return found


class Query:
    """The operator of a simple event query: it owns the history of what has matched."""

    def __init__(self, matcher: Matcher, history: History) -> None:
        self._match = matcher.match
        self._history = history

    def step(self, events: Sequence[Events], tick: int) -> Batch | None:
        """The new matches, which are in the history then, or None if there are none."""
        matches = [m for part in events if (m := self._match(part)) is not None]
        if not matches:
            return None
        matched = stack(matches)
        self._history.append(matched, tick)
        return matched


class AbsoluteTimer:
    """The operator of an absolute timer: it owns the history of its tuples, which are told apart by when they begin."""

    def __init__(self, calendar: Calendar, history: History, attributes: Callable[[str], Names]) -> None:
        self.pattern = calendar.pattern
        self._stamps = begin(calendar.name), end(calendar.name)
        self._reference = reference(calendar.name)
        self._history = history
        self._attributes = attributes

    def step(self, events: Iterable[Event], tick: int) -> None:
        """The events of the timer since the last step."""
        opens, closes = self._stamps
        rows: list[dict[str, Any]] = [
            {opens: event.time.begin, closes: event.time.end, **substitution}
            for event in events
            for substitution in match_event(self.pattern, event, {}, self._attributes)
        ]
        if rows:
            batch = of_rows(rows)
            self._history.append(batch.with_columns({self._reference: ints(batch[opens])}), tick)


def asked_for(rewritten: Rewritten, query: str) -> Callable[[Batch], Batch] | None:
    """Which matches rules ask for: of a query that is tested, or that was made for several, where they are alike."""
    if query in rewritten.tested:
        return _passing(rewritten.tested[query], Tester(rewritten.plan.catalogue, {}))
    if query not in rewritten.queries:
        return None
    rule, names = rewritten.queries[query]
    constants, known = known_constants(rewritten.alike[rule], names)
    return lambda batch: batch.take(constants.known(batch, known))


def _passing(test: Formula, tester: Tester) -> Callable[[Batch], Batch]:
    """The matches that pass a test of their values; a few are tested row by row."""
    by_columns, scope = Filter(tester, lambda batch: batch), tester.scope({})

    def passing(batch: Batch) -> Batch:
        if isinstance(batch, RowBatch):
            return RowBatch([row for row in batch.given if tester.truth(test, row, scope) is True])
        return by_columns.keep(test, batch)

    return passing


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
