"""This module joins tuples with the constants of rules that are alike, and so finds out whose answers they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ephemera.algebra.attributes import hidden
from ephemera.kernels.columns import Batch, Column, Ints, Mask, column, ints
from ephemera.kernels.keys import hash_columns, joins, paired
from ephemera.kernels.tail import FEW, Row, key_of
from ephemera.physical.nodes import RulePlan
from ephemera.rewrite.optimize import Alike

MEMBER = hidden("member")
"""The column that says which of the rules a tuple is an answer of."""


class Constants:
    """Rows of constants, searched by all their columns."""

    def __init__(self, columns: Sequence[Column], length: int) -> None:
        self._columns = columns
        hashes = hash_columns(columns, length)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._rows: dict[object, list[int]] = {}
        names = [str(k) for k in range(len(columns))]
        for number, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            key = key_of(dict(zip(names, values, strict=True)), names)
            self._rows.setdefault(key, []).append(number)

    def of_row(self, row: Row, names: Sequence[str]) -> Sequence[int]:
        """The rows of constants that are equal to some values of a row."""
        return self._rows.get(key_of(row, names), ())

    def pairs(self, columns: Sequence[Column], length: int) -> tuple[Ints, Ints]:
        """The pairs of a row and a row of constants that are equal to it."""
        hashes = hash_columns(columns, length)
        starts = np.searchsorted(self._hashes, hashes, side="left")
        counts = np.searchsorted(self._hashes, hashes, side="right") - starts
        rows = np.repeat(np.arange(length), counts)
        ends = np.cumsum(counts)
        places = np.arange(len(rows)) - np.repeat(ends - counts, counts) + np.repeat(starts, counts)
        others = self._order[places]
        agree: Mask = np.ones(len(rows), dtype=np.bool_)
        for mine, theirs in zip(columns, self._columns, strict=True):
            agree &= joins(mine.take(rows), theirs.take(others))
        return rows[agree], others[agree]

    def known(self, batch: Batch, names: Sequence[str]) -> Mask:
        """Which rows are equal to some row of constants."""
        if len(batch) <= FEW:
            rows = batch.rows(names)
            return np.array([all(n in r for n in names) and bool(self.of_row(r, names)) for r in rows], dtype=np.bool_)
        found = np.zeros(len(batch), dtype=np.bool_)
        found[self.pairs([batch.columns[n] for n in names], len(batch))[0]] = True
        return found


class JoinConstants:
    """The constants of rules that are alike, and how tuples find them."""

    def __init__(self, plan: RulePlan, alike: Alike) -> None:
        values = dict(zip(alike.names, zip(*alike.rows, strict=True), strict=True)) if alike.names else {}
        table = {name: column(found) for name, found in values.items()}
        found = plan.constants
        self._names = tuple(found.values())
        self.by = frozenset(self._names)
        """The columns of tuples that find their constants."""
        self._rest = {name: c for name, c in table.items() if name not in found} | {
            MEMBER: ints(np.arange(len(alike.members)))
        }
        self.count = len(alike.members)
        self.constants = Constants([table[name] for name in found], self.count) if found else None

    def may(self, batch: Batch) -> Batch:
        """The tuples that have constants."""
        if self.constants is None:
            return batch
        known = self.constants.known(batch, self._names)
        return batch if known.all() else batch.take(known)

    def joined(self, batch: Batch) -> Batch:
        """The tuples with all constants, each once for every rule that it may be an answer of."""
        if self.constants is None:
            rows = np.repeat(np.arange(len(batch)), self.count)
            others = np.tile(np.arange(self.count), len(batch))
        else:
            rows, others = self.constants.pairs([batch.columns[n] for n in self._names], len(batch))
        return paired(batch, rows, Batch(self._rest, self.count), others)

    def by_member(self, batch: Batch) -> list[tuple[int, Batch]]:
        """Tuples with all constants by the rules that they are answers of, by number."""
        order = np.argsort(batch[MEMBER], kind="stable")
        numbers = batch[MEMBER][order]
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        return [(int(batch[MEMBER][rows[0]]), batch.take(rows)) for rows in np.split(order, cuts) if len(rows)]

    def members_of(self, row: Row) -> Sequence[int]:
        """The rules that a tuple is an answer of, by number."""
        return range(self.count) if self.constants is None else self.constants.of_row(row, self._names)


def known_constants(alike: Alike, names: Mapping[str, str]) -> tuple[Constants, tuple[str, ...]]:
    """The constants of a query that was made for rules that are alike, and its own names of them."""
    places = [alike.names.index(name) for name in names.values()]
    columns = [column([row[p] for row in alike.rows]) for p in places]
    return Constants(columns, len(alike.rows)), tuple(names)
