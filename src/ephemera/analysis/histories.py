"""This module combines the relevance conditions of all points that read a history into one (thesis 15.5.1).

A tuple is kept while any of the points may need it. Conditions that another one implies are left out: what keeps a
tuple for five hours keeps it for two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ephemera.algebra.attributes import Stamp, side_of
from ephemera.analysis.nodes import Facts, Relevance
from ephemera.analysis.weights import Weight
from ephemera.base.lazy_dataclass import dataclass

Condition: TypeAlias = Mapping[str, Weight]
"""For each stamp how long it counts; a tuple is kept while all hold."""


@dataclass(frozen=True, slots=True)
class History:
    """What is stored of a point, and the conditions under any of which a tuple is kept; none is forever."""

    point: str
    conditions: tuple[Condition, ...]
    readers: tuple[str, ...]

    @property
    def is_bounded(self) -> bool:
        return bool(self.conditions)


def histories(facts: Facts) -> list[History]:
    """The history of every point that others read."""
    read: dict[str, list[Relevance]] = {}
    for relevance in facts.relevance:
        read.setdefault(relevance.input, []).append(relevance)
    return [_history(point, readers) for point, readers in read.items()]


def _history(point: str, readers: list[Relevance]) -> History:
    names = tuple(dict.fromkeys(r.point for r in readers))
    if not all(r.is_bounded for r in readers):
        return History(point, (), names)
    conditions = [{_own(r, b.stamp): b.time for b in r.minimal if b.time is not None} for r in readers]
    kept: list[Condition] = []
    for condition in conditions:
        if not any(_implies(condition, other) for other in kept):
            kept = [other for other in kept if not _implies(other, condition)] + [condition]
    return History(point, tuple(kept), names)


def _own(relevance: Relevance, stamp: Stamp) -> str:
    """The stamp without the name that a rule gave to a single event."""
    return side_of(stamp) if "," not in relevance.name else stamp


def _implies(a: Condition, b: Condition) -> bool:
    """Whether whatever the first keeps the second keeps, too."""
    return all(stamp in a and a[stamp][:2] <= time[:2] for stamp, time in b.items())
