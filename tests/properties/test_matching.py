"""This module compares matching with a search by brute force for simulations (thesis 9.2.2).

The search tries every value for every variable, among the subterms and labels of the data, and with the variables
fixed every way to give the children of a pattern children of the data. It knows nothing of binding while it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ephemera.rules.scope import pattern_bindings
from ephemera.terms.match import descendants, match, match_root
from ephemera.terms.nodes import (
    As,
    Desc,
    Element,
    Label,
    Number,
    Optional,
    QueryTerm,
    Regex,
    Text,
    Var,
    Without,
)
from ephemera.terms.values import Key, Term, Value, equal, key
from tests.strategies.words import among, node

Bound = Mapping[str, Value]

# ---- terms and patterns ------------------------------------------------------------------------------------

_LABELS = st.sampled_from(("a", "b", "@t"))
_SCALARS: SearchStrategy[Value] = st.sampled_from((1, 1.0, 2, "x", None))


def _data(depth: int) -> SearchStrategy[Value]:
    if depth == 0:
        return _SCALARS
    return among(_SCALARS, _terms(depth), _terms(depth))


def _terms(depth: int) -> SearchStrategy[Term]:
    label = st.sampled_from(("a", "b"))
    children = st.lists(_data(depth - 1), max_size=3).map(tuple)
    attributes = among(st.just(()), st.sampled_from(((("t", 1),), (("t", "x"),))))
    return node(Term, label, children, st.booleans(), attributes)


_VARIABLES = st.sampled_from(("X", "Y"))


def _patterns(depth: int) -> SearchStrategy[QueryTerm]:
    leaves: SearchStrategy[QueryTerm] = among(
        node(Var, _VARIABLES),
        node(Var, _VARIABLES),
        node(Number, st.sampled_from((1, 2))),
        node(Text, st.just("x")),
        node(Regex, st.sampled_from(("x", "[xy]*"))),
    )
    if depth == 0:
        return leaves
    inner = _patterns(depth - 1)
    return among(leaves, _elements(depth), _elements(depth), node(Desc, inner), node(As, _VARIABLES, inner))


def _elements(depth: int) -> SearchStrategy[Element]:
    label = among(node(Label, _LABELS), node(Label, _LABELS), node(Label, _LABELS), node(Var, _VARIABLES))
    inner = _patterns(depth - 1)
    child = among(inner, inner, inner, node(Without, inner), node(Optional, inner))
    return node(Element, label, st.booleans(), st.booleans(), st.lists(child, max_size=3).map(tuple))


def _roots() -> SearchStrategy[QueryTerm]:
    return among(_elements(2), _elements(2), _elements(2), node(Desc, _elements(1)), node(As, _VARIABLES, _elements(1)))


# ---- the search --------------------------------------------------------------------------------------------


def _candidates(data: Value) -> list[Value]:
    """What a variable could be: a subterm, an attribute, a label."""
    found: dict[Key, Value] = {}
    for part in descendants(data):
        values = [part]
        if isinstance(part, Term):
            values += [part.label, *(v for _, v in part.attributes)]
            values += [x for n, v in part.attributes for x in (f"@{n}", Term(f"@{n}", (v,)))]
        for value in values:
            found.setdefault(key(value), value)
    return list(found.values())


def brute_force(pattern: QueryTerm, data: Value) -> set[frozenset[tuple[str, Key]]]:
    """Every substitution under which the pattern is found at the root, by trying them all."""
    top = list(descendants(data)) if isinstance(pattern, Desc) else [data]
    inner = pattern.term if isinstance(pattern, Desc) else pattern
    answers: set[frozenset[tuple[str, Key]]] = set()
    for chosen in _without_optional(inner):
        names = sorted(pattern_bindings(chosen).sure)
        for values in product(_candidates(data), repeat=len(names)):
            bound = dict(zip(names, values, strict=True))
            if _joins_no_null(chosen, bound) and any(_simulates(chosen, part, bound) for part in top):
                answers.add(frozenset((n, key(v)) for n, v in bound.items()))
    return answers


def _joins_no_null(pattern: QueryTerm, bound: Bound) -> bool:
    """Null may be bound, but in one place only: it equals nothing."""
    return all(value is not None or _places(pattern, name) <= 1 for name, value in bound.items())


def _places(pattern: QueryTerm, name: str) -> int:
    """How often a variable is asked for, apart from what must be absent."""
    match pattern:
        case Var(own):
            return own == name
        case As(own, inner):
            return (own == name) + _places(inner, name)
        case Desc(inner):
            return _places(inner, name)
        case Element(label, _, _, children):
            return (isinstance(label, Var) and label.name == name) + sum(_places(c, name) for c in children)
        case _:
            return 0


def _without_optional(pattern: QueryTerm) -> Iterator[QueryTerm]:
    """The patterns in which each optional part is there, or must not be."""
    match pattern:
        case Element(label, ordered, partial, children):
            for chosen in product(*(list(_child_choices(c)) for c in children)):
                yield Element(label, ordered, partial, chosen)
        case As(name, inner):
            yield from (As(name, chosen) for chosen in _without_optional(inner))
        case Desc(inner):
            yield from (Desc(chosen) for chosen in _without_optional(inner))
        case _:
            yield pattern


def _child_choices(child: QueryTerm) -> Iterator[QueryTerm]:
    match child:
        case Optional(inner):
            yield from _without_optional(inner)
            yield Without(inner)
        case Without():
            yield child
        case _:
            yield from _without_optional(child)


def _simulates(pattern: QueryTerm, data: Value, bound: Bound) -> bool:
    """Whether the pattern, its bound variables being constants, is found at the root of the data."""
    match pattern:
        case Var(name):
            return key(bound[name]) == key(data)
        case As(name, inner):
            return key(bound[name]) == key(data) and _simulates(inner, data, bound)
        case Number(wanted) | Text(wanted):
            return equal(wanted, data) is True
        case Regex(expression):
            return isinstance(data, str) and re.fullmatch(expression, data) is not None
        case Desc(inner):
            return any(_simulates(inner, part, bound) for part in descendants(data))
        case Element():
            return isinstance(data, Term) and _element(pattern, data, bound)
        case _:
            raise AssertionError(pattern)


def _element(pattern: Element, data: Term, bound: Bound) -> bool:
    if isinstance(pattern.label, Var):
        if key(bound[pattern.label.name]) != key(data.label):
            return False
    elif pattern.label.name != data.label:
        return False
    if pattern.ordered and not data.is_ordered:
        return False
    attributes = [Term(f"@{n}", (v,)) for n, v in data.attributes]
    outside = tuple(c for c in pattern.children if _is_attribute(c))
    inside = tuple(c for c in pattern.children if not _is_attribute(c))
    return _children(outside, attributes, bound, ordered=False, partial=True) and _children(
        inside, data.children, bound, ordered=pattern.ordered, partial=pattern.partial
    )


def _is_attribute(pattern: QueryTerm) -> bool:
    match pattern:
        case Without(inner) | Optional(inner) | As(_, inner):
            return _is_attribute(inner)
        case Element(Label(name)):
            return name.startswith("@")
        case _:
            return False


def _children(
    patterns: Sequence[QueryTerm], data: Sequence[Value], bound: Bound, *, ordered: bool, partial: bool
) -> bool:
    """Whether the positive patterns have children of their own so that no negated one has any left."""
    positive = [k for k, p in enumerate(patterns) if not isinstance(p, Without)]
    if len(positive) > len(data) or (not partial and len(positive) != len(data)):
        return False
    for places in permutations(range(len(data)), len(positive)):
        if ordered and list(places) != sorted(places):
            continue
        if not all(_simulates(patterns[k], data[place], bound) for k, place in zip(positive, places, strict=True)):
            continue
        taken = dict(zip(positive, places, strict=True))
        if not any(
            _may_match(p.term, data[place], bound)
            for k, p in enumerate(patterns)
            if isinstance(p, Without)
            for place in _left(k, taken, len(data), ordered=ordered)
        ):
            return True
    return False


def _left(at: int, taken: Mapping[int, int], count: int, *, ordered: bool) -> list[int]:
    """The children of no pattern, and, where order counts, between the neighbours of a negated one."""
    low = max((p for k, p in taken.items() if k < at), default=-1) if ordered else -1
    high = min((p for k, p in taken.items() if k > at), default=count) if ordered else count
    return [p for p in range(low + 1, high) if p not in taken.values()]


def _may_match(pattern: QueryTerm, data: Value, bound: Bound) -> bool:
    """Whether a pattern matches for some value of the variables that are not bound."""
    for chosen in _without_optional(pattern):
        if any(value is None and _places(chosen, name) for name, value in bound.items()):
            continue
        names = sorted(pattern_bindings(chosen).sure - bound.keys())
        for values in product(_candidates(data), repeat=len(names)):
            own = dict(zip(names, values, strict=True))
            if _joins_no_null(chosen, own) and _simulates(chosen, data, {**bound, **own}):
                return True
    return False


# ---- the properties ----------------------------------------------------------------------------------------


@given(_roots(), _terms(2))
def test_matching_finds_every_simulation(pattern: QueryTerm, data: Term) -> None:
    found = {frozenset((n, key(v)) for n, v in s.items()) for s in match_root(pattern, data, {})}
    assert found == brute_force(pattern, data)


@given(_elements(1), _terms(1), st.sampled_from((1, 2, "x")))
def test_known_variables_are_constants(pattern: Element, data: Term, value: Value) -> None:
    every = match(pattern, data, {})
    agree = [s for s in every if "X" not in s or equal(s["X"], value)]
    found = match(pattern, data, {"X": value})
    if "X" in pattern_bindings(pattern).sure:
        assert {_marks(s) for s in found} == {_marks(s) for s in agree}


def _marks(substitution: Bound) -> frozenset[tuple[str, Key]]:
    return frozenset((n, key(v)) for n, v in substitution.items())
