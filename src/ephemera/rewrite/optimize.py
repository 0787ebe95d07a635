"""This module rewrites a plan before it is run, step by step, and checks it after each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from ephemera.algebra.check import check_plan
from ephemera.algebra.fingerprint import Print, fingerprints
from ephemera.algebra.nodes import Plan, Point
from ephemera.algebra.scalar import Formula
from ephemera.algebra.state_names import StateNames, state_names
from ephemera.analysis.flows import Statistics, declared, flows
from ephemera.analysis.join_estimates import Flow
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


@dataclass(frozen=True, slots=True)
class Fused:
    """A rule that reads what another would have wrapped for it."""

    point: Point
    reader: str
    """The rule that it stands beside, and derives for."""
    deriving: Point
    """The rule that is not run."""


@dataclass(frozen=True)
class Rewritten:
    """A plan on its way to being run."""

    plan: Plan
    facts: Facts
    prints: Mapping[str, Print]
    """What each rule means, as it was written; and what those mean that were made of two."""
    columns: Mapping[str, frozenset[str]] | None = None
    """For each type of event the attributes that have to be read; None is all of them."""
    alike: Mapping[str, Alike] = field(default_factory=dict)
    """The rules that run as one, by the name of the rule that stands for them."""
    queries: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """For each query that was made: the rule, and its variables for constants with what the rule calls them."""
    emit: frozenset[str] = frozenset()
    """The names of the events that are asked for; none are all."""
    unasked: tuple[Point, ...] = ()
    """The rules that are not run, since nobody asked for what they derive."""
    pushed: Mapping[str, Formula] = field(default_factory=dict)
    """For each rule that derives only what its readers ask for: what that is."""
    useless: tuple[Point, ...] = ()
    """The rules that are not run, since none of their readers could use what they derive."""
    fused: Mapping[str, Fused] = field(default_factory=dict)
    """The rules that read what another would have wrapped for them, by their names."""
    tested: Mapping[str, Formula] = field(default_factory=dict)
    """For each query of which less is stored than matches: what is tested before."""
    reading: Plan | None = None
    """The plan by which was judged what has to be read."""
    written: Plan | None = None
    """The plan before it was rewritten; it says what rules wait for."""
    statistics: Statistics = field(default_factory=Statistics)
    """What is known of how many events come."""
    calendars: frozenset[str] = frozenset()
    """The names of the calendars that it runs with."""

    @cached_property
    def names(self) -> StateNames:
        """What its rules and histories are called where they are stored; for whoever has all rewrites done."""
        places = {name: place for place, name in enumerate(self.plan.points)}
        together = {
            name: sorted((member.name for member in one.members), key=places.__getitem__)
            for name, one in self.alike.items()
        }
        return state_names(self.plan, self.prints, together)

    @cached_property
    def flows(self) -> dict[str, Flow]:
        """How many tuples are expected to come to each point."""
        return flows(self.plan, self.facts, self.statistics)

    @property
    def reshaped(self) -> frozenset[int]:
        """The numbers of the rules that derive less than is written: that one gives nothing says nothing of it."""
        fused = [one.deriving for one in self.fused.values()]
        points = [*(p for name in self.pushed if (p := self.plan.points.get(name)) is not None), *self.useless, *fused]
        return frozenset(point.rule for point in points if point.rule is not None)

    @property
    def replaced(self) -> frozenset[str]:
        """The rules that another stands for."""
        return frozenset(point.name for one in self.alike.values() for point in one.members)

    @property
    def rules(self) -> list[Point]:
        """The rules that run, and the stored joins that some of them read, in the order of the plan."""
        replaced = self.replaced
        return [p for p in self.plan.points.values() if p.kind in ("rule", "join") and p.name not in replaced]

    def members(self, rule: str) -> Sequence[Point]:
        """The rules that a rule stands for; mostly it is itself."""
        alike = self.alike.get(rule)
        return alike.members if alike is not None else (self.plan.points[rule],)


Rewrite: TypeAlias = Callable[[Rewritten], Rewritten]


def optimize(  # noqa: PLR0913 - what a plan is made of, most of it optional
    plan: Plan,
    facts: Facts,
    rewrites: Sequence[Rewrite],
    *,
    emit: frozenset[str] = frozenset(),
    calendars: frozenset[str] = frozenset(),
    statistics: Statistics | None = None,
) -> Rewritten:
    """The plan of a program that is asked for some events, or for all, after all rewrites, done in their order."""
    known = declared(plan.catalogue)
    whole = known if statistics is None else known.updated(statistics)
    prints = fingerprints(plan)
    first = Rewritten(plan, facts, prints, emit=emit, written=plan, statistics=whole, calendars=calendars)
    return optimize_more(first, rewrites)


def optimize_more(rewritten: Rewritten, rewrites: Sequence[Rewrite]) -> Rewritten:
    """A plan that was rewritten, after more rewrites."""
    for rewrite in rewrites:
        before, rewritten = rewritten, rewrite(rewritten)
        if rewritten.plan is not before.plan:
            check_plan(rewritten.plan, {name: one.names for name, one in rewritten.alike.items()})
    return rewritten
