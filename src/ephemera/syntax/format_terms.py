"""This module writes names, values, expressions, conditions and algebra expressions: what stays on one line.

A name is put in backquotes where it would be read as something else. Expressions and conditions get brackets
where they are needed, algebra expressions wherever two operators meet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import assert_never

from ephemera.base.time import SHORT
from ephemera.syntax.expressions import AGGREGATES, PRECEDENCE
from ephemera.syntax.lexer import is_plain_name
from ephemera.syntax.nodes import (
    AlgebraExpression,
    AllOf,
    AnyOf,
    Apart,
    Comparison,
    Composed,
    Condition,
    InCalendar,
    IsNull,
    Limited,
    Not,
    Parameter,
    Relation,
    Unlimited,
    Within,
)
from ephemera.syntax.queries import TIMER_KINDS
from ephemera.terms.nodes import (
    Aggregate,
    Anonymous,
    Binary,
    Bool,
    Call,
    Duration,
    Expression,
    Label,
    Name,
    Negative,
    Null,
    Number,
    Pattern,
    Text,
    Var,
)

_MISREAD_WORDS = {"_", "true", "false", "null", "not", "var", "all", "desc", "having", "timer", "datetime"}
_MISREAD_ROOTS = {"and", "or", "not", "where", "having", "algebra", *TIMER_KINDS}
_MISREAD_FUNCTIONS = {"not", "all", "optional", *AGGREGATES}


def plain(name: str) -> str:
    """A name where any word may stand."""
    return name if is_plain_name(name) else f"`{name}`"


def word(name: str) -> str:
    """A variable or event identifier, which must not be taken for a value or a keyword."""
    return f"`{name}`" if name in _MISREAD_WORDS else plain(name)


def label(name: Label) -> str:
    return f"{plain(name.prefix)}:{plain(name.name)}" if name.prefix else plain(name.name)


def root_label(name: Label) -> str:
    """The label of an event pattern, which must not be taken for a keyword of the query."""
    return f"`{name.name}`" if not name.prefix and name.name in _MISREAD_ROOTS else label(name)


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def braces(ordered: bool, partial: bool) -> tuple[str, str]:
    opener, closer = ("[", "]") if ordered else ("{", "}")
    return (opener * 2, closer * 2) if partial else (opener, closer)


def joined(variables: Sequence[Var]) -> str:
    return ", ".join(f"var {plain(v.name)}" for v in variables)


def duration(length: Duration, *, words: bool = False) -> str:
    """``6 hours`` in words, ``6h`` in short."""
    if words:
        return " ".join(_in_words(f"{p.amount:f}", p.unit) for p in length.parts)
    return "".join(f"{p.amount:f}{SHORT[p.unit] if p.unit else ''}" for p in length.parts)


def _in_words(amount: str, unit: str) -> str:
    if not unit:
        return amount
    plural = "s" if unit in ("week", "day", "hour") and amount != "1" else ""
    return f"{amount} {unit}{plural}"


def expression(e: Expression | Anonymous, outer: int = 0) -> str:
    """`outer` is the precedence of what stands around; looser expressions get brackets."""
    match e:
        case Var(name):
            return f"var {plain(name)}"
        case Name(name):
            return word(name)
        case Anonymous():
            return "_"
        case Text(value):
            return quote(value)
        case Number(number):
            return repr(number)
        case Bool(truth):
            return "true" if truth else "false"
        case Null():
            return "null"
        case Duration():
            return duration(e)
        case Negative(operand):
            return f"- {expression(operand, 3)}"
        case Binary(operator, left, right):
            level = PRECEDENCE[operator]
            text = f"{expression(left, level)} {operator} {expression(right, level + 1)}"
            return f"({text})" if level < outer else text
        case Call(function, arguments):
            name = f"`{function}`" if function in _MISREAD_FUNCTIONS else plain(function)
            return f"{name}({', '.join(expression(a) for a in arguments)})"
        case Aggregate(function, argument, collective, group_by):
            if argument is None:
                return f"{function}(*)"
            lead = "all " if collective else ""
            group = f" group by {{ {joined(group_by)} }}" if group_by else ""
            return f"{function}({lead}{expression(argument)}{group})"
        case _:
            assert_never(e)


def condition(c: Condition, *, words: bool = False, outer: int = 0) -> str:
    """`outer` is 0 in a list, 1 within `or`, 2 within `and`, 3 behind `not`."""
    match c:
        case Comparison(operator, left, right):
            return f"{expression(left)} {operator} {expression(right)}"
        case IsNull(operand, negated):
            return f"{expression(operand)} is {'not ' if negated else ''}null"
        case Relation(relation, left, right, parameters):
            metric = f"[{', '.join(_parameter(p, words=words) for p in parameters)}]" if parameters else ""
            return f"{expression(left)} {relation}{metric} {expression(right)}"
        case Within(events, length):
            return f"{_names(events)} within {duration(length, words=words)}"
        case Apart(events, length):
            return f"{_names(events)} apart-by {duration(length, words=words)}"
        case InCalendar(events, calendar):
            return f"{_names(events)} in {label(calendar)}()"
        case Not(inner):
            return f"not {condition(inner, words=words, outer=3)}"
        case AllOf(conditions):
            text = " and ".join(condition(m, words=words, outer=2) for m in conditions)
            return f"({text})" if outer > 1 else text
        case AnyOf(conditions):
            text = " or ".join(condition(m, words=words, outer=1) for m in conditions)
            return f"({text})" if outer > 0 else text
        case _:
            assert_never(c)


def _parameter(parameter: Parameter, *, words: bool) -> str:
    return "*" if isinstance(parameter, Unlimited) else duration(parameter, words=words)


def _names(events: Sequence[Name]) -> str:
    return "{" + ", ".join(plain(e.name) for e in events) + "}"


def algebra(e: AlgebraExpression, pattern: Callable[[Pattern], str]) -> str:
    match e:
        case Composed(operator, left, right):
            same = isinstance(left, Composed) and left.operator == operator
            first = algebra(left, pattern) if same or not isinstance(left, Composed) else f"({algebra(left, pattern)})"
            second = f"({algebra(right, pattern)})" if isinstance(right, Composed) else algebra(right, pattern)
            sign = f" {operator} " if operator != ";" else "; "
            return first + sign + second
        case Limited(operand, length):
            inner = algebra(operand, pattern)
            return f"({inner})[{duration(length)}]" if isinstance(operand, Composed) else f"{inner}[{duration(length)}]"
        case _:
            return pattern(e)
