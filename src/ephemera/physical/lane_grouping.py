"""This module says which sources the rules of a plan wait for, and so which of them share a lane.

Rules that derive one label wait for the sources of all of them, since what two of them derive is one event, which is
given once. A rule that reads nothing but the clock and calendars waits for no source. What it answers goes with all of
them. Rules that wait for fewer sources and read what it derives need that by their own bounds: then it runs a second
time in a lane without sources, which goes with the fastest of them, only to tell those rules.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from ephemera.algebra.nodes import Base, Input, Plan
from ephemera.base.tree import find
from ephemera.rewrite.nodes import Rewritten

UNNAMED = ""
"""The source of all events that no stream carries."""
CLOCK: frozenset[str] = frozenset()
"""The lane of what waits for no source, and tells others."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The rules of a plan by the sources that they wait for, those that wait for the fewest first."""

    rules: Mapping[frozenset[str], tuple[str, ...]]
    every: frozenset[str]
    """All sources."""
    told_ahead: frozenset[str]
    """The rules that run in the lane of the clock, too, which tells the others what they derive."""

    def of(self, own: Container[str]) -> dict[frozenset[str], list[str]]:
        """The lanes of some of the rules."""
        found = {sources: [name for name in rules if name in own] for sources, rules in self.rules.items()}
        return {sources: rules for sources, rules in found.items() if rules}


def lanes_of(given: Rewritten, calendars: Container[str]) -> Lanes:
    """The lanes of the rules of a plan, and what they tell each other."""
    plan = given.plan
    depends, every = _dependencies(plan, calendars)
    rules = [point.name for point in given.rules]
    for name, one in given.alike.items():  # rules that run as one wait for the sources of all of them
        depends[name] = depends[name].union(*(depends[m.name] for m in one.members))
    free = [name for name in rules if not depends[name]]
    ahead = any(depends[name] not in (CLOCK, every) and _read(name, plan) & set(free) for name in rules)
    found: dict[frozenset[str], list[str]] = {}
    for name in rules:
        found.setdefault(depends[name] or every, []).append(name)
        if ahead and name in free:
            found.setdefault(CLOCK, []).append(name)
    members = {m.name for name in free for m in given.members(name)}
    in_order = {names: tuple(own) for names, own in sorted(found.items(), key=lambda item: len(item[0]))}
    return Lanes(in_order, every, frozenset([*free, *members]) if ahead else frozenset())


def _read(name: str, plan: Plan) -> set[str]:
    """All points that a rule reads, directly or through others."""
    found: set[str] = set()
    left = [name]
    while left:
        more = {i.point for i in find(plan.points[left.pop()].expression, Input)} - found
        found |= more
        left += more
    return found


def _dependencies(plan: Plan, calendars: Container[str]) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """For each point the sources that its tuples depend on, and all sources."""
    found: dict[str, frozenset[str]] = dict.fromkeys(plan.points, CLOCK)
    derived = plan.catalogue.derived
    sources = plan.catalogue.sources
    carried_by = {label: one.name for one in sources for label in one.carries}

    def source(label: str) -> frozenset[str]:
        """What a label is read from; calendars, and what rules derive and no stream carries, need no source."""
        name = carried_by.get(label, UNNAMED)
        is_inner = label in calendars or (name == UNNAMED and label in derived)
        return CLOCK if is_inner else frozenset([name])

    labels = {b.label for point in plan.points.values() for b in find(point.expression, Base)}
    used = CLOCK.union(*(source(label) for label in labels if label is not None))
    every = used | frozenset(one.name for one in sources) or frozenset([UNNAMED])
    rules = {name: point.rule for name, point in plan.points.items() if point.kind == "rule"}
    same = [[name for name, rule in rules.items() if rule in numbers] for numbers in derived.values()]
    changed = True
    while changed:
        changed = False
        for name, point in plan.points.items():
            bases = [every if b.label is None else source(b.label) for b in find(point.expression, Base)]
            inputs = [found[i.point] for i in find(point.expression, Input)]
            both = CLOCK.union(*bases, *inputs)
            if not both <= found[name]:
                found[name] |= both
                changed = True
        for names in same:
            both = CLOCK.union(*(found[name] for name in names))
            changed = changed or any(found[name] != both for name in names)
            found |= dict.fromkeys(names, both)
    return found, every
