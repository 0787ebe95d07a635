"""This module matches query terms against data terms: simulation in Xcerpt's sense (thesis 9.2.2).

The answer is every substitution under which the pattern is found in the term. Breadth is injective: two children
of a pattern never match the same child. Unordered patterns match both kinds of data, ordered ones only ordered data.
`desc t` is a child or anything below it, and uses up the child. `without t` holds if no child that is left over
matches t; a variable that the pattern binds anywhere is tested with its value, another may have any. `optional t` is
t where t can match, else `without t`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias, TypeVar

from ephemera.base.tree import find, rebuild
from ephemera.terms.nodes import (
    As,
    Bool,
    Desc,
    Element,
    Label,
    Null,
    Number,
    Optional,
    QueryTerm,
    Regex,
    Text,
    Var,
    Without,
)
from ephemera.terms.values import Key, Term, Value, equal, key

Substitution: TypeAlias = Mapping[str, Value]
P = TypeVar("P")


def match(pattern: QueryTerm, value: Value, known: Substitution) -> list[Substitution]:
    """Every substitution that extends the known one and lets the pattern match, each once."""
    return distinct(_match_whole(pattern, value, known))


def match_root(pattern: QueryTerm, value: Value, known: Substitution) -> list[Substitution]:
    """The same for the pattern of an event, where `desc` may be the event itself."""
    if isinstance(pattern, Desc):
        return distinct(s for below in descendants(value) for s in _match_whole(pattern.term, below, known))
    return match(pattern, value, known)


def with_or_without(pattern: P) -> list[P]:
    """A pattern with each optional part there, and with it absent; within what must be absent they stay."""
    match pattern:
        case Element(_, _, _, children):
            chosen = product(*(_child_choices(child) for child in children))
            return [replace(pattern, children=c) for c in chosen]
        case As(_, term) | Desc(term):
            return [replace(pattern, term=t) for t in with_or_without(term)]
        case _:
            return [pattern]


def _child_choices(child: QueryTerm) -> list[QueryTerm]:
    match child:
        case Optional(term):
            return [*with_or_without(term), Without(term)]
        case Without():
            return [child]
        case _:
            return with_or_without(child)


def without_negations(pattern: P) -> P:
    """A pattern that asks only for what must be there."""

    def drop(node: object) -> object:
        if isinstance(node, Element):
            return replace(node, children=tuple(c for c in node.children if not isinstance(c, Without)))
        return node

    return rebuild(pattern, drop)


def _match_whole(pattern: QueryTerm, value: Value, known: Substitution) -> Iterator[Substitution]:
    """First what must be there; then, with every variable of that bound, what must not."""
    if next(find(pattern, (Without, Optional)), None) is None:
        yield from _match(pattern, value, known)
        return
    for chosen in with_or_without(pattern):
        for found in distinct(_match(without_negations(chosen), value, known)):
            if next(_match(chosen, value, found), None) is not None:
                yield found


def distinct(substitutions: Iterable[Substitution]) -> list[Substitution]:
    """Each substitution once."""
    seen: dict[frozenset[tuple[str, Key]], Substitution] = {}
    for substitution in substitutions:
        seen.setdefault(frozenset((name, key(value)) for name, value in substitution.items()), substitution)
    return list(seen.values())


def descendants(value: Value) -> Iterator[Value]:
    """A value and all that is in it."""
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, Term):
            stack.extend(reversed(current.children))


def bind(name: str, value: Value, known: Substitution) -> Iterator[Substitution]:
    """The substitution with one variable more, unless that has another value already."""
    if name not in known:
        yield {**known, name: value}
    elif equal(known[name], value):
        yield known


def _match(pattern: QueryTerm, value: Value, known: Substitution) -> Iterator[Substitution]:
    match pattern:
        case Var(name):
            yield from bind(name, value, known)
        case As(name, inner):
            for found in _match(inner, value, known):
                yield from bind(name, value, found)
        case Text(wanted) | Number(wanted) | Bool(wanted):
            if equal(wanted, value):
                yield known
        case Null():
            return
        case Regex(expression):
            if isinstance(value, str) and re.fullmatch(expression, value):
                yield known
        case Element():
            yield from _match_element(pattern, value, known)
        case Desc(inner):
            for below in descendants(value):
                yield from _match(inner, below, known)
        case Without() | Optional():
            raise ValueError("`without` and `optional` stand inside elements")


def _match_element(pattern: Element, value: Value, known: Substitution) -> Iterator[Substitution]:
    if not isinstance(value, Term):
        return
    label = str(pattern.label) if isinstance(pattern.label, Label) else None
    if label is not None and label != value.label:
        return
    named = [known] if label is not None else list(bind(pattern.label.name, value.label, known))
    inside = [c for c in pattern.children if not _is_attribute(c)]
    attributes = [c for c in pattern.children if _is_attribute(c)]
    data = [Term(f"@{name}", (v,)) for name, v in value.attributes]
    for start in named:
        for found in _match_children(attributes, data, start, ordered=False, partial=True):
            if pattern.ordered and not value.is_ordered:
                continue
            yield from _match_children(inside, value.children, found, ordered=pattern.ordered, partial=pattern.partial)


def _is_attribute(pattern: QueryTerm) -> bool:
    match pattern:
        case Without(inner) | Optional(inner) | As(_, inner):
            return _is_attribute(inner)
        case Element(Label() as label, _, _, _):
            return str(label).startswith("@")
        case _:
            return False


def _match_children(
    patterns: Sequence[QueryTerm], data: Sequence[Value], known: Substitution, *, ordered: bool, partial: bool
) -> Iterator[Substitution]:
    """The positive patterns are placed, then `without` is tested."""
    positive = [k for k, p in enumerate(patterns) if not isinstance(p, Without)]
    for places, found in _place([patterns[k] for k in positive], data, known, ordered=ordered):
        if not partial and len(places) != len(data):
            continue
        placed = dict(zip(positive, places, strict=True))
        if all(
            not any(
                next(_match_whole(p.term, data[place], found), None) is not None
                for place in _left_over(k, placed, data, ordered)
            )
            for k, p in enumerate(patterns)
            if isinstance(p, Without)
        ):
            yield found


def _place(
    patterns: Sequence[QueryTerm], data: Sequence[Value], known: Substitution, *, ordered: bool
) -> Iterator[tuple[tuple[int, ...], Substitution]]:
    """Every way to give each pattern a child of its own, in order if order counts."""
    if not patterns:
        yield (), known
        return
    for before, found in _place(patterns[:-1], data, known, ordered=ordered):
        first = before[-1] + 1 if ordered and before else 0
        for place in range(first, len(data)):
            if place not in before:
                for more in _match(patterns[-1], data[place], found):
                    yield (*before, place), more


def _left_over(at: int, placed: dict[int, int], data: Sequence[Value], ordered: bool) -> list[int]:
    """The children that a `without` forbids to match: those of no pattern; in order, those between its neighbours."""
    first, last = 0, len(data)
    if ordered:
        first = max((place + 1 for k, place in placed.items() if k < at), default=0)
        last = min((place for k, place in placed.items() if k > at), default=len(data))
    used = set(placed.values())
    return [place for place in range(first, last) if place not in used]
