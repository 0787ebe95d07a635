"""This module turns the cells of CSV files into columns of events, and says for which rows it cannot vouch.

What a cell means stands in `engine.cells`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ephemera.engine.table_reading import only_label, stamp_columns, time_columns
from ephemera.physical.pushed import Asked
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.flat import (
    Cell,
    Rows,
    Shape,
    Source,
    flat_types,
    length_faults,
    named,
    no_stamp,
    of_rows,
    stamp_faults,
    times,
)

_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?$"
"""Numbers that are doubles without a doubt; others are read in Python."""


def flat_cells(
    frame: DataFrame,
    catalogue: Catalogue,
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
) -> Source:
    """The events of a CSV file by columns, and the rows that have to be read one by one."""
    names = set(frame.columns)
    stamp_columns(names, catalogue)  # a file that does not say when is refused
    event = _given("event") if "event" in names else f.lit(only_label(catalogue))
    shapes = [_shape(schema, names, catalogue) for schema in flat_types(catalogue, wanted)]
    whole = f.struct(*(named(name) for name in frame.columns))
    return of_rows(Rows(frame, "cells", event, whole), shapes, wanted, constants)


def _given(name: str) -> Column:
    return f.nullif(named(name), f.lit(""))


def _stamp(name: str, unit: int) -> Cell:
    cell = _given(name)
    number = f.when(cell.rlike(_INTEGER), cell.try_cast("bigint"))
    return Cell(times(number, unit), "time", stamp_faults(number, unit))


def _shape(schema: Schema, names: set[str], catalogue: Catalogue) -> Shape:
    when = time_columns(names, catalogue, schema.label)
    stamps = [_stamp(name, catalogue.unit) for name in when] or [no_stamp()]
    cells = {name: _cell(name, declared, name in names) for name, declared in schema.attributes or ()}
    faults = [fault for cell in (*stamps, *cells.values()) for fault in cell.faults]
    begin, end = stamps[0].value, stamps[-1].value
    return Shape(schema, cells, begin, end, (*faults, *length_faults(begin, end, schema.longest)))


def _cell(name: str, declared: str, is_there: bool) -> Cell:
    cell = _given(name) if is_there else f.lit(None).cast("string")
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
