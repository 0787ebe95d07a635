"""This module cuts CSV files into rows of cells, and says what is wrong with a line or with a header.

One line is one row. So a quote that is not closed costs its own line and no other, and a file can be read in parts; a
cell with a line break is two bad lines. A line has as many cells as the header. A cell may stand in quotes, and then
quotes in it are doubled; elsewhere quotes are plain characters. Blank lines count for nothing.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, cast

from ephemera.base.errors import EphemeraError
from ephemera.terms.errors import LARGEST_LINE, BadMessage, excerpt

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


def opened(path: str | Path) -> IO[bytes]:
    """A file for reading; one that ends in `.gz` is unpacked."""
    return cast("IO[bytes]", gzip.open(path, "rb")) if str(path).endswith(COMPRESSED) else Path(path).open("rb")


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


class Sheet:
    """A CSV file: its columns, and its rows as they are read. An empty file has neither."""

    def __init__(self, lines: Iterable[bytes], name: str) -> None:
        self.name = name
        self._lines = ((n, line) for n, line in enumerate(lines, 1) if not is_blank(line))
        first = next(self._lines, None)
        self.columns = () if first is None else header_of(first[1], name)
        self.is_empty = first is None

    def rows(self) -> Iterator[Row]:
        """The rows behind the header."""
        return (row_of(line, number, self.columns) for number, line in self._lines)


def sheet_of(data: bytes, name: str) -> Sheet | BadFile:
    """A file that is here as a whole, or why nothing of it can be read."""
    try:
        content = gzip.decompress(data) if name.endswith(COMPRESSED) else data
        return Sheet(BytesIO(content), name)
    except (OSError, EOFError, zlib.error) as error:
        return BadFile(f"cannot read {name}: {error}")
    except BadFile as error:
        return error


def place_of(name: str, row: Row) -> str:
    """Where a row stands, for people."""
    return f"{name}, line {row.number}" if row.number else name


def shown_columns(columns: Iterable[str]) -> str:
    """Columns for people, not too many of them."""
    names = [excerpt(column) for column in columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
