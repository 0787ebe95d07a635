"""This module prints rules: stratum, dependencies and normal form of each, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeVar

from ephemera.base.span import Source
from ephemera.base.time import describe, split
from ephemera.base.tree import find, rebuild
from ephemera.rules.declare import head_label
from ephemera.rules.nodes import (
    AlgebraLiteral,
    CollectLiteral,
    Dependency,
    EventLiteral,
    NormalRule,
    NotLiteral,
    Ruleset,
    TimerLike,
    TimerLiteral,
)
from ephemera.syntax.format import format_condition, format_expression, format_head, format_pattern
from ephemera.syntax.format_terms import algebra, word
from ephemera.syntax.nodes import Condition, Derive
from ephemera.terms.nodes import As, Desc, Duration, Element, Name, Quantity, Var

T = TypeVar("T")


def readable(node: T, *, arrow: bool) -> T:
    """The node as its author would write it: durations in their largest units, in arrow rules no `var`."""
    in_terms = {id(v) for term in find(node, (Element, As, Desc)) for v in find(term, Var)}
    in_terms |= {id(literal.pattern) for literal in find(node, EventLiteral)}  # an event that may be any

    def change(n: Any) -> Any:
        if isinstance(n, Duration):
            return Duration(tuple(Quantity(Decimal(count), unit) for count, unit in split(_microseconds(n))))
        if arrow and isinstance(n, Var) and id(n) not in in_terms:
            return Name(n.name)
        return n

    return rebuild(node, change)


def _microseconds(duration: Duration) -> int:
    return int(sum(part.amount for part in duration.parts))


def as_text(rules: Ruleset, source: Source) -> str:
    """A paragraph a rule."""
    return "\n".join(_text(rules, source))


def _by_rule(rules: Ruleset) -> dict[int, list[NormalRule]]:
    found: dict[int, list[NormalRule]] = {}
    for normal in rules.normal:
        found.setdefault(normal.rule, []).append(normal)
    return found


def _text(rules: Ruleset, source: Source) -> Iterator[str]:
    by_rule = _by_rule(rules)
    for number, rule in enumerate(rules.resolved.rules, 1):
        place = source.place(rule.span.start)
        if number > 1:
            yield ""
        yield f"rule {number}  {format_head(readable(rule.head, arrow=isinstance(rule.head, Derive)))}"
        yield f"  at       {source.file_at(rule.span.start)[0].path}:{place.line}:{place.column}"
        yield f"  stratum  {rules.strata[number - 1]}"
        for k, dependency in enumerate(rules.dependencies[number - 1]):
            yield f"  {'needs' if not k else '':<7}  {_dependency(dependency)}"
        cases = by_rule.get(number, [])
        for k, normal in enumerate(cases, 1):
            yield f"  normal form{f' {k} of {len(cases)}' if len(cases) > 1 else ''}"
            yield from (f"    {line}" for line in _normal(normal))


def _dependency(dependency: Dependency) -> str:
    what = "any event" if dependency.label is None else dependency.label
    origin = "input"
    if dependency.rules:
        shown = ", ".join(map(str, dependency.rules[:8])) + (", …" if len(dependency.rules) > 8 else "")
        origin = f"rule{'s' if len(dependency.rules) > 1 else ''} {shown}"
    return f"{what} ({', '.join(dependency.kinds)}) from {origin}"


def _normal(normal: NormalRule) -> Iterator[str]:
    normal = readable(normal, arrow=isinstance(normal.head, Derive))
    yield f"{format_head(normal.head)} <-"
    lines: list[str] = []
    lines += (_event(e) for e in normal.events)
    lines += (_algebra(a) for a in normal.algebra)
    lines += (f"{f'at {t.at}: ' if t.at else ''}{format_pattern(t.pattern)}" for t in normal.tables)
    lines += (_timer(t) for t in normal.timers)
    lines += (_accumulation(c, "collect optional" if c.optional else "collect") for c in normal.collects)
    lines += (_accumulation(n, "not") for n in normal.absences)
    lines += (f"{f'at {r.at}: ' if r.at else ''}not {format_pattern(r.pattern)}" for r in normal.absent_rows)
    lines += (f"{word(t.event)} matches {format_pattern(t.pattern)}" for t in normal.tests)
    lines += (format_condition(c) for c in normal.conditions)
    if normal.having:
        lines.append(f"having {{ {', '.join(format_condition(c) for c in normal.having)} }}")
    yield from (f"  {line}{',' if k < len(lines) - 1 else ''}" for k, line in enumerate(lines))


def _algebra(literal: AlgebraLiteral) -> str:
    mode = "restricted " if literal.restricted else "unrestricted "
    mode += f"per {', '.join(word(v.name) for v in literal.per)} " if literal.per else ""
    return f"{_shown(literal.name)}: algebra {mode}({algebra(literal.expression, format_pattern)})"


def _event(event: EventLiteral) -> str:
    return f"{_shown(event.name)}: {format_pattern(event.pattern)}"


def _shown(name: str) -> str:
    """A name as written; those we gave begin with a dollar sign."""
    return name if name.startswith("$") else word(name)


def _timer(timer: TimerLike) -> str:
    if isinstance(timer, TimerLiteral):
        lasts = describe(timer.length)
        if timer.told is not None:
            lasts = f"{format_expression(timer.told)} AT MOST {lasts}"
        return f"{_shown(timer.name)}: {timer.kind}({_shown(timer.anchor)}, {lasts})"
    return f"{_shown(timer.name)}: between({_shown(timer.first)}, {_shown(timer.last)})"


def condition_text(condition: Condition, *, arrow: bool) -> str:
    """A condition as its author would write it."""
    return format_condition(readable(condition, arrow=arrow))


def accumulation_text(literal: CollectLiteral | NotLiteral, *, arrow: bool) -> str:
    """A collection or absence as its author would write it, without the name that we gave the event."""
    mode = "not" if isinstance(literal, NotLiteral) else "collect optional" if literal.optional else "collect"
    written = _accumulation(readable(literal, arrow=arrow), mode)
    name = literal.event.name
    return written.replace(f"{name}: ", "", 1) if name.startswith("$") else written


def _accumulation(literal: CollectLiteral | NotLiteral, mode: str) -> str:
    limits = f"({'incl' if literal.begin else 'excl'},{'incl' if literal.end else 'excl'})"
    bounds = "" if literal.begin and literal.end else limits
    where = ""
    if literal.conditions:
        where = f" where {{ {', '.join(format_condition(c) for c in literal.conditions)} }}"
    return f"while{bounds} {_shown(literal.window)}: {mode} {_event(literal.event)}{where}"


def as_json(rules: Ruleset, source: Source) -> list[dict[str, Any]]:
    """One object a rule: number, head, place, stratum, `depends` with label, kinds and rules, normal forms."""
    cases = _by_rule(rules)
    return [
        {
            "rule": number,
            "head": head_label(rule.head),
            "line": source.place(rule.span.start).line,
            "column": source.place(rule.span.start).column,
            "stratum": rules.strata[number - 1],
            "depends": [
                {"event": d.label, "how": list(d.kinds), "rules": list(d.rules)} for d in rules.dependencies[number - 1]
            ],
            "normal": ["\n".join(_normal(normal)) for normal in cases.get(number, ())],
        }
        for number, rule in enumerate(rules.resolved.rules, 1)
    ]
