"""This module writes declarations; who calls it says how a list of attributes is written, for it has comments."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from ephemera.syntax.format_terms import amount, duration, label, plain, quote
from ephemera.syntax.layout import Chain, Doc, Hanging, Item, row
from ephemera.syntax.nodes import Attribute, Declaration, EventType, Namespace, Stream, Table, TimeUnit, TimeZone


def declaration(declared: Declaration, attributes: Callable[[str, EventType | Table], Doc]) -> Doc:
    match declared:
        case TimeUnit(unit):
            return f"TIME UNIT {duration(unit, words=True)};"
        case TimeZone(zone):
            return f"TIME ZONE {quote(zone)};"
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
        case _:
            assert_never(declared)


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
