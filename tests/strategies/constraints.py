"""This module generates systems of difference constraints, and says what Z3 and plain search know about them.

Stamps are few and bounds small, so that constraints meet: cycles, equal bounds, strict beside not strict, guaranteed
beside doubtful. A system is drawn freely, or around an assignment of whole numbers that satisfies it, often tightly.
A stamp `@n` has the value n. Of the code under test only edges and weights are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types; the functions below give it some
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.analysis.distances import Edge
from ephemera.analysis.weights import ZERO, Weight, at_most, strict
from tests.strategies.words import among, node, several

System = tuple[Edge, ...]
Assignment = Mapping[str, int]

STAMPS = ("a", "b", "c", "d")
FEW = ("a", "b", "c")
MOMENTS = ("@-2", "@0", "@3")

# ---- systems -----------------------------------------------------------------------------------------------


def constraints(stamps: Sequence[str], least: int = -3, most: int = 4) -> SearchStrategy[Edge]:
    """Any constraint between two of the stamps, seldom of one with itself."""
    names = st.sampled_from(stamps)
    weights = node(Weight, st.integers(least, most), st.booleans(), st.booleans())
    return node(Edge, names, names, weights)


@st.composite
def solvable(draw: DrawFn, stamps: Sequence[str] = (*STAMPS, *MOMENTS)) -> System:
    """Systems that have a solution in whole numbers: they are drawn around one."""
    values = {s: int(s[1:]) if s.startswith("@") else draw(st.integers(-3, 4)) for s in stamps}
    edges: list[Edge] = []
    for _ in range(draw(st.integers(1, 9))):
        start, end = draw(st.sampled_from(stamps)), draw(st.sampled_from(stamps))
        slack = draw(st.sampled_from((0, 0, 1, 1, 2, 4)))
        inclusive = slack == 0 or draw(st.booleans())
        edges.append(Edge(start, end, Weight(values[end] - values[start] + slack, inclusive, draw(st.booleans()))))
    return tuple(edges)


@st.composite
def _cycles(draw: DrawFn, stamps: Sequence[str]) -> System:
    """A cycle about as long as whole numbers need, which the strictness of its constraints decides."""
    names = draw(st.lists(st.sampled_from(stamps), min_size=2, max_size=4, unique=True))
    bounds = [draw(st.integers(-2, 2)) for _ in names[1:]]
    bounds.append(draw(st.integers(-1, len(names))) - sum(bounds))
    ends = (*names[1:], names[0])
    return tuple(
        Edge(start, end, Weight(bound, draw(st.integers(0, 2)) == 0, draw(st.booleans())))
        for start, end, bound in zip(names, ends, bounds, strict=True)
    )


def systems(stamps: Sequence[str] = (*STAMPS, *MOMENTS)) -> SearchStrategy[System]:
    """Systems with solutions, without, and with solutions in fractions only."""
    few = several(constraints(stamps), most=2)
    free = several(constraints(stamps[:4]), least=3, most=7)
    return among(free, node(_joined, solvable(stamps), few), node(_joined, _cycles(stamps[:4]), few))


def _joined(system: System, more: System) -> System:
    return (*system, *more)


def stamps_of(edges: Iterable[Edge]) -> list[str]:
    """The stamps that a system speaks of."""
    return sorted({s for e in edges for s in (e.start, e.end)})


def pairs_of(edges: Iterable[Edge]) -> Iterator[tuple[str, str]]:
    """All pairs of different stamps."""
    stamps = stamps_of(edges)
    return ((i, j) for i in stamps for j in stamps if i != j)


def guaranteed(edges: Iterable[Edge]) -> System:
    """The constraints that need no test."""
    return tuple(e for e in edges if not e.weight.doubtful)


def between_moments(edges: Iterable[Edge]) -> System:
    """The distances of the fixed moments, which no constraint has to give."""
    moments = [m for m in stamps_of(edges) if m.startswith("@")]
    return tuple(Edge(i, j, at_most(int(j[1:]) - int(i[1:]), guaranteed=True)) for i in moments for j in moments)


def total(path: Iterable[Edge]) -> Weight:
    """The weight of edges in a row."""
    found = ZERO
    for edge in path:
        found = found.plus(edge.weight)
    return found


def satisfies(values: Assignment, edge: Edge) -> bool:
    """Whether values obey one constraint."""
    difference = values[edge.end] - values[edge.start]
    return difference < edge.weight.bound or (difference == edge.weight.bound and edge.weight.inclusive)


# ---- systems of note --------------------------------------------------------------------------------------

SHADOWED: System = (
    Edge("a", "b", at_most(3, guaranteed=True)),
    Edge("a", "b", strict(3)),
    Edge("b", "c", strict(0, guaranteed=True)),
)
"""Guaranteed edges alone give a → c (<, 3), but on the way to b a strict edge that is doubtful is shorter."""
TURNED: System = (
    Edge("b", "c", strict(0, guaranteed=True)),
    Edge("a", "b", at_most(3, guaranteed=True)),
    Edge("d", "b", at_most(3)),
    Edge("a", "d", strict(0)),
)
"""Whether a → c is found guaranteed hangs on which of b and d is looked at first."""
TWO_DATES: System = (Edge("a", "@0", strict(0)), Edge("@3", "b", strict(0)))
"""Between a and b lies the distance of two moments, which no constraint has to give."""

# ---- Z3 ----------------------------------------------------------------------------------------------------


class Greatest:
    """The greatest differences of a system's stamps, by Z3, in whole numbers or in all real ones."""

    def __init__(self, edges: Sequence[Edge], *, whole: bool) -> None:
        variable = z3.Int if whole else z3.Real
        self._stamps: dict[str, Any] = {s: variable(s) for s in stamps_of(edges)}
        self._solver: Any = z3.Optimize()
        for stamp, value in self._stamps.items():
            if stamp.startswith("@"):
                self._solver.add(value == int(stamp[1:]))
        for edge in edges:
            difference, bound = self._stamps[edge.end] - self._stamps[edge.start], edge.weight.bound
            self._solver.add(difference <= bound if edge.weight.inclusive else difference < bound)

    def is_possible(self) -> bool:
        """Whether there is a solution."""
        return bool(self._solver.check() == z3.sat)

    def difference(self, start: str, end: str) -> tuple[int, bool] | None:
        """The supremum of `end` − `start`, and whether it is attained; None is no limit."""
        if start not in self._stamps or end not in self._stamps:
            return (0, True) if start == end else None
        self._solver.push()
        goal = self._solver.maximize(self._stamps[end] - self._stamps[start])
        assert self._solver.check() == z3.sat
        infinite, value, epsilon = self._solver.upper_values(goal)  # of infinite·∞ + value + epsilon·ε
        self._solver.pop()
        if infinite.as_long() > 0:
            return None
        assert value.as_fraction().denominator == 1 if z3.is_real(value) else z3.is_int_value(value)
        return int(value.as_long()), epsilon.as_long() == 0


# ---- search ------------------------------------------------------------------------------------------------


def assignments(edges: Sequence[Edge], values: Sequence[int], start: str | None = None) -> Iterator[dict[str, int]]:
    """All solutions with these values; `start`, if given, is 0."""
    stamps = stamps_of(edges)
    ranges = [[int(s[1:])] if s.startswith("@") else [0] if s == start else values for s in stamps]
    for chosen in product(*ranges):
        found = dict(zip(stamps, chosen, strict=True))
        if all(satisfies(found, e) for e in edges):
            yield found
