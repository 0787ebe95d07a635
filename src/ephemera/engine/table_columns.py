"""This module turns the columns of Arrow tables into stamps and columns of ours, and says which rows it vouches for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ephemera.io.jsonl import LATEST
from ephemera.kernels.columns import Column, Ints, Kind, Mask, objects
from ephemera.terms.compute import EPOCH
from ephemera.terms.text import iso
from ephemera.terms.values import Time

_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
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


def stamps_of(array: pa.Array, unit: int) -> tuple[Ints, Mask]:
    """Points in time in microseconds, and which rows they are right for."""
    factor, divisor = unit, 1
    if is_instant(array.type):
        array, factor, divisor = ticks(array)
    values, good = numbers(array)
    near = good & (values <= LATEST // factor) & (values >= -(LATEST // factor)) if divisor == 1 else good
    return np.where(near, values, 0) * factor // divisor, near


def column_of(array: pa.Array, declared: str, unit: int) -> tuple[Column, Mask]:
    """The values of an attribute, and which rows they are right for; null always is."""
    t = array.type
    if kinds.is_null(t):
        return Column(np.full(len(array), None, dtype=object), "any"), np.ones(len(array), dtype=np.bool_)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    is_number = kinds.is_integer(t) or kinds.is_floating(t)
    kind: Kind = "any"
    if declared == "time" or (declared == "any" and is_instant(t)):
        stamps, good = stamps_of(array, unit)
        values: np.ndarray = objects([Time(v) for v in stamps.tolist()])
    elif (declared == "int" and is_number) or (declared == "any" and kinds.is_integer(t)):
        (values, good), kind = numbers(array), "int"
    elif is_number and declared in ("float", "any"):
        (values, good), kind = floats(array), "float"
    elif kinds.is_large_string(t) and declared in ("string", "any"):
        values, good, kind = array.to_numpy(zero_copy_only=False), valid, "text"
    elif kinds.is_boolean(t) and declared in ("bool", "any"):
        values, good = array.fill_null(False).to_numpy(zero_copy_only=False).astype(object), valid
    else:
        values, good = objects([None] * len(array)), np.zeros(len(array), dtype=np.bool_)
    if not valid.all():
        values, kind = values.astype(object), "any"
        values[~valid] = None
    return Column(values, kind), good | ~valid


def listed(name: str, array: pa.Array) -> list[Any]:
    """The values as Python has them, instants as times, decimals as the numbers they are."""
    if is_instant(array.type):
        numbers, factor, divisor = ticks(array)
        return [None if v is None else Time(v * factor // divisor) for v in numbers.to_pylist()]
    try:
        return [plain(v) for v in array.to_pylist()]
    except ValueError as error:
        raise ValueError(f"the column `{name}` of type {array.type} cannot be read: {error}; cast it first") from None


def plain(value: Any) -> Any:
    """A value of a table as JSON would have it."""
    match value:
        case datetime():
            return Time(((value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1))
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list():
            return [plain(v) for v in value]
        case dict():
            return {name: plain(v) for name, v in value.items()}
        case _:
            return value


def as_text(value: Any) -> Any:
    """Instants as JSON has them."""
    if isinstance(value, list):
        return [as_text(v) for v in value]
    return iso(value) if isinstance(value, Time) else value


def coded(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """A column of texts that is numbered already, as one array; None if it is none, or numbers a text twice or null."""
    held = column.type.value_type if kinds.is_dictionary(column.type) else None
    if held is None or not (kinds.is_string(held) or kinds.is_large_string(held)):
        return None
    found = column.unify_dictionaries().combine_chunks()
    texts = found.dictionary.to_pylist() if len(found) else []
    return found if None not in texts and len(set(texts)) == len(texts) > 0 else None


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of a plain type."""
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_string(column.type) or kinds.is_string_view(column.type):
        column = column.cast(pa.large_string())  # one array may be longer than 2 GB
    return column.combine_chunks()
