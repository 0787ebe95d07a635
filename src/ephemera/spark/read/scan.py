"""This module reads events through Spark: from files, tables and data frames, as columns wherever that is safe.

Events of flat declared types become columns without any Python: `event`, `s` and `e` in microseconds, and a column for
each attribute that is asked for. What columns cannot vouch for, be it bad, nested or of no declared type, is the
`rest` of a source: it goes to Python as it is, and `read_rest` reads it there exactly as the local engine would. Both
are columns of one frame, so that a source is scanned once; it may just as well be a stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.base.errors import InternalError
from ephemera.connect.systems.registry import is_system
from ephemera.formats.arrow_rows import shown_rows
from ephemera.formats.check_columns import Offer, check_columns, refused_types
from ephemera.formats.decode_arrow import Reader
from ephemera.formats.decode_csv import (
    BadFile,
    Row,
    Sheet,
    event_of_row,
    events_of_sheet,
    object_of_cells,
    row_of,
    sheet_of,
)
from ephemera.formats.json_events import BadEvent, Message, decode_line, enveloped, original_text
from ephemera.formats.reading import Given, Keys, given_message, read_event
from ephemera.formats.xml_messages import messages, pieces, placed
from ephemera.physical.plan import Compiled
from ephemera.rewrite.pushdown import Asked
from ephemera.rules.nodes import Catalogue
from ephemera.spark.read.csv_columns import LINE, Sheets, flat_cells, open_csv
from ephemera.spark.read.file_bytes import name_of
from ephemera.spark.read.flat_events import ANY, REST, Form, ScannedEvents
from ephemera.spark.read.frame_columns import flat_rows
from ephemera.spark.read.json_columns import flat_lines
from ephemera.terms.events import Event

T = TypeVar("T")
Format = Literal["json", "parquet", "csv", "xml", "table"]
WantedColumns: TypeAlias = Mapping[str, frozenset[str]]
"""The event types that a program uses, and of each the attributes; `ANY` where it may use any other, too."""
AskedConstants: TypeAlias = Mapping[str, tuple[Asked, ...]]
"""For each type that is only asked for with constants those of its uses; columns are filtered by them."""

_ENDINGS: dict[str, Format] = {
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".xml": "xml",
}


@dataclass(frozen=True, slots=True)
class Input:
    """Something to read: paths, the name of a table, or a data frame; paths tell their format by how they end.

    A data frame has rows, or with the format `json` lines.
    """

    given: str | tuple[str, ...] | DataFrame
    format: Format | None = None
    only: str | None = None
    """The type of all that names none, if it is of a stream that carries one."""
    programs: frozenset[int] | None = None
    """The numbers of the programs that read it; None if all do."""

    def is_for(self, program: int) -> bool:
        """Whether a program reads it."""
        return self.programs is None or program in self.programs

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is; nowhere, if it is a data frame."""
        if isinstance(self.given, DataFrame):
            return ()
        return (self.given,) if isinstance(self.given, str) else self.given

    @property
    def is_system(self) -> bool:
        """Whether it is the address of a system, such as Kafka."""
        return bool(self.paths) and is_system(self.paths[0])

    @property
    def holds_parquet(self) -> bool:
        """Whether these are Parquet files, as they say or their name does."""
        named = self.format is None and bool(self.paths) and self.paths[0].rstrip("/").lower().endswith(".parquet")
        return bool(self.paths) and (self.format == "parquet" or named)


def read(
    spark: SparkSession,
    inputs: Sequence[Input],
    catalogue: Catalogue,
    wanted: WantedColumns,
    constants: AskedConstants | None = None,
) -> list[ScannedEvents]:
    """The events of some inputs, each apart; CSV files with other columns are others."""
    return [
        replace(source, only=one.only)
        for one in inputs
        for source in _read(spark, one, catalogue.carrying(one.only), wanted, constants or {})
    ]


def _read(
    spark: SparkSession, given: Input, catalogue: Catalogue, wanted: WantedColumns, constants: AskedConstants
) -> Iterator[ScannedEvents]:
    paths = list(given.paths)
    if paths and (given.format or format_of(paths[0])) == "csv":
        for sheets in open_csv(spark, paths):
            offer = offer_of_sheets(sheets, given.only)
            check_columns([offer], catalogue, lenient=True)
            yield replace(flat_cells(sheets, catalogue, wanted, constants), offer=offer, files=sheets.files)
        return
    frame, form = _opened(spark, given)
    name = name_of(paths[0]) if paths else "the data frame"
    source = source_of(frame, form, catalogue, wanted, constants, name=name)
    yield source if form == "rows" else replace(source, files=tuple(sorted(frame.inputFiles())))


def offer_of_sheets(sheets: Sheets, only: str | None = None) -> Offer:
    """What CSV files offer."""

    def holds(label: str) -> bool:
        found = sheets.frame.where(f.col(LINE).cast("string").contains(label)).select(LINE)
        rows = (row_of(bytes(row[0]), 0, sheets.columns) for row in found.toLocalIterator())
        return any(row.cells is not None and row.cells["event"] == label for row in rows)

    return Offer(sheets.name, (*sheets.columns, *sheets.more), holds, only)


def _offer_of_frame(frame: DataFrame, name: str, only: str | None) -> Offer:
    def holds(label: str) -> bool:
        return not frame.isStreaming and frame.where(f.col("event") == label).limit(1).count() > 0

    return Offer(name, frame.columns, holds, only)


def source_of(  # noqa: PLR0913 - all of them named
    frame: DataFrame,
    form: Form,
    catalogue: Catalogue,
    wanted: WantedColumns,
    constants: AskedConstants | None = None,
    *,
    name: str = "the data frame",
    complete: bool = False,
) -> ScannedEvents:
    """The events of a data frame, which may be a stream.

    It holds lines in its column `value`, files in `content` and where they come from in `path`, or columns. Types for
    which not all columns are there are read one by one if rows are to be `complete`: then they are bad.
    """
    match form:
        case "lines":
            lines = frame.select(f.col("value").cast("string").alias("line"))
            of_types = {label: names for label, names in wanted.items() if label != ANY}
            return flat_lines(lines.where(f.col("line").rlike(r"[^ \t\n\r\x0b\x0c]")), catalogue, of_types)
        case "rows":
            offer = _offer_of_frame(frame, name, catalogue.only)
            check_columns([offer], catalogue, lenient=True)
            source = flat_rows(frame, catalogue, wanted, constants or {}, complete=complete)
            return replace(source, offer=offer)
        case "documents" | "sheets":
            return ScannedEvents(frame.select(f.array(f.struct("path", "content")).alias(REST)), form)
        case "cells":
            raise InternalError("read", "lines of CSV were opened without their header")


def _opened(spark: SparkSession, given: Input) -> tuple[DataFrame, Form]:
    if isinstance(given.given, DataFrame):
        return given.given, "lines" if given.format == "json" else "rows"
    paths = [given.given] if isinstance(given.given, str) else list(given.given)
    match given.format or format_of(paths[0]):
        case "json":
            return spark.read.option("lineSep", "\n").text(paths), "lines"
        case "csv":
            raise InternalError("read", "CSV is opened with its header")
        case "xml":
            return spark.read.format("binaryFile").load(paths), "documents"
        case "parquet":
            return spark.read.parquet(*paths), "rows"
        case "table":
            return spark.table(paths[0]), "rows"


def format_of(path: str) -> Format:
    """What a file or a folder holds, as its name says."""
    name = path.rstrip("/")
    found = _ENDINGS.get(PurePath(name).suffix.lower())
    if found is None:
        raise ValueError(
            f"`{path}` does not say what it holds; name it {', '.join('*' + e for e in _ENDINGS)}, or say its format"
        )
    return found


# ---- in Python -----------------------------------------------------------------------------------------------


def apart(batch: pa.RecordBatch, form: Form) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows of a source that columns vouch for, and what was read of the others."""
    rest = batch.column(REST)
    vouched = batch if rest.null_count == len(rest) else batch.filter(rest.is_null())
    if form == "lines":
        return vouched, pa.RecordBatch.from_arrays([rest.drop_null()], ["line"])
    rows = rest.flatten() if form in ("documents", "sheets") else rest.drop_null()
    return vouched, pa.RecordBatch.from_struct_array(rows)


def read_rest(
    compiled: Compiled, form: Form, batch: pa.RecordBatch, *, complete: bool = False, keys: Keys | None = None
) -> Iterator[Event | BadEvent]:
    """The events of what columns could not vouch for, and what is none with the reason."""
    found = _read_rest(compiled, form, batch, complete=complete, keys=keys)
    return (event for event in found if event is not None)


def _read_rest(
    compiled: Compiled, form: Form, batch: pa.RecordBatch, *, complete: bool, keys: Keys | None
) -> Iterator[Event | BadEvent | None]:
    """The same, with what is of no use to anybody.

    The program is as it reads that source: what is of a stream of one type need not name it.
    If rows are to be `complete`, those of a type for which not all columns are there are bad. What keys lines have is
    noted in `keys`.
    """
    match form:
        case "lines":
            for line in batch.column("line").to_pylist():
                message = decode_line(line)
                event = _read_one(compiled, message, line)
                if keys is not None and isinstance(event, Event):
                    keys.note(enveloped(message.data, compiled.rules.resolved.catalogue))
                yield event
        case "cells":
            for name, row in _rows(batch):
                yield _told_with(row.line, event_of_row, row, name, compiled)[0]
        case "sheets":
            for sheet in _sheets(batch):
                yield from (event for event, _ in events_of_sheet(sheet, compiled, complete=complete))
        case "documents":
            for place, message in _messages(batch):
                yield placed(_read_one(compiled, message, message.original), place)
        case "rows":
            table = pa.Table.from_batches([batch])
            catalogue = compiled.rules.resolved.catalogue
            lacking = refused_types(table.column_names, "the data frame", catalogue) if complete else {}
            found = Reader(table, compiled, lacking).read()
            for part in found.parts:
                yield from part.events()
            for bad in found.bad:
                (given,) = shown_rows(table, [bad.row])
                yield _as_given(BadEvent("", bad.reason, bad.label), given)


def rest_messages(compiled: Compiled, form: Form, batch: pa.RecordBatch) -> Iterator[Message]:
    """What columns could not vouch for, decoded but not yet read; rows of tables are not."""
    match form:
        case "lines":
            yield from map(decode_line, batch.column("line").to_pylist())
        case "cells":
            catalogue = compiled.rules.resolved.catalogue
            rows = (row.cells for _, row in _rows(batch) if row.cells is not None)
            yield from (given_message(object_of_cells(cells, catalogue)) for cells in rows)
        case "sheets":
            for sheet in _sheets(batch):
                found = (given for _, given in events_of_sheet(sheet, compiled, complete=False))
                yield from (given_message(given) for given in found if given is not None)
        case "documents":
            yield from (message for _, message in _messages(batch))
        case "rows":
            return


def _messages(batch: pa.RecordBatch) -> Iterator[tuple[str, Message]]:
    for name, content in _files(batch):
        yield from messages(pieces(content), name)


def _files(batch: pa.RecordBatch) -> Iterator[tuple[str, bytes]]:
    for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
        yield PurePath(path.as_py()).name, content.as_py()  # which is a plain path, not one that is quoted


def _sheets(batch: pa.RecordBatch) -> Iterator[Sheet | BadFile]:
    """CSV files that came as a whole."""
    for name, content in _files(batch):
        yield sheet_of(content, name)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, Row]]:
    """Lines of CSV, each with its header."""
    for given in batch.to_pylist():
        row = row_of(given["line"], 0, tuple(json.loads(given["header"])))
        if given["more"] is not None and row.cells is not None:
            row = replace(row, cells={**row.cells, **json.loads(given["more"])})
        yield name_of(given["file"]), row


def _read_one(compiled: Compiled, given: Given, original: object) -> Event | BadEvent | None:
    return _told_with(original, read_event, given, compiled)


def _told_with(original: object, read: Callable[..., T], *given: Any) -> T:
    """What is read; if that fails, with what was read."""
    try:
        return read(*given)
    except Exception as error:
        error.add_note(f"the event was {original_text(original)[:500]}")
        raise


def _as_given(bad: BadEvent, row: Mapping[str, Any]) -> BadEvent:
    """A bad row with the row as a JSON object."""
    return BadEvent(json.dumps(row, default=str, ensure_ascii=False), bad.reason, bad.label)
