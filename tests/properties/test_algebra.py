"""This module tests the laws of the event detection algebra, and that restriction leaves what it must."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ephemera.base.span import Source
from ephemera.base.tree import find as find_nodes
from ephemera.base.tree import rebuild
from ephemera.rules.nodes import Catalogue
from ephemera.semantics.algebra import instances
from ephemera.syntax.nodes import Algebra, AlgebraExpression, AlgebraOperator, Composed, Limited
from ephemera.syntax.parser import parse
from ephemera.terms.events import Event, Interval
from ephemera.terms.nodes import AnyEvent, Duration, Label, Quantity
from ephemera.terms.values import Key, Term
from tests.strategies.cases import compiled
from tests.strategies.words import among, node

Expression = AlgebraExpression
Stream = tuple[Event, ...]
LATEST = 8


@cache
def _catalogue() -> Catalogue:
    rules = compiled("p() <- a();")
    assert rules is not None
    return rules.resolved.catalogue


def limited(operand: Expression, most: int) -> Expression:
    return Limited(operand, Duration((Quantity(Decimal(most), "us"),)))


_OPERATORS: SearchStrategy[AlgebraOperator] = st.sampled_from(("|", "+", "-", ";"))
_LABELS = st.sampled_from(("a", "b", "c"))
_LENGTHS = st.integers(0, LATEST)


@cache
def expressions(depth: int) -> SearchStrategy[Expression]:
    primitives: SearchStrategy[Expression] = _LABELS.map(lambda label: AnyEvent(Label(label)))
    if depth == 0:
        return primitives
    inner = expressions(depth - 1)
    composed: SearchStrategy[Expression] = node(Composed, _OPERATORS, inner, inner)
    return among(primitives, composed, composed, composed, node(limited, inner, _LENGTHS))


def _event(label: str, value: int, begin: int, length: int) -> Event:
    return Event(Term(label, (value,)), Interval(begin, min(begin + length, LATEST)))


@cache
def streams(*, points: bool = False) -> SearchStrategy[Stream]:
    lengths = st.just(0) if points else st.sampled_from((0, 0, 1, 2, 4))
    events = node(_event, _LABELS, st.integers(0, 1), st.integers(0, LATEST), lengths)
    return st.lists(events, max_size=6).map(tuple)


def meaning(expression: Expression, stream: Stream, *, restricted: bool = False) -> dict[Key, Interval]:
    """The instances of an expression, each with its time."""
    found = instances(expression, restricted=restricted, facts=lambda _atom: stream, catalogue=_catalogue())
    return {identity: time for time, _, identity in found}


# ---- theorems 2 and 3 --------------------------------------------------------------------------------------

LAWS = (
    "A | A = A",
    "A | B = B | A",
    "A + B = B + A",
    "A | (B | C) = (A | B) | C",
    "A + (B + C) = (A + B) + C",
    "A; (B; C) = (A; B); C",
    "(A | B) + C = (A + C) | (B + C)",
    "(A | B); C = (A; C) | (B; C)",
    "A; (B | C) = (A; B) | (A; C)",
    "(A | B) - C = (A - C) | (B - C)",
    "(A - B) - C = A - (B | C)",
    "A - (B + C) = (A - B) | (A - C)",
    "(A - B) - B = A - B",
    "(A + B) - C = ((A - C) + (B - C)) - C",
    "(A; B) - C = ((A - C); (B - C)) - C",
    "A[s][t] = A[least]",
    "(A | B)[t] = A[t] | B[t]",
    "(A + B)[t] = (A[t] + B)[t]",
    "(A + B)[t] = (A + B[t])[t]",
    "(A - B)[t] = A[t] - B",
    "(A - B)[t] = (A - B[t])[t]",
    "(A; B)[t] = (A[t]; B)[t]",
    "(A; B)[t] = (A; B[t])[t]",
)
NO_LAWS = ("(A + B) - C = (A - C) + (B - C)", "(A + B)[t] = A[t] + B[t]")


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands for the letters of a law."""

    a: Expression
    b: Expression
    c: Expression
    s: int
    t: int


@cache
def _parsed(side: str) -> Expression:
    source = Source("law.eq", f"p() <- e: algebra unrestricted ({side});")
    return next(find_nodes(parse(source).program, Algebra)).expression


def _side(side: str, parts: Parts) -> Expression:
    """One side of a law, with the parts in place of its letters."""
    for letter, length in (("s", parts.s), ("t", parts.t), ("least", min(parts.s, parts.t))):
        side = side.replace(f"[{letter}]", f"[{length} us]")
    letters = {"A": parts.a, "B": parts.b, "C": parts.c}
    return rebuild(_parsed(side), lambda n: letters[n.label.name] if isinstance(n, AnyEvent) else n)


def _holds(law: str, parts: Parts, stream: Stream) -> bool:
    left, right = law.split(" = ")
    return meaning(_side(left, parts), stream) == meaning(_side(right, parts), stream)


def _parts(depth: int) -> SearchStrategy[Parts]:
    part = expressions(depth)
    return node(Parts, part, part, part, _LENGTHS, _LENGTHS)


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=30)
@given(_parts(1), streams())
def test_the_law_holds(law: str, parts: Parts, stream: Stream) -> None:
    assert _holds(law, parts, stream)


@pytest.mark.parametrize("law", NO_LAWS)
def test_what_is_no_law_is_refuted(law: str) -> None:
    patient = settings(max_examples=5000, database=None, derandomize=True)
    find(st.tuples(_parts(0), streams()), lambda case: not _holds(law, *case), settings=patient)


@given(expressions(0), _LENGTHS, streams(points=True))
def test_points_are_never_too_long(primitive: Expression, most: int, stream: Stream) -> None:
    assert meaning(limited(primitive, most), stream) == meaning(primitive, stream)


# ---- restriction -------------------------------------------------------------------------------------------


@given(expressions(2), streams())
def test_restriction_keeps_one_of_each_end_and_none_begins_later(expression: Expression, stream: Stream) -> None:
    every, kept = meaning(expression, stream), meaning(expression, stream, restricted=True)
    assert kept.items() <= every.items()
    latest = {time.end: time.begin for time in kept.values()}
    assert len(latest) == len(kept)
    for time in every.values():
        assert time.end in latest
        assert time.begin <= latest[time.end]


@given(expressions(2), streams())
def test_restriction_minds_no_order_of_the_input(expression: Expression, stream: Stream) -> None:
    assert meaning(expression, stream, restricted=True) == meaning(expression, stream[::-1], restricted=True)
