"""This module says which algebra expressions of a plan have a detector, what that keeps, and whether it has a bound.

An instance that lasts longer than the rule's own conditions allow is of no use: it counts as if the whole expression
had that limit.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ephemera.algebra.attributes import EVENT, begin, end, expression_of
from ephemera.algebra.detector import Detector, Slot, detector
from ephemera.algebra.nodes import Detection, Input, Plan, Point, Rename
from ephemera.algebra.schema import Schema, schema, schemas
from ephemera.analysis.cases import Case, Known
from ephemera.analysis.distances import Closure
from ephemera.analysis.separations import most_rows, most_within, separations
from ephemera.base.time import describe
from ephemera.base.tree import find

Cases = Sequence[tuple[Case, Closure]]
Detectors = Mapping[str, Mapping[str, Detector]]
"""By rules and the names of their expressions."""
Verdict = Literal["bounded", "one row per key", "unbounded"]
"""What is kept has a bound; or one for each value of the shared variables, which all leave something; or none."""


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
            found[one.name] = replace(made, apart=separations(plan, one))
    return found


def _within(detection: Detection, cases: Cases) -> int | None:
    """How long an instance may last that the rule accepts."""
    weights = [closure.distance(begin(detection.name), end(detection.name)) for _, closure in cases]
    bounds = [w.bound - w.is_strict for w in weights if w is not None]
    return max(bounds) if bounds and len(bounds) == len(weights) else None


def all_detectors(plan: Plan, known: Mapping[str, Known | None], cases: Mapping[str, Cases]) -> Detectors:
    """The detectors of all rules of a plan that have algebra expressions."""
    rules = [p for p in plan.points.values() if p.kind == "rule" and any(True for _ in find(p.expression, Detection))]
    if not rules:
        return {}
    points = schemas(plan)
    return {p.name: detectors_of(plan, p, known, cases.get(p.name, ()), points) for p in rules}


# ---- verdicts ----------------------------------------------------------------------------------------------


def verdict(detector: Detector) -> Verdict:
    """Whether what a detector keeps has a bound, whatever comes."""
    if endless(detector) is not None:
        return "unbounded"
    is_left = any(slot.within is None for slot in detector.slots)
    return "one row per key" if is_left and detector.shared else "bounded"


def endless(detector: Detector) -> Slot | None:
    """The first sequence whose left side has to be kept forever, if there is one."""
    return next((slot for slot in detector.slots if slot.label is None), None)


def rows(detector: Detector) -> int | None:
    """How many rows a detector keeps at most for each value of the shared variables; None is any number."""
    each = [most_rows(detector, slot) for slot in detector.slots]
    known = [one for one in each if one is not None]
    return sum(known) + detector.marks if len(known) == len(each) else None


def most(detector: Detector, slot: Slot) -> str:
    """How many instances a slot holds for each value of the shared variables."""
    if slot.label is None:
        return "all instances that start later than those before"
    if slot.label:
        within = most_within(detector, slot)
        told = "as many as" if within is None else f"at most {within:,} that"
        return f"1 instance, and {told} end within {describe(slot.label)}"
    if slot.is_time:
        return "1 time"
    return "1 instance, and 1 that has just ended" if slot.node.operator == ";" else "1 instance"
