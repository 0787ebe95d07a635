"""This module puts rules together that differ in how far their events may lie apart, or in how long their timers last.

With d₁ ≤ d₂, answers of σ[j − i ≤ d₁](E) are answers of σ[j − i ≤ d₂](E) that lie closer. So one rule with the longest
of the distances finds the answers of all, and a table says for each rule how far is near enough. Formulas are in
negation normal form, so that a longer distance never leaves less. A timer depends on nothing but its anchor, so it is
made behind the table, which says how long it is: each rule then looks into windows of its own. What is known of the
rule as a whole is what is known of all of them (`alike_facts`).

What a longer distance costs is paid by all, so that of one rule is at most about twice that of another, and a few rules
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from ephemera.algebra.attributes import Variable, is_moment
from ephemera.algebra.nodes import Expression, RelativeTimer
from ephemera.algebra.parts import positive_part
from ephemera.algebra.scalar import Distance, LimitedDistance
from ephemera.base.tree import rebuild

MANY = 4
"""From so many different limits on, rules are put together."""


class HasLimits(Protocol):
    """A rule, how far its events may lie apart, and how long its timers last."""

    @property
    def limits(self) -> tuple[int, ...]:
        """The limits and lengths, in the order of the expression."""


R = TypeVar("R", bound=HasLimits)


def limits_apart(body: Expression) -> tuple[Expression, tuple[int, ...]]:
    """The expression with names in place of the limits between positive events and of timers, and these."""
    found: list[int] = []

    def name(node: object) -> object:
        match node:
            case Distance(later, earlier, limit, strict) if not is_moment(later) and not is_moment(earlier):
                found.append(limit)
                return LimitedDistance(later, earlier, _unnamed(len(found) - 1), strict)
            case RelativeTimer(_, _, _, _, int(length), None):
                found.append(length)
                return replace(node, length=_unnamed(len(found) - 1))
            case _:
                return node

    positive = positive_part(body)
    named = rebuild(positive, name)
    if not found:
        return body, ()
    return rebuild(body, lambda node: named if node == positive else node), tuple(found)


def with_limits(e: Expression, limits: Sequence[int | Variable]) -> Expression:
    """The expression with other names for some limits, and the others as they were."""
    known: Mapping[str, int | Variable] = {_unnamed(k): limit for k, limit in enumerate(limits)}

    def change(node: object) -> object:
        match node:
            case LimitedDistance(later, earlier, name, strict) if name in known:
                limit = known[name]
                if isinstance(limit, int):
                    return Distance(later, earlier, limit, strict)
                return LimitedDistance(later, earlier, limit, strict)
            case RelativeTimer(_, _, _, _, str(length)) if length in known:
                return replace(node, length=known[length])
            case _:
                return node

    return rebuild(e, change) if limits else e


def _unnamed(place: int) -> Variable:
    return Variable(f"#limit {place}")


def sizes(limits: Sequence[int]) -> tuple[tuple[bool, int], ...]:
    """About how long some distances are: those of one size are at most twice each other."""
    return tuple((limit < 0, limit.bit_length()) for limit in limits)


def together(rules: Sequence[R]) -> Iterator[list[R]]:
    """The rules that run as one, that with the longest limits first; all else of them is alike."""
    by_limits: dict[tuple[int, ...], list[R]] = {}
    for rule in sorted(rules, key=lambda rule: rule.limits, reverse=True):
        by_limits.setdefault(rule.limits, []).append(rule)
    if len(by_limits) >= MANY:
        yield [rule for own in by_limits.values() for rule in own]
    else:
        yield from by_limits.values()
