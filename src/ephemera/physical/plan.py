"""This module makes the physical plan of a program: all that is decided before it runs.

It is made once. Engines, Spark, checkpoints and `explain` read it, and change nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ephemera.algebra.attributes import reserve_of
from ephemera.algebra.nodes import Base, Input, Plan, Points
from ephemera.algebra.schema import schemas
from ephemera.analysis.arrivals import as_they_come
from ephemera.analysis.flows import Statistics
from ephemera.analysis.join_estimates import Flow
from ephemera.analysis.limits import Limits
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.base.tree import find
from ephemera.physical.decompose import rule_plan
from ephemera.physical.lanes import Lanes, by_the_clock, lanes_of
from ephemera.physical.nodes import RulePlan
from ephemera.physical.placement import Placement, stages
from ephemera.physical.reserves import reserving
from ephemera.rewrite import ALL_REWRITES, EVERY_JOIN, NO_JOINS, REWRITES, SPREADING
from ephemera.rewrite.drop_unasked import needed
from ephemera.rewrite.optimize import Rewrite, Rewritten, optimize, optimize_more
from ephemera.rules.nodes import Apart, Catalogue, Ruleset


@dataclass(frozen=True)
class PhysicalPlan:
    """How a program runs."""

    logical: Plan
    """The plan before it was rewritten, with the rules as people know them."""
    rewritten: Rewritten
    rules: Mapping[str, RulePlan]
    """How each rule that runs is evaluated."""
    lanes: Lanes
    """Which rules wait for the same sources."""
    calendars: frozenset[str]
    """The names of the calendars that it runs with."""
    clocked: frozenset[int]
    """The numbers of the rules that answer by the clock."""
    awaited: frozenset[str]
    """The types of events that should come from outside."""
    reach: int
    """How far before an answer an absolute timer of it may lie."""
    running: frozenset[int]
    """The numbers of the rules that run: all but those that nobody asked for."""
    before_joins: Rewritten
    """The rewritten plan before joins were stored."""
    rewrites: tuple[Rewrite, ...] = ALL_REWRITES
    """What was done to it, or is where it runs in several places."""

    @cached_property
    def reserving(self) -> PhysicalPlan:
        """The same with whole events that are kept for rules that come later, where such may come."""
        return replace(self, lanes=reserving(self.lanes, self.catalogue)) if self.catalogue.reserves else self

    @property
    def reserved(self) -> dict[str, str]:
        """The histories of whole events that are kept for rules that come later, with their labels, where there are."""
        known = {reserve_of(label): label for label in sorted(self.catalogue.reserves)}
        return {
            name: label for name, label in known.items() if any(name in p.queries for p in self.lanes.plans.values())
        }

    @cached_property
    def distributed(self) -> PhysicalPlan:
        """The same as it runs on several machines: rules that join on different keys have stored joins."""
        split = optimize_more(self.before_joins, [one for one in self.rewrites if one in SPREADING])
        if split is self.before_joins:
            return self
        rewritten = optimize_more(split, _joining(self.rewrites))
        rules = rule_plans(rewritten)
        lanes = lanes_of(rewritten, rules, self.calendars, self.logical)
        lanes = reserving(lanes, self.catalogue) if self.reserved else lanes
        return replace(self, rewritten=rewritten, rules=rules, lanes=lanes, before_joins=split)

    @cached_property
    def stages(self) -> Placement:
        """How the rules are spread over partitions; only who spreads them asks."""
        if self.distributed is not self:
            return self.distributed.stages
        placed = stages(self.rewritten, self.rules, self.calendars, self.clocked, frozenset(self.judged))
        return placed.reserving(self.reserved, self.judged, self.rewritten)

    def __getstate__(self) -> dict[str, object]:
        """What travels is going to be spread: that is decided once, here."""
        return {**self.__dict__, "distributed": self.distributed, "stages": self.stages}

    @property
    def plan(self) -> Plan:
        """The rewritten plan."""
        return self.rewritten.plan

    @property
    def emit(self) -> frozenset[str]:
        """The names of the events that are asked for; none are all."""
        return self.rewritten.emit

    @property
    def has_choice(self) -> bool:
        """Whether how many events come makes a difference to how a rule is joined."""
        return any(len(rule.leaves) > 2 for rule in self.rules.values()) or self.rewritten is not self.before_joins

    @cached_property
    def judged(self) -> dict[str, Apart]:
        """The types that are judged by how close their events come: those that rules read."""
        read = {point.label for point in self.plan.points.values() if point.kind == "query"}
        return {
            label: schema.apart
            for label, schema in sorted(self.catalogue.events.items())
            if schema.apart is not None and (label in read or None in read)
        }

    def is_unread(self, label: str) -> bool:
        """Whether nothing declares a type, and no rule reads it."""
        read = self.rewritten.columns
        return read is not None and label not in read and label not in self.catalogue.events

    def gives(self, label: str) -> bool:
        """Whether events of a label are asked for."""
        return not self.emit or label in self.emit

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self.logical.catalogue


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program as engines need it."""

    rules: Ruleset
    plan: Plan
    facts: Facts
    limits: Limits
    physical: PhysicalPlan

    def is_unread(self, label: str) -> bool:
        """Whether events of a type only say that something happened: nothing declares it, and no rule reads it."""
        return self.physical.is_unread(label)

    def beside(self, calendars: Iterable[str]) -> Compiled:
        """The same as it runs with some calendars."""
        names = frozenset(calendars)
        if names == self.physical.calendars:
            return self
        return self._planned_anew(names, self.physical.rewritten.statistics)

    def seen(self, statistics: Statistics) -> Compiled:
        """The same as it is to run over events of which so much is known."""
        return self._planned_anew(self.physical.calendars, statistics)

    def _planned_anew(self, calendars: frozenset[str], statistics: Statistics) -> Compiled:
        own = self.physical
        planned = physical_plan(
            self.rules, self.plan, self.facts, calendars, own.rewrites, emit=own.emit, statistics=statistics
        )
        return replace(self, physical=planned)

    def as_they_come(self) -> Compiled:
        """The same for events that arrive as it is declared, of which some may arrive at their begin."""
        plan = as_they_come(self.plan)
        if plan is self.plan:
            return self
        changed = replace(self, plan=plan, facts=derive(plan))
        return changed._planned_anew(self.physical.calendars, self.physical.rewritten.statistics)

    def live(self) -> Compiled:
        """The same for events as they come, with whole events that are kept for rules that come later."""
        arriving = self.as_they_come()
        physical = arriving.physical.reserving
        return arriving if physical is arriving.physical else replace(arriving, physical=physical)

    def carrying(self, only: str | None) -> Compiled:
        """The same as a stream is read by it that carries one type, or several."""
        resolved = self.rules.resolved
        if only == resolved.catalogue.only:
            return self
        scoped = replace(resolved, catalogue=resolved.catalogue.carrying(only))
        return replace(self, rules=replace(self.rules, resolved=scoped))


def prepare(  # noqa: PLR0913 - what a plan is made of, most of it optional
    rules: Ruleset,
    plan: Plan,
    facts: Facts,
    calendars: Iterable[str] = (),
    emit: Iterable[str] = (),
    *,
    rewrites: Sequence[Rewrite] = ALL_REWRITES,
    points: Points | None = None,
) -> Compiled:
    """A program as engines need it, with how it runs; `emit` names what is asked for, if that is not everything.

    `points` says which joins are stored, if it is not to be those that pay. It is for events that come in the order in
    which they end; the facts may be those of events as they come.
    """
    if as_they_come(plan) is not plan:
        facts = derive(plan)
    asked = frozenset(emit)
    chosen = rewrites if points is None else EVERY_JOIN if points == "joins" else NO_JOINS
    physical = physical_plan(rules, plan, facts, calendars, chosen, emit=asked)
    return Compiled(rules, plan, facts, Limits(needed(plan, asked), facts), physical)


def planned_with(compiled: Compiled, rewrites: Sequence[Rewrite]) -> Compiled:
    """The same program as it runs after other rewrites."""
    own = compiled.physical
    planned = physical_plan(
        compiled.rules,
        compiled.plan,
        compiled.facts,
        own.calendars,
        rewrites,
        emit=own.emit,
        statistics=own.rewritten.statistics,
    )
    return replace(compiled, physical=planned)


def physical_plan(  # noqa: PLR0913 - what a plan is made of, most of it optional
    rules: Ruleset,
    plan: Plan,
    facts: Facts,
    calendars: Iterable[str] = (),
    rewrites: Sequence[Rewrite] = ALL_REWRITES,
    *,
    emit: frozenset[str] = frozenset(),
    statistics: Statistics | None = None,
) -> PhysicalPlan:
    """The physical plan of a program that runs with some calendars, and is asked for some events.

    It is made for what is known of the events besides what the program declares.
    """
    names = frozenset(calendars)
    first = [one for one in rewrites if one in REWRITES]
    before = optimize(plan, facts, first, emit=emit, calendars=names, statistics=statistics)
    rewritten = optimize_more(before, _joining(rewrites))
    running = frozenset(range(1, len(rules.resolved.rules) + 1)) - {point.rule for point in rewritten.unasked}
    ruled = rule_plans(rewritten)
    return PhysicalPlan(
        logical=plan,
        rewritten=rewritten,
        rules=ruled,
        lanes=lanes_of(rewritten, ruled, names, plan),
        calendars=names,
        clocked=by_the_clock(rules, names) & running,
        awaited=_awaited(plan, names),
        reach=facts.reach,
        running=running,
        before_joins=before,
        rewrites=tuple(rewrites),
    )


def _joining(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """The rewrites that come last, in one place and in several."""
    return [one for one in rewrites if one not in REWRITES and one not in SPREADING]


def rule_plans(given: Rewritten) -> dict[str, RulePlan]:
    """How each rule of a rewritten plan is evaluated."""
    known = schemas(given.plan)
    points = given.plan.points
    read = frozenset(points[i.point].label for point in points.values() for i in find(point.expression, Input))
    return {point.name: rule_plan(point, given, known, given.flows, read) for point in given.rules}


def reordered(
    plan: PhysicalPlan, rule: RulePlan, flows: Mapping[str, Flow], sequences: Sequence[Sequence[int]] | None = None
) -> RulePlan:
    """A rule as it is best searched if so much comes to the points of the plan, or in some sequences."""
    given = plan.rewritten
    point = given.plan.points[rule.point]
    return replace(rule, orders=rule_plan(point, given, schemas(given.plan), flows, sequences=sequences).orders)


def _awaited(plan: Plan, calendars: frozenset[str]) -> frozenset[str]:
    """The types of events that are declared or asked for, and not derived."""
    asked = {base.label for point in plan.points.values() for base in find(point.expression, Base)}
    labels = {label for label in asked if label is not None} | set(plan.catalogue.events)
    inner = {"timer:datetime", *plan.catalogue.derived, *plan.catalogue.tables}
    return frozenset(label for label in labels if label not in inner and label not in calendars)
