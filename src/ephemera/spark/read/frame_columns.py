"""This module turns the columns of data frames into columns of events, and says for which rows it cannot vouch.

It takes what `formats.arrow_columns` takes by columns, and leaves the rest to be read row by row. The faults are plain
comparisons wherever they can be, so that a scan skips what its statistics rule out, rows at fault included. Doubles can
not be: no statistics say whether one is not a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ephemera.base.time import LATEST
from ephemera.formats.check_columns import refused_types, row_label, stamp_columns, time_columns
from ephemera.rewrite.pushdown import Asked
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.read.flat_events import (
    EXACT,
    Cell,
    ColumnKind,
    EventShape,
    ScannedEvents,
    ScannedRows,
    flat_types,
    length_faults,
    named,
    no_stamp,
    of_rows,
    stamp_faults,
    times,
)

_DAY = 86_400_000_000
_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_FRACTIONS = (t.FloatType, t.DoubleType)
_INSTANTS = (t.TimestampType, t.TimestampNTZType, t.DateType)
_LITERAL = {"timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ", "date": "DATE"}
_NEAR = ("1600-01-01", "9999-01-01")
"""Instants between these are surely good, and all calendars and zones agree on them well enough."""


def flat_rows(
    frame: DataFrame,
    catalogue: Catalogue,
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
    *,
    complete: bool = False,
) -> ScannedEvents:
    """The events of a table by columns, and the rows that have to be read one by one.

    If rows are to be `complete`, those of a type for which not all columns are there are among the latter.
    """
    frame, fields = _told_apart(frame)
    when = stamp_columns(fields, catalogue)
    label = row_label(fields, catalogue)
    if label is None:
        is_text = isinstance(fields["event"].dataType, t.StringType)
        event = named(fields["event"].name) if is_text else f.lit(None).cast("string")
    else:
        event = f.lit(label)
    refused = refused_types(list(fields), "", catalogue) if complete else {}
    types = [schema for schema in flat_types(catalogue, wanted) if schema.label not in refused]
    shapes = [_shape(schema, fields, catalogue) for schema in types]
    is_all_flat = len(shapes) == len(wanted)
    used = {"event", *when, *(name for shape in shapes for name in _needed(shape, wanted))}
    kept = [named(own.name).alias(name) for name, own in fields.items() if name in used or not is_all_flat]
    rows = ScannedRows(frame, "rows", event, f.struct(*kept))
    counts = all(isinstance(fields[name].dataType, t.NumericType | t.NullType) for name in when)
    return replace(of_rows(rows, shapes, wanted, constants), counts=counts)


def _told_apart(frame: DataFrame) -> tuple[DataFrame, Mapping[str, t.StructField]]:
    """A frame with its fields by name; those whose names differ by case alone have others, which sessions can tell."""
    fields = frame.schema.fields
    alike = Counter(field.name.casefold() for field in fields)
    if max(alike.values(), default=1) == 1:
        return frame, {field.name: field for field in fields}
    names = [f"{field.name}:{number}" for number, field in enumerate(fields)]
    renamed = (t.StructField(name, own.dataType, own.nullable) for name, own in zip(names, fields, strict=True))
    return frame.toDF(*names), {own.name: new for own, new in zip(fields, renamed, strict=True)}


def _needed(shape: EventShape, wanted: Mapping[str, frozenset[str]]) -> list[str]:
    """The columns of attributes that rules use or that may be at fault."""
    asked = wanted[shape.schema.label]
    columns = zip(shape.schema.names, shape.schema.columns, strict=True)
    return [column for name, column in columns if shape.cells[name].faults or name in asked]


def _shape(schema: Schema, fields: Mapping[str, t.StructField], catalogue: Catalogue) -> EventShape:
    when = time_columns(fields, catalogue, schema.label)
    stamps = [_stamp(fields[name], catalogue) for name in when] or [no_stamp()]
    attributes = zip(schema.attributes or (), schema.columns, strict=True)
    cells = {name: _cell(fields.get(column), declared, catalogue) for (name, declared), column in attributes}
    faults = [fault for cell in (*stamps, *cells.values()) for fault in cell.faults]
    begin, end = stamps[0].value, stamps[-1].value
    if len(stamps) > 1:
        faults += length_faults(begin, end, schema.longest)
    suspects: tuple[Column, ...] | None = None
    if len(stamps) == 1 and all(cell.is_plain for cell in (*stamps, *cells.values())):
        suspects = tuple(one for cell in (*stamps, *cells.values()) for one in cell.near or cell.faults)
    return EventShape(schema, cells, begin, end, tuple(faults), suspects)


def _stamp(field: t.StructField, catalogue: Catalogue) -> Cell:
    """Points in time in microseconds; null is a fault."""
    column, unit = named(field.name), catalogue.unit
    if isinstance(field.dataType, t.TimestampNTZType | t.DateType):
        catalogue.local.assume()
        if not catalogue.local.is_utc:
            return _in_zone(column, catalogue.zone)
    if isinstance(field.dataType, _INSTANTS):
        value = _instant(column, field.dataType)
        near = tuple(f.expr(f"{_LITERAL[field.dataType.typeName()]}'{day}'") for day in _NEAR)
        far = value > f.lit(LATEST), value < f.lit(-LATEST)
        return Cell(value, "time", (column.isNull(), *far), near=(column.isNull(), column < near[0], column > near[1]))
    whole = _whole(column, field.dataType)
    if whole is None:
        return no_stamp()
    faults = stamp_faults(column if isinstance(field.dataType, _WHOLE) else whole.value, unit)
    return Cell(times(whole.value, unit), "time", (*whole.faults, *faults), whole.is_plain)


def _in_zone(column: Column, zone: str) -> Cell:
    """Instants of what has no zone; what the clocks of the zone never show, or Python cannot tell, is read there.

    Spark takes the earlier of two, and moves what does not exist, so that it does not come back as it was.
    """
    local = column.cast("timestamp_ntz")
    utc = f.convert_timezone(f.lit(zone), f.lit("UTC"), local)
    again = f.convert_timezone(f.lit("UTC"), f.lit(zone), utc)
    early, late = (f.expr(f"TIMESTAMP_NTZ'{day}'") for day in _NEAR)
    faults = (column.isNull(), local < early, local >= late, again != local)
    return Cell(_instant(utc, t.TimestampNTZType()), "time", faults, is_plain=False)


def _instant(column: Column, kind: t.DataType) -> Column:
    if isinstance(kind, t.DateType):
        return f.try_multiply(f.unix_date(column).cast("bigint"), f.lit(_DAY))
    if isinstance(kind, t.TimestampNTZType):  # it is in UTC, whatever the session's zone
        return f.unix_micros(f.to_timestamp(f.concat(column.cast("string"), f.lit("Z"))))
    return f.unix_micros(column)


def _whole(column: Column, kind: t.DataType) -> Cell | None:
    """Whole numbers of 64 bits, if the column has numbers; null is no fault."""
    if isinstance(kind, _WHOLE):
        return Cell(column.cast("bigint"), "int")
    if isinstance(kind, _FRACTIONS):
        double = column.cast("double")
        faults = (f.isnan(double), f.abs(double) > f.lit(float(EXACT)), f.rint(double) != double)
        near = (double >= f.lit(-float(EXACT))) & (double <= f.lit(float(EXACT)))
        return Cell(f.when(near, double.cast("bigint")), "int", faults, is_plain=False)
    return None


def _cell(field: t.StructField | None, declared: str, catalogue: Catalogue) -> Cell:
    """The values of an attribute; null is no fault."""
    if field is None:
        return Cell(f.lit(None).cast(_TYPES.get(declared, "string")), _KINDS.get(declared, "string"))
    column, kind = named(field.name), field.dataType
    if isinstance(kind, t.NullType):
        return Cell(f.lit(None).cast(_TYPES.get(declared, "string")), _KINDS.get(declared, "string"))
    if declared == "time" or (declared == "any" and isinstance(kind, _INSTANTS)):
        stamp = _stamp(field, catalogue)
        faults = tuple(column.isNotNull() & fault for fault in stamp.faults)
        return Cell(stamp.value, "time", faults, stamp.is_plain, stamp.near[1:])
    whole = _whole(column, kind)
    if whole is not None and (declared == "int" or (declared == "any" and isinstance(kind, _WHOLE))):
        return whole
    if isinstance(kind, _FRACTIONS) and declared in ("float", "any"):
        double = column.cast("double")
        limit = f.lit(1.7976931348623157e308)
        return Cell(double, "float", (f.isnan(double), double > limit, double < -limit), is_plain=False)
    if isinstance(kind, _WHOLE) and declared == "float":
        return Cell(column.cast("double"), "float", (column > f.lit(EXACT), column < f.lit(-EXACT)))
    if isinstance(kind, t.StringType) and declared in ("string", "any"):
        return Cell(column, "string")
    if isinstance(kind, t.BooleanType) and declared in ("bool", "any"):
        return Cell(column, "bool")
    return Cell(f.lit(None).cast("string"), "string", (column.isNotNull(),))


_TYPES = {"int": "bigint", "float": "double", "string": "string", "bool": "boolean", "time": "bigint"}
_KINDS: dict[str, ColumnKind] = {"int": "int", "float": "float", "string": "string", "bool": "bool", "time": "time"}
