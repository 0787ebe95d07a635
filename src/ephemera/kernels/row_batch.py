"""This module holds a few tuples as rows that become columns only when somebody asks for these.

One event at a time is taken, matched, stored and joined as a row. All that works by columns sees a batch like any
other, whose columns are made when it looks at them, and once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.kernels.columns import Batch, Column, Ints, Mask
from ephemera.kernels.tail import Row, of_rows


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
