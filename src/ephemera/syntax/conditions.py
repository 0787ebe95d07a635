"""This module reads conditions: comparisons, Allen relations, metric conditions, and their `and`, `or`, `not`."""

from __future__ import annotations

from typing import cast

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion
from ephemera.syntax.cursor import ENDINGS, Cursor, SyntaxFault
from ephemera.syntax.expressions import PRECEDENCE, duration, expression, text
from ephemera.syntax.lexer import Token
from ephemera.syntax.nodes import (
    AllOf,
    AnyOf,
    Apart,
    Comparison,
    Condition,
    InCalendar,
    IsNull,
    Moment,
    Not,
    Parameter,
    Relation,
    Unlimited,
    Within,
)
from ephemera.syntax.terms import label
from ephemera.terms.nodes import Call, ComparisonOperator, Expression, Label, Name, Negative, Number, Text

RELATIONS = (
    "before",
    "after",
    "meets",
    "met-by",
    "overlaps",
    "overlapped-by",
    "starts",
    "started-by",
    "during",
    "contains",
    "finishes",
    "finished-by",
    "equals",
)
COMPARISONS = ("<", "<=", "=", ">=", ">", "!=")


def continues_expression(token: Token) -> bool:
    """Whether a token behind an operand makes it part of a condition rather than an event pattern."""
    if token.kind == "op":
        return token.text in COMPARISONS or token.text in PRECEDENCE or token.text == "<-"
    return token.kind == "name" and (token.text in RELATIONS or token.text in ("is", "in", "not", "mod", "div"))


def braced_conditions(c: Cursor) -> tuple[Condition, ...]:
    """``{ c1, c2 }``, the commas being optional."""
    opener = c.position
    c.expect("{")
    found = [condition(c)]
    while True:
        c.accept(",")
        if c.at("}"):
            break
        ends_in(c, opener)
        found.append(condition(c))
    c.advance()
    return tuple(found)


def ends_in(c: Cursor, opener: int) -> None:
    """Says so where a brace without a partner is still open and the query ends."""
    if c.is_at(*ENDINGS) and not c.is_closed(opener):
        raise c.unclosed(opener, "}")


def condition(c: Cursor) -> Condition:
    start = c.token.start
    cases = [_conjunction(c)]
    while _joins(c, "or"):
        c.advance()
        cases.append(_conjunction(c))
    if len(cases) == 1:
        return cases[0]
    members = [m for case in cases for m in _members(case)]
    return AnyOf(tuple(members), span=c.span_from(start))


def _members(case: Condition) -> tuple[Condition, ...]:
    return case.conditions if isinstance(case, AnyOf) and not case.is_listed else (case,)


def _conjunction(c: Cursor) -> Condition:
    start = c.token.start
    parts = [_negation(c)]
    while _joins(c, "and"):
        c.advance()
        parts.append(_negation(c))
    if len(parts) == 1:
        return parts[0]
    members = [m for part in parts for m in (part.conditions if isinstance(part, AllOf) else (part,))]
    return AllOf(tuple(members), span=c.span_from(start))


def _joins(c: Cursor, word: str) -> bool:
    """Whether `and` or `or` goes on with a condition, ``{a, b} within …`` too, and begins no query of its own."""
    if not c.is_at(word) or c.look(1).text == ":":
        return False
    if c.look(1).text != "{":
        return True
    inside = c.inside_bracket(1)
    return bool(inside) and all(t.is_name or t.text == "," for t in inside)


def _negation(c: Cursor) -> Condition:
    if c.is_at("not") and c.look(1).text not in ("+", "*", "/", *COMPARISONS):
        start = c.advance().start
        with c.nested():
            return Not(_negation(c), span=c.span_from(start))
    return _simple(c)


def _simple(c: Cursor) -> Condition:
    start, position = c.token.start, c.position
    if c.is_at("{"):
        return _metric(c)
    if c.is_at("(") and not continues_expression(c.after_bracket(0)):
        c.advance()
        inner = condition(c)
        c.expect(")")
        return inner
    if not _operand_may_begin(c.token):
        c.wants("a condition")
        raise c.fault()
    left = expression(c)
    if c.token.kind == "name" and c.token.text in RELATIONS:
        return _relation(c, left, start)
    if c.is_at("not") and c.look(1).text == "in":
        c.advance()
        return Not(_listed_values(c, left, start), span=c.span_from(start))
    if c.is_at("in"):
        return _listed_values(c, left, start)
    if c.is_at("is"):
        c.advance()
        negated = c.accept("not") is not None
        c.expect("null")
        return IsNull(left, negated, span=c.span_from(start))
    if c.is_at("<-") and c.look(1).kind == "number":
        return _below_negative(c, left, start)
    if not c.is_at(*COMPARISONS):
        if c.position == position + 1 and (unit := c.unit_fault(position)):
            raise unit
        c.wants("a comparison")
        if isinstance(left, Name | Call):
            c.wants("a temporal relation")
        raise c.fault(None, *_comparison_help(c, left))
    sign = c.advance()
    if c.token.text in ("=", "<", ">") and c.token.start == sign.end:
        raise _doubled(sign, c.token)
    operator = cast(ComparisonOperator, sign.text)
    right = expression(c)
    return Comparison(operator, left, right, span=c.span_from(start))


def _listed_values(c: Cursor, left: Expression, start: int) -> Condition:
    """``x in ("a", "b")``, which says ``x = "a" or x = "b"``; one event lies in a calendar as ``{e} in cal:x()``."""
    c.advance()
    if c.is_at("{", "[") or c.token.is_name:
        advice = Help(
            "write values in parentheses, as in `x in (1, 2)`; and events in braces, as in `{e} in cal:day()`"
        )
        raise c.fault("`in` takes a list of values in parentheses", advice)
    c.expect("(")
    values = c.listed(expression, ")")
    if not values:
        raise c.fault("nothing is in an empty list", Help("name at least one value"))
    members = tuple(Comparison("=", left, value, span=value.span) for value in values)
    return AnyOf(members, is_listed=True, span=c.span_from(start))


def _operand_may_begin(token: Token) -> bool:
    return token.kind in ("name", "quoted", "number", "duration", "text") or token.text in ("-", "(")


_SIGNS = {"==": "=", "<>": "!=", "=<": "<=", "=>": ">="}


def _doubled(first: Token, second: Token) -> SyntaxFault:
    """Signs of other languages that are two of ours."""
    written, span = first.text + second.text, first.span.to(second.span)
    sign = _SIGNS.get(written, first.text)
    advice = Help(f"write `{sign}`", (Edit(span, sign),))
    return SyntaxFault(Diagnostic(Code.SYNTAX, f"there is no sign `{written}`", span, help=(advice,)))


def _comparison_help(c: Cursor, left: Expression) -> tuple[Help, ...]:
    if isinstance(left, Name) and (names := _listed(c, left)):
        first, *_, last = [names[0], *names]
        word = c.look(2 * (len(names) - 1)).text
        written = ", ".join(name.text for name in names)
        edits = (Edit(Span(first.start, first.start), "{"), Edit(Span(last.end, last.end), "}"))
        return (Help(f"write the events in braces: `{{{written}}} {word} …`", edits),)
    close = suggestion(c.token.text, RELATIONS) if c.token.kind == "name" else None
    return (Help(f"did you mean `{close}`?", (Edit(c.token.span, close),)),) if close else ()


def _listed(c: Cursor, first: Name) -> list[Token]:
    """The names of ``a, b within 1 hour``, of which the first has been read; none if it is something else."""
    names = [c.previous()] if c.previous().span == first.span else []
    while names and c.look(2 * len(names) - 2).text == "," and c.look(2 * len(names) - 1).is_name:
        names.append(c.look(2 * len(names) - 1))
    return names if c.look(2 * (len(names) - 1)).text in ("within", "apart-by") else []


def _below_negative(c: Cursor, left: Expression, start: int) -> Comparison:
    """``x <-5``, written without a space, is x < -5: an arrow makes no sense within a condition."""
    c.advance()
    right = expression(c)
    span = c.span_from(start)
    if isinstance(right, Number):
        return Comparison("<", left, Number(-right.value, span=right.span), span=span)
    return Comparison("<", left, Negative(right, span=right.span), span=span)


def _relation(c: Cursor, left: Expression, start: int) -> Relation:
    if not isinstance(left, Name) and not (isinstance(left, Call) and left.function == "datetime"):
        raise c.fault(f"`{c.token.text}` relates events, not values", Help("name an event of the body before it"))
    relation = c.advance().text
    parameters: list[Parameter] = []
    if c.accept("["):
        parameters.append(_parameter(c))
        while c.accept(","):
            parameters.append(_parameter(c))
        c.expect("]")
    right = _moment(c)
    return Relation(relation, left, right, tuple(parameters), span=c.span_from(start))


def _parameter(c: Cursor) -> Parameter:
    if star := c.accept("*"):
        return Unlimited(span=star.span)
    if c.is_at("-"):
        advice = Help("write it without the sign, or turn the relation round", (Edit(c.token.span, ""),))
        raise c.fault("a distance between events is never negative", advice)
    return duration(c)


def _moment(c: Cursor) -> Moment:
    if c.is_at("datetime") and c.look(1).text == "(":
        start = c.advance().start
        c.expect("(")
        quoted = c.token
        moment = Text(text(c, "a date and time in quotes"), span=quoted.span)
        c.expect(")")
        return Call("datetime", (moment,), span=c.span_from(start))
    token = c.name("an event identifier")
    return Name(token.text, span=token.span)


def _metric(c: Cursor) -> Condition:
    start = c.expect("{").start
    names = [identifier(c)]
    while True:
        c.accept(",")
        if c.at("}"):
            break
        names.append(identifier(c))
    c.advance()
    events = tuple(names)
    if c.accept("within"):
        return Within(events, duration(c), span=c.span_from(start))
    if c.accept("apart-by"):
        return Apart(events, duration(c), span=c.span_from(start))
    if c.accept("in"):
        return InCalendar(events, calendar(c), span=c.span_from(start))
    if c.token.kind in ("number", "duration"):
        length = duration(c)
        c.expect("apart")
        return Apart(events, length, span=c.span_from(start))
    c.wants("a duration and `apart`")
    word = "within" if c.is_at("<", "<=") else "apart-by" if c.is_at(">", ">=") else None
    raise c.fault(None, *([Help(f"write `{word}`", (Edit(c.token.span, word),))] if word else []))


def calendar(c: Cursor) -> Label:
    name = label(c, "a calendar such as `cal:workday()`")
    c.expect("(")
    c.expect(")")
    return name


def identifier(c: Cursor) -> Name:
    token = c.name("an event identifier")
    return Name(token.text, span=token.span)
