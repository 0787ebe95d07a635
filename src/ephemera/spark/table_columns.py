"""This module turns the columns of data frames into columns of events, and says for which rows it cannot vouch.

It takes what `engine.table_columns` takes by columns, and leaves the rest to be read row by row. The faults are plain
comparisons wherever they can be, so that a scan for rows at fault skips the files whose statistics rule them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ephemera.engine.table_reading import only_label, time_columns
from ephemera.io.jsonl import LATEST
from ephemera.physical.pushed import Asked
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.flat import (
    EXACT,
    Cell,
    Flat,
    Kind,
    Rows,
    Shape,
    any_of,
    flat_types,
    is_asked_for,
    is_good,
    length_faults,
    select,
    stamp_faults,
    times,
)

_DAY = 86_400_000_000
_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_FRACTIONS = (t.FloatType, t.DoubleType)
_INSTANTS = (t.TimestampType, t.TimestampNTZType, t.DateType)


def flat_rows(
    frame: DataFrame,
    catalogue: Catalogue,
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
) -> tuple[Flat | None, DataFrame]:
    """The events of a table by columns, and the rows that have to be read one by one."""
    fields = {field.name: field for field in frame.schema.fields}
    stamps = [_stamp(fields[name], catalogue.unit) for name in time_columns(fields, catalogue)]
    if "event" in fields:
        is_text = isinstance(fields["event"].dataType, t.StringType)
        event = f.col("event") if is_text else f.lit(None).cast("string")
    else:
        event = f.lit(only_label(catalogue))
    flat = flat_types(catalogue, wanted)
    begin, end = stamps[0], stamps[-1]
    of_stamps = (*begin.faults, *end.faults)
    shapes = [_shape(schema, fields, catalogue.unit) for schema in flat]
    groups: dict[str, tuple[list[str], Column]] = {}
    for shape in shapes:
        lengths = length_faults(begin.value, end.value, shape.schema.longest) if len(stamps) > 1 else ()
        fault = any_of((*of_stamps, *lengths, *shape.faults))
        groups.setdefault(str(fault), ([], fault))[0].append(shape.schema.label)
    others = [label for label in wanted if label not in {s.label for s in flat}]
    rest = frame.where(
        any_of(
            [
                *([event.isNull()] if "event" in fields else []),
                *([event.isin(others)] if others else []),
                *(event.isin(those) & fault for those, fault in groups.values()),
            ]
        )
    )
    rest = rest if others else rest.select(*_needed(fields, catalogue, flat))
    if not shapes:
        return None, rest
    good = any_of(event.isin(those) & is_good(fault) for those, fault in groups.values())
    found = frame.where(good).where(is_asked_for(event, shapes, constants))
    return select(Rows(found, event, begin.value, end.value), shapes, wanted), rest


def _needed(fields: Mapping[str, t.StructField], catalogue: Catalogue, flat: list[Schema]) -> list[Column]:
    used = {"event", *time_columns(fields, catalogue), *(n for s in flat for n in s.names)}
    return [_column(name) for name in fields if name in used]


def _column(name: str) -> Column:
    return f.col("`" + name.replace("`", "``") + "`")


def _shape(schema: Schema, fields: Mapping[str, t.StructField], unit: int) -> Shape:
    cells = {name: _cell(fields.get(name), declared, unit) for name, declared in schema.attributes or ()}
    return Shape(schema, cells, tuple(fault for cell in cells.values() for fault in cell.faults))


def _stamp(field: t.StructField, unit: int) -> Cell:
    """Points in time in microseconds; null is a fault."""
    column = _column(field.name)
    if isinstance(field.dataType, _INSTANTS):
        value = _instant(column, field.dataType)
        return Cell(value, "time", (column.isNull(), value > f.lit(LATEST), value < f.lit(-LATEST)))
    whole = _whole(column, field.dataType)
    if whole is None:
        return Cell(f.lit(None).cast("bigint"), "time", (f.lit(True),))
    faults = stamp_faults(column if isinstance(field.dataType, _WHOLE) else whole.value, unit)
    return Cell(times(whole.value, unit), "time", (*whole.faults, *faults))


def _instant(column: Column, kind: t.DataType) -> Column:
    if isinstance(kind, t.DateType):
        return f.unix_date(column).cast("bigint") * f.lit(_DAY)
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
        return Cell(f.when(near, double.cast("bigint")), "int", faults)
    return None


def _cell(field: t.StructField | None, declared: str, unit: int) -> Cell:
    """The values of an attribute; null is no fault."""
    if field is None:
        return Cell(f.lit(None).cast(_TYPES.get(declared, "string")), _KINDS.get(declared, "string"))
    column, kind = _column(field.name), field.dataType
    if isinstance(kind, t.NullType):
        return Cell(f.lit(None).cast(_TYPES.get(declared, "string")), _KINDS.get(declared, "string"))
    if declared == "time" or (declared == "any" and isinstance(kind, _INSTANTS)):
        stamp = _stamp(field, unit)
        faults = tuple(column.isNotNull() & fault for fault in stamp.faults)
        return Cell(stamp.value, "time", faults)
    whole = _whole(column, kind)
    if whole is not None and (declared == "int" or (declared == "any" and isinstance(kind, _WHOLE))):
        return whole
    if isinstance(kind, _FRACTIONS) and declared in ("float", "any"):
        double = column.cast("double")
        limit = f.lit(1.7976931348623157e308)
        return Cell(double, "float", (f.isnan(double), double > limit, double < -limit))
    if isinstance(kind, _WHOLE) and declared == "float":
        return Cell(column.cast("double"), "float", (column > f.lit(EXACT), column < f.lit(-EXACT)))
    if isinstance(kind, t.StringType) and declared in ("string", "any"):
        return Cell(column, "string")
    if isinstance(kind, t.BooleanType) and declared in ("bool", "any"):
        return Cell(column, "bool")
    return Cell(f.lit(None).cast("string"), "string", (column.isNotNull(),))


_TYPES = {"int": "bigint", "float": "double", "string": "string", "bool": "boolean", "time": "bigint"}
_KINDS: dict[str, Kind] = {"int": "int", "float": "float", "string": "string", "bool": "bool", "time": "time"}
