"""This module matches query terms against data terms: simulation in Xcerpt's sense (thesis 9.2.2).

The answer is every substitution under which the pattern is found in the term. Breadth is injective: two children
of a pattern never match the same child. Unordered patterns match both kinds of data, ordered ones only ordered data.
`desc t` is a child or anything below it, and uses up the child. `without t` holds if no child that is left over
matches t; a variable that the pattern binds anywhere is tested with its value, another may have any. `optional t` is
t where t can match, else `without t`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias, TypeVar

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
from ephemera.terms.regex import is_match
from ephemera.terms.values import Key, Term, Value, equal, key, merged

Substitution: TypeAlias = Mapping[str, Value]
Forbidden: TypeAlias = tuple[tuple[QueryTerm, Value], ...]
"""Terms, each with a value that must not match it."""

Found: TypeAlias = tuple[Substitution, Forbidden]
P = TypeVar("P")


def match(pattern: QueryTerm, value: Value, known: Substitution) -> list[Substitution]:
    """Every substitution that extends the known one and lets the pattern match, each once."""
    return distinct(s for s, forbidden in search(pattern, value, known) if is_absent(forbidden, s))


def match_root(pattern: QueryTerm, value: Value, known: Substitution) -> list[Substitution]:
    """The same for the pattern of an event, where `desc` may be the event itself."""
    return distinct(s for s, forbidden in search_root(pattern, value, known) if is_absent(forbidden, s))


def search(pattern: QueryTerm, value: Value, known: Substitution) -> Iterator[Found]:
    """Every way to find what must be there, with what must then be absent, once all variables are bound."""
    for chosen in with_or_without(pattern):
        yield from _match(chosen, value, known)


def search_root(pattern: QueryTerm, value: Value, known: Substitution) -> Iterator[Found]:
    """The same for the pattern of an event."""
    if isinstance(pattern, Desc):
        for below in descendants(value):
            yield from search(pattern.term, below, known)
    else:
        yield from search(pattern, value, known)


def is_absent(forbidden: Forbidden, known: Substitution) -> bool:
    """Whether no value matches the term that it must not match; variables without a value may have any."""
    return not any(match(term, value, known) for term, value in forbidden)


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


def distinct(substitutions: Iterable[Substitution]) -> list[Substitution]:
    """Each substitution once."""
    seen: dict[frozenset[tuple[str, Key]], Substitution] = {}
    for substitution in substitutions:
        which = frozenset((name, key(value)) for name, value in substitution.items())
        seen[which] = all_merged(seen[which], substitution) if which in seen else substitution
    return list(seen.values())


def all_merged(a: Substitution, b: Substitution) -> Substitution:
    """What a substitution becomes where one with equal values meets it."""
    return a if a is b else {name: merged(value, b[name]) if name in b else value for name, value in a.items()}


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
        both = merged(known[name], value)
        yield known if both is known[name] else {**known, name: both}


def _match(pattern: QueryTerm, value: Value, known: Substitution) -> Iterator[Found]:
    match pattern:
        case Var(name):
            yield from ((found, ()) for found in bind(name, value, known))
        case As(name, inner):
            for found, forbidden in _match(inner, value, known):
                yield from ((more, forbidden) for more in bind(name, value, found))
        case Text(wanted) | Number(wanted) | Bool(wanted):
            if equal(wanted, value):
                yield known, ()
        case Null():
            return
        case Regex(expression):
            if isinstance(value, str) and is_match(expression, value):
                yield known, ()
        case Element():
            yield from _match_element(pattern, value, known)
        case Desc(inner):
            for below in descendants(value):
                yield from _match(inner, below, known)
        case Without() | Optional():
            raise ValueError("`without` and `optional` stand inside elements")


def _match_element(pattern: Element, value: Value, known: Substitution) -> Iterator[Found]:
    if not isinstance(value, Term) or (pattern.ordered and not value.is_ordered):
        return
    label = str(pattern.label) if isinstance(pattern.label, Label) else None
    if label is not None and label != value.label:
        return
    named = [known] if label is not None else list(bind(pattern.label.name, value.label, known))
    inside = [c for c in pattern.children if not _is_attribute(c)]
    attributes = [c for c in pattern.children if _is_attribute(c)]
    data = [Term(f"@{name}", (v,)) for name, v in value.attributes]
    for start in named:
        for found, first in _match_children(attributes, data, start, ordered=False, partial=True):
            for more, last in _match_children(
                inside, value.children, found, ordered=pattern.ordered, partial=pattern.partial
            ):
                yield more, first + last


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
) -> Iterator[Found]:
    """The positive patterns are placed; what is left over must not match those that are negated."""
    positive = [k for k, p in enumerate(patterns) if not isinstance(p, Without)]
    for places, found, forbidden in _place([patterns[k] for k in positive], data, known, ordered=ordered):
        if partial or len(places) == len(data):
            placed = dict(zip(positive, places, strict=True))
            own = tuple(
                (p.term, data[place])
                for k, p in enumerate(patterns)
                if isinstance(p, Without)
                for place in _left_over(k, placed, data, ordered)
            )
            yield found, forbidden + own


def _place(
    patterns: Sequence[QueryTerm], data: Sequence[Value], known: Substitution, *, ordered: bool
) -> Iterator[tuple[tuple[int, ...], Substitution, Forbidden]]:
    """Every way to give each pattern a child of its own, in order if order counts."""
    if not patterns:
        yield (), known, ()
        return
    for before, found, forbidden in _place(patterns[:-1], data, known, ordered=ordered):
        first = before[-1] + 1 if ordered and before else 0
        for place in range(first, len(data)):
            if place not in before:
                for more, own in _match(patterns[-1], data[place], found):
                    yield (*before, place), more, forbidden + own


def _left_over(at: int, placed: dict[int, int], data: Sequence[Value], ordered: bool) -> list[int]:
    """The children that a `without` forbids to match: those of no pattern; in order, those between its neighbours."""
    first, last = 0, len(data)
    if ordered:
        first = max((place + 1 for k, place in placed.items() if k < at), default=0)
        last = min((place for k, place in placed.items() if k > at), default=len(data))
    used = set(placed.values())
    return [place for place in range(first, last) if place not in used]
