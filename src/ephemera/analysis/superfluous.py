"""This module finds conditions on time that add nothing: the others, and what the inputs guarantee, imply them."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.algebra.nodes import Plan, Select
from ephemera.analysis.cases import PARTS
from ephemera.analysis.distances import Edge, close
from ephemera.analysis.nodes import Facts
from ephemera.base.tree import find


def superfluous(plan: Plan, facts: Facts, point: str) -> list[str]:
    """The conditions of a point, as they are written, that could be left out one at a time.

    Only where there is one case: a condition that tells cases apart is there for that.
    """
    cases = facts.cases.get(point, [])
    if len(cases) != 1:
        return []
    edges = [e for e in cases[0][0].edges if e.because != PARTS]
    selections = [*find(plan.points[point].expression, Select)]  # the last condition stands on top
    tested = dict.fromkeys(s.because for s in reversed(selections))
    return [condition for condition in tested if _is_implied(edges, condition)]


def _is_implied(edges: Sequence[Edge], condition: str) -> bool:
    tested = [e for e in edges if e.because == condition and e.weight.doubtful]
    rest = close(e for e in edges if e not in tested)
    if rest is None or not tested:
        return False
    found = [(rest.distance(e.start, e.end), e.weight) for e in tested]
    return all(known is not None and known[:2] <= weight[:2] for known, weight in found)
