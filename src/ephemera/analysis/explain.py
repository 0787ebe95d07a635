"""This module prints relevance: for each input of each point how long it is kept, and through which conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ephemera.algebra.detector import Detector
from ephemera.algebra.explain import detected
from ephemera.algebra.nodes import Plan
from ephemera.analysis.cases import PARTS
from ephemera.analysis.detectors import is_part, most, rows, verdict
from ephemera.analysis.histories import Condition, histories
from ephemera.analysis.nodes import Bound, Facts, Relevance
from ephemera.analysis.superfluous import superfluous
from ephemera.analysis.weights import Weight
from ephemera.base.time import describe

_SIDES = {"s": "begin", "e": "end"}


def as_text(plan: Plan, facts: Facts) -> str:
    """A paragraph for each rule and join, then one for what is stored."""
    paragraphs = [
        "\n".join(_point(name, plan, facts)) for name, point in plan.points.items() if point.kind in ("rule", "join")
    ]
    stored = [f"  {line}" for line in _histories(_as_read(plan, facts))]
    return "\n\n".join([*paragraphs, *(["\n".join(["histories", *stored])] if stored else [])])


def _point(name: str, plan: Plan, facts: Facts) -> Iterator[str]:
    point = plan.points[name]
    yield f"{name}  ({f'rule {point.rule}' if point.kind == 'rule' else f'join of rule {point.rule}'})"
    if facts.known[name] is None:
        yield "  never holds anything: its conditions on time contradict each other, or what it asks for never happens"
        return
    detectors = facts.detectors(plan).get(name, {}) if point.kind == "rule" else {}
    for one, found in detectors.items():
        yield from (f"  {line}" for line in _detector(one, found))
    for relevance in (r for r in facts.of(name) if not is_part(r.name, detectors)):
        yield from (f"  {line}" for line in _relevance(relevance, plan))
    for where, event in facts.idle:
        if where == name:
            yield f"  {event} is always absent: it cannot lie in its window"
    for condition in superfluous(plan, facts, name):
        yield f"  `{condition}` adds nothing: the rest implies it"
    if name in facts.hulls:
        yield "  more cases than are told apart: some times are longer than they need to be"
    if point.kind == "rule":
        yield f"  an answer lasts {_length(facts.look_back(name))}"


def _detector(name: str, found: Detector) -> Iterator[str]:
    """What is kept for an algebra expression, operator by operator."""
    shown = name if name[:1].isalpha() else "it"
    each = f" for each {', '.join(found.shared)}" if found.shared else ""
    count = rows(found)
    number = "" if count is None or not found.slots else f", at most {count:,} row{'s' * (count != 1)}{each}"
    yield f"{shown} is detected as {detected(found.expression, found.labels)}: {verdict(found)}{number}"
    for slot in found.slots:
        until = "forever" if slot.within is None else f"until {describe(slot.within)} after its start"
        if slot.label is None:
            until = "forever: nothing bounds how long what follows may last"
        whole, part = detected(slot.node, found.labels), detected(slot.operand, found.labels)
        yield f"  {whole} keeps of {part} {most(found, slot)}{each}, {until}"
    if found.marks:
        _, within = found.limits[-1]
        until = "forever" if within is None else f"until {describe(within)} after it"
        yield f"  and when the last event came{each}, {until}"


def _length(longest: int | None) -> str:
    return "any time" if longest is None else f"at most {describe(longest)}" if longest else "no time: it is a point"


def _relevance(r: Relevance, plan: Plan) -> Iterator[str]:
    label = input_label(r, plan)
    named = "" if shown_name(r) is None else f" as {shown_name(r)}"
    absent = " (absent)" if r.negated else ""
    if not r.minimal:
        yield f"{label}{named}{absent}: kept forever"
        return
    kept = (f"{_stamp(r, b)} {b.operator} now{_minus(b.time)}" for b in r.minimal if b.time is not None)
    yield f"{label}{named}{absent}: kept while {' and '.join(kept)}"
    for bound in r.minimal:
        reasons = list(dict.fromkeys(e.because for e in bound.path if e.because and e.because != PARTS))
        if reasons:
            yield f"  {_stamp(r, bound)}: {', '.join(reasons)}"


def _stamp(r: Relevance, bound: Bound) -> str:
    """A stamp as people write it; that of an event without a name is its begin or its end."""
    return bound.stamp if shown_name(r) else _SIDES[bound.stamp[-1]]


def _minus(time: Weight) -> str:
    return f" - {describe(time.bound)}" if time.bound else ""


def input_label(r: Relevance, plan: Plan) -> str:
    """What an input is called: the label of its events, or the name of the join."""
    point = plan.points.get(r.input)
    if point is None:
        return r.input
    return point.name if point.kind == "join" else point.label or "any event"


def shown_name(r: Relevance) -> str | None:
    """The name that the rule gives to an input, if it gives one."""
    return r.name if r.name[:1].isalpha() and "/" not in r.name else None


def _as_read(plan: Plan, facts: Facts) -> Facts:
    """The facts without what detectors read: of that they keep for themselves what they need."""
    detectors = facts.detectors(plan)
    kept = (r for r in facts.relevance if not is_part(r.name, detectors.get(r.point, {})))
    return replace(facts, relevance=tuple(kept))


def _histories(facts: Facts) -> Iterator[str]:
    for history in histories(facts):
        parts = [_combined(c) for c in history.conditions]
        kept = " or ".join(f"({part})" if len(parts) > 1 and " and " in part else part for part in parts) or "forever"
        while_ = "while " if history.conditions else ""
        yield f"{history.point}: kept {while_}{kept} (for {', '.join(history.readers)})"


def _combined(c: Condition) -> str:
    signs = (f"{_SIDES.get(stamp, stamp)} {'>' if w.is_strict else '>='} now{_minus(w)}" for stamp, w in c.items())
    return " and ".join(signs)


def as_json(plan: Plan, facts: Facts) -> list[dict[str, Any]]:
    """One object for each input of each point and each algebra expression; times in microseconds, null for no limit."""
    detectors = facts.detectors(plan)
    return [
        {
            "point": r.point,
            "input": input_label(r, plan),
            "as": shown_name(r),
            "keep_while": [_bound(b) for b in r.keep_while],
            "minimal": [_bound(b) for b in r.minimal],
        }
        for r in facts.relevance
        if not is_part(r.name, detectors.get(r.point, {}))
    ] + [
        {
            "point": point,
            "detected": name,
            "as": detected(one.expression, one.labels),
            "verdict": verdict(one),
            "rows": rows(one),
            "slots": _slots(one),
        }
        for point, found in detectors.items()
        for name, one in found.items()
    ]


def _slots(found: Detector) -> list[dict[str, Any]]:
    return [
        {
            "operator": detected(s.node, found.labels),
            "of": detected(s.operand, found.labels),
            "label": s.label,
            "within": s.within,
        }
        for s in found.slots
    ]


def _bound(bound: Bound) -> dict[str, Any]:
    within = None if bound.time is None else bound.time.bound
    return {"stamp": bound.stamp, "op": bound.operator, "within": within}
