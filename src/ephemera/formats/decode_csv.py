"""This module reads CSV files as events: cuts them into rows of cells, and says what is wrong with a line or header.

One line is one row. So a quote that is not closed costs its own line and no other, and a file can be read in parts; a
cell with a line break is two bad lines. A line has as many cells as the header. A cell may stand in quotes, and then
quotes in it are doubled; elsewhere quotes are plain characters. Blank lines count for nothing.

A cell that is empty is null. A cell of an attribute that is declared `string` is a text; any other is read as JSON,
and is a text if it is none: just as the cells of tables are.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from ephemera.base.errors import EphemeraError
from ephemera.formats.check_columns import (
    Offer,
    WrongColumns,
    check_columns,
    refused_types,
    row_label,
    stamp_columns,
    time_columns,
)
from ephemera.formats.json_events import BadEvent, Message, original_text, read_message
from ephemera.formats.reading import read_event
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.terms.errors import LARGEST_LINE, BadMessage
from ephemera.terms.events import Event

BOM = b"\xef\xbb\xbf"
_OTHERS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00": "UTF-16 or UTF-32"}
COMPRESSED = ".gz"


class BadFile(EphemeraError, ValueError):
    """A file of which nothing can be read; the reason names it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a CSV file: the line, its number counted from 1 (0: unknown), its cells by column, or what is wrong."""

    line: bytes
    number: int
    cells: dict[str, str] | None
    complaint: str = ""


def header_of(line: bytes, name: str) -> tuple[str, ...]:
    """The columns that the first line of a file names."""
    shown = next((form for mark, form in _OTHERS.items() if mark in line[:4]), None)
    if shown is not None:
        raise BadFile(f"cannot read {name}: it is {shown}, by its first bytes; save it as UTF-8")
    if b"\r" in line.rstrip(b"\r\n"):
        raise BadFile(f"cannot read {name}: its lines end in CR alone; save it with LF or CRLF")
    try:
        columns = tuple(cells_of(line.removeprefix(BOM)))
    except BadMessage as error:
        raise BadFile(f"cannot read {name}: its header, the first line, is wrong: {error}") from None
    twice = [column for column, count in Counter(columns).items() if count > 1 and column]
    if twice:
        raise BadFile(f"cannot read {name}: it has several columns `{twice[0]}`; rename all but one")
    return columns


def cells_of(line: bytes) -> list[str]:
    """The cells of a line."""
    if len(line) > LARGEST_LINE:
        raise BadMessage(f"the line has more than {LARGEST_LINE:,} bytes")
    try:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"the line is not UTF-8: {error.reason} at byte {error.start:,}") from None
    if "\0" in text:
        raise BadMessage("the line has a NUL byte; is the file UTF-16, or broken?")
    if '"' not in text:
        return text.split(",")
    csv.field_size_limit(LARGEST_LINE)
    try:
        cells = next(csv.reader([text.replace("\r", "\0")], strict=True))  # for it, a line would end there
        return [cell.replace("\0", "\r") for cell in cells]
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise BadMessage("a quote is not closed in its line; a row is one line, without line breaks") from None
        raise BadMessage("behind the quote that closes a cell comes a comma; a quote in quotes is doubled") from None


def row_of(line: bytes, number: int, columns: tuple[str, ...]) -> Row:
    """A line by the columns of its file."""
    try:
        cells = cells_of(line)
    except BadMessage as error:
        return Row(line, number, None, str(error))
    if len(cells) != len(columns):
        return Row(line, number, None, f"the row has {len(cells)} cells, and the header {len(columns)}")
    return Row(line, number, dict(zip(columns, cells, strict=True)))


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing at all."""
    return not line.strip()


def is_empty(line: bytes, number: int) -> bool:
    """Whether a line holds nothing at all, or is the first and holds nothing but the mark that files may begin with."""
    return is_blank(line.removeprefix(BOM) if number == 1 else line)


class Sheet:
    """A CSV file: its columns, and its rows as they are read. An empty file has neither."""

    def __init__(self, lines: Iterable[bytes], name: str) -> None:
        self.name = name
        self._lines = ((n, line) for n, line in enumerate(lines, 1) if not is_empty(line, n))
        first = next(self._lines, None)
        self.columns = () if first is None else header_of(first[1], name)
        self.is_empty = first is None

    def rows(self) -> Iterator[Row]:
        """The rows behind the header."""
        return (row_of(line, number, self.columns) for number, line in self._lines)


def sheet_of(data: bytes, name: str) -> Sheet | BadFile:
    """A file that is here as a whole, or why nothing of it can be read."""
    try:
        content = gzip.decompress(data) if name.lower().endswith(COMPRESSED) else data
        return Sheet(BytesIO(content), name)
    except (OSError, EOFError, zlib.error) as error:
        return BadFile(f"cannot read {name}: {error}")
    except BadFile as error:
        return error


def place_of(name: str, row: Row) -> str:
    """Where a row stands, for people."""
    return f"{name}, line {row.number}" if row.number else name


# ---- cells as events ---------------------------------------------------------------------------------------------


def object_of_cells(row: Mapping[str, str | None], catalogue: Catalogue) -> dict[str, Any]:
    """A row of a CSV file as the JSON object of an event."""
    label = row_label(row, catalogue) or row.get("event") or None
    times = time_columns(row, catalogue, label or "")
    if not times:
        stamp_columns(row, catalogue)  # there may be some for other types; otherwise the file is no use
    stamps = [read_cell(row.get(name), "time") for name in times]
    schema = catalogue.events.get(label) if label is not None else None
    types = (
        dict(zip(schema.columns, (t for _, t in schema.attributes or ()), strict=True)) if schema is not None else {}
    )
    is_open = schema is None or schema.attributes is None
    names = [n for n in row if n not in ("event", *times)] if is_open else list(types)
    data = {name: read_cell(row.get(name), types.get(name, "any")) for name in names}
    time = stamps if len(stamps) > 1 else stamps[0] if stamps else None
    return {"event": label, "time": time, "data": {n: v for n, v in data.items() if v is not None}}


def event_of_row(row: Row, name: str, compiled: Compiled) -> tuple[Event | BadEvent | None, dict[str, Any] | None]:
    """The event of a row of a file, or what is wrong with it and where it stands; and the JSON object that it is."""
    if row.cells is None:
        return BadEvent(original_text(row.line.rstrip(b"\r\n")), f"{place_of(name, row)}: {row.complaint}"), None
    given = object_of_cells(row.cells, compiled.rules.resolved.catalogue)
    event = read_event(given, compiled)
    if event is None and all(column == cell for column, cell in row.cells.items()):  # the header again, no type
        event = read_message(Message(given, given), compiled.rules.resolved.catalogue)
    if isinstance(event, BadEvent):
        original = json.dumps(row.cells, ensure_ascii=False)
        return BadEvent(original, f"{place_of(name, row)}: {event.reason}", event.label), given
    return event, given


def events_of_sheet(
    sheet: Sheet | BadFile, compiled: Compiled, *, complete: bool
) -> Iterator[tuple[Event | BadEvent | None, dict[str, Any] | None]]:
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
        label = row_label(sheet.columns, catalogue)
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
