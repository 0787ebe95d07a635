"""This module numbers the values of the shared variables of a step of an algebra expression, and gives them back.

Whole numbers that do not lie too far apart are numbered by themselves, from the least on. So what was sorted by these
numbers in one step is so in the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ephemera.engine.operators.detect_state import HASH, Shape, column_of, hashes_of, with_hashes
from ephemera.kernels.columns import UNBOUND, Batch, Column, Hashes, Ints, concat, constant, ints
from ephemera.kernels.keys import numbered, same

WIDEST = 32
"""Numbers of so many bits are sorted in two passes."""


_NONE: Ints = np.empty(0, dtype=np.int64)


class SharedHash(Exception):
    """Two values of the shared variables have the same hash: it is for those to go on who compare values."""


class SharedValues:
    """The values of the shared variables that some batches have, as numbers.

    If some events serve all values, one more number, the last one, is for the values that have not come yet.
    """

    def __init__(self, shape: Shape, batches: Sequence[Batch], kept: int, room: int) -> None:
        """The first batches, so many, are what was kept; numbers may have so many bits if there is no need to count."""
        self._shared = shape.shared
        self._serves_all = shape.serves_all
        self._first: int | None = None
        """The value of the first number, if values are numbered by themselves."""
        self._values: Mapping[str, Column] = {}
        self._hashes: Hashes | None = None
        self._rows_of: Ints = np.empty(0, dtype=np.int64)
        """Else for each number a row of the values that has it."""
        self.is_plain = True
        """Whether equal values have one form only."""
        self.count = 1
        self.is_new: np.ndarray = np.zeros(1, dtype=np.bool_)
        """Of each number whether nothing was kept of it; only where some events serve all values."""
        if not shape.shared:
            self.numbers: list[Ints] = [np.zeros(len(batch), dtype=np.int64) for batch in batches]
        elif not self._number(batches, min(room, WIDEST)):
            self._count(batches, kept)

    def _number(self, batches: Sequence[Batch], bits: int) -> bool:
        """Whether values are numbered by themselves."""
        if self._serves_all or len(self._shared) > 1:
            return False
        filled = [c for b in batches if len(c := column_of(b, self._shared[0]))]
        if not filled or any(c.kind != "int" for c in filled):
            return False
        first = min(int(c.values.min()) for c in filled)
        count = max(int(c.values.max()) for c in filled) - first + 1
        if count.bit_length() > bits:
            return False
        columns = (column_of(b, self._shared[0]) for b in batches)
        self.numbers = [np.asarray(c.values, dtype=np.int64) - first if len(c) else _NONE for c in columns]
        self._first, self.count = first, count
        return True

    def _count(self, batches: Sequence[Batch], kept: int) -> None:
        """Values that are equal get one number."""
        self._values = {v: concat([column_of(b, v) for b in batches]) for v in self._shared}
        columns = list(self._values.values())
        self.is_plain = all(c.kind in ("int", "text") for c in columns)
        self._hashes = np.concatenate([hashes_of(self._shared, b) for b in batches])
        numbering, numbers = numbered(self._hashes)
        self._rows_of = rows = numbering.rows
        others = rows.take(numbers)
        if kept and all(HASH in b.columns for b in batches[:kept] if len(b)):  # these were compared when they came
            known = sum(map(len, batches[:kept]))
            checked = (np.maximum(others, np.arange(len(others))) >= known).nonzero()[0]
            others = others.take(checked)
            columns = [c.take(checked) for c in columns]
        for c, whole in zip(columns, self._values.values(), strict=True):
            if not same(c, whole.take(others)).all():
                raise SharedHash
        self.numbers = np.split(numbers, np.cumsum([len(b) for b in batches])[:-1])
        self.count = len(rows) + self._serves_all
        if self._serves_all:
            self.is_new = np.ones(self.count, dtype=np.bool_)
            self.is_new[-1] = False
            for own in self.numbers[:kept]:
                self.is_new[own] = False

    def with_hashes(self, batch: Batch, numbers: Ints) -> Batch:
        """The batch with the hashes of some numbers, if they are known and each has one."""
        if self._hashes is None or self._serves_all:
            return batch
        return with_hashes(batch, self._hashes.take(self._rows_of.take(numbers)))

    def columns(self, numbers: Ints) -> dict[str, Column]:
        """The values of some numbers; the last one has none if it is for values that have not come yet."""
        if self._first is not None:
            return {self._shared[0]: ints(numbers + self._first)}
        if not len(self._rows_of):
            return {v: constant(UNBOUND, len(numbers)) for v in self._shared}
        rows = self._rows_of.take(np.minimum(numbers, len(self._rows_of) - 1))
        found = {v: values.take(rows) for v, values in self._values.items()}
        waits = numbers >= len(self._rows_of)
        if self._serves_all and waits.any():
            places = np.where(waits, len(numbers), np.arange(len(numbers)))
            found = {v: concat([c, constant(UNBOUND, 1)]).take(places) for v, c in found.items()}
        return found
