"""This module finds what a run lacked: types of events that never came, and rules that never matched.

Both are hints at mistakes, in names, in files, in conditions. Engines strike types off a list when they come, batch by
batch, and put down the rules that gave something; so nothing is counted for each event.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass

from ephemera.algebra.nodes import Base, Plan
from ephemera.base.tree import find
from ephemera.physical.lanes import all_read
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset


@dataclass(frozen=True, slots=True)
class Never:
    """What a run lacked."""

    came: tuple[str, ...] = ()
    """Types of which no event came."""
    matched: tuple[int, ...] = ()
    """The numbers of rules that gave nothing, counted from 1."""


def never(
    rules: Ruleset, plan: Plan, missing: Iterable[str], matched: Container[int], emit: Collection[str] = ()
) -> Never:
    """What a run lacked, by the types that were missing and the rules that matched.

    Where only some events are asked for, only what these need counts.
    """
    every = range(1, len(rules.resolved.rules) + 1)
    if not emit:
        return Never(tuple(sorted(missing)), tuple(n for n in every if n not in matched))
    heads = {n: emitted_label(rules.resolved.rules[n - 1].head) for n in every}
    asked = [n for n, label in heads.items() if label is None or label in emit]
    needed = all_read(plan, [name for name, point in plan.points.items() if point.rule in asked])
    numbers = {plan.points[name].rule for name in needed}
    labels = {base.label for name in needed for base in find(plan.points[name].expression, Base)}
    came = tuple(sorted(label for label in missing if label in labels))
    return Never(came, tuple(n for n in every if n in numbers and n not in matched))
