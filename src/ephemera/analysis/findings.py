"""This module tells authors what the analysis found: unbounded state, rules that never fire, timers too far back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ephemera.algebra.attributes import event, is_blank, primitive
from ephemera.algebra.detector import Detector, comparisons
from ephemera.algebra.nodes import Composition, Detected, Detection, Input, Limit, Never, Plan, Primitive
from ephemera.algebra.transform import contradictions, shrink
from ephemera.analysis.blame import Blame, Cure, Lasts, blame
from ephemera.analysis.detectors import endless, is_part, rows, verdict
from ephemera.analysis.distances import Edge
from ephemera.analysis.nodes import Facts, Relevance
from ephemera.base.diagnostic import Code, Help, Severity
from ephemera.base.span import Span
from ephemera.base.tree import find, rebuild
from ephemera.rules.declare import head_label_span
from ephemera.rules.explain import readable
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import NormalRule, Ruleset
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import primitives
from ephemera.syntax.format import format_algebra
from ephemera.syntax.nodes import AlgebraExpression, Composed, Limited
from ephemera.terms.nodes import Anonymous, Pattern, Var

CLOCK = "timer:datetime"


def tell(rules: Ruleset, plan: Plan, facts: Facts, findings: Findings, unbounded: Severity | None) -> None:
    """Adds what is wrong; state without a bound counts as much as is asked for, None not at all."""
    _tell_never(rules, plan, facts, findings)
    _tell_contradictions(rules, plan, findings)
    if unbounded is not None:
        _tell_detectors(rules, plan, facts, findings, unbounded)
    for normal, found in _blamed(rules, plan, facts):
        if found.relevance.input == CLOCK:
            _too_far(normal, found, findings)
        elif unbounded is not None:
            _unbounded(normal, plan, found, findings, unbounded)


def tell_unbounded(rules: Ruleset, plan: Plan, facts: Facts, findings: Findings) -> None:
    """Adds only what would be kept forever."""
    _tell_detectors(rules, plan, facts, findings, "error")
    for normal, found in _blamed(rules, plan, facts):
        if found.relevance.input != CLOCK:
            _unbounded(normal, plan, found, findings, "error")


def _tell_detectors(rules: Ruleset, plan: Plan, facts: Facts, findings: Findings, severity: Severity) -> None:
    """The algebra expressions of which something would be kept forever."""
    for point, detectors in facts.detectors(plan).items():
        number = plan.points[point].normal
        for name, found in detectors.items():
            if number is not None:
                _endless(rules.normal[number], plan, (point, name), found, findings, severity)


def _endless(  # noqa: PLR0913, PLR0917 - where it is, and what to say of it
    normal: NormalRule, plan: Plan, where: tuple[str, str], found: Detector, findings: Findings, severity: Severity
) -> None:
    slot = endless(found) or next((s for s in found.slots if s.within is None), None)
    if slot is None or verdict(found) == "bounded":
        return
    point, name = where
    part = next(find(slot.operand, Primitive)).input
    label = _label(plan, point, name, part)
    helps = [Help("limit how long the whole may last: `(…)[…]`"), Help("or accept it: `--allow-unbounded`")]
    if verdict(found) == "unbounded":
        message = f"{label} would be kept forever"
        notes = ["nothing bounds how long what follows it may last, so each may still be the one before it"]
        helps.insert(0, Help("limit what follows it, `…; (…)[…]`, or declare how long it lasts"))
    else:
        message = f"one {label} for each {', '.join(found.shared)} would be kept forever"
        notes = ["nothing bounds how long after it what it waits for may come, and new values may always come"]
        count = rows(found)
        if count is not None:
            notes.append(f"each value leaves at most {count:,} row{'s' * (count != 1)}")
    place = _place(normal, primitive(name, part + 1))
    findings.add(Code.UNBOUNDED_RELEVANCE, message, place, notes=notes, help=helps, severity=severity)


def _label(plan: Plan, point: str, name: str, part: int) -> str:
    found = next(d for d in find(plan.points[point].expression, Detection) if d.name == name)
    read = next(find(found.inputs[part], Input))
    return plan.points[read.point].label or "an event"


def _blamed(rules: Ruleset, plan: Plan, facts: Facts) -> Iterator[tuple[NormalRule, Blame]]:
    detectors = facts.detectors(plan)
    for found in blame(plan, facts):
        point = plan.points[found.relevance.point]
        is_kept = not is_part(found.relevance.name, detectors.get(point.name, {}))
        if is_kept and point.normal is not None:
            yield rules.normal[point.normal], found


def _tell_never(rules: Ruleset, plan: Plan, facts: Facts, findings: Findings) -> None:
    """The rules of which no alternative can ever fire, by a contradiction of their own."""
    by_rule: dict[int, list[str]] = {}
    for name, point in plan.points.items():
        if point.kind == "rule" and point.rule is not None:
            by_rule.setdefault(point.rule, []).append(name)
    for number, names in by_rule.items():
        if set(names) <= facts.never.keys() and all(facts.never[name] for name in names):
            _never(rules, number, facts.never[names[0]], findings)


def _never(rules: Ruleset, number: int, edges: Sequence[Edge], findings: Findings) -> None:
    reasons = list(dict.fromkeys(f"`{e.because}`" for e in edges if e.because))
    together = f": {', '.join(reasons)} cannot {'all ' if len(reasons) > 1 else ''}be" if reasons else ""
    findings.add(
        Code.NEVER_FIRES,
        f"this rule can never fire{together}",
        head_label_span(rules.resolved.rules[number - 1].head),
        notes=["no events can satisfy its conditions on time, whatever happens"],
        help=[Help("take one of the conditions out, or loosen it")],
        severity="warning",
    )


def _tell_contradictions(rules: Ruleset, plan: Plan, findings: Findings) -> None:
    """The absences in algebra expressions that leave nothing: what must be absent is part of what it is absent from."""
    for point in plan.points.values():
        for detection in find(point.expression, Detection):
            if point.normal is not None:
                _contradictions(rules.normal[point.normal], detection, findings)


def _contradictions(normal: NormalRule, detection: Detection, findings: Findings) -> None:
    literal = next(one for one in normal.algebra if event(one.name) == detection.name)
    same = comparisons(detection)
    is_whole = isinstance(shrink(detection.expression, *same), Never)
    found = list(contradictions(detection.expression, *same))
    written = dict(_written(detection.expression, literal.expression)) if found else {}
    for absence, absent in found:
        outer, inner = written[absence.left], written[absent]
        findings.add(
            Code.NEVER_OCCURS,
            f"`{_quote(outer)}` never occurs without `{_quote(inner)}`",
            inner.span,
            notes=[
                "what must be absent here lies within all that it must be absent from",
                f"so {'the whole expression' if is_whole else 'this part of the expression'} never occurs",
            ],
            help=[Help("take it out, or take away something else: behind `-` stands what may not lie within the left")],
            severity="warning",
        )


def _written(e: Detected, node: AlgebraExpression) -> Iterator[tuple[Detected, AlgebraExpression]]:
    """The parts of an expression beside how they are written; no two are equal, since each input is read once."""
    yield e, node
    match e, node:
        case Limit(operand, _), Limited(inner, _):
            yield from _written(operand, inner)
        case Composition(_, left, right), Composed(_, one, other):
            yield from _written(left, one)
            yield from _written(right, other)
        case _:
            return


def _quote(e: AlgebraExpression) -> str:
    def change(node: Any) -> Any:
        return Anonymous() if isinstance(node, Var) and is_blank(node.name) else node

    return format_algebra(readable(rebuild(e, change), arrow=True))


def _unbounded(normal: NormalRule, plan: Plan, found: Blame, findings: Findings, severity: Severity) -> None:
    what = _called(found.relevance, plan)
    findings.add(
        Code.UNBOUNDED_RELEVANCE,
        f"{what} would be kept forever",
        _place(normal, found.relevance.name),
        notes=[_reason(found), *_begins(normal, plan, found.late)],
        help=[*_helps(found), Help("or accept it: `--allow-unbounded`")],
        severity=severity,
    )


def _begins(normal: NormalRule, plan: Plan, late: str) -> Iterator[str]:
    """What to say of an event that is known at its begin: that alone bounds nothing."""
    labels = {str(label) for e in normal.events if e.name == late and (label := pattern_label(e.pattern)) is not None}
    if any(map(plan.catalogue.arrives_at_begin, labels)):
        yield f"`{late}` is known when it begins, and used when it has ended"


def _too_far(normal: NormalRule, found: Blame, findings: Findings) -> None:
    findings.add(
        Code.FAR_TIMER,
        f"the absolute timer {_quoted(found.relevance.name)}may lie any time before the answer",
        _place(normal, found.relevance.name),
        notes=[_reason(found), "a calendar has no beginning, so the answers would have no end"],
        help=_helps(found),
    )


def _called(relevance: Relevance, plan: Plan) -> str:
    point = plan.points[relevance.input]
    label = point.label or "an event"
    return f"{label} {_quoted(relevance.name)}".rstrip()


def _quoted(name: str) -> str:
    return f"`{name}` " if _is_written(name) else ""


def _is_written(name: str) -> bool:
    return name[:1].isalpha() and "/" not in name


def _reason(found: Blame) -> str:
    name = found.relevance.name
    it = f"`{name}`" if _is_written(name) else "it"
    if found.late == name:
        return f"nothing bounds how long {it} may last"
    if not _is_written(found.late):
        return f"nothing bounds how long after {it} what it waits for may come"
    verb = "end" if found.relevance.negated else "come"
    return f"nothing bounds how long after {it} the event `{found.late}` may {verb}"


def _helps(found: Blame) -> Iterator[Help]:
    for cures in found.cures:
        yield Help(" and ".join(_cure(cure) for cure in cures))
    if not found.cures:
        yield Help("bound it by a condition: `{…} within …`")
    if "/" in found.relevance.name:
        yield Help("limit how long the whole may last: `(…)[…]`")


def _cure(cure: Cure) -> str:
    if isinstance(cure, Lasts):
        return f"declare how long {cure.label} lasts: `EVENT {cure.label}(…) LASTS AT MOST …;`"
    unnamed = [name for name in cure.events if not _is_written(name)]
    names = ", ".join("…" if name in unnamed else name for name in cure.events)
    lead = "give the other event a name and add" if unnamed else "add"
    return f"{lead} `{{{names}}} within …`"


def _place(normal: NormalRule, name: str) -> Span:
    """Where the pattern of an input stands."""
    found: dict[str, Pattern] = {e.name: e.pattern for e in normal.events}
    found |= {c.event.name: c.event.pattern for c in normal.collects}
    found |= {a.event.name: a.event.pattern for a in normal.absences}
    for literal in normal.algebra:
        found |= {f"{literal.name}/{k}": p for k, p in enumerate(primitives(literal.expression), 1)}
    return found[name].span
