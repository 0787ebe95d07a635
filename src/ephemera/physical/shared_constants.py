"""This module says by which variables tuples find the constants of rules that are alike."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.algebra.scalar import Formula, Holds
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import Var


def found_by(
    tests: Sequence[Formula], names: Sequence[str], sure: frozenset[str]
) -> tuple[dict[str, str], tuple[Formula, ...]]:
    """For each constant the variable that finds it: its own, or one that it is only asked to equal.

    Also the tests without those that finding makes.
    """
    equal: dict[str, str] = {}
    for test in tests:
        equality = _equality(test, names)
        if equality is not None and equality[1] in sure and equality[1] not in equal.values():
            equal[equality[0]] = equality[1]
    made = set(equal.items())
    left = tuple(t for t in tests if _equality(t, names) not in made)
    return {name: name for name in names if name in sure} | equal, left


def _equality(test: Formula, names: Sequence[str]) -> tuple[str, str] | None:
    match test:
        case Holds(Comparison("=", Var(a), Var(b))) if (a in names) != (b in names):
            return (a, b) if a in names else (b, a)
        case _:
            return None
