"""This module says which sources the points of a plan wait for.

Rules that derive one label wait for the sources of all of them, since what two of them derive is one event, which is
given once. A rule that reads nothing but the clock and calendars waits for no source.
"""

from __future__ import annotations

from collections.abc import Container

from ephemera.algebra.nodes import Base, Input, Plan
from ephemera.base.tree import find
from ephemera.rules.nodes import Catalogue

UNNAMED = ""
"""The source of all events that no stream carries."""
NO_SOURCE: frozenset[str] = frozenset()


def _source(catalogue: Catalogue, label: str, calendars: Container[str]) -> frozenset[str]:
    """What a label is read from; calendars, and what rules derive and no stream carries, need no source."""
    name = next((one.name for one in reversed(catalogue.sources) if label in one.carries), UNNAMED)
    is_inner = label in calendars or (name == UNNAMED and label in catalogue.derived)
    return NO_SOURCE if is_inner else frozenset([name])


def every_source(plan: Plan, calendars: Container[str]) -> frozenset[str]:
    """All sources of a program."""
    labels = {b.label for point in plan.points.values() for b in find(point.expression, Base)}
    used = NO_SOURCE.union(*(_source(plan.catalogue, label, calendars) for label in labels if label is not None))
    return used | frozenset(one.name for one in plan.catalogue.sources) or frozenset([UNNAMED])


def awaited_sources(plan: Plan, calendars: Container[str], every: frozenset[str]) -> dict[str, frozenset[str]]:
    """For each point the sources that its tuples depend on."""
    depends: dict[str, frozenset[str]] = {}
    derived = plan.catalogue.derived
    by_number: dict[int | None, list[str]] = {}
    inputs: dict[str, list[str]] = {}
    for name, point in plan.points.items():
        if point.kind == "rule":
            by_number.setdefault(point.rule, []).append(name)
        depends[name] = NO_SOURCE.union(
            *(
                every if b.label is None else _source(plan.catalogue, b.label, calendars)
                for b in find(point.expression, Base)
            )
        )
        inputs[name] = [i.point for i in find(point.expression, Input)]
    same = [[name for number in numbers for name in by_number.get(number, ())] for numbers in derived.values()]
    changed = True
    while changed:
        changed = False
        for name, read in inputs.items():
            both = NO_SOURCE.union(*(depends[point] for point in read))
            if not both <= depends[name]:
                depends[name] |= both
                changed = True
        for names in same:
            both = NO_SOURCE.union(*(depends[name] for name in names))
            changed = changed or any(depends[name] != both for name in names)
            depends |= dict.fromkeys(names, both)
    return depends
