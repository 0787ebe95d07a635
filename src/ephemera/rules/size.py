"""This module refuses rules with more parts than can be planned; nobody writes one, but a program may."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.base.diagnostic import Code, Help
from ephemera.rules.alternatives import MOST_ALTERNATIVES
from ephemera.rules.declare import head_label_span
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import NormalRule, Resolved
from ephemera.rules.scope import primitives
from ephemera.syntax.nodes import AlgebraExpression, Composed, Limited

MOST_PARTS = 256


def _alternatives(e: AlgebraExpression) -> int:
    """How many ways there are to choose among the alternatives of an algebra expression, and of what it excludes."""
    match e:
        case Composed("|", left, right):
            return _alternatives(left) + _alternatives(right)
        case Composed(_, left, right):
            return _alternatives(left) * _alternatives(right)
        case Limited(operand, _):
            return _alternatives(operand)
        case _:
            return 1


def check_size(resolved: Resolved, normal: Sequence[NormalRule], findings: Findings) -> None:
    """Tells rules whose body has too many events, timers, windows and conditions."""
    for rule in normal:
        parts = [*rule.events, *rule.tables, *rule.timers, *rule.collects, *rule.absences, *rule.absent_rows]
        atoms = sum(1 for literal in rule.algebra for _ in primitives(literal.expression))
        total = len(parts) + len(rule.conditions) + atoms
        for literal in rule.algebra:
            if _alternatives(literal.expression) > MOST_ALTERNATIVES:
                findings.add(
                    Code.TOO_MANY_ALTERNATIVES,
                    f"this expression has more than {MOST_ALTERNATIVES} alternatives",
                    head_label_span(resolved.rules[rule.rule - 1].head),
                    help=[Help("derive an event for `A | B` by rules of their own, and ask for that")],
                )
        if total > MOST_PARTS:
            findings.add(
                Code.TOO_MANY_PARTS,
                f"this rule has {total} events, timers, windows and conditions, and {MOST_PARTS} is the limit",
                head_label_span(resolved.rules[rule.rule - 1].head),
                help=[Help("make it several rules: one derives an event that the next one asks for")],
            )
