"""This module writes declarations; who calls it says how a list of attributes is written, for it has comments."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from ephemera.syntax.format_terms import amount, duration, expression, label, plain, quote
from ephemera.syntax.layout import Chain, Doc, Hanging, Item, listed, one_line, row
from ephemera.syntax.nodes import (
    Attribute,
    Declaration,
    DeclaredFunction,
    EventType,
    FromEnvironment,
    Import,
    Namespace,
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
from ephemera.terms.nodes import Duration


def declaration(declared: Declaration, attributes: Callable[[str, EventType | Table], Doc]) -> Doc:
    match declared:
        case TimeUnit(unit):
            return f"TIME UNIT {duration(unit, words=True)};"
        case TimeZone(zone):
            return f"TIME ZONE {quote(zone)};"
        case Import(path, prefix):
            return f"IMPORT {quote(path)} AS {plain(prefix)};"
        case Namespace(prefix, uri):
            return f"NAMESPACE {plain(prefix)} = {quote(uri)};"
        case EventType(name):
            lead = f"EVENT {label(name)}"
            shape = lead if declared.attributes is None else attributes(f"{lead}(", declared)
            return row(shape, *(f" {clause}" for clause in _clauses(declared)), ";")
        case Stream():
            return _stream(declared)
        case Table(name, _, location, form):
            from_ = f" FROM {quote(location)}" if location is not None else ""
            as_ = f" FORMAT {plain(form)}" if form is not None else ""
            return row(attributes(f"TABLE {label(name)}(", declared), f"{from_}{as_};")
        case Write(labels, location):
            named = Hanging("WRITE", tuple(Item(label(name)) for name in labels), "")
            return row(named, f" TO {quote(location)};")
        case Reserve(name, length):
            return f"RESERVE {label(name)} {duration(length, words=True)};"
        case DeclaredFunction(name, takes, gives, place):
            return f"FUNCTION {plain(name)}({', '.join(takes)}): {gives} FROM {quote(place)};"
        case Transport(name, kind, settings):
            lead = f"TRANSPORT {plain(name)} IS {plain(kind)}"
            return row(listed(f"{lead}(", [_setting(s) for s in settings], ")") if settings else lead, ";")
        case _:
            assert_never(declared)


def _setting(setting: Setting) -> Doc:
    match setting.value:
        case FromEnvironment(variable):
            written = f"env({quote(variable)})"
        case Texts(texts):
            written = f"[{', '.join(map(quote, texts))}]"
        case Duration():
            written = duration(setting.value, words=True)
        case value:
            written = one_line(expression(value))
    return f"{plain(setting.name)}={written}"


def attribute(declared: Attribute) -> Doc:
    from_ = f" FROM {quote(declared.column)}" if declared.column is not None else ""
    return f"{plain(declared.name)}: {declared.type}{from_}"


def _clauses(declared: EventType) -> list[str]:
    clauses: list[str] = []
    if declared.lasts is not None:
        limit = declared.lasts.limit
        clauses.append("LASTS ANY" if limit is None else f"LASTS AT MOST {duration(limit, words=True)}")
    if declared.arrives_at_begin:
        clauses.append("ARRIVES AT BEGIN")
    if declared.rate is not None:
        clauses.append(f"RATE {amount(declared.rate.count)} per {declared.rate.per}")
    if declared.apart is not None:
        per = ", ".join(plain(one.name) for one in declared.apart.per)
        apart = f"AT LEAST {duration(declared.apart.distance, words=True)} APART"
        clauses.append(f"{apart} PER {per}" if per else apart)
    return clauses


def _stream(declared: Stream) -> Doc:
    head = f"STREAM {plain(declared.name)}"
    if declared.location is not None:
        head += f" FROM {quote(declared.location)}"
    if declared.format is not None:
        head += f" FORMAT {plain(declared.format)}"
    lines: list[Doc] = [head]
    if declared.carries:
        lines.append(Hanging("CARRIES", tuple(Item(label(name)) for name in declared.carries), ""))
    if declared.time:
        lines.append(f"TIME {', '.join(plain(stamp) for stamp in declared.time)}")
    progress: list[str] = []
    if declared.watermark is not None:
        progress.append(f"WATERMARK {duration(declared.watermark, words=True)}")
    if declared.idle is not None:
        progress.append(f"IDLE {duration(declared.idle, words=True)}")
    if progress:
        lines.append(" ".join(progress))
    return Chain((*lines[:-1], row(lines[-1], ";")))
