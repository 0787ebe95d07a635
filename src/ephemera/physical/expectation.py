"""This module says what is expected of a plan: how much comes, is looked at and is kept, and why it is this plan.

All of it follows from rates, declared, seen or assumed (`analysis/flows`), and from how long things are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ephemera.algebra.attributes import is_joined
from ephemera.analysis.join_estimates import JoinEstimates
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import SECOND
from ephemera.physical.decompose import join_estimates
from ephemera.physical.nodes import HistoryPlan, RulePlan
from ephemera.physical.plan import PhysicalPlan
from ephemera.rewrite.rule_parts import open_rules
from ephemera.rewrite.store_joins import Choice, choices

CELL = 8
"""The bytes of a stamp, a reference or a value in a column."""
MANY = 8
"""Of rules of more events it is not told what other plans would cost."""


@dataclass(frozen=True, slots=True)
class KeptEstimate:
    """How much of a history is kept at a time; None if it is kept for ever."""

    tuples: float | None
    bytes: float | None


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """What a rule is expected to do in a second: answers or tuples, and pairs looked at."""

    answers: float
    pairs: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a plan."""

    rates: Mapping[str, tuple[float, str]]
    """For each type of event how many come in a second, and whether that is declared, seen or assumed."""
    histories: Mapping[str, KeptEstimate]
    """Where several lanes have one of the same query, the largest."""
    rules: Mapping[str, RuleEstimate]
    ways: Mapping[str, tuple[Choice, ...]]
    """For each rule that leaves a choice which joins could be stored, the cheapest first."""


def expect(plan: PhysicalPlan) -> Expectation:
    """What is expected of a plan, as it runs where nothing is spread."""
    statistics, flows = plan.rewritten.statistics, plan.rewritten.flows
    rates = {label: (statistics.rates.get(label, 1.0), statistics.origin(label)) for label in sorted(plan.awaited)}
    longest: dict[str, HistoryPlan] = {}
    for name, history in (item for lane in plan.lanes.plans.values() for item in lane.histories.items()):
        if name not in longest or _far(history) > _far(longest[name]):
            longest[name] = history
    histories = {name: kept_of(plan, name, history) for name, history in longest.items()}
    rules = {
        name: RuleEstimate(sum(flows[m.name].rate for m in plan.rewritten.members(name)), _pairs(plan, rule))
        for name, rule in plan.rules.items()
        if name in flows
    }
    parts = [rule for rule in open_rules(plan.before_joins).values() if 2 < len(rule.parts) <= MANY]
    return Expectation(rates, histories, rules, {rule.name: tuple(choices(rule)) for rule in parts})


def _far(history: HistoryPlan) -> float:
    return inf if history.reach is None else history.reach


def kept_of(plan: PhysicalPlan, name: str, history: HistoryPlan) -> KeptEstimate:
    """How much of a history is kept in one lane; several may have one of the same query."""
    flow = plan.rewritten.flows.get(name)
    if flow is None or history.reach is None:
        return KeptEstimate(None, None)
    tuples = flow.rate * max(history.reach, 0) / SECOND
    columns = len(history.stamps) + 1 + len(flow.distinct)
    return KeptEstimate(tuples, tuples * columns * CELL)


def estimates_of(plan: PhysicalPlan, rule: RulePlan) -> JoinEstimates:
    """What is expected of the join of a rule."""
    conditions = [f for order in rule.orders[:1] for f in (*order.tests, *(f for p in order.probes for f in p.tests))]
    return join_estimates(rule.leaves, conditions, rule.point, plan.rewritten.facts, plan.rewritten.flows)


def _pairs(plan: PhysicalPlan, rule: RulePlan) -> float:
    """How many pairs are looked at in a second, whichever event is new."""
    if len(rule.leaves) < 2:
        return 0.0
    estimates = estimates_of(plan, rule)
    orders = [estimates.estimate(k, [p.leaf for p in order.probes]) for k, order in enumerate(rule.orders)]
    return sum(estimates.rate(1 << k) * sum(order.candidates) for k, order in enumerate(orders))


def stored_in(rule: RulePlan) -> list[list[str]]:
    """The joins that a rule reads, each by its events."""
    return [leaf.name[1:-2].split(",") for leaf in rule.leaves if is_joined(leaf.name)]
