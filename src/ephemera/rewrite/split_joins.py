"""This module splits rules that join on different keys into stored joins, so that each can run in all partitions.

Where no variable stands in all inputs of a rule, but some of them share one, and what they make shares one with the
rest, the join of these is stored, with an exchange behind it; where there is a choice, the smallest. It goes on until a
variable stands in all that is left; if there is no such end, the rule stays whole. When that is exact is told in
`rule_parts`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from ephemera.analysis.join_estimates import JoinEstimates
from ephemera.rewrite.optimize import Rewritten
from ephemera.rewrite.rule_parts import RuleParts, changed, open_rules


def split_joins(given: Rewritten) -> Rewritten:
    """The plan with stored joins for all rules that need them to be cut by keys."""
    return changed(given, {rule.name: rule.points() for rule in open_rules(given).values() if _is_split(rule)})


def _is_split(rule: RuleParts) -> bool:
    """Joins what shares a variable until one stands in all that is left; whether that is so, and was not before."""
    windows = rule.inputs_of_windows()
    while not frozenset.intersection(*(part.values for part in rule.parts), *windows):
        shared = _most_shared(rule)
        if shared is None:
            return False
        rule.store([part for part in rule.parts if shared in part.values])
    return rule.stored


def _most_shared(rule: RuleParts) -> str | None:
    """The variable that most parts share; of several that of the smallest join, or else the first in the body."""
    counts = Counter(name for part in rule.parts for name in sorted(part.values))
    most = max(counts.values(), default=0)
    shared = [name for name, count in counts.items() if count == most]
    if most < 2:
        return None
    return shared[0] if len(shared) == 1 else min(shared, key=partial(_size, rule, rule.estimates()))


def _size(rule: RuleParts, estimates: JoinEstimates, shared: str) -> float:
    """How many tuples come of the parts that share a variable; what differs by rounding alone is the same."""
    rate = estimates.rate(sum(1 << k for k, part in enumerate(rule.parts) if shared in part.values))
    return float(f"{rate:.9g}")
