"""This module turns the columns of Arrow tables into stamps and columns of ours, and says which rows it vouches for."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from ephemera.base.time import LATEST
from ephemera.formats.arrow_rows import values_of
from ephemera.kernels.columns import Column, Ints, Kind, Mask, objects
from ephemera.terms.errors import BadMessage
from ephemera.terms.values import Time
from ephemera.terms.zones import LocalTime

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_IN_ZONES = (datetime(1, 1, 3), datetime(9999, 12, 30))  # noqa: DTZ001 - these are without a zone
"""Between these every zone can tell what a time without one means."""
_TICKS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


def is_instant(t: pa.DataType) -> bool:
    """Whether a column holds dates or timestamps."""
    return bool(kinds.is_timestamp(t) or kinds.is_date(t))


def is_numeric(t: pa.DataType) -> bool:
    """Whether a column holds numbers, or nothing at all."""
    return bool(kinds.is_integer(t) or kinds.is_floating(t) or kinds.is_decimal(t) or kinds.is_null(t))


def ticks(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Instants as whole numbers, and what they are multiplied with and divided by to be microseconds."""
    if kinds.is_timestamp(array.type):
        return array.cast(pa.int64()), *_TICKS[array.type.unit]
    if kinds.is_date32(array.type):
        return array.cast(pa.int32()).cast(pa.int64()), 86_400_000_000, 1
    return array.cast(pa.int64()), 1_000, 1


def numbers(array: pa.Array) -> tuple[Ints, Mask]:
    """Whole numbers of 64 bits, and which rows they are right for."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if kinds.is_integer(array.type):
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        fits = values <= np.uint64(2**63 - 1) if values.dtype == np.uint64 else np.ones(len(values), dtype=np.bool_)
        return values.astype(np.int64), valid & fits
    if kinds.is_floating(array.type):
        values, valid = floats(array)
        whole = valid & (np.abs(values) <= _EXACT) & (np.floor(values) == values)
        return np.where(whole, values, 0).astype(np.int64), whole
    return np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.bool_)


def floats(array: pa.Array) -> tuple[np.ndarray, Mask]:
    """Doubles, and which rows they are right for."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if kinds.is_floating(array.type):
        floats = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        return floats, valid & np.isfinite(floats)
    values, fits = numbers(array)
    return values.astype(np.float64), fits & (values <= _EXACT) & (values >= -_EXACT)


def has_no_zone(t: pa.DataType) -> bool:
    """Whether a column holds dates, or timestamps without a zone."""
    return bool(kinds.is_date(t) or (kinds.is_timestamp(t) and t.tz is None))


def in_zone(array: pa.Array, local: LocalTime) -> tuple[pa.Array, Mask]:
    """Instants in place of dates and timestamps without a zone, and which rows they are right for.

    It costs nothing where the zone is UTC.
    """
    everywhere = np.ones(len(array), dtype=np.bool_)
    if not has_no_zone(array.type):
        return array, everywhere
    local.assume(len(array) - array.null_count)
    if local.is_utc:
        return array, everywhere
    if kinds.is_date(array.type):
        array = array.cast(pa.timestamp("s" if kinds.is_date32(array.type) else "ms"))
    known = array
    if array.type.unit != "ns":  # of nanoseconds 64 bits hold some hundred years only
        early, late = (pa.scalar(moment, array.type) for moment in _IN_ZONES)
        near = pc.and_(pc.greater_equal(array, early), pc.less(array, late))
        known = pc.if_else(near, array, pa.scalar(None, array.type))
    try:
        first, last = (
            pc.assume_timezone(known, local.zone, ambiguous="earliest", nonexistent=choice)
            for choice in ("earliest", "latest")
        )
    except pa.ArrowInvalid:  # Arrow finds the zones of the system only, Python has its own, too
        return _one_by_one(known, local)
    right = pc.equal(first, last).fill_null(False).to_numpy(zero_copy_only=False)
    return last, right | array.is_null().to_numpy(zero_copy_only=False)


def _one_by_one(array: pa.Array, local: LocalTime) -> tuple[pa.Array, Mask]:
    found: list[int | None] = []
    right = np.ones(len(array), dtype=np.bool_)
    for row, moment in enumerate(array.cast(pa.timestamp("us"), safe=False).to_pylist()):
        try:
            found.append(None if moment is None else local.instant(moment))
        except BadMessage:
            found.append(None)
            right[row] = False
    return pa.array(found, pa.timestamp("us", tz="UTC")), right


def stamps_of(array: pa.Array, unit: int, local: LocalTime) -> tuple[Ints, Mask]:
    """Points in time in microseconds, and which rows they are right for."""
    factor, divisor = unit, 1
    array, exists = in_zone(array, local)
    if is_instant(array.type):
        array, factor, divisor = ticks(array)
    values, good = numbers(array)
    near = good & (values <= LATEST // factor) & (values >= -(LATEST // factor)) if divisor == 1 else good
    return np.where(near, values, 0) * factor // divisor, near & exists


def column_of(array: pa.Array, declared: str, unit: int, local: LocalTime) -> tuple[Column, Mask]:
    """The values of an attribute, and which rows they are right for; null always is."""
    t = array.type
    if kinds.is_null(t):
        return Column(np.full(len(array), None, dtype=object), "any"), np.ones(len(array), dtype=np.bool_)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    is_number = kinds.is_integer(t) or kinds.is_floating(t)
    kind: Kind = "any"
    if declared == "time" or (declared == "any" and is_instant(t)):
        stamps, good = stamps_of(array, unit, local)
        values: np.ndarray = objects([Time(v) for v in stamps.tolist()])
    elif (declared == "int" and is_number) or (declared == "any" and kinds.is_integer(t)):
        (values, good), kind = numbers(array), "int"
    elif is_number and declared in ("float", "any"):
        (values, good), kind = floats(array), "float"
    elif kinds.is_large_string(t) and declared in ("string", "any"):
        texts = _texts(array)
        values, good, kind = (objects([None] * len(array)), ~valid, "any") if texts is None else (texts, valid, "text")
    elif kinds.is_boolean(t) and declared in ("bool", "any"):
        values, good = array.fill_null(False).to_numpy(zero_copy_only=False).astype(object), valid
    else:
        values, good = objects([None] * len(array)), np.zeros(len(array), dtype=np.bool_)
    if not valid.all():
        values, kind = values.astype(object), "any"
        values[~valid] = None
    return Column(values, kind), good | ~valid


def _texts(array: pa.Array) -> np.ndarray | None:
    """A column of texts; None if the bytes of some are no text, which nobody has checked."""
    try:
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def listed(array: pa.Array, rows: Ints, local: LocalTime) -> list[Any]:
    """The values of some rows as Python has them, instants as times, decimals as the numbers they are.

    What is no instant in the zone of the program stays as it is, for whoever reads it to say so.
    """
    if is_instant(array.type):
        array = array.take(rows)
        instants, exists = in_zone(array, local)
        numbers, factor, divisor = ticks(instants)
        found: list[Any] = [None if v is None else Time(v * factor // divisor) for v in numbers.to_pylist()]
        for row in np.flatnonzero(~exists).tolist():
            found[row] = _as_it_is(array[row])
        return found
    return [plain(v) for v in values_of(array, rows.tolist(), floor=True)]


def _as_it_is(value: pa.Scalar) -> Any:
    try:
        return value.cast(pa.timestamp("us"), safe=False).as_py() if kinds.is_timestamp(value.type) else value.as_py()
    except (ValueError, OverflowError):
        return str(value)


def plain(value: Any) -> Any:
    """A value of a table as JSON would have it; a time stays one of Python's."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list():
            return [plain(v) for v in value]
        case dict():
            return {name: plain(v) for name, v in value.items()}
        case _:
            return value


def coded(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """A column of texts that is numbered already, as one array; None if it is none, or numbers a text twice or null."""
    held = column.type.value_type if kinds.is_dictionary(column.type) else None
    if held is None or not (kinds.is_string(held) or kinds.is_large_string(held)):
        return None
    found = column.unify_dictionaries().combine_chunks()
    texts = values_of(found.dictionary, range(len(found.dictionary))) if len(found) else []
    return found if None not in texts and len(set(texts)) == len(texts) > 0 else None


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of a plain type."""
    if kinds.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_string(column.type) or kinds.is_string_view(column.type):
        column = column.cast(pa.large_string())  # one array may be longer than 2 GB
    return column.combine_chunks()


def is_foreign(field: pa.Field) -> bool:
    """Whether a column holds numbers that stand for something else, such as the periods of pandas.

    Of a file, only what is written beside the column says so where nobody knows the type.
    """
    if isinstance(field.type, pa.BaseExtensionType):
        return is_numeric(field.type.storage_type) and field.type.extension_name != "arrow.bool8"
    return is_numeric(field.type) and b"ARROW:extension:name" in (field.metadata or {})


def foreign_name(field: pa.Field) -> str:
    """What the type of such a column is called."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return str(field.metadata[b"ARROW:extension:name"], "utf-8", "backslashreplace")


def with_instants(table: pa.Table, schema: pq.ParquetSchema) -> pa.Table:
    """A table of a Parquet file; its old timestamps of 96 bits are instants, though Arrow gives them no zone."""
    old = {c.path for c in (schema.column(k) for k in range(len(schema))) if c.physical_type == "INT96"}
    for k, name in enumerate(table.column_names):
        if name in old:
            table = table.set_column(k, name, table.column(k).cast(pa.timestamp("ns", tz="UTC")))
    return table
