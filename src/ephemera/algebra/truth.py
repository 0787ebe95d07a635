"""This module tests formulas on tuples: true, false, or unknown where something has no value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from ephemera.algebra.attributes import Time, begin, end, event_of, is_moment, is_stamp, microseconds, reference
from ephemera.algebra.conditions import formula
from ephemera.algebra.scalar import (
    Distance,
    Every,
    Formula,
    Holds,
    InsideCalendar,
    LimitedDistance,
    Matches,
    Negation,
    SameEvent,
    Some,
)
from ephemera.rules.nodes import Catalogue
from ephemera.syntax.nodes import Comparison, Condition, IsNull
from ephemera.terms.atoms import match_event
from ephemera.terms.compute import Scope, compare, compute
from ephemera.terms.construct import Origin, Row, value_of
from ephemera.terms.events import Event, Interval
from ephemera.terms.functions import Undefined
from ephemera.terms.values import Value

Tuple = Mapping[str, Any]


class Tester:
    """Tests formulas with what a program declares and what it is run on."""

    def __init__(self, catalogue: Catalogue, calendars: Mapping[str, Sequence[Event]]) -> None:
        self._catalogue = catalogue
        self._calendars = calendars

    def scope(self, t: Tuple) -> Scope:
        """What expressions may speak of besides variables."""
        names = {event_of(a) for a in t if is_stamp(a)}
        times = {n: Interval(t[begin(n)], t[end(n)]) for n in names}
        return Scope(self._catalogue.unit, self._catalogue.zone, times, functions=self._catalogue.functions)

    def truth(self, f: Formula, t: Tuple, scope: Scope | None = None) -> bool | None:
        """Whether the formula holds for a tuple."""
        match f:
            case Distance(later, earlier, limit, strict):
                distance = _time(t, later) - _time(t, earlier)
                return distance < limit if strict else distance <= limit
            case LimitedDistance(later, earlier, variable, strict):
                distance, limit = _time(t, later) - _time(t, earlier), int(t[variable])
                return distance < limit if strict else distance <= limit
            case SameEvent(left, right, same):
                return (t[reference(left)] == t[reference(right)]) is same
            case Matches(event, pattern, known):
                values: dict[str, Value] = {v: t[v] for v in known if v in t}
                found = match_event(pattern, t[reference(event)], values, self._catalogue.attributes)
                return any(s.keys() <= values.keys() for s in found)
            case InsideCalendar(events, calendar):
                first, last = min(t[begin(e)] for e in events), max(t[end(e)] for e in events)
                return any(day.time.covers(Interval(first, last)) for day in self._calendars.get(calendar, ()))
            case Holds(condition):
                return self._holds(condition, t, scope or self.scope(t))
            case Negation(inner):
                truth = self.truth(inner, t, scope)
                return None if truth is None else not truth
            case Every(parts):
                truths = [self.truth(p, t, scope) for p in parts]
                return False if False in truths else None if None in truths else True
            case Some(parts):
                truths = [self.truth(p, t, scope) for p in parts]
                return True if True in truths else None if None in truths else False
            case _:
                assert_never(f)

    def _holds(self, condition: Comparison | IsNull, t: Tuple, scope: Scope) -> bool | None:
        try:
            if isinstance(condition, IsNull):
                return (compute(condition.operand, t, scope) is None) is not condition.negated
            a, b = compute(condition.left, t, scope), compute(condition.right, t, scope)
        except Undefined:
            return None
        return compare(condition.operator, a, b)

    def passes(self, having: Sequence[Condition], rows: list[Row], origin: Origin, t: Tuple) -> bool:
        """`having`: conditions on a group, after aggregation."""
        plain = self.scope(t)

        def aggregated(e: Any) -> Value:
            return value_of(e, rows, origin, plain)

        scope = replace(plain, aggregate=aggregated)
        stamps: Tuple = {a: v for a, v in t.items() if is_stamp(a)}
        values = {**stamps, **rows[0].variables}
        try:
            return all(self.truth(formula(c, plain.zone), values, scope) for c in having)
        except Undefined:
            return False


def _time(t: Tuple, time: Time) -> int:
    return microseconds(time) if is_moment(time) else int(t[time])
