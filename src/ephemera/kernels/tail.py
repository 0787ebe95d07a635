"""This module keeps the newest tuples of a history row by row, as long as they come a few at a time.

Searching a handful of rows by columns costs more in calls than in work. So the newest rows are kept as they are, with
a table of the rows of each key, and become a columnar run when there are many, or when somebody searches by columns.
One event at a time is taken, matched, stored and joined as a row. All that works by columns sees a batch like any
other (`RowBatch`), whose columns are made when it looks at them, and once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ephemera.kernels.columns import UNBOUND, Batch, Column, Ints, Mask, column
from ephemera.kernels.computed import Key
from ephemera.terms.values import Value, key

FEW = 16
"""Batches of no more rows are kept row by row."""
MANY = 256
"""So many rows become a run."""

Row: TypeAlias = Mapping[str, Any]
Entry: TypeAlias = tuple[int, Row]
"""The step in which a row arrived, and the row."""


class Tail:
    """Rows in the order in which they arrived."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: deque[Entry] = deque(entries)
        self._by_key: dict[tuple[Key, ...], dict[Any, deque[Entry]]] = {}

    def append(self, step: int, row: Row) -> None:
        """One more row."""
        entry = (step, row)
        self.entries.append(entry)
        for keys, rows in self._by_key.items():
            rows.setdefault(key_of(row, keys), deque()).append(entry)

    def drop_first(self) -> None:
        """One row less: the oldest."""
        _, row = self.entries.popleft()
        for keys, rows in self._by_key.items():
            found = key_of(row, keys)
            rows[found].popleft()
            if not rows[found]:
                del rows[found]

    def since(self, step: int) -> list[Row]:
        """The rows that arrived after a step."""
        found: list[Row] = []
        for entry in reversed(self.entries):
            if entry[0] <= step:
                break
            found.append(entry[1])
        found.reverse()
        return found

    def with_key(self, keys: tuple[Key, ...], values: Any) -> Sequence[Entry]:
        """The rows whose columns have these values, as `key_of` gives them."""
        if not keys:
            return self.entries
        rows = self._by_key.get(keys)
        if rows is None:
            rows = self._by_key[keys] = {}
            for entry in self.entries:
                rows.setdefault(key_of(entry[1], keys), deque()).append(entry)
        return rows.get(values, ())

    def by_step(self) -> Iterator[tuple[int, Batch]]:
        """All rows by columns, those of a step together."""
        rows: list[Row] = []
        step = 0
        for number, row in self.entries:
            if rows and number != step:
                yield step, of_rows(rows)
                rows = []
            step = number
            rows.append(row)
        if rows:
            yield step, of_rows(rows)


def of_rows(rows: Sequence[Row]) -> Batch:
    """Rows by columns; what a row lacks has no value."""
    names = dict.fromkeys(name for row in rows for name in row)
    return Batch({name: column([row.get(name, UNBOUND) for row in rows]) for name in names}, len(rows))


def key_of(row: Row, keys: Sequence[Key]) -> Any:
    """What some values of a row are told apart by."""
    return key_of_values([_value(row, key) for key in keys])


def key_of_values(values: Sequence[Value]) -> Any:
    """The same, of the values themselves."""
    if len(values) == 1:
        return plain_key(values[0])
    return tuple(plain_key(value) for value in values)


def _value(row: Row, key: Key) -> Value:
    return row[key] if type(key) is str else key.value(row)  # type: ignore[union-attr]


def plain_key(value: Value) -> Any:
    """Python tells numbers and texts apart as the language does; all else has a key, which equals none of them."""
    kind = type(value)
    return value if kind is int or kind is str or kind is float else key(value)


class RowBatch(Batch):
    """Tuples as rows; none of them changes any more."""

    __slots__ = ("_columns", "_rows")
    _columns: Mapping[str, Column] | None
    _rows: Sequence[Row]

    def __init__(self, rows: Sequence[Row]) -> None:
        object.__setattr__(self, "length", len(rows))
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_columns", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (dict(self.columns), self.length)

    @property
    def columns(self) -> Mapping[str, Column]:
        """The same by columns."""
        if self._columns is None:
            object.__setattr__(self, "_columns", of_rows(self._rows).columns)
        return self._columns  # type: ignore[return-value]

    @property
    def given(self) -> Sequence[Row]:
        """The rows themselves."""
        return self._rows

    def rows(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        if names is None:
            return [dict(row) for row in self._rows]
        chosen = list(names)
        return [{name: row[name] for name in chosen if name in row} for row in self._rows]

    def take(self, rows: Ints | Mask) -> Batch:
        places = (np.flatnonzero(rows) if rows.dtype == np.bool_ else rows).tolist()
        if not places:  # no row says which columns there are
            return super().take(rows)
        return RowBatch([self._rows[k] for k in places])

    def numbered(self, name: str, numbers: Iterable[int]) -> RowBatch:
        """The rows with a number each."""
        return RowBatch([{**row, name: number} for row, number in zip(self._rows, numbers, strict=True)])
