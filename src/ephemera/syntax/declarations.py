"""This module reads declarations: time, imports, namespaces, event types, streams, tables and transports."""

from __future__ import annotations

import math
from decimal import Decimal

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help
from ephemera.base.suggest import suggestion
from ephemera.base.time import SPELLINGS
from ephemera.syntax.cursor import Cursor, SyntaxFault, no_unit
from ephemera.syntax.expressions import duration, expression, text
from ephemera.syntax.lexer import Token, shorten
from ephemera.syntax.nodes import (
    Attribute,
    Declaration,
    DeclaredFunction,
    EventType,
    FromEnvironment,
    Import,
    Lasts,
    LeastApart,
    Namespace,
    PerAttribute,
    Rate,
    Reserve,
    Setting,
    Stream,
    Table,
    Texts,
    TimeUnit,
    TimeZone,
    Transport,
    Write,
)
from ephemera.syntax.terms import label
from ephemera.terms.nodes import Bool, Duration, Label, Number, Text

DECLARATIONS = tuple("TIME IMPORT NAMESPACE EVENT STREAM TABLE TRANSPORT WRITE RESERVE FUNCTION".split())
TYPES = ("int", "float", "string", "bool", "time", "any")


def declaration(c: Cursor) -> Declaration:
    start = c.token.start
    found: Declaration
    match c.advance().text:
        case "TIME":
            found = _time(c, start)
        case "IMPORT":
            found = _import(c, start)
        case "NAMESPACE":
            found = _namespace(c, start)
        case "EVENT":
            found = _event(c, start)
        case "STREAM":
            found = _stream(c, start)
        case "WRITE":
            found = _write(c, start)
        case "RESERVE":
            found = _reserve(c, start)
        case "FUNCTION":
            found = _function(c, start)
        case "TRANSPORT":
            found = _transport(c, start)
        case _:
            found = _table(c, start)
    return found


def _time(c: Cursor, start: int) -> Declaration:
    if c.accept("UNIT"):
        unit = duration(c)
        c.expect(";")
        return TimeUnit(unit, span=c.span_from(start))
    c.expect("ZONE")
    zone = text(c, "a time zone in quotes")
    c.expect(";")
    return TimeZone(zone, span=c.span_from(start))


def _import(c: Cursor, start: int) -> Import:
    path = text(c, "the file of a program in quotes")
    c.expect("AS")
    prefix = c.name("a prefix")
    c.expect(";")
    return Import(path, prefix.text, span=c.span_from(start))


def _namespace(c: Cursor, start: int) -> Namespace:
    prefix = c.name("a prefix")
    c.expect("=")
    uri = text(c, "a namespace in quotes")
    c.expect(";")
    return Namespace(prefix.text, uri, span=c.span_from(start))


def _event(c: Cursor, start: int) -> EventType:
    name = label(c, "an event type")
    attributes = _attributes(c) if c.at("(") else None
    lasts: Lasts | None = None
    arrives = False
    rate: Rate | None = None
    apart: LeastApart | None = None
    while not c.at(";"):
        if not lasts and c.at("LASTS"):
            lasts = _lasts(c)
        elif not arrives and c.accept("ARRIVES"):
            c.expect("AT")
            c.expect("BEGIN")
            arrives = True
        elif not rate and c.at("RATE"):
            rate = _rate(c)
        elif not apart and c.at("AT"):
            apart = _apart(c)
        elif apart and c.at("AT"):
            raise c.fault(None, Help("leave one of the two distances out"))
        else:
            raise c.fault()
    c.advance()
    return EventType(name, attributes, lasts, arrives, rate, apart, span=c.span_from(start))


def _lasts(c: Cursor) -> Lasts:
    start = c.advance().start
    if c.accept("ANY"):
        return Lasts(None, span=c.span_from(start))
    c.expect("AT")
    c.expect("MOST")
    return Lasts(duration(c), span=c.span_from(start))


def _apart(c: Cursor) -> LeastApart:
    start = c.advance().start
    c.expect("LEAST")
    distance = duration(c)
    c.expect("APART")
    per: list[PerAttribute] = []
    if c.accept("PER"):
        per.append(_per(c))
        while c.accept(","):
            per.append(_per(c))
    return LeastApart(distance, tuple(per), span=c.span_from(start))


def _per(c: Cursor) -> PerAttribute:
    name = c.name("an attribute")
    return PerAttribute(name.text, span=name.span)


def _rate(c: Cursor) -> Rate:
    start = c.advance().start
    if c.token.kind != "number":
        c.wants("a number")
        raise c.fault()
    count = _count(c.advance())
    c.expect("per")
    unit = c.name("a unit such as `sec`")
    if unit.text not in SPELLINGS:
        raise SyntaxFault(no_unit("", unit.text, unit.span))
    return Rate(count, SPELLINGS[unit.text], span=c.span_from(start))


def _count(token: Token) -> Decimal:
    """How many events a rate counts, exactly as written; a float has to be able to hold it, too."""
    size = float(token.text)
    if math.isfinite(size) and (size or not token.text.lower().split("e")[0].strip("0.")):
        return Decimal(token.text) if size else Decimal(0)
    message = f"`{shorten(token.text)}` is too {'small' if size == 0 else 'large'} for a rate"
    advice = Help("write a number from 1e-300 to 1e300")
    raise SyntaxFault(Diagnostic(Code.BAD_NUMBER, message, token.span, help=(advice,)))


def _attributes(c: Cursor) -> tuple[Attribute, ...]:
    c.expect("(")
    return c.listed(_attribute, ")")


def _attribute(c: Cursor) -> Attribute:
    name = c.name("an attribute")
    if not c.at(":"):
        if c.token.is_name:
            raise c.fault()
        advice = Help(f"write its type behind it, as in `{name.text}: any`", (Edit(c.behind(), ": any"),))
        raise c.fault(None, advice)
    c.advance()
    kind = _type(c)
    many = ""
    if c.accept("["):
        c.expect("]")
        many = "[]"
    column = text(c, "a column or key in quotes") if c.accept("FROM") else None
    return Attribute(name.text, kind + many, column, span=c.span_from(name.start))


def _type(c: Cursor) -> str:
    kind = c.name("a type")
    if kind.text not in TYPES:
        message = f"`{kind.text}` is no type"
        close = suggestion(kind.text, TYPES, aliases=_TYPE_ALIASES)
        advice = (
            Help(f"write `{close}`", (Edit(kind.span, close),)) if close else Help(f"the types are {', '.join(TYPES)}")
        )
        raise SyntaxFault(Diagnostic(Code.UNKNOWN_TYPE, message, kind.span, help=(advice,)))
    return kind.text


_TYPE_ALIASES = {
    "integer": "int",
    "long": "int",
    "bigint": "int",
    "double": "float",
    "number": "float",
    "decimal": "float",
    "str": "string",
    "text": "string",
    "varchar": "string",
    "boolean": "bool",
    "timestamp": "time",
    "datetime": "time",
    "date": "time",
}


def _stream(c: Cursor, start: int) -> Stream:
    name = c.name("a stream's name").text
    location: str | None = None
    form: str | None = None
    carries: tuple[Label, ...] = ()
    time: tuple[str, ...] = ()
    watermark: Duration | None = None
    idle: Duration | None = None
    while not c.at(";"):
        if location is None and c.accept("FROM"):
            location = text(c, "a path in quotes")
        elif form is None and c.accept("FORMAT"):
            form = c.name("a format").text
        elif not carries and c.accept("CARRIES"):
            carries = _labels(c)
        elif not time and c.accept("TIME"):
            time = _stamps(c)
        elif watermark is None and c.accept("WATERMARK"):
            watermark = duration(c)
        elif idle is None and c.accept("IDLE"):
            idle = duration(c)
        else:
            raise c.fault()
    c.advance()
    return Stream(name, location, form, carries, time, watermark, idle, span=c.span_from(start))


def _write(c: Cursor, start: int) -> Write:
    labels = _labels(c)
    c.expect("TO")
    location = text(c, "an address or a path in quotes")
    c.expect(";")
    return Write(labels, location, span=c.span_from(start))


def _reserve(c: Cursor, start: int) -> Reserve:
    name = label(c, "an event type")
    length = duration(c)
    c.expect(";")
    return Reserve(name, length, span=c.span_from(start))


def _function(c: Cursor, start: int) -> DeclaredFunction:
    name = c.name("a function's name")
    c.expect("(")
    takes = c.listed(_type, ")")
    c.expect(":")
    gives = _type(c)
    c.expect("FROM")
    place = text(c, 'a module and a function in quotes, such as "geo:haversine"')
    c.expect(";")
    return DeclaredFunction(name.text, takes, gives, place, span=c.span_from(start))


def _labels(c: Cursor) -> tuple[Label, ...]:
    found = [label(c, "an event type")]
    while c.accept(","):
        found.append(label(c, "an event type"))
    return tuple(found)


def _stamps(c: Cursor) -> tuple[str, ...]:
    first = c.name("a column or key with a time").text
    if c.accept(","):
        return first, c.name("a column or key with a time").text
    return (first,)


def _table(c: Cursor, start: int) -> Table:
    name = label(c, "a table's name")
    attributes = _attributes(c)
    location: str | None = None
    form: str | None = None
    while not c.at(";"):
        if location is None and c.accept("FROM"):
            location = text(c, "a path in quotes")
        elif form is None and c.accept("FORMAT"):
            form = c.name("a format").text
        else:
            raise c.fault()
    c.advance()
    return Table(name, attributes, location, form, span=c.span_from(start))


def _transport(c: Cursor, start: int) -> Transport:
    name = c.name("a transport's name").text
    c.expect("IS")
    kind = c.name("a kind of transport such as `http`").text
    settings: tuple[Setting, ...] = ()
    if c.accept("("):
        settings = c.listed(_setting, ")")
    c.expect(";")
    return Transport(name, kind, settings, span=c.span_from(start))


def _setting(c: Cursor) -> Setting:
    name = c.name("a setting")
    c.expect("=")
    return Setting(name.text, _setting_value(c), span=c.span_from(name.start))


def _setting_value(c: Cursor) -> Text | Number | Bool | Duration | FromEnvironment | Texts:
    start = c.token.start
    if c.is_at("env") and c.look(1).text == "(":
        c.advance()
        c.expect("(")
        variable = text(c, "the name of a variable in quotes")
        c.expect(")")
        return FromEnvironment(variable, span=c.span_from(start))
    if c.accept("["):
        return Texts(c.listed(lambda inner: text(inner, "a text in quotes"), "]"), span=c.span_from(start))
    found = expression(c)
    if isinstance(found, Text | Number | Bool | Duration):
        return found
    advice = Help('write a text, a number, a duration, `true`, `false`, `[…]` or `env("NAME")`')
    message = "a setting is known before the program runs: it cannot be computed"
    raise SyntaxFault(Diagnostic(Code.SYNTAX, message, found.span, help=(advice,)))
