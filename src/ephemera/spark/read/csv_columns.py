"""This module turns the cells of CSV files into columns of events, and says for which rows it cannot vouch.

What a line is stands in `formats.csv_rows`, and what a cell means in `formats.decode_cells`. A line that is cut into
cells here has as many as the header, is UTF-8, and its quotes are closed; any other is read in Python, which says what
is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as f

from ephemera.formats.decode_arrow import only_label, stamp_columns, time_columns
from ephemera.rewrite.pushdown import Asked
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.read.csv_files import FILE, LINE, Sheets
from ephemera.spark.read.flat_events import (
    Cell,
    Rows,
    Shape,
    Source,
    flat_types,
    length_faults,
    named,
    no_stamp,
    of_rows,
    once,
    stamp_faults,
    times,
)

_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?$"
"""Numbers that are doubles without a doubt; others are read in Python."""
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_LONGEST = 20_000
"""Bytes of a line up to which quotes are looked at here: Java's expressions need a stack for them."""
Given = Mapping[str, Column]
"""The cells of a row by their columns; those that are empty are null."""


def flat_cells(
    sheets: Sheets,
    catalogue: Catalogue,
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
) -> Source:
    """The events of CSV files by columns, and the rows that have to be read one by one."""
    stamp_columns([*sheets.columns, *sheets.more], catalogue)  # a file that does not say when is refused
    frame = once(sheets.frame, cells=_cells(len(sheets.columns)))
    given = {name: f.nullif(f.get("cells", k), f.lit("")) for k, name in enumerate(sheets.columns)}
    given |= {name: named(name).cast("string") for name in sheets.more}
    # A line that is cut into no cells is of no type, so that it is read one by one; so is the header, if it is there
    # again. Whatever else is of a type that nobody asks for is not read at all.
    label = given["event"] if "event" in given else f.lit(only_label(catalogue))
    event = f.when(f.col("cells").isNotNull() & (label != "event"), label)
    shapes = [_shape(schema, given, catalogue) for schema in flat_types(catalogue, wanted)]
    more = f.to_json(f.struct(*(given[name].alias(name) for name in sheets.more))) if sheets.more else f.lit(None)
    header = f.lit(json.dumps(sheets.columns))
    told = {FILE: f.col(FILE), "header": header, "more": more.cast("string")}  # which may all be null, as `rest` may be
    whole = f.struct(LINE, *(f.nullif(column, f.lit("")).alias(name) for name, column in told.items()))
    return of_rows(Rows(frame, "cells", event, whole), shapes, wanted, constants)


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


def _shape(schema: Schema, given: Given, catalogue: Catalogue) -> Shape:
    when = time_columns(given, catalogue, schema.label)
    stamps = [_stamp(given[name], catalogue.unit) for name in when] or [no_stamp()]
    cells = {name: _cell(given.get(name), declared) for name, declared in schema.attributes or ()}
    faults = [fault for cell in (*stamps, *cells.values()) for fault in cell.faults]
    begin, end = stamps[0].value, stamps[-1].value
    return Shape(schema, cells, begin, end, (*faults, *length_faults(begin, end, schema.longest)))


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
