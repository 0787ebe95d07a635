"""This module turns normal rules back into rules as they are written, so that the oracle can evaluate them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from ephemera.rules.nodes import CollectLiteral, Dependency, GapLiteral, NormalRule, NotLiteral, Ruleset, TimerLiteral
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    And,
    At,
    Between,
    Condition,
    Event,
    Query,
    Rule,
    Timer,
    While,
    Window,
)
from ephemera.terms.nodes import Duration, Name, Quantity


def denormalize(rules: Ruleset) -> Ruleset:
    """The normal rules of a program as a program: one rule each, in the stratum of the rule that it comes from."""
    numbers = {n: tuple(k for k, rule in enumerate(rules.normal, 1) if rule.rule == n) for n in range(1, _count(rules))}

    def renumbered(dependency: Dependency) -> Dependency:
        return replace(dependency, rules=tuple(k for n in dependency.rules for k in numbers[n]))

    return Ruleset(
        replace(
            rules.resolved,
            rules=tuple(as_written(rule) for rule in rules.normal),
            blocks=tuple(rules.resolved.blocks[rule.rule - 1] for rule in rules.normal),
        ),
        tuple(rules.strata[rule.rule - 1] for rule in rules.normal),
        tuple(tuple(renumbered(d) for d in rules.dependencies[rule.rule - 1]) for rule in rules.normal),
        rules.normal,
    )


def _count(rules: Ruleset) -> int:
    return len(rules.resolved.rules) + 1


def as_written(rule: NormalRule) -> Rule:
    """A normal rule as a rule whose body is one conjunction."""
    tests = {test.event: test.pattern for test in rule.tests}
    gaps = {gap.name: gap for gap in rule.timers if isinstance(gap, GapLiteral)}
    items: list[Query | Condition] = [Event(Name(e.name), tests.get(e.name, e.pattern)) for e in rule.events]
    items += [Algebra(Name(a.name), a.expression, a.restricted, a.per) for a in rule.algebra]
    items += [Event(None, t.pattern) if t.at is None else At(Name(t.at), t.pattern) for t in rule.tables]
    items += [
        Timer(Name(t.name), t.kind, Name(t.anchor), Duration((Quantity(Decimal(t.length), "us"),)))
        for t in rule.timers
        if isinstance(t, TimerLiteral)
    ]
    items += [_accumulation(c, gaps) for c in rule.collects]
    items += [_accumulation(a, gaps) for a in rule.absences]
    items += [Absent(r.pattern) if r.at is None else At(Name(r.at), r.pattern, negated=True) for r in rule.absent_rows]
    return Rule(rule.head, And((*items, *rule.conditions)), rule.having)


def _accumulation(literal: CollectLiteral | NotLiteral, gaps: dict[str, GapLiteral]) -> Accumulation:
    gap = gaps.get(literal.window)
    window: Window = While(Name(literal.window), literal.begin, literal.end)
    if gap is not None:
        window = Between(Name(gap.first), Name(gap.last))
    event = Event(Name(literal.event.name), literal.event.pattern)
    if isinstance(literal, NotLiteral):
        return Accumulation(window, "not", event, literal.conditions)
    return Accumulation(window, "collect optional" if literal.optional else "collect", event, literal.conditions)
