"""This module splits rule bodies into alternatives: disjunctions, and optional parts that are there or not.

Each alternative is a flat list of literals and conditions (thesis figure 13.3). An optional part gives two: one
with it, and one `without` it in which its variables are unbound (13.4.4, with `without` so that not both hold).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias, TypeVar

from ephemera.base.errors import InternalError
from ephemera.base.tree import children, find, rebuild
from ephemera.rules.scope import bindings, pattern_bindings
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    AllOf,
    And,
    At,
    Condition,
    Event,
    Or,
    Query,
    Rule,
    Selection,
    Timer,
    Where,
)
from ephemera.terms.nodes import Aggregate, All, Element, Optional, Without

MOST_ALTERNATIVES = 256

Member: TypeAlias = Event | Timer | Accumulation | Absent | At | Algebra | Condition
T = TypeVar("T")


def alternatives(query: Query | Condition, *, optional: bool) -> int:
    """How many alternatives a body has, with optional parts counted twice or not; no more than one too many."""
    match query:
        case And(items):
            total = 1
            for item in items:
                total = min(total * alternatives(item, optional=optional), MOST_ALTERNATIVES + 1)
            return total
        case Or(items):
            return min(sum(alternatives(item, optional=optional) for item in items), MOST_ALTERNATIVES + 1)
        case Where(inner, _):
            return alternatives(inner, optional=optional)
        case Event(_, pattern) if optional:
            return min(1 << min(sum(1 for _ in find(pattern, Optional)), 16), MOST_ALTERNATIVES + 1)
        case _:
            return 1


def groups(rule: Rule) -> bool:
    """Whether a rule gathers several bindings, so that optional parts must stay together."""
    return any(next(find(part, (All, Aggregate)), None) is not None for part in (rule.head, *rule.having))


def cases(query: Query | Condition) -> list[list[Member]]:
    """The disjuncts of a body, each a flat list of literals and conditions."""
    match query:
        case And(items):
            return [[m for part in parts for m in part] for parts in product(*(cases(item) for item in items))]
        case Or(items):
            return [case for item in items for case in cases(item)]
        case Where(inner, conditions):
            more = [c for condition in conditions for c in conjuncts(condition)]
            return [[*case, *more] for case in cases(inner)]
        case AllOf():
            return [list(conjuncts(query))]
        case Selection():
            raise InternalError("normalize", "a selection was not expanded")
        case _:
            return [[query]]


def conjuncts(condition: Condition) -> Iterable[Condition]:
    """The parts of a condition that all must hold."""
    return condition.conditions if isinstance(condition, AllOf) else (condition,)


def split_optional(members: list[Member]) -> list[tuple[list[Member], frozenset[str]]]:
    """The members with each optional part present, and with it absent and its variables unbound."""
    done: list[tuple[list[Member], frozenset[str]]] = [([], frozenset())]
    for member in members:
        variants: list[tuple[Member, frozenset[str]]] = [(member, frozenset())]
        if isinstance(member, Event):
            variants = [(replace(member, pattern=p), unbound) for p, unbound in _pattern_variants(member.pattern)]
        done = [([*before, m], out | unbound) for before, out in done for m, unbound in variants]
    return [(case, unbound.difference(*(bindings(member).sure for member in case))) for case, unbound in done]


def _pattern_variants(pattern: Any) -> list[tuple[Any, frozenset[str]]]:
    found = _first_optional(pattern)
    if found is None:
        return [(pattern, frozenset())]
    lost = pattern_bindings(found.term)
    present = rebuild(pattern, lambda n: n.term if n is found else n)
    absent = rebuild(pattern, lambda n: Without(bare(n.term), span=n.span) if n is found else n)
    with_it = _pattern_variants(present)
    without_it = [(p, unbound | lost.sure | lost.perhaps) for p, unbound in _pattern_variants(absent)]
    return with_it + without_it


def _first_optional(pattern: Any) -> Optional | None:
    """The first optional part that is asked for; those within what must be absent are no alternatives."""
    stack = [pattern]
    while stack:
        current = stack.pop()
        if isinstance(current, Optional):
            return current
        if not isinstance(current, Without):
            stack += children(current)[::-1]
    return None


def bare(term: T) -> T:
    """A term to be absent, with the optional parts left out that make no difference to that.

    They do so in an element that minds other children: `a { }` is not all that `a { optional b }` finds.
    """

    def drop(node: Any) -> Any:
        if isinstance(node, Element) and node.partial and not any(isinstance(c, Without) for c in node.children):
            return replace(node, children=tuple(c for c in node.children if not isinstance(c, Optional)))
        return node

    return rebuild(term, drop)
