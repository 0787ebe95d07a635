"""This module turns conditions into formulas: Allen's relations and their metric forms become differences of stamps.

The tables are those of the language's meaning (`docs/meaning.md`): parameters replace the plain relation, except that
overlaps keeps its order; `*` is the plain relation's own limit below and no limit above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ephemera.algebra.attributes import Time, begin, end, moment
from ephemera.algebra.scalar import (
    Distance,
    Every,
    Formula,
    Holds,
    InsideCalendar,
    SameEvent,
    at_most,
    equal,
    every,
    less,
    negated,
    some,
)
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
    Relation,
    Within,
)
from ephemera.terms import compute
from ephemera.terms.nodes import Duration, Name, Text


def formula(condition: Condition, zone: str) -> Formula:
    """What a condition in normal form tests; a fixed time without a zone is in the program's."""
    match condition:
        case Comparison(operator, Name(left), Name(right)) if is_event_comparison(condition, frozenset()):
            return SameEvent(left, right, operator == "=")
        case Comparison() | IsNull():
            return Holds(condition)
        case Not(inner):
            return negated(formula(inner, zone))
        case AllOf(members):
            return every(formula(m, zone) for m in members)
        case AnyOf(members):
            return some(formula(m, zone) for m in members)
        case Relation(relation, left, right, parameters):
            i, j = _ends(left, zone), _ends(right, zone)
            limits = [length(p) if isinstance(p, Duration) else None for p in parameters]
            return every(_metric(relation, i, j, limits) if limits else _plain(relation, i, j))
        case Within(events, duration):
            return every(
                at_most(end(later.name), begin(earlier.name), length(duration))
                for later in events
                for earlier in events
            )
        case Apart((i, j), duration):
            gap = -length(duration)
            return some([at_most(end(i.name), begin(j.name), gap), at_most(end(j.name), begin(i.name), gap)])
        case Apart():
            raise TypeError("two events are apart, no more and no fewer")
        case InCalendar(events, calendar):
            return InsideCalendar(tuple(e.name for e in events), str(calendar))
        case _:
            assert_never(condition)


def length(duration: Duration) -> int:
    """A resolved duration in microseconds."""
    return int(sum(part.amount for part in duration.parts))


def _ends(side: Moment, zone: str) -> tuple[Time, Time]:
    if isinstance(side, Name):
        return begin(side.name), end(side.name)
    (text,) = side.arguments
    if not isinstance(text, Text):
        raise TypeError("a fixed time is written as a text")
    fixed = moment(compute.moment(text.value, zone))
    return fixed, fixed


# ---- Allen's relations -------------------------------------------------------------------------------------

_Interval = tuple[Time, Time]


def _plain(relation: str, i: _Interval, j: _Interval) -> Iterator[Formula]:
    (i_s, i_e), (j_s, j_e) = i, j
    match relation:
        case "before":
            yield less(i_e, j_s)
        case "meets":
            yield equal(i_e, j_s)
        case "overlaps":
            yield from (less(i_s, j_s), less(j_s, i_e), less(i_e, j_e))
        case "starts":
            yield from (equal(i_s, j_s), less(i_e, j_e))
        case "during":
            yield from (less(j_s, i_s), less(i_e, j_e))
        case "finishes":
            yield from (less(j_s, i_s), equal(i_e, j_e))
        case _:
            yield from (equal(i_s, j_s), equal(i_e, j_e))


def _metric(relation: str, i: _Interval, j: _Interval, limits: list[int | None]) -> Iterator[Formula]:
    (i_s, i_e), (j_s, j_e) = i, j
    match relation, limits:
        case "before", [a]:
            yield from _between(j_s, i_e, a, a)
        case "before", [a, b]:
            yield from _between(j_s, i_e, a, b)
        case "meets", [a]:
            yield from _near(j_s, i_e, a)
        case "equals", [a, *more]:
            yield from _near(i_s, j_s, a)
            yield from _near(i_e, j_e, more[0] if more else a)
        case "during", [a, *_] if len(limits) < 3:
            yield from _between(i_s, j_s, a, a)
            yield from _between(j_e, i_e, limits[-1], limits[-1])
        case "during", [a1, a2, b1, b2]:
            yield from _between(i_s, j_s, a1, a2)
            yield from _between(j_e, i_e, b1, b2)
        case "overlaps", [a, *_] if len(limits) < 3:
            yield from _plain("overlaps", i, j)
            yield from _between(j_s, i_s, a, a)
            yield from _between(j_e, i_e, limits[-1], limits[-1])
        case "overlaps", [a1, a2, b1, b2]:
            yield from _plain("overlaps", i, j)
            yield from _between(j_s, i_s, a1, a2)
            yield from _between(j_e, i_e, b1, b2)
        case "starts", [a]:
            yield from (equal(i_s, j_s), *_between(j_e, i_e, a, a))
        case "starts", [a, b]:
            yield from (equal(i_s, j_s), *_between(j_e, i_e, a, b))
        case "starts", [a1, b1, b2]:
            yield from (*_near(i_s, j_s, a1), *_between(j_e, i_e, b1, b2))
        case "finishes", [a]:
            yield from (equal(i_e, j_e), *_between(i_s, j_s, a, a))
        case "finishes", [a, b]:
            yield from (equal(i_e, j_e), *_between(i_s, j_s, a, b))
        case "finishes", [a1, b1, b2]:
            yield from (*_near(i_e, j_e, a1), *_between(i_s, j_s, b1, b2))
        case _:
            raise TypeError(f"`{relation}` takes no {len(limits)} parameters")


def _between(later: Time, earlier: Time, least: int | None, most: int | None) -> Iterator[Distance]:
    """A range for later − earlier; every plain relation that takes one is strict, so `*` below is more than 0."""
    yield less(earlier, later) if least is None else at_most(earlier, later, -least)
    if most is not None:
        yield at_most(later, earlier, most)


def _near(a: Time, b: Time, limit: int | None) -> Iterator[Formula]:
    if limit is not None:
        yield Every((at_most(a, b, limit), at_most(b, a, limit)))
