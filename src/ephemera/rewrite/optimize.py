"""This module rewrites a plan before it is run, step by step, and checks it after each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from ephemera.algebra.check import check_plan
from ephemera.algebra.fingerprint import Print, StateNames, fingerprints, state_names
from ephemera.algebra.nodes import Plan, Point
from ephemera.analysis.nodes import Facts
from ephemera.terms.values import Value


@dataclass(frozen=True, slots=True)
class Alike:
    """Some rules as one: the names of what differs, and for each rule its values."""

    members: tuple[Point, ...]
    """The rules in the order of their fingerprints, all with the names that the first of the plan has."""
    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    written: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For rules that have other names for their variables: what they call each."""


@dataclass(frozen=True)
class Rewritten:
    """A plan on its way to being run."""

    plan: Plan
    facts: Facts
    prints: Mapping[str, Print]
    """What each rule means, as it was written."""
    columns: Mapping[str, frozenset[str]] | None = None
    """For each type of event the attributes that have to be read; None is all of them."""
    alike: Mapping[str, Alike] = field(default_factory=dict)
    """The rules that run as one, by the name of the rule that stands for them."""
    queries: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """For each query that was made: the rule, and its variables for constants with what the rule calls them."""

    @cached_property
    def names(self) -> StateNames:
        """What its rules and histories are called where they are stored; for whoever has all rewrites done."""
        places = {name: place for place, name in enumerate(self.plan.points)}
        together = {
            name: sorted((member.name for member in one.members), key=places.__getitem__)
            for name, one in self.alike.items()
        }
        return state_names(self.plan, self.prints, together)

    @property
    def replaced(self) -> frozenset[str]:
        """The rules that another stands for."""
        return frozenset(point.name for one in self.alike.values() for point in one.members)

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


def optimize(plan: Plan, facts: Facts, rewrites: Sequence[Rewrite]) -> Rewritten:
    """The plan after all rewrites, done in their order."""
    rewritten = Rewritten(plan, facts, fingerprints(plan))
    for rewrite in rewrites:
        before, rewritten = rewritten, rewrite(rewritten)
        if rewritten.plan is not before.plan:
            check_plan(rewritten.plan, {name: one.names for name, one in rewritten.alike.items()})
    return rewritten
