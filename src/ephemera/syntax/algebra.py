"""This module reads expressions of the event detection algebra."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from ephemera.syntax.cursor import Cursor
from ephemera.syntax.expressions import duration, is_unit_word
from ephemera.syntax.nodes import Algebra, AlgebraExpression, AlgebraOperator, Composed, Limited
from ephemera.syntax.terms import atom, element, label
from ephemera.terms.nodes import AnyEvent, Name, Var

PRECEDENCE = {"|": 1, "-": 2, "+": 3, ";": 4}


def algebra_follows(c: Cursor) -> bool:
    """``algebra (…)``; an event type of that name has only names and values between its brackets."""
    first = 2 if c.look(1).text in ("restricted", "unrestricted") else 1
    if c.look(first).text == "per" and c.look(first + 1).is_name:
        return True
    if first > 1:
        return c.look(2).text == "("
    inside = c.inside_bracket(1) if c.look(1).text == "(" else []
    return any(t.kind == "op" and t.text in "(){}[];|+" for t in inside) or any(
        t.text == "-" and t.kind == "op" and n.kind != "number" for t, n in pairwise(inside)
    )


def algebra(c: Cursor, name: Name | None, start: int) -> Algebra:
    """An algebra expression as a query, from its first word on."""
    c.advance()
    restricted = True
    if c.is_at("restricted") or c.is_at("unrestricted"):
        restricted = c.advance().text == "restricted"
    per = _correlated(c) if c.accept("per") else ()
    c.expect("(")
    expression = _expression(c)
    c.expect(")")
    return Algebra(name, expression, restricted, per, span=c.span_from(start))


def _correlated(c: Cursor) -> tuple[Var, ...]:
    found: list[Var] = []
    while True:
        token = c.name("a variable")
        found.append(Var(token.text, span=c.span_from(token.start)))
        if not c.accept(","):
            return tuple(found)


def _expression(c: Cursor, minimum: int = 1) -> AlgebraExpression:
    start = c.token.start
    left = _operand(c)
    while c.token.kind == "op" and PRECEDENCE.get(c.token.text, 0) >= minimum:
        operator = cast(AlgebraOperator, c.advance().text)
        right = _expression(c, PRECEDENCE[operator] + 1)
        left = Composed(operator, left, right, span=c.span_from(start))
    return left


def _operand(c: Cursor) -> AlgebraExpression:
    start = c.token.start
    found: AlgebraExpression
    if c.accept("("):
        found = _expression(c)
        c.expect(")")
    else:
        found = _primitive(c)
    while c.is_at("["):
        c.advance()
        length = duration(c)
        c.expect("]")
        found = Limited(found, length, span=c.span_from(start))
    return found


def _primitive(c: Cursor) -> AlgebraExpression:
    name = label(c, "an event type")
    if c.is_at("("):
        return atom(c, name)
    if c.is_at("{") or (c.is_at("[") and not _limit_follows(c)):
        return element(c, name)
    return AnyEvent(name, span=name.span)


def _limit_follows(c: Cursor) -> bool:
    """Whether a square bracket behind a label holds a duration, and not the children of a term."""
    inside = c.inside_bracket(0)
    return bool(inside) and all(t.kind in ("number", "duration") or is_unit_word(t) for t in inside)
