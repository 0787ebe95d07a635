"""This module finds the answers to a rule's body: the event traces τ, and for each the substitutions Σ.

A body is taken as its disjuncts. In each, every positive literal is given an event in every possible way, timers
follow from their anchors, tables bind more variables, conditions filter. Then, for each trace and binding, the
collections are gathered, and last the absences are tested (after all collections).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TypeAlias

from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.clock import Clock
from ephemera.rules.nodes import Catalogue
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import pattern_bindings, variable_names
from ephemera.semantics import algebra
from ephemera.semantics.conditions import Calendars, holds, microseconds
from ephemera.semantics.facts import Facts
from ephemera.syntax.nodes import (
    CONDITIONS,
    Absent,
    Accumulation,
    Algebra,
    And,
    At,
    AtMost,
    Between,
    Condition,
    Or,
    Query,
    Selection,
    Timer,
    Where,
    While,
)
from ephemera.syntax.nodes import Event as EventQuery
from ephemera.terms.atoms import attributes_term, match_event, match_term, search_event
from ephemera.terms.compute import Scope, lasting
from ephemera.terms.construct import Origin, Row, once
from ephemera.terms.events import Event, Interval, covering
from ephemera.terms.match import Forbidden, Substitution, all_merged, distinct, is_absent
from ephemera.terms.nodes import Duration, Pattern
from ephemera.terms.values import Key, Term, Value, key, merged

Literal: TypeAlias = EventQuery | Timer | Accumulation | Absent | At | Algebra | Condition
Trace: TypeAlias = Mapping[str, Event]


@dataclass(frozen=True, slots=True)
class Answer:
    """One trace: the events that were used, when it happened, and the bindings that go with it."""

    trace: Trace
    time: Interval
    rows: list[Row]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Reader:
    """What patterns are matched against, besides the facts."""

    catalogue: Catalogue
    tables: Mapping[str, Sequence[Term]]
    calendars: Calendars
    clock: Clock

    def attributes(self, label: str) -> tuple[str, ...] | None:
        return self.catalogue.attributes(label)

    def scope(self, trace: Trace) -> Scope:
        times = {name: event.time for name, event in trace.items()}
        return Scope(self.catalogue.unit, self.catalogue.zone, times, functions=self.catalogue.functions)

    def holds(self, condition: Condition, variables: Substitution, trace: Trace) -> bool:
        return holds(condition, variables, trace, self.scope(trace), self.calendars) is True

    def candidates(self, pattern: Pattern, facts: Facts, known: Substitution) -> Sequence[Event]:
        """The events that a pattern is matched against: the facts, or those of a clock or calendar."""
        label = pattern_label(pattern)
        if label is not None and str(label) == "timer:datetime":
            return self.clock.events(pattern)
        return self.recorded(pattern, facts, known)

    def recorded(self, pattern: Pattern, facts: Facts, known: Substitution) -> Sequence[Event]:
        """Those of them that were told: the facts, or the days of a calendar; no clock takes part in the algebra."""
        label = pattern_label(pattern)
        days = self.calendars.get(str(label)) if label is not None else None
        return list(days) if days is not None else facts.asked(pattern, known)

    def is_given(self, pattern: Pattern) -> bool:
        """Whether a pattern asks for what no rule derives: a clock or a calendar."""
        label = pattern_label(pattern)
        return label is not None and (str(label) == "timer:datetime" or str(label) in self.calendars)

    def is_table(self, pattern: Pattern) -> bool:
        label = pattern_label(pattern)
        return label is not None and str(label) in self.catalogue.tables

    def rows(self, pattern: Pattern, known: Substitution) -> list[Substitution]:
        """The bindings that a table gives."""
        label = str(pattern_label(pattern))
        schema = self.catalogue.tables[label]
        return distinct(s for row in self.tables.get(label, ()) for s in match_term(pattern, row, known, schema.names))

    def positional(self, label: str, values: tuple[Value, ...]) -> Term:
        """The term of an event with positions: of its attributes if it is declared, else of its values."""
        schema = self.catalogue.events.get(label)
        if schema is None or schema.attributes is None:
            return Term(label, values)
        return attributes_term(label, list(zip(schema.names, values, strict=True)))


def answers(body: Query, facts: Facts, reader: Reader, new: Facts | None = None) -> Iterator[Answer]:
    """The answers to a body, disjunct by disjunct: aggregates are per disjunct.

    If it was answered before, but without some new facts, only answers that use one of these are asked for.
    """
    for literals in disjuncts(body):
        yield from _Disjunct(literals, facts, reader).answers(new)


# ---- disjuncts ---------------------------------------------------------------------------------------------


def disjuncts(query: Query | Condition) -> list[list[Literal]]:
    """The alternatives of a body, each the literals and conditions that must hold together."""
    match query:
        case And(items):
            return [[x for part in choice for x in part] for choice in product(*(disjuncts(i) for i in items))]
        case Or(items):
            return [choice for item in items for choice in disjuncts(item)]
        case Where(inner, conditions):
            return [[*choice, *conditions] for choice in disjuncts(inner)]
        case Selection():
            raise InternalError("oracle", "a selection was not expanded")
        case _:
            return [[query]]


# ---- one disjunct ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Partial:
    """A trace in the making: what was used, what is bound, and what must not match once every variable is bound."""

    trace: dict[str, Event]
    variables: Substitution
    forbidden: Forbidden = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """An event that a collection gathered, with what it binds."""

    identity: Key
    variables: Substitution
    time: Interval


class _Disjunct:
    def __init__(self, literals: list[Literal], facts: Facts, reader: Reader) -> None:
        self._facts = facts
        self._reader = reader
        self._events = [x for x in literals if isinstance(x, EventQuery) and not reader.is_table(x.pattern)]
        self._tables = [x for x in literals if isinstance(x, EventQuery) and reader.is_table(x.pattern)]
        self._algebra = [x for x in literals if isinstance(x, Algebra)]
        self._timers = [x for x in literals if isinstance(x, Timer)]
        self._reads = [x for x in literals if isinstance(x, At | Absent)]
        self._collects = [x for x in literals if isinstance(x, Accumulation) and x.mode != "not"]
        self._absences = [x for x in literals if isinstance(x, Accumulation) and x.mode == "not"]
        self._conditions = [x for x in literals if isinstance(x, CONDITIONS)]
        self._origin = Origin(
            {v: k for k, c in reversed(list(enumerate(self._collects))) for v in self._bound_by(c)},
            len(self._collects),
            tuple(c.event.name.name if c.event.name is not None else "" for c in self._collects),
        )

    def _bound_by(self, collect: Accumulation) -> frozenset[str]:
        bound = pattern_bindings(collect.event.pattern)
        outer = [pattern_bindings(e.pattern).sure for e in (*self._events, *self._tables)]
        return (bound.sure | bound.perhaps).difference(*outer)

    def answers(self, new: Facts | None) -> Iterator[Answer]:
        # A collection or an instance may grow with what is new, so their answers are asked for again as a whole.
        if new is None or self._collects or self._algebra:
            yield from self._answers([_Partial({}, {})], self._events_by_name())
            return
        for name, event in self._events_by_name().items():
            if not self._reader.is_given(event.pattern):
                # This event is a new one, and the others are any.
                others = {n: e for n, e in self._events_by_name().items() if n != name}
                yield from self._answers(list(self._with_event(_Partial({}, {}), name, event.pattern, new)), others)

    def _events_by_name(self) -> dict[str, EventQuery]:
        # No author can write a backquote in a name, so those without one never share theirs.
        return {e.name.name if e.name else f"`{k}": e for k, e in enumerate(self._events)}

    def _answers(self, partials: list[_Partial], events: Mapping[str, EventQuery]) -> Iterator[Answer]:
        for name, event in events.items():
            partials = [more for p in partials for more in self._with_event(p, name, event.pattern, self._facts)]
        for position, literal in enumerate(self._algebra):
            name = literal.name.name if literal.name else f"`a{position}"
            partials = [more for p in partials for more in self._with_algebra(p, name, literal)]
        for table in self._tables:
            partials = [
                replace(p, variables=v) for p in partials for v in self._reader.rows(table.pattern, p.variables)
            ]
        partials = [timed for p in partials if (timed := self._with_timers(p)) is not None]
        for at in (x for x in self._reads if isinstance(x, At) and not x.negated):
            partials = [replace(p, variables=v) for p in partials for v in self._reader.rows(at.pattern, p.variables)]
        yield from self._grouped(partials)

    def _with_event(self, partial: _Partial, name: str, pattern: Pattern, facts: Facts) -> Iterator[_Partial]:
        for event in self._reader.candidates(pattern, facts, partial.variables):
            for variables, forbidden in search_event(pattern, event, partial.variables, self._reader.attributes):
                yield _Partial({**partial.trace, name: event}, variables, partial.forbidden + forbidden)

    def _with_algebra(self, partial: _Partial, name: str, literal: Algebra) -> Iterator[_Partial]:
        found = algebra.instances(
            literal.expression,
            restricted=literal.restricted,
            per=[v.name for v in literal.per],
            facts=lambda pattern: self._reader.recorded(pattern, self._facts, {}),
            catalogue=self._reader.catalogue,
        )
        for time, variables, identity in found:
            known = partial.variables
            if all(key(known[n]) == key(v) and v is not None for n, v in variables.items() if n in known):
                event = Event(Term("$algebra", (repr(identity),)), time)
                both = {**known, **all_merged(variables, known)}
                yield replace(partial, trace={**partial.trace, name: event}, variables=both)

    def _with_timers(self, partial: _Partial) -> _Partial | None:
        """The trace with its timers, each behind its anchor; None if one has no length, or ends before it begins."""
        trace = dict(partial.trace)
        waiting = list(enumerate(self._timers))
        while waiting:
            ready = [(k, t) for k, t in waiting if t.anchor.name in trace]
            if not ready:
                raise ValueError("a timer's anchor is missing")
            for k, timer in ready:
                length = self._length(timer.duration, partial.variables, trace)
                if length is None:
                    return None
                time = timed(timer.kind, trace[timer.anchor.name].time, length)
                if time.begin > time.end:
                    return None
                trace[timer.name.name if timer.name else f"`t{k}"] = Event(Term(f"timer:{timer.kind}"), time)
            waiting = [(k, t) for k, t in waiting if (k, t) not in ready]
        return replace(partial, trace=trace)

    def _length(self, lasts: Duration | AtMost, variables: Substitution, trace: Trace) -> int | None:
        if isinstance(lasts, Duration):
            return microseconds(lasts)
        return lasting(lasts.expression, variables, self._reader.scope(trace), microseconds(lasts.limit))

    # ---- collections and absences --------------------------------------------------------------------------

    def _grouped(self, partials: list[_Partial]) -> Iterator[Answer]:
        """The answers by trace, each with all its rows."""
        by_trace: dict[tuple[tuple[str, Key], ...], tuple[_Partial, list[Row]]] = {}
        for partial in partials:
            trace_key = tuple(sorted((name, event.key) for name, event in partial.trace.items()))
            _, rows = by_trace.setdefault(trace_key, (partial, []))
            rows += self._rows(partial)
        for partial, rows in by_trace.values():
            if rows:
                time = covering(event.time for event in partial.trace.values())
                yield Answer(partial.trace, time, once(rows), self._origin)

    def _rows(self, partial: _Partial) -> list[Row]:
        """The bindings of a trace: its own, joined with one pair of each collection, where everything holds.

        An optional collection may give nothing: where no pair of it is left, the answer stands without it.
        """
        if not all(self._is_open(a, partial.trace) for a in (*self._collects, *self._absences)):
            return []
        gathered = [list(self._collect(c, partial)) for c in self._collects]
        optional = [k for k, c in enumerate(self._collects) if c.mode == "collect optional"]
        for size in range(len(optional) + 1):
            rows = [row for empty in combinations(optional, size) for row in self._joins(partial, gathered, empty)]
            if rows:
                return rows
        return []

    @staticmethod
    def _is_open(accumulation: Accumulation, trace: Trace) -> bool:
        """Whether there is a window: `from a until c` needs a before c."""
        window = accumulation.window
        return isinstance(window, While) or trace[window.first.name].time.end < trace[window.last.name].time.begin

    def _joins(self, partial: _Partial, gathered: list[list[_Pair]], empty: Sequence[int]) -> Iterator[Row]:
        """The rows in which those collections give nothing and the others a pair each."""
        own = tuple(sorted((n, key(v)) for n, v in partial.variables.items()))
        choices = [[None] if k in empty else pairs for k, pairs in enumerate(gathered)]
        missing = {v for v, k in self._origin.collection.items() if k in empty}
        for choice in product(*choices):
            variables = self._joined(partial.variables, choice)
            if variables is not None and self._everything_holds(partial, variables, missing):
                pairs = tuple(None if pair is None else pair.identity for pair in choice)
                yield Row(variables, own, pairs, tuple(None if pair is None else pair.time for pair in choice))

    @staticmethod
    def _joined(known: Substitution, choice: tuple[_Pair | None, ...]) -> Substitution | None:
        """What is bound outside stays as it is there; what several collections bind meets."""
        both = dict(known)
        for pair in choice:
            for name, value in pair.variables.items() if pair is not None else ():
                if name in known:
                    continue
                if name in both and (value is None or key(both[name]) != key(value)):
                    return None
                both[name] = merged(both[name], value) if name in both else value
        return both

    def _collect(self, collect: Accumulation, partial: _Partial) -> Iterator[_Pair]:
        for event in self._reader.candidates(collect.event.pattern, self._facts, partial.variables):
            if not in_window(event.time, collect, partial.trace):
                continue
            for found in match_event(collect.event.pattern, event, partial.variables, self._reader.attributes):
                variables = {**found, **partial.variables}
                if self._own_conditions_hold(collect, event, variables, partial):
                    bound = tuple(sorted((n, key(v)) for n, v in variables.items()))
                    yield _Pair((event.key, bound), variables, event.time)

    def _own_conditions_hold(
        self, accumulation: Accumulation, event: Event, variables: Substitution, partial: _Partial
    ) -> bool:
        name = accumulation.event.name
        trace = partial.trace if name is None else {**partial.trace, name.name: event}
        return all(self._reader.holds(c, variables, trace) for c in accumulation.conditions)

    def _everything_holds(self, partial: _Partial, variables: Substitution, missing: set[str]) -> bool:
        """Conditions, parts of events and rows that must be absent, and absences in windows.

        A condition or absence that speaks of what was not collected filters nothing.
        """
        asked = [c for c in self._conditions if not missing & {v.name for v in variable_names(c, frozenset())}]
        absences = [a for a in self._absences if not missing & pattern_bindings(a.event.pattern).all]
        return (
            all(self._reader.holds(c, variables, partial.trace) for c in asked)
            and is_absent(partial.forbidden, variables)
            and not any(
                self._reader.rows(r.pattern, variables) for r in self._reads if isinstance(r, Absent) or r.negated
            )
            and all(self._is_absent(a, partial, variables) for a in absences)
        )

    def _is_absent(self, absence: Accumulation, partial: _Partial, variables: Substitution) -> bool:
        for event in self._reader.candidates(absence.event.pattern, self._facts, variables):
            if in_window(event.time, absence, partial.trace):
                for found in match_event(absence.event.pattern, event, variables, self._reader.attributes):
                    if self._own_conditions_hold(absence, event, {**found, **variables}, partial):
                        return False
        return True


# ---- windows and timers ------------------------------------------------------------------------------------


def in_window(time: Interval, accumulation: Accumulation, trace: Trace) -> bool:
    """Whether an event lies in the window, its boundaries included or not."""
    match accumulation.window:
        case While(event, begin, end):
            window = trace[event.name].time
            after = window.begin <= time.begin if begin else window.begin < time.begin
            return after and (time.end <= window.end if end else time.end < window.end)
        case Between(first, last):
            a, c = trace[first.name].time, trace[last.name].time
            return a.end < time.begin and time.end < c.begin


def timed(kind: str, anchor: Interval, d: int) -> Interval:
    """When a relative timer occurs (figure 9.2)."""
    b, e = anchor.begin, anchor.end
    match kind:
        case "extend":
            return Interval(b, e + d)
        case "shorten":
            return Interval(b, e - d)
        case "extend-begin" | "extend-backward":
            return Interval(b - d, e)
        case "shorten-begin":
            return Interval(b + d, e)
        case "shift-forward":
            return Interval(b + d, e + d)
        case "shift-backward":
            return Interval(b - d, e - d)
        case "from-end":
            return Interval(e, e + d)
        case "from-end-backward":
            return Interval(e - d, e)
        case "from-start":
            return Interval(b, b + d)
        case "from-start-backward":
            return Interval(b - d, b)
        case _:
            raise ValueError(f"there is no timer {kind}")
