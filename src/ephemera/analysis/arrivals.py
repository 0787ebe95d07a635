"""This module says which events are known from their begin on, where events are given as they come (L§2.4).

Such an event comes with the end that it will have, and the bound of its source says that all is here that has begun by
then. So it is joined from its begin on, and others need not be kept for it until it ends. What comes of it appears when
it has ended. Over a history events come in the order in which they end, whatever is declared: plans are made for that,
and `as_they_come` makes the other.

Side conditions: rules derive none of that type, since what they derive is certain when it has ended; and the program
has no expression of the event detection algebra, since these take events in the order in which they end. What a rule
reads that keeps something forever anyway arrives at its end, too: it could only make answers wait, and spare nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ephemera.algebra.nodes import Detection, Input, Plan
from ephemera.analysis.relevance import derive
from ephemera.base.tree import find


def as_they_come(plan: Plan) -> Plan:
    """The plan for events that arrive as it is declared; the same if all of them arrive at their end."""
    return plan if plan.early else _as_they_come(plan)


def _as_they_come(plan: Plan) -> Plan:
    early = _early_labels(plan)
    while early:
        changed = replace(plan, early=early)
        endless = {r.point for r in derive(changed).relevance if not r.is_bounded}
        spared = {plan.points[i.point].label for point in endless for i in find(plan.points[point].expression, Input)}
        if spared.isdisjoint(early) and None not in spared:
            return changed
        early = frozenset() if None in spared else early - spared
    return plan


def _early_labels(plan: Plan) -> frozenset[str]:
    catalogue = plan.catalogue
    # Which events are too close to others is known when they have ended.
    labels = [label for label, schema in catalogue.events.items() if schema.arrives_at_begin and schema.apart is None]
    if not labels or any(True for point in plan.points.values() for _ in find(point.expression, Detection)):
        return frozenset()
    return frozenset(label for label in labels if label not in catalogue.derived)
