"""This module keeps the newest tuples of a history row by row, as long as they come a few at a time.

Searching a handful of rows by columns costs more in calls than in work. So the newest rows are kept as they are, with
a table of the rows of each key, and become a columnar run when there are many, or when somebody searches by columns.
Each is dropped as soon as it is dead.
One event at a time is taken, matched, stored and joined as a row. All that works by columns sees a batch like any
other (`RowBatch`), whose columns are made when it looks at them, and once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
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
    """Rows in the order in which they arrived, each until it is dead."""

    def __init__(self, entries: Iterable[tuple[int, Row, int]] = ()) -> None:
        self._entries: dict[int, Entry] = {}
        """By numbers that count up."""
        self._deaths: list[tuple[int, int]] = []
        """The bound from which on each is dead, and its number; a heap."""
        self._by_key: dict[tuple[Key, ...], dict[Any, dict[int, Entry]]] = {}
        self._next = 0
        for step, row, until in entries:
            self.append(step, row, until)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def rows(self) -> list[Row]:
        """All of them."""
        return [row for _, row in self._entries.values()]

    @property
    def steps(self) -> tuple[int, int]:
        """The steps in which the first and the last of them arrived."""
        return next(iter(self._entries.values()))[0], next(reversed(self._entries.values()))[0]

    @property
    def last_death(self) -> int:
        """From which bound on all of them are dead."""
        return max(self._deaths)[0]

    def entries(self) -> list[tuple[int, Row, int]]:
        """All of them, with the steps in which they arrived, and the bounds from which on they are dead."""
        deaths = {number: until for until, number in self._deaths}
        return [(step, row, deaths[number]) for number, (step, row) in self._entries.items()]

    def append(self, step: int, row: Row, until: int) -> None:
        """One more row, which is dead from a bound on."""
        entry = (step, row)
        number = self._next
        self._next += 1
        self._entries[number] = entry
        heappush(self._deaths, (until, number))
        for keys, rows in self._by_key.items():
            rows.setdefault(key_of(row, keys), {})[number] = entry

    def expire(self, bound: int) -> int:
        """Drops what is dead at a bound; how many rows that are."""
        deaths, count = self._deaths, len(self._entries)
        while deaths and deaths[0][0] <= bound:
            number = heappop(deaths)[1]
            _, row = self._entries.pop(number)
            for keys, rows in self._by_key.items():
                found = key_of(row, keys)
                del rows[found][number]
                if not rows[found]:
                    del rows[found]
        return count - len(self._entries)

    def since(self, step: int) -> list[Row]:
        """The rows that arrived after a step."""
        found: list[Row] = []
        for entry in reversed(self._entries.values()):
            if entry[0] <= step:
                break
            found.append(entry[1])
        found.reverse()
        return found

    def with_key(self, keys: tuple[Key, ...], values: Any) -> Collection[Entry]:
        """The rows whose columns have these values, as `key_of` gives them."""
        if not keys:
            return self._entries.values()
        rows = self._by_key.get(keys)
        if rows is None:
            rows = self._by_key[keys] = {}
            for number, entry in self._entries.items():
                rows.setdefault(key_of(entry[1], keys), {})[number] = entry
        found = rows.get(values)
        return found.values() if found is not None else ()

    def by_step(self) -> Iterator[tuple[int, Batch]]:
        """All rows by columns, those of a step together."""
        rows: list[Row] = []
        step = 0
        for number, row in self._entries.values():
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
