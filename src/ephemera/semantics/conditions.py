"""This module says when conditions hold: true, false, or unknown where something has no value (thesis figure 9.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from ephemera.rules.scope import is_event_comparison
from ephemera.syntax.nodes import (
    AllOf,
    AnyOf,
    Apart,
    Comparison,
    Condition,
    InCalendar,
    IsNull,
    Moment,
    Not,
    Parameter,
    Relation,
    Within,
)
from ephemera.terms.compute import Scope, compare, compute, moment
from ephemera.terms.events import Event, Interval, covering
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Duration, Name, Text
from ephemera.terms.values import Value

Trace = Mapping[str, Event]
"""The events and timers of an answer by their identifiers (τ)."""

Calendars = Mapping[str, Iterable[Event]]


def holds(
    condition: Condition, variables: Mapping[str, Value], trace: Trace, scope: Scope, calendars: Calendars
) -> bool | None:
    """Whether a condition holds for an answer (W of figure 9.3, with a third truth value)."""
    match condition:
        case Comparison(operator, Name(left), Name(right)) if is_event_comparison(condition, frozenset()):
            return (trace[left] == trace[right]) is (operator == "=")
        case Comparison():
            return _compare(condition, variables, scope)
        case IsNull(operand, negated):
            try:
                return (compute(operand, variables, scope) is None) is not negated
            except Undefined:
                return None
        case Not(inner):
            truth = holds(inner, variables, trace, scope, calendars)
            return None if truth is None else not truth
        case AllOf(members):
            return _all(holds(m, variables, trace, scope, calendars) for m in members)
        case AnyOf(members):
            truth = _all(_negated(holds(m, variables, trace, scope, calendars)) for m in members)
            return _negated(truth)
        case Relation(relation, left, right, parameters):
            return related(relation, _interval(left, trace, scope), _interval(right, trace, scope), parameters)
        case Within(events, duration):
            whole = covering(trace[e.name].time for e in events)
            return whole.end - whole.begin <= microseconds(duration)
        case Apart(events, duration):
            i, j = (trace[e.name].time for e in events)
            gap = microseconds(duration)
            return j.begin - i.end >= gap or i.begin - j.end >= gap
        case InCalendar(events, calendar):
            whole = covering(trace[e.name].time for e in events)
            return any(day.time.covers(whole) for day in calendars.get(str(calendar), ()))
        case _:
            assert_never(condition)


def _all(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return False if False in found else None if None in found else True


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _compare(comparison: Comparison, variables: Mapping[str, Value], scope: Scope) -> bool | None:
    try:
        a = compute(comparison.left, variables, scope)
        b = compute(comparison.right, variables, scope)
    except Undefined:
        return None
    return compare(comparison.operator, a, b)


def _interval(side: Moment, trace: Trace, scope: Scope) -> Interval:
    if isinstance(side, Name):
        return trace[side.name].time
    (text,) = side.arguments
    fixed = moment(text.value, scope.zone) if isinstance(text, Text) else 0
    return Interval(fixed, fixed)


def microseconds(duration: Duration) -> int:
    """The length of a resolved duration."""
    return int(sum(part.amount for part in duration.parts))


# ---- Allen's relations -------------------------------------------------------------------------------------

INVERSE = {
    "after": "before",
    "met-by": "meets",
    "overlapped-by": "overlaps",
    "started-by": "starts",
    "contains": "during",
    "finished-by": "finishes",
}


def related(relation: str, i: Interval, j: Interval, parameters: tuple[Parameter, ...]) -> bool:
    """Whether two intervals stand in an Allen relation, with metric parameters if there are any."""
    if relation in INVERSE:
        return related(INVERSE[relation], j, i, parameters)
    return _metric(relation, i, j, parameters) if parameters else _plain(relation, i, j)


def _plain(relation: str, i: Interval, j: Interval) -> bool:
    match relation:
        case "before":
            return i.end < j.begin
        case "meets":
            return i.end == j.begin
        case "overlaps":
            return i.begin < j.begin < i.end < j.end
        case "starts":
            return i.begin == j.begin and i.end < j.end
        case "during":
            return j.begin < i.begin and i.end < j.end
        case "finishes":
            return j.begin < i.begin and i.end == j.end
        case _:
            return i == j


def _metric(relation: str, i: Interval, j: Interval, parameters: tuple[Parameter, ...]) -> bool:
    """The table of metric conditions; `*` is the plain relation's own limit below and infinity above."""
    p = [microseconds(x) if isinstance(x, Duration) else None for x in parameters]
    match relation, len(p):
        case "before", 1:
            return j.begin - i.end == p[0]
        case "before", _:
            return _between(p[0], j.begin - i.end, p[1])
        case "meets", _:
            return _at_most(abs(j.begin - i.end), p[0])
        case "equals", _:
            return _at_most(abs(i.begin - j.begin), p[0]) and _at_most(abs(i.end - j.end), p[-1])
        case "during", 1 | 2:
            return i.begin - j.begin == p[0] and j.end - i.end == p[-1]
        case "during", _:
            return _between(p[0], i.begin - j.begin, p[1]) and _between(p[2], j.end - i.end, p[3])
        case "overlaps", 1 | 2:
            return _plain("overlaps", i, j) and j.begin - i.begin == p[0] and j.end - i.end == p[-1]
        case "overlaps", _:
            within = _between(p[0], j.begin - i.begin, p[1]) and _between(p[2], j.end - i.end, p[3])
            return _plain("overlaps", i, j) and within
        case "starts", 1:
            return i.begin == j.begin and j.end - i.end == p[0]
        case "starts", 2:
            return i.begin == j.begin and _between(p[0], j.end - i.end, p[1])
        case "starts", _:
            return _at_most(abs(i.begin - j.begin), p[0]) and _between(p[1], j.end - i.end, p[2])
        case "finishes", 1:
            return i.end == j.end and i.begin - j.begin == p[0]
        case "finishes", 2:
            return i.end == j.end and _between(p[0], i.begin - j.begin, p[1])
        case _:
            return _at_most(abs(i.end - j.end), p[0]) and _between(p[1], i.begin - j.begin, p[2])


def _at_most(distance: int, limit: int | None) -> bool:
    return limit is None or distance <= limit


def _between(least: int | None, distance: int, most: int | None) -> bool:
    """Within a range; every plain relation that takes one is strict, so `*` below means more than nothing."""
    above = distance > 0 if least is None else distance >= least
    return above and _at_most(distance, most)
