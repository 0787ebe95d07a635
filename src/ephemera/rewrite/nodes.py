"""This module defines what rewrites work on: a plan with its facts, and what has been found out for running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ephemera.algebra.fingerprint import Print, StateNames
from ephemera.algebra.nodes import Plan, Point
from ephemera.analysis.nodes import Facts
from ephemera.terms.values import Value

Constant: TypeAlias = bool | int | float | str
Asked: TypeAlias = tuple[tuple[str, Constant], ...]
"""Attributes with the constants that one use of a type asks for."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Some rules as one: the names of what differs, and for each rule its values."""

    members: tuple[Point, ...]
    """The rules in the order of their fingerprints, all with the names that the first of the plan has."""
    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    written: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For rules that have other names for their variables: what they call each."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A plan on its way to being run."""

    plan: Plan
    facts: Facts
    prints: Mapping[str, Print]
    """What each rule means, as it was written."""
    names: StateNames = field(default_factory=StateNames)
    """What its rules and histories are called where they are stored; known when all rewrites are done."""
    columns: Mapping[str, frozenset[str]] | None = None
    """For each type of event the attributes that have to be read; None is all of them."""
    constants: Mapping[str, tuple[Asked, ...]] = field(default_factory=dict)
    """For each type that can be filtered before it is read the constants of its uses."""
    alike: Mapping[str, Alike] = field(default_factory=dict)
    """The rules that run as one, by the name of the rule that stands for them."""
    queries: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """For each query that was made: the rule, and its variables for constants with what the rule calls them."""

    @property
    def replaced(self) -> frozenset[str]:
        """The rules that another stands for."""
        return frozenset(point.name for found in self.alike.values() for point in found.members)

    @property
    def rules(self) -> list[Point]:
        """The rules that run, in the order of the plan."""
        replaced = self.replaced
        return [p for p in self.plan.points.values() if p.kind == "rule" and p.name not in replaced]

    def members(self, rule: str) -> Sequence[Point]:
        """The rules that a rule stands for; mostly it is itself."""
        alike = self.alike.get(rule)
        return alike.members if alike is not None else (self.plan.points[rule],)


Rewrite: TypeAlias = Callable[[Rewritten], Rewritten]
