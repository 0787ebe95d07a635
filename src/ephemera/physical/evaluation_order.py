"""This module says what some rules of a plan run with: which queries, in which turns, and whose events they test."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.algebra.nodes import Detection, Input, Plan, Rename
from ephemera.algebra.scalar import Matches
from ephemera.base.tree import find


def turns(names: Sequence[str], plan: Plan) -> list[tuple[list[str], bool]]:
    """The points of a lane in the order of the plan, those of a cycle together."""
    cycles = {name: frozenset(cycle) for cycle in plan.cycles for name in cycle}
    found: list[tuple[list[str], bool]] = []
    done: set[str] = set()
    for name in names:
        if name in done:
            continue
        members = [n for n in names if n in cycles[name]] if name in cycles else [name]
        done |= set(members)
        found.append((members, name in cycles))
    return found


def told_apart(plan: Plan, rules: Sequence[str]) -> set[str]:
    """The queries whose events a rule tests again, or an algebra expression tells apart."""
    found: set[str] = set()
    for name in rules:
        expression = plan.points[name].expression
        tested = {m.event for m in find(expression, Matches)}
        inner = {i for d in find(expression, Detection) for i in d.inputs}
        for use in find(expression, Rename):
            if isinstance(use.input, Input) and (use.events[0][1] in tested or use in inner):
                found.add(use.input.point)
    return found


def queries_of(plan: Plan, rules: Sequence[str]) -> set[str]:
    """The queries that some rules read."""
    return {i.point for name in rules for i in find(plan.points[name].expression, Input)}
