"""This module says which events are known from their begin on, where events are given as they come (L§2.4).

Such an event comes with the end that it will have, and the bound of its source says that all is here that has begun by
then. So it is joined from its begin on, and others need not be kept for it until it ends. What comes of it appears when
it has ended. Over a history events come in the order in which they end, whatever is declared: plans are made for that,
and `as_they_come` makes the other.

Side conditions: rules derive none of that type, since what they derive is certain when it has ended; and the program
has no expression of the event detection algebra, since these take events in the order in which they end.
"""

from __future__ import annotations

from dataclasses import replace

from ephemera.algebra.nodes import Detection, Plan
from ephemera.base.tree import find


def as_they_come(plan: Plan) -> Plan:
    """The plan for events that arrive as it is declared; the same if all of them arrive at their end."""
    labels = _early_labels(plan)
    return replace(plan, early=labels) if labels else plan


def _early_labels(plan: Plan) -> frozenset[str]:
    catalogue = plan.catalogue
    labels = [label for label, schema in catalogue.events.items() if schema.arrives_at_begin]
    if not labels or any(True for point in plan.points.values() for _ in find(point.expression, Detection)):
        return frozenset()
    return frozenset(label for label in labels if label not in catalogue.derived)
