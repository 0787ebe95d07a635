"""This module makes columns of Arrow of what PostgreSQL gives, whatever types its columns have, and changes no value.

Numbers with a fraction are doubles, and so are whole ones beside them if that changes none. What Arrow has no name for,
such as addresses of networks, is text. A column whose values are of several kinds otherwise, as in `jsonb`, is
a union of them: so what a value means does not depend on its neighbours. Lists of several kinds are JSON, as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    import psycopg

_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_LARGEST = 2**63 - 1
_KINDS = frozenset((bool, int, float, str, bytes, datetime, date, time, timedelta))
"""What Arrow has names for."""
_MOST = 100
"""So many kinds a union has at most."""
_WITHOUT_LIMITS = ("date", "timestamp", "timestamptz", "interval")
"""Types of the database with values that Python cannot hold, such as `infinity`."""
_ERRORS = (pa.ArrowException, OverflowError, TypeError, ValueError)


def table_of(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> pa.Table:
    """Rows by columns."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return pa.table({name: array_of(column) for name, column in zip(names, columns, strict=True)})


def array_of(values: Sequence[Any]) -> pa.Array:
    """A column."""
    kinds = set(map(type, values)) - {type(None)}
    if Decimal in kinds or not kinds <= _KINDS:
        values = [_plain(value) for value in values]
        if kinds == {Decimal} and all(type(value) is not int or abs(value) <= _EXACT for value in values):
            kinds = set(map(type, values)) - {type(None)}
            return pa.array(values, pa.float64() if float in kinds else pa.int64() if kinds else pa.null())
        kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 or not kinds <= _KINDS:
        return _union(values)
    try:
        return pa.array(values)
    except _ERRORS:
        return _union(values)


def _plain(value: Any) -> Any:
    """A value as one of the kinds that Arrow has, or a list or an object of such."""
    match value:
        case Decimal():
            is_whole = value.is_finite() and value == value.to_integral_value()
            return int(value) if is_whole else float(value)
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case _:
            return value if value is None or type(value) in _KINDS else str(value)


def _union(values: Sequence[Any]) -> pa.Array:
    """Values of several kinds: one column for each kind, with the place of each value in it."""
    groups: dict[Any, list[Any]] = {}
    shapes = list(map(_shape, values))
    for shape, value in zip(shapes, values, strict=True):
        groups.setdefault(shape, []).append(value)
    texts: list[Any] = []
    columns = {shape: column for shape, own in groups.items() if (column := _column(own)) is not None}
    kept = dict.fromkeys(list(columns)[:_MOST])
    numbers = {shape: k for k, shape in enumerate(kept)}
    if len(numbers) == len(groups) == 1:
        return next(iter(columns.values()))
    seen = dict.fromkeys(groups, 0)
    types, offsets = [], []
    for shape, value in zip(shapes, values, strict=True):
        types.append(numbers.get(shape, len(numbers)))
        offsets.append(seen[shape] if shape in numbers else len(texts))
        seen[shape] += 1
        if shape not in numbers:
            texts.append(_text(value))
    children = [columns[shape] for shape in numbers]
    children += [pa.array(texts, pa.string())] if texts else []
    return pa.UnionArray.from_dense(pa.array(types, pa.int8()), pa.array(offsets, pa.int32()), children)


def _shape(value: Any) -> Any:
    """What kind of value it is: of a list by those that it has, of an object by its keys, too."""
    match value:
        case list():
            return list, frozenset(map(_shape, value))
        case dict():
            return dict, frozenset((name, _shape(one)) for name, one in value.items())
        case int() if abs(value) > _LARGEST:
            return Decimal
        case datetime():
            return datetime, value.tzinfo is None
        case _:
            return type(value)


def _column(values: Sequence[Any]) -> pa.Array | None:
    """A column of values of one shape; None if Arrow has none."""
    try:
        return pa.array(list(map(Decimal, values)) if _shape(values[0]) is Decimal else values)
    except _ERRORS:
        return None


def _text(value: Any) -> str:
    if not isinstance(value, list | dict):
        return str(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def without_limits(connection: psycopg.Connection[Any]) -> None:
    """Has a connection give times that Python cannot hold as texts, where it would end a statement."""
    from psycopg import adapters  # noqa: PLC0415 - only who uses PostgreSQL needs its client
    from psycopg.pq import Format  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    for name in _WITHOUT_LIMITS:
        loader = adapters.get_loader(adapters.types[name].oid, Format.TEXT)
        if loader is not None:
            connection.adapters.register_loader(name, _lenient(loader))


def _lenient(known: Any) -> Any:
    from psycopg import DataError  # noqa: PLC0415 - only who uses PostgreSQL needs its client
    from psycopg.adapt import Loader  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    class Lenient(Loader):
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._known = known(oid, context)

        def load(self, data: Any) -> Any:
            try:
                return self._known.load(data)
            except DataError:
                return bytes(data).decode()

    return Lenient
