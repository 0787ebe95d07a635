"""This module says which algebra expressions of a plan have a detector, and what that keeps.

An instance that lasts longer than the rule's own conditions allow is of no use: it counts as if the whole expression
had that limit.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ephemera.algebra.attributes import EVENT, begin, end, expression_of
from ephemera.algebra.detector import Detector, detector
from ephemera.algebra.nodes import Detection, Input, Plan, Point, Rename
from ephemera.algebra.schema import Schema, schema
from ephemera.analysis.cases import Case, Known
from ephemera.analysis.distances import Closure
from ephemera.base.tree import find

Cases = Sequence[tuple[Case, Closure]]


def longest(known: Known | None) -> int | None:
    """How long the events last of which something is known; None is any time."""
    if known is None:
        return 0
    lengths = (e.weight for e in known.edges if (e.start, e.end) == (begin(EVENT), end(EVENT)))
    return next((w.bound - w.is_strict for w in lengths), None)


def is_part(name: str, detected: Container[str]) -> bool:
    """Whether an input of a rule is a primitive of one of some expressions."""
    part = expression_of(name)
    return part is not None and part[0] in detected


def detectors_of(
    plan: Plan, point: Point, known: Mapping[str, Known | None], cases: Cases, points: Mapping[str, Schema]
) -> dict[str, Detector]:
    """The detectors of the algebra expressions of a rule, by their names; those that have none are left out."""
    detections = list(find(point.expression, Detection))
    if not detections or any(point.name in cycle for cycle in plan.cycles):
        return {}
    found: dict[str, Detector] = {}
    for one in detections:
        reads = [e.input.point for e in one.inputs if isinstance(e, Rename) and isinstance(e.input, Input)]
        if len(reads) < len(one.inputs):
            continue
        lengths = [longest(known[name]) for name in reads]
        schemas = [schema(e, points, plan.catalogue) for e in one.inputs]
        made = detector(one, schemas, lengths, _within(one, cases))
        if made is not None:
            found[one.name] = made
    return found


def _within(detection: Detection, cases: Cases) -> int | None:
    """How long an instance may last that the rule accepts."""
    weights = [closure.distance(begin(detection.name), end(detection.name)) for _, closure in cases]
    bounds = [w.bound - w.is_strict for w in weights if w is not None]
    return max(bounds) if bounds and len(bounds) == len(weights) else None
