"""This module lets rules search in another order when what comes is not what was expected.

Orders are chosen from how many tuples of each kind are expected. Now and then what has come since the last time is held
against that. Where it is ten times as much, or a tenth, the rule goes on in the order that is
best for what was seen. That changes nothing but how much is looked at: what is stored is the same in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ephemera.analysis.join_estimates import Flow
from ephemera.base.time import SECOND
from ephemera.kernels.history import FAR, History
from ephemera.kernels.sampling import distinct_values
from ephemera.physical.plan import PhysicalPlan, reordered

if TYPE_CHECKING:
    from ephemera.engine.operators.join import RuleJoin

FIRST = 1_024
"""After so many events it is looked at for the first time; then after as many again as there were,"""
OFTEN = 1 << 16
"""but after so many at most."""
UNLIKE = 10.0
"""What is so many times as much as expected, or as little, was not expected."""


class Reordering:
    """Watches what comes to the rules of a lane that leave a choice."""

    def __init__(self, plan: PhysicalPlan, rules: Mapping[str, RuleJoin], histories: Mapping[str, History]) -> None:
        self._plan = plan
        self._histories = histories
        self._rules = {name: rule for name, rule in rules.items() if len(rule.plan.leaves) > 2}
        self._next = FIRST
        self._since: int | None = None
        self._counts = dict.fromkeys(self._watched(), 0)
        """How much had come by then."""
        self._expected = {name: plan.rewritten.flows.get(name, Flow(1.0, {})) for name in self._watched()}
        self.times = 0
        """How often a rule was given another order."""

    def _watched(self) -> set[str]:
        sources = {leaf.source for rule in self._rules.values() for leaf in rule.plan.leaves}
        return {name for name in sources if name in self._histories}

    def step(self, released: int, bound: int) -> None:
        """A step is done; so many events have come in all."""
        if self._since is None:
            self._since, self._counts = bound, {name: self._count(name) for name in self._counts}
        if released < self._next or not self._rules or not self._since < bound < FAR:
            return
        self._next = released + min(released, OFTEN)
        seen = {name: self._flow(name, bound) for name in self._expected}
        self._since, self._counts = bound, {name: self._count(name) for name in self._counts}
        unlike = {name for name, flow in seen.items() if _is_unlike(flow, self._expected[name])}
        if not unlike:
            return
        for rule in self._rules.values():
            if not unlike.isdisjoint(leaf.source for leaf in rule.plan.leaves):
                plan = reordered(self._plan, rule.plan, {**self._plan.rewritten.flows, **seen})
                if plan.orders != rule.plan.orders:
                    rule.reorder(plan)
                    self.times += 1
        self._expected = seen

    def _flow(self, name: str, bound: int) -> Flow:
        """What has come to a query since it was looked at last."""
        history = self._histories[name]
        span = (bound - (self._since or 0)) / SECOND
        batch = max(history.batches(), key=len, default=None)
        known = self._expected[name].distinct
        distinct = {
            v: distinct_values(batch.columns[v], len(batch)) if batch is not None and v in batch.columns else values
            for v, values in known.items()
        }
        return Flow((self._count(name) - self._counts[name]) / span, distinct)

    def _count(self, name: str) -> int:
        """How much has come to a query in all."""
        return len(self._histories[name]) + self._histories[name].collected


def _is_unlike(seen: Flow, expected: Flow) -> bool:
    pairs = [(seen.rate, expected.rate), *((n, expected.values(v)) for v, n in seen.distinct.items())]
    ratios = (max(one, 1e-9) / max(other, 1e-9) for one, other in pairs)
    return any(ratio >= UNLIKE or ratio <= 1 / UNLIKE for ratio in ratios)
