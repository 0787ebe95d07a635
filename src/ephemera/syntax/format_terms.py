"""This module writes names, values, expressions, conditions and algebra expressions, which hold no comments.

A name is put in backquotes where it would be read as something else. Expressions and conditions get brackets
where they are needed, algebra expressions wherever two operators meet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import assert_never

from ephemera.base.errors import InternalError
from ephemera.base.time import SHORT, split
from ephemera.syntax.cursor import ENDINGS
from ephemera.syntax.expressions import AGGREGATES, PRECEDENCE
from ephemera.syntax.layout import Bracketed, Chain, Doc, Item, listed, one_line, parenthesized, row
from ephemera.syntax.lexer import is_plain_name
from ephemera.syntax.nodes import (
    AlgebraExpression,
    AllOf,
    AnyOf,
    Apart,
    Between,
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
    While,
    Window,
    Within,
)
from ephemera.syntax.queries import TIMER_KINDS
from ephemera.terms.nodes import (
    Aggregate,
    Anonymous,
    AnyEvent,
    Atom,
    Binary,
    Bool,
    Call,
    Construct,
    Duration,
    Element,
    Expression,
    Field,
    Label,
    Name,
    NamedAtom,
    Negative,
    Null,
    Number,
    Pattern,
    Periodic,
    Quantity,
    Text,
    Var,
)

_MISREAD_WORDS = {"_", "true", "false", "null", "not", "var", "all", "desc", "having", "timer", "datetime"}
_MISREAD_ROOTS = {"and", "or", "not", "where", "having", "algebra", *TIMER_KINDS}
_MISREAD_FUNCTIONS = {"not", "all", "optional", *AGGREGATES, *ENDINGS}


def plain(name: str) -> str:
    """A name where any word may stand; what is in backquotes already, as attributes of plans are, stays so."""
    return name if is_plain_name(name) or name.startswith("`") else f"`{name}`"


def word(name: str) -> str:
    """A variable or event identifier, which must not be taken for a value or a keyword."""
    return f"`{name}`" if name in _MISREAD_WORDS else plain(name)


def label(name: Label) -> str:
    return f"{plain(name.prefix)}:{plain(name.name)}" if name.prefix else plain(name.name)


def root_label(name: Label) -> str:
    """The label of an event pattern, which must not be taken for a keyword of the query."""
    return f"`{name.name}`" if not name.prefix and name.name in _MISREAD_ROOTS else label(name)


def element_label(name: Label | Var) -> str:
    return f"var {plain(name.name)}" if isinstance(name, Var) else label(name)


def identifier(name: Name | None, pattern: Pattern | None, *, block: bool) -> str:
    """What stands before an event to name it; `_` keeps a namespace in an arrow rule from being taken for that."""
    if name is not None:
        return f"event {word(name.name)}: " if block else f"{word(name.name)}: "
    if block:
        return ""
    foreign = isinstance(pattern, Atom | NamedAtom | AnyEvent | Element) and isinstance(pattern.label, Label)
    if foreign and pattern.label.prefix and pattern.label.prefix not in ("timer", "datetime"):  # type: ignore[union-attr]
        return "_: "
    return ""


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def braces(ordered: bool, partial: bool) -> tuple[str, str]:
    opener, closer = ("[", "]") if ordered else ("{", "}")
    return (opener * 2, closer * 2) if partial else (opener, closer)


def variables(opener: str, names: Sequence[Var], closer: str, pad: str = " ") -> Doc:
    return Bracketed(opener, tuple(Item(f"var {plain(v.name)}") for v in names), closer, pad)


def duration(length: Duration, *, words: bool = False) -> str:
    """``6 hours`` in words, ``6h`` in short."""
    if words:
        return " ".join(_in_words(amount(p.amount), p.unit) for p in length.parts)
    return "".join(f"{amount(p.amount)}{SHORT[p.unit] if p.unit else ''}" for p in length.parts)


def periodic(timer: Periodic, *, words: bool = False, units: bool = False) -> str:
    """``every 10s offset 3s``, ``window 10m every 1m``; in the largest units that there are, if that is asked for."""
    parts = [("window", timer.length), ("every", timer.period), ("offset", timer.offset)]
    given = [(name, d) for name, d in parts if d is not None]
    return " ".join(f"{name} {duration(_in_units(d) if units else d, words=words)}" for name, d in given)


def _in_units(length: Duration) -> Duration:
    """A duration that counts microseconds as people write it."""
    if any(part.unit != "us" for part in length.parts):
        return length
    whole = int(sum(part.amount for part in length.parts))
    return Duration(tuple(Quantity(Decimal(count), unit) for count, unit in split(whole)))


def amount(count: Decimal) -> str:
    """Equal amounts are written alike: without zeros at the end."""
    text = f"{count:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _in_words(count: str, unit: str) -> str:
    if not unit:
        return count
    plural = "s" if unit in ("week", "day", "hour") and count != "1" else ""
    return f"{count} {unit}{plural}"


def number(n: int | float) -> str:
    """Reads back as the same number; a float is written with an exponent where that is shorter, from 1e6 on."""
    if isinstance(n, int) or abs(n) < 1e6:
        return re.sub(r"e-0*", "e-", repr(n))
    digits = Decimal(repr(n)).normalize().as_tuple()
    first, *rest = map(str, digits.digits)
    exponent = int(digits.exponent) + len(rest)
    scientific = f"{'-' * digits.sign}{first}{'.' if rest else ''}{''.join(rest)}e{exponent}"
    return scientific if "e" in repr(n) or len(scientific) < len(repr(n)) else repr(n)


def expression(e: Expression | Anonymous, outer: int = 0) -> Doc:
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
        case Number(value):
            return number(value)
        case Bool(truth):
            return "true" if truth else "false"
        case Null():
            return "null"
        case Duration():
            return duration(e)
        case Negative(operand):
            return row("- ", expression(operand, 3))
        case Binary(operator):
            level = PRECEDENCE[operator]
            links, first = _operands(e, level)
            chain = Chain((expression(first, level), *(row(f"{o} ", expression(r, level + 1)) for o, r in links)))
            return parenthesized(chain) if level < outer else chain
        case Call(function, arguments):
            name = f"`{function}`" if function in _MISREAD_FUNCTIONS else plain(function)
            return listed(f"{name}(", [expression(a) for a in arguments], ")")
        case Aggregate(function, argument, collective, group_by, which, by):
            if argument is None:
                return f"{function}(*)"
            if isinstance(argument, Construct):
                raise InternalError("format", "an aggregate over elements stands among construct terms")
            lead = "all " if collective else ""
            group = (" group by ", variables("{", group_by, "}")) if group_by else ()
            parts = [row(lead, expression(argument), *group)]
            if which is not None:
                parts.append(row(str(which), *((" by ", expression(by)) if by is not None else ())))
            return listed(f"{function}(", parts, ")")
        case _:
            assert_never(e)


def _operands(e: Expression, level: int) -> tuple[list[tuple[str, Expression]], Expression]:
    """The operands of operators of one level, each with its operator, and the first, which has none."""
    links: list[tuple[str, Expression]] = []
    while isinstance(e, Binary) and PRECEDENCE[e.operator] == level:
        links.append((e.operator, e.right))
        e = e.left
    return links[::-1], e


def field(f: Field) -> Doc:
    return row(f"{plain(f.name)}: ", expression(f.argument))


def condition(c: Condition, *, words: bool = False, outer: int = 0) -> Doc:
    """`outer` is 0 in a list, 1 within `or`, 2 within `and`, 3 behind `not`."""
    match c:
        case Comparison(operator, left, right):
            return row(expression(left), f" {operator} ", expression(right))
        case IsNull(operand, negated):
            return row(expression(operand), f" is {'not ' if negated else ''}null")
        case Relation(relation, left, right, parameters):
            metric = f"[{', '.join(_parameter(p, words=words) for p in parameters)}]" if parameters else ""
            return row(expression(left), f" {relation}{metric} ", expression(right))
        case Within(events, length):
            return row(_names(events), f" within {duration(length, words=words)}")
        case Apart(events, length):
            return row(_names(events), f" apart-by {duration(length, words=words)}")
        case InCalendar(events, calendar):
            return row(_names(events), f" in {label(calendar)}()")
        case Not(AnyOf(_, True) as none):
            return _in_list(none, "not in")
        case Not(inner):
            return row("not ", condition(inner, words=words, outer=3))
        case AllOf(conditions):
            return _alternation("and ", [condition(m, words=words, outer=2) for m in conditions], outer > 1)
        case AnyOf(_, True) as either:
            return _in_list(either, "in")
        case AnyOf(conditions):
            return _alternation("or ", [condition(m, words=words, outer=1) for m in conditions], outer > 0)
        case _:
            assert_never(c)


def _in_list(either: AnyOf, word: str) -> Doc:
    members = [member for member in either.conditions if isinstance(member, Comparison)]
    return row(expression(members[0].left), f" {word} ", listed("(", [expression(m.right) for m in members], ")"))


def _alternation(operator: str, members: Sequence[Doc], bracketed: bool) -> Doc:
    chain = Chain((members[0], *(row(operator, member) for member in members[1:])))
    return parenthesized(chain) if bracketed else chain


def _parameter(parameter: Parameter, *, words: bool) -> str:
    return "*" if isinstance(parameter, Unlimited) else duration(parameter, words=words)


def _names(events: Sequence[Name]) -> Doc:
    return listed("{", [plain(e.name) for e in events], "}")


def window(w: Window) -> str:
    match w:
        case While(Name(name), begin, end):
            limits = "" if begin and end else f"({'incl' if begin else 'excl'},{'incl' if end else 'excl'})"
            return f"while{limits} {word(name)}"
        case Between(first, last):
            return f"from {word(first.name)} until {word(last.name)}"
        case _:
            assert_never(w)


def algebra(e: AlgebraExpression, pattern: Callable[[Pattern], str]) -> str:
    """An algebra expression on one line."""
    return one_line(algebra_document(e, pattern))


def algebra_document(e: AlgebraExpression, pattern: Callable[[Pattern], Doc]) -> Doc:
    match e:
        case Composed(operator):
            first, *others = [_algebra_operand(operand, pattern) for operand in _composed(e)]
            if operator == ";":
                return Chain((*(row(operand, ";") for operand in (first, *others[:-1])), others[-1]))
            return Chain((first, *(row(f"{operator} ", operand) for operand in others)))
        case Limited(operand, length):
            return row(_algebra_operand(operand, pattern), f"[{duration(length)}]")
        case _:
            return pattern(e)


def _composed(e: Composed) -> list[AlgebraExpression]:
    """The operands of one operator, which joins from left to right."""
    found: list[AlgebraExpression] = []
    rest: AlgebraExpression = e
    while isinstance(rest, Composed) and rest.operator == e.operator:
        found.append(rest.right)
        rest = rest.left
    return [rest, *reversed(found)]


def _algebra_operand(e: AlgebraExpression, pattern: Callable[[Pattern], Doc]) -> Doc:
    document = algebra_document(e, pattern)
    return parenthesized(document) if isinstance(e, Composed) else document
