"""This module reads the cells of CSV files as events.

A cell that is empty is null. A cell of an attribute that is declared `string` is a text; any other is read as JSON,
and is a text if it is none: just as the cells of tables are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ephemera.formats.check_columns import Offer, WrongColumns, check_columns, refused_types
from ephemera.formats.csv_rows import BadFile, Row, Sheet, place_of
from ephemera.formats.decode_arrow import only_label, stamp_columns, time_columns
from ephemera.formats.json_events import BadEvent, original_text
from ephemera.formats.reading import read_event
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.terms.events import Event


def object_of_cells(row: Mapping[str, str | None], catalogue: Catalogue) -> dict[str, Any]:
    """A row of a CSV file as the JSON object of an event."""
    label = row.get("event") or None if "event" in row else only_label(catalogue)
    times = time_columns(row, catalogue, label or "")
    if not times:
        stamp_columns(row, catalogue)  # there may be some for other types; otherwise the file is no use
    stamps = [read_cell(row.get(name), "time") for name in times]
    schema = catalogue.events.get(label) if label is not None else None
    types = dict(schema.attributes or ()) if schema is not None else {}
    is_open = schema is None or schema.attributes is None
    names = [n for n in row if n not in ("event", *times)] if is_open else list(types)
    data = {name: read_cell(row.get(name), types.get(name, "any")) for name in names}
    time = stamps if len(stamps) > 1 else stamps[0] if stamps else None
    return {"event": label, "time": time, "data": {n: v for n, v in data.items() if v is not None}}


def event_of_row(row: Row, name: str, compiled: Compiled) -> tuple[Event | BadEvent, dict[str, Any] | None]:
    """The event of a row of a file, or what is wrong with it and where it stands; and the JSON object that it is."""
    if row.cells is None:
        return BadEvent(original_text(row.line.rstrip(b"\r\n")), f"{place_of(name, row)}: {row.complaint}"), None
    given = object_of_cells(row.cells, compiled.rules.resolved.catalogue)
    event = read_event(given, compiled)
    if isinstance(event, BadEvent):
        original = json.dumps(row.cells, ensure_ascii=False)
        return BadEvent(original, f"{place_of(name, row)}: {event.reason}", event.label), given
    return event, given


def events_of_sheet(
    sheet: Sheet | BadFile, compiled: Compiled, *, complete: bool
) -> Iterator[tuple[Event | BadEvent, dict[str, Any] | None]]:
    """The events of a file that came while a run was on its way; what is wrong with the file is wrong with each row.

    If rows are to be `complete`, those of a type for which not all columns are there are bad.
    """
    if isinstance(sheet, BadFile):
        yield BadEvent("", str(sheet)), None
        return
    if sheet.is_empty:
        return
    catalogue = compiled.rules.resolved.catalogue
    refused, every = refused_types(sheet.columns, sheet.name, catalogue) if complete else {}, None
    try:
        check_columns([Offer(sheet.name, sheet.columns)], catalogue, lenient=True)
        label = None if "event" in sheet.columns else only_label(catalogue)
    except WrongColumns as error:
        every, label = str(error).partition("\n")[0], None
    for row in sheet.rows():
        why = every or (refused.get(label or row.cells.get("event", "")) if row.cells is not None else None)
        if row.cells is None or why is None:
            yield event_of_row(row, sheet.name, compiled)
        else:
            yield event_of_row(replace(row, cells=None, complaint=why), sheet.name, compiled)


def read_cell(cell: str | None, declared: str) -> Any:
    """A cell as a value of JSON."""
    if cell is None or cell == "":
        return None
    if declared == "string":
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell
