"""This module drops the rules that nobody asked for (thesis 18.4.4).

Law: a program that is asked for some events only, and whatever it has to send, gives the same answers without every
rule that these do not need: one that derives no event that is asked for, sends nothing, and is read neither by such a
rule nor by one that such a rule reads, and so on.

Side condition: something is asked for by name; otherwise everything is. A rule whose label a variable decides may
derive anything, and so it stays. What is dropped is not run: it has no dead letters, it counts nowhere, and what only
it would have read is read no further than an event that no rule speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from ephemera.algebra.nodes import Input, Plan, Point
from ephemera.base.tree import find
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.emitted import emitted_label
from ephemera.syntax.nodes import Raise


def drop_unasked(given: Rewritten) -> Rewritten:
    """The plan with those rules only that are needed for what is asked for."""
    plan = needed(given.plan, given.emit)
    if plan is given.plan:
        return given
    gone = tuple(p for name, p in given.plan.points.items() if p.kind == "rule" and name not in plan.points)
    return replace(given, plan=plan, unasked=gone)


def needed(plan: Plan, emit: Set[str]) -> Plan:
    """The points of a plan that are needed for some events and for all messages; the same plan if these are all."""
    if not emit:
        return plan
    kept = all_read(plan, [name for name, point in plan.points.items() if _is_asked(point, plan, emit)])
    if len(kept) == len(plan.points):
        return plan
    cycles = tuple(cycle for cycle in plan.cycles if kept.issuperset(cycle))
    return replace(plan, points={name: p for name, p in plan.points.items() if name in kept}, cycles=cycles)


def all_read(plan: Plan, names: Iterable[str]) -> set[str]:
    """Some points, and all that they read, directly or through others."""
    reached: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += [use.point for use in find(plan.points[name].expression, Input)]
    return reached


def _is_asked(point: Point, plan: Plan, emit: Set[str]) -> bool:
    if point.kind != "rule" or point.normal is None:
        return False
    head = plan.normal[point.normal].head
    label = emitted_label(head)
    return isinstance(head, Raise) or label is None or label in emit
