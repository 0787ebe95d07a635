"""This module says how tuples find the constants of rules that are alike: by what must equal them, and by one range.

A constant that only has to equal a variable is found by the value of that. Of the constants that limit a variable from
below or above, those of one variable are found by a range; if there are none, one that limits how far events lie apart
is. What finding sees to is not tested again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Time, event_of, hidden, is_stamp
from ephemera.algebra.scalar import Every, Formula, Holds, LimitedDistance
from ephemera.physical.nodes import ConstantRange
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import ComparisonOperator, Var

_MIRRORED: dict[str, ComparisonOperator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def found_by(
    tests: Sequence[Formula], names: Sequence[str], sure: frozenset[str], stamps: frozenset[str]
) -> tuple[dict[str, str], ConstantRange | None, tuple[Formula, ...]]:
    """For each constant the variable that finds it, its own or an equal one; a range; and the tests that are left.

    Constants are looked for when the variables that are sure are known, and some stamps.
    """
    parts = [p for test in tests for p in (test.parts if isinstance(test, Every) else (test,))]
    compared = [(part, _compared(part, frozenset(names), sure)) for part in parts]
    equal: dict[str, str] = {}
    made: list[Formula] = []
    for part, found in compared:
        if found is not None and found[1] == "=" and found[0] not in equal.values():
            equal[found[2]] = found[0]
            made.append(part)
    ranged, limits = _range(compared, stamps)
    left = tuple(part for part in parts if not any(part is done for done in (*made, *limits)))
    return {name: name for name in names if name in sure} | equal, ranged, left


def _range(
    compared: Iterable[tuple[Formula, tuple[str, str, str] | None]], stamps: frozenset[str]
) -> tuple[ConstantRange | None, tuple[Formula, ...]]:
    """The range of some variable, best one with two ends, and the tests that it stands for."""
    ranges: dict[str, ConstantRange] = {}
    made: dict[str, list[Formula]] = {}
    for part, found in compared:
        if found is None:
            continue
        variable, operator, name = found
        one = ranges.get(variable, ConstantRange(variable))
        match operator:
            case ">" | ">=" if one.least is None:
                ranges[variable] = replace(one, least=name, above=operator == ">")
            case "<" | "<=" if one.most is None:
                ranges[variable] = replace(one, most=name, below=operator == "<")
            case _:
                continue
        made.setdefault(variable, []).append(part)
    if not ranges:
        return _distance((part for part, _ in compared), stamps)
    best = max(ranges.values(), key=lambda one: len(one.constants))
    return best, tuple(made[best.variable])


def _distance(parts: Iterable[Formula], stamps: frozenset[str]) -> tuple[ConstantRange | None, tuple[Formula, ...]]:
    """The range of how far an event lies behind another, and the test that it stands for."""
    for part in parts:
        match part:
            case LimitedDistance(later, earlier, limit, strict) if {later, earlier} <= stamps and _tells_apart(
                later, earlier
            ):
                name = hidden(f"{later} - {earlier}")
                return ConstantRange(name, most=limit, below=strict, distance=(later, earlier)), (part,)
    return None, ()


def _tells_apart(later: Time, earlier: Time) -> bool:
    """Whether they are stamps of two events: how long one of them lasts is mostly the same for all."""
    return is_stamp(later) and is_stamp(earlier) and event_of(later) != event_of(earlier)


def _compared(test: Formula, names: Container[str], sure: frozenset[str]) -> tuple[str, str, str] | None:
    """A variable that every tuple has, how it compares with a constant, and that."""
    match test:
        case Holds(Comparison(operator, Var(a), Var(b))) if b in names and a not in names:
            found = (a, str(operator), b)
        case Holds(Comparison(operator, Var(a), Var(b))) if a in names and b not in names:
            found = (b, str(_MIRRORED[operator]), a)
        case _:
            return None
    return found if found[0] in sure else None
