"""This module reads values, durations and arithmetic expressions.

Operators climb by precedence: `*`, `/`, `div`, `mod` bind tighter than `+` and `-`, all from left to right.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from itertools import pairwise
from typing import Literal, cast

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help
from ephemera.base.span import Span
from ephemera.base.time import SECOND, SPELLINGS, UNITS, describe, microseconds
from ephemera.syntax.cursor import Cursor, SyntaxFault, no_unit
from ephemera.syntax.lexer import Token, shorten
from ephemera.terms.nodes import (
    Aggregate,
    ArithmeticOperator,
    Binary,
    Bool,
    Call,
    Duration,
    Expression,
    Name,
    Negative,
    Null,
    Number,
    Quantity,
    Text,
    Value,
    Var,
)
from ephemera.terms.ordered_aggregates import ORDERED

UNORDERED_AGGREGATES = ("min", "max", "sum", "count", "avg")
AGGREGATES = (*UNORDERED_AGGREGATES, *ORDERED)
CONSTANTS = ("true", "false", "null")
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "div": 2, "mod": 2}
LARGEST_INTEGER = 2**63 - 1

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([^\W\d_]+)")


def expression(c: Cursor, minimum: int = 1) -> Expression:
    start = c.token.start
    left = _operand(c)
    while (operator := _operator(c)) and PRECEDENCE[operator] >= minimum:
        c.advance()
        right = expression(c, PRECEDENCE[operator] + 1)
        left = Binary(operator, left, right, span=c.span_from(start))
    return left


def _operator(c: Cursor) -> ArithmeticOperator | None:
    """The operator at the cursor; `mod` and `div` may also be labels of the next child in a term."""
    token = c.token
    if token.kind == "op" and token.text in PRECEDENCE:
        return cast(ArithmeticOperator, token.text)
    if token.kind == "name" and token.text in PRECEDENCE and c.look(1).text not in ("{", "[", ":", ",", ";", ")"):
        return cast(ArithmeticOperator, token.text)
    return None


def _operand(c: Cursor) -> Expression:
    token = c.token
    if token.kind in ("number", "duration"):
        return _number_or_duration(c)
    if c.is_at("-"):
        if c.look(1).kind == "number" and not is_unit_word(c.look(2)):
            return value(c)
        c.advance()
        with c.nested():
            return Negative(_operand(c), span=c.span_from(token.start))
    if c.is_at("("):
        c.advance()
        inner = expression(c)
        c.expect(")")
        return inner
    if token.kind == "text" or (token.kind == "name" and token.text in CONSTANTS and c.look(1).text != "("):
        return value(c)
    if token.is_name:
        if c.look(1).text == "(" and c.look(1).kind == "op":
            return _call(c)
        return variable(c) or Name(c.advance().text, span=token.span)
    c.wants("an expression")
    raise c.fault()


def variable(c: Cursor) -> Var | None:
    """``var X`` if it stands here."""
    if c.is_at("var") and c.look(1).is_name:
        start = c.advance().start
        return Var(c.advance().text, span=c.span_from(start))
    return None


def _call(c: Cursor) -> Expression:
    start = c.advance()
    if start.kind == "name" and start.text in AGGREGATES:
        return _aggregate(c, start)
    c.expect("(")
    arguments = c.listed(expression, ")")
    return Call(start.text, arguments, span=c.span_from(start.start))


def _aggregate(c: Cursor, function: Token) -> Aggregate:
    c.expect("(")
    argument: Expression | None = None
    collective = False
    group_by: tuple[Var, ...] = ()
    number: int | None = None
    by: Expression | None = None
    if c.is_at("*") and function.text == "count":
        c.advance()
    else:
        collective = c.is_at("all") and c.look(1).text != ")"
        if collective:
            c.advance()
        argument = expression(c)
        if function.text in ORDERED:
            if function.text in ("nth", "top"):
                number = _which(c, function)
            if function.text == "top" and c.accept("by"):
                by = expression(c)
        elif collective and at_group_by(c):
            group_by = grouping(c)
    c.expect(")")
    return Aggregate(function.text, argument, collective, group_by, number, by, span=c.span_from(function.start))


def _which(c: Cursor, function: Token) -> int:
    """The 3 of ``nth(v, 3)`` and ``top(v, 3 by w)``."""
    c.expect(",")
    token = c.token
    if token.kind == "number" and token.text.isdigit() and 0 < int(token.text) <= LARGEST_INTEGER:
        return int(c.advance().text)
    advice = Help(f"write a whole number from 1, as in `{function.text}(v, 3)`")
    raise c.fault(f"`{function.text}` takes a whole number from 1 here, and it is the same for all answers", advice)


def at_group_by(c: Cursor) -> bool:
    return c.is_at("group-by") or (c.is_at("group") and c.look(1).text == "by")


def grouping(c: Cursor) -> tuple[Var, ...]:
    """``group by { var X, var Y }``, also ``group-by var X``; the cursor is at the first word."""
    if c.advance().text == "group":
        c.expect("by")
    return variables(c)


def variables(c: Cursor) -> tuple[Var, ...]:
    closer = "}" if c.is_at("{") else "]" if c.is_at("[") else None
    if closer is None:
        return (_required_variable(c),)
    c.advance()
    found = [_required_variable(c)]
    while True:
        c.accept(",")
        if c.at(closer):
            break
        found.append(_required_variable(c))
    c.advance()
    return tuple(found)


def _required_variable(c: Cursor) -> Var:
    found = variable(c)
    if found is None:
        c.wants("`var` and a name")
        raise c.fault()
    return found


def value(c: Cursor) -> Value:
    """A text, number, `true`, `false` or `null`."""
    token = c.token
    if c.is_at("-"):
        c.advance()
        number = c.token
        if number.kind != "number":
            c.wants("a number")
            raise c.fault()
        c.advance()
        return _number("-" + number.text, c, token)
    if token.kind == "number":
        c.advance()
        return _number(token.text, c, token)
    if token.kind == "text":
        c.advance()
        return Text(_unescape(token), span=token.span)
    if token.kind == "name" and token.text in CONSTANTS:
        c.advance()
        return Null(span=token.span) if token.text == "null" else Bool(token.text == "true", span=token.span)
    c.wants("a value")
    raise c.fault()


def text(c: Cursor, what: str) -> str:
    return _unescape(c.text(what))


def _unescape(token: Token) -> str:
    try:
        result = json.loads(token.text, strict=False)
        result.encode("utf-8")
    except (ValueError, UnicodeEncodeError):
        raise SyntaxFault(_bad_escape(token)) from None
    return str(result)


_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(?P<bad>.?))')


def _bad_escape(token: Token) -> Diagnostic:
    bad = next((m for m in _ESCAPE.finditer(token.text) if m["bad"] is not None), None)
    if bad is None:
        message, advice = "this text has half a character", Help("write both of its `\\u…` escapes, or the character")
        return Diagnostic(Code.BAD_TOKEN, message, token.span, help=(advice,))
    begin = token.start + bad.start()
    written = re.sub(_ESCAPE, lambda m: m[0] if m["bad"] is None else f"\\{m[0]}", token.text)
    return Diagnostic(
        Code.BAD_TOKEN,
        f"`{bad[0]}` is no escape of a text",
        Span(begin, begin + len(bad[0])),
        notes=('the escapes are those of JSON: \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX',),
        help=(Help("write a backslash as `\\\\`", (Edit(token.span, written),)),),
    )


def _number(digits: str, c: Cursor, start: Token) -> Number:
    span = c.span_from(start.start)
    number: int | float = float(digits)
    whole = digits.lstrip("-").isdigit()
    if whole and math.isfinite(number):
        number = int(digits)
        fits = -LARGEST_INTEGER - 1 <= number <= LARGEST_INTEGER
    else:
        fits = math.isfinite(number)
    if not fits:
        limit = f"integers go up to {LARGEST_INTEGER}" if whole else "numbers go up to 1.79e308"
        message = f"`{shorten(digits)}` is too large: {limit}"
        advice = Help("write a smaller number")
        if whole and math.isfinite(number):
            advice = Help("write it with a decimal point, as a float", (Edit(span, f"{digits}.0"),))
        raise SyntaxFault(Diagnostic(Code.BAD_NUMBER, message, span, help=(advice,)))
    return Number(number, span=span)


def _number_or_duration(c: Cursor) -> Expression:
    if c.token.kind == "duration" or is_unit_word(c.look(1)):
        return duration(c)
    return value(c)


def is_unit_word(token: Token) -> bool:
    """A unit apart from its number has two letters or more, so that a name may follow a number."""
    return token.kind == "name" and len(token.text) > 1 and token.text in SPELLINGS


def duration(c: Cursor) -> Duration:
    """``3 weeks 1 day``, ``3w1d``, or a bare number."""
    start = c.token
    parts: list[Quantity] = []
    while c.token.kind in ("number", "duration"):
        if c.token.kind == "duration":
            token = c.advance()
            parts.extend(_part(token, amount, unit) for amount, unit in _PART.findall(token.text))
        elif is_unit_word(c.look(1)):
            number, unit = c.advance(), c.advance()
            parts.append(Quantity(_amount(number), SPELLINGS[unit.text], span=c.span_from(number.start)))
        elif parts:
            break
        else:
            number = c.advance()
            parts.append(Quantity(_amount(number), "", span=number.span))
            c.counts_time()
            break
    if not parts:
        c.wants("a duration")
        raise c.fault()
    span = c.span_from(start.start)
    sizes = [UNITS.get(part.unit, 0) for part in parts]
    if any(a <= b for a, b in pairwise(sizes)):
        message = "the parts of a duration stand in descending order, each unit once"
        length = microseconds(((part.amount, part.unit) for part in parts), SECOND)
        written = describe(length) if length else ""
        edits = (Edit(span, written),) if written else ()
        advice = Help(f"write `{written or '3 weeks 1 day 4 hours'}`", edits)
        raise SyntaxFault(Diagnostic(Code.DURATION, message, span, help=(advice,)))
    return Duration(tuple(parts), span=span)


def _part(token: Token, amount: str, unit: str) -> Quantity:
    if unit not in SPELLINGS:
        begin = token.start + token.text.index(amount + unit)
        raise SyntaxFault(no_unit(amount, unit, Span(begin, begin + len(amount + unit))))
    return Quantity(_checked(Decimal(amount), token), SPELLINGS[unit], span=token.span)


def _amount(token: Token) -> Decimal:
    if "e" in token.text or "E" in token.text:
        message = f"`{token.text}` has an exponent, and a duration is a plain number"
        plain = f"{Decimal(token.text):f}" if len(token.text) < 6 else ""
        edits = (Edit(token.span, plain),) if 0 < len(plain) <= LONGEST_AMOUNT else ()
        advice = Help(f"write `{plain}`" if edits else "write it without an exponent", edits)
        raise SyntaxFault(Diagnostic(Code.DURATION, message, token.span, help=(advice,)))
    return _checked(Decimal(token.text), token)


LONGEST_AMOUNT: Literal[20] = 20


def _checked(amount: Decimal, token: Token) -> Decimal:
    if len(amount.as_tuple().digits) > LONGEST_AMOUNT:
        message, advice = (
            "this duration is too long or too fine",
            Help("microseconds are the finest, 2^62 of them the most"),
        )
        raise SyntaxFault(Diagnostic(Code.DURATION, message, token.span, help=(advice,)))
    return amount
