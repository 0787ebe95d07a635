"""This module opens CSV files, those with the same header together, and turns their cells into columns of events.

Spark's own reader of CSV takes the header of one file for all, fills up rows that are too short, cuts those that are
too long, and replaces bytes that are no text. So it is asked for whole lines only, byte by byte: the characters that
would divide or quote cells are none that a byte stands for. It leaves out the first line of each file, which is the
header, and that is read here.

What a line is and what a cell means stands in `formats.decode_csv`. A line that is cut into cells here has as many as
the header, is UTF-8, and its quotes are closed; any other is read in Python, which says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.formats.check_columns import row_label, stamp_columns, time_columns
from ephemera.formats.decode_csv import header_of, is_empty
from ephemera.rewrite.pushdown import Asked
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.read.file_bytes import lines_of, name_of, pieces_of
from ephemera.spark.read.flat_events import (
    Cell,
    EventShape,
    ScannedEvents,
    ScannedRows,
    flat_types,
    length_faults,
    named,
    no_stamp,
    of_rows,
    once,
    stamp_faults,
    times,
)

LINE, FILE = "line", "file"
_BYTES = "ISO-8859-1"
_OPTIONS = {
    "header": "true",
    "encoding": _BYTES,
    "sep": "\u0100",
    "quote": "\u0101",
    "escape": "\u0101",
    "nullValue": "\u0101",
    "emptyValue": "",
    "lineSep": "\n",
    "maxCharsPerColumn": "-1",
}
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?$"
"""Numbers that are doubles without a doubt; others are read in Python."""
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_LONGEST = 20_000
"""Bytes of a line up to which quotes are looked at here: Java's expressions need a stack for them."""
Cells = Mapping[str, Column]
"""The cells of a row by their columns; those that are empty are null."""


@dataclass(frozen=True, slots=True)
class Sheets:
    """CSV files with the same header: their lines as bytes, without the header, and what file each is from."""

    frame: DataFrame
    columns: tuple[str, ...]
    name: str
    """For people: the first file, and how many more there are."""
    files: tuple[str, ...] = ()
    """Where they are."""
    more: tuple[str, ...] = ()
    """What folders say besides, such as `day=1`: further columns of the frame."""


def open_csv(spark: SparkSession, paths: Sequence[str]) -> list[Sheets]:
    """The files at some paths; those that are empty have no header, and nothing else."""
    frame = _lines(spark, paths)
    by_header: dict[tuple[str, ...], list[str]] = {}
    for uri in frame.inputFiles():
        line = first_line(spark, uri)
        if line:
            by_header.setdefault(header_of(line, name_of(uri)), []).append(uri)
    found: list[Sheets] = []
    for columns, files in by_header.items():
        own = frame if len(by_header) == 1 else frame.where(_file().isin([_written(uri) for uri in files]))
        name = name_of(files[0]) if len(files) == 1 else f"{name_of(files[0])} and {len(files) - 1} more"
        more = tuple(column for column in frame.columns if column != LINE)
        data = f.encode(LINE, _BYTES).alias(LINE), _file().alias(FILE)
        found.append(Sheets(own.select(*data, *(f.col(f"`{m}`") for m in more)), columns, name, tuple(files), more))
    return found


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    return spark.read.schema(f"{LINE} string").options(**_OPTIONS).csv(list(paths))


def _file() -> Column:
    return f.col("_metadata.file_path")


def _written(uri: str) -> str:
    """A file as Spark names it beside its rows."""
    return uri.replace("file:///", "file:/", 1)


def first_line(spark: SparkSession, uri: str) -> bytes:
    """The first line of a file that is not blank; nothing if there is none."""
    lines = enumerate(lines_of(pieces_of(spark, uri)), 1)
    return next((line for number, line in lines if not is_empty(line, number)), b"").removesuffix(b"\n")


# ---- cells by columns ------------------------------------------------------------------------------------------


def flat_cells(
    sheets: Sheets,
    catalogue: Catalogue,
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
) -> ScannedEvents:
    """The events of CSV files by columns, and the rows that have to be read one by one."""
    stamp_columns([*sheets.columns, *sheets.more], catalogue)  # a file that does not say when is refused
    frame = once(sheets.frame, cells=_cells(len(sheets.columns)))
    given = {name: f.nullif(f.get("cells", k), f.lit("")) for k, name in enumerate(sheets.columns)}
    given |= {name: named(name).cast("string") for name in sheets.more}
    # A line that is cut into no cells is of no type, so that it is read one by one; so is the header, if it is there
    # again. Whatever else is of a type that nobody asks for is not read at all.
    of_all = row_label(given, catalogue)
    is_row = f.col("cells").isNotNull()
    event = (
        f.when(is_row & (given["event"] != "event"), given["event"])
        if of_all is None
        else f.when(is_row, f.lit(of_all))
    )
    shapes = [_shape(schema, given, catalogue) for schema in flat_types(catalogue, wanted)]
    more = f.to_json(f.struct(*(given[name].alias(name) for name in sheets.more))) if sheets.more else f.lit(None)
    header = f.lit(json.dumps(sheets.columns))
    told = {FILE: f.col(FILE), "header": header, "more": more.cast("string")}  # which may all be null, as `rest` may be
    whole = f.struct(LINE, *(f.nullif(column, f.lit("")).alias(name) for name, column in told.items()))
    return of_rows(ScannedRows(frame, "cells", event, whole), shapes, wanted, constants)


def _cells(count: int) -> Column:
    """The cells of a line that is plain; null for any other."""
    whole = f.col(LINE).cast("string")
    line = f.when(whole.endswith("\r"), f.substring(whole, f.lit(1), f.length(whole) - 1)).otherwise(whole)
    is_text = f.is_valid_utf8(whole) & ~line.contains("\0") & ~line.contains("\r")
    plain = f.when(~line.contains('"'), f.split(line, ",", -1))
    pieces = f.regexp_extract_all(line, f.lit(rf"(?:^|,)({_QUOTED}(?=,|$)|[^,]*+)"), f.lit(1))
    is_closed = f.forall(pieces, lambda p: ~p.startswith('"') | p.rlike(f"^{_QUOTED}$"))
    is_whole = (f.array_join(pieces, ",") == line) & is_closed
    bare = f.transform(pieces, _bare)
    quoted = f.when((f.octet_length(line) < _LONGEST) & is_whole, bare)
    cells = f.coalesce(plain, quoted)
    return f.when(is_text & (f.size(cells) == count), cells)


def _bare(piece: Column) -> Column:
    """A cell without its quotes."""
    inner = f.substring(piece, f.lit(2), f.length(piece) - 2)
    return f.when(piece.startswith('"'), f.replace(inner, f.lit('""'), f.lit('"'))).otherwise(piece)


def _stamp(cell: Column, unit: int) -> Cell:
    number = f.when(cell.rlike(_INTEGER), cell.try_cast("bigint"))
    return Cell(times(number, unit), "time", stamp_faults(number, unit))


def _shape(schema: Schema, given: Cells, catalogue: Catalogue) -> EventShape:
    when = time_columns(given, catalogue, schema.label)
    stamps = [_stamp(given[name], catalogue.unit) for name in when] or [no_stamp()]
    attributes = zip(schema.attributes or (), schema.columns, strict=True)
    cells = {name: _cell(given.get(column), declared) for (name, declared), column in attributes}
    faults = [fault for cell in (*stamps, *cells.values()) for fault in cell.faults]
    begin, end = stamps[0].value, stamps[-1].value
    return EventShape(schema, cells, begin, end, (*faults, *length_faults(begin, end, schema.longest)))


def _cell(given: Column | None, declared: str) -> Cell:
    cell = f.lit(None).cast("string") if given is None else given
    match declared:
        case "int":
            return Cell(f.when(cell.rlike(_INTEGER), cell.try_cast("bigint")), "int", (~cell.rlike(_INTEGER),))
        case "float":
            return Cell(f.when(cell.rlike(_NUMBER), cell.try_cast("double")), "float", (~cell.rlike(_NUMBER),))
        case "bool":
            return Cell(f.when(cell.isin("true", "false"), cell == "true"), "bool", (~cell.isin("true", "false"),))
        case "string":
            return Cell(cell, "string")
        case _:
            return Cell(cell, "string", (cell.isNotNull(),))
