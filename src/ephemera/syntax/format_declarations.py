"""This module writes declarations."""

from __future__ import annotations

from typing import assert_never

from ephemera.syntax.format_terms import duration, label, plain, quote
from ephemera.syntax.layout import WIDTH, Doc, Item, Stack
from ephemera.syntax.nodes import Declaration, EventType, Stream, Table, TimeUnit, TimeZone


def declaration(declared: Declaration) -> Doc:
    match declared:
        case TimeUnit(unit):
            return f"TIME UNIT {duration(unit, words=True)};"
        case TimeZone(zone):
            return f"TIME ZONE {quote(zone)};"
        case EventType():
            return _event_type(declared)
        case Stream():
            return _stream(declared)
        case Table(name, _, location, form):
            from_ = f" FROM {quote(location)}" if location is not None else ""
            as_ = f" FORMAT {plain(form)}" if form is not None else ""
            return f"TABLE {label(name)}{_attributes(declared)}{from_}{as_};"
        case _:
            assert_never(declared)


def _attributes(declared: EventType | Table) -> str:
    return f"({', '.join(f'{plain(a.name)}: {a.type}' for a in declared.attributes or ())})"


def _event_type(declared: EventType) -> Doc:
    clauses: list[str] = []
    if declared.lasts is not None:
        limit = declared.lasts.limit
        clauses.append("LASTS ANY" if limit is None else f"LASTS AT MOST {duration(limit, words=True)}")
    if declared.arrives_at_begin:
        clauses.append("ARRIVES AT BEGIN")
    if declared.rate is not None:
        clauses.append(f"RATE {declared.rate.count:f} per {declared.rate.per}")
    shape = _attributes(declared) if declared.attributes is not None else ""
    return " ".join([f"EVENT {label(declared.label)}{shape}", *clauses]) + ";"


def _stream(declared: Stream) -> Doc:
    clauses: list[str] = []
    if declared.location is not None:
        clauses.append(f"FROM {quote(declared.location)}")
    if declared.format is not None:
        clauses.append(f"FORMAT {plain(declared.format)}")
    head = " ".join([f"STREAM {plain(declared.name)}", *clauses])
    lines: list[str] = []
    if declared.carries:
        lines.append(f"CARRIES {', '.join(label(name) for name in declared.carries)}")
    if declared.time:
        lines.append(f"TIME {', '.join(plain(stamp) for stamp in declared.time)}")
    progress: list[str] = []
    if declared.watermark is not None:
        progress.append(f"WATERMARK {duration(declared.watermark, words=True)}")
    if declared.idle is not None:
        progress.append(f"IDLE {duration(declared.idle, words=True)}")
    if progress:
        lines.append(" ".join(progress))
    whole = " ".join([head, *lines]) + ";"
    if len(whole) <= WIDTH or not lines:
        return whole
    return Stack(((0, Item(head)), *((1, Item(line + (";" if line is lines[-1] else ""))) for line in lines)))
