"""This module joins tuples with the constants of rules that are alike, and so finds out whose answers they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ephemera.algebra.attributes import hidden
from ephemera.kernels.columns import Batch, Column, Ints, Mask, column, ints
from ephemera.kernels.keys import hash_columns, joins, paired
from ephemera.kernels.ranges import ORDERS, Limits, Order, Ranges, order_of
from ephemera.kernels.tail import FEW, Row, key_of
from ephemera.physical.nodes import ConstantRange, RulePlan
from ephemera.rewrite.optimize import Alike
from ephemera.terms.values import Value

MEMBER = hidden("member")
"""The column that says which of the rules a tuple is an answer of."""


SPARSE = 16
"""So many places there are at least for each row of constants where hashes are looked up."""


class Constants:
    """Rows of constants, searched by all their columns."""

    def __init__(self, columns: Sequence[Column], length: int) -> None:
        self._columns = columns
        hashes = hash_columns(columns, length)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._low = hashes.dtype.type((SPARSE << length.bit_length()) - 1)
        self._may = np.zeros(int(self._low) + 1, dtype=np.bool_)
        """For the low bits of a hash whether some row of constants has them: most tuples have none."""
        self._may[hashes & self._low] = True
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
        likely = np.flatnonzero(self._may[hashes & self._low])
        hashes = hashes[likely]
        starts = np.searchsorted(self._hashes, hashes, side="left")
        counts = np.searchsorted(self._hashes, hashes, side="right") - starts
        rows = np.repeat(likely, counts)
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


class RangedConstants:
    """Rows of constants, searched by the columns that must be equal, and by one value that must lie in a range."""

    def __init__(self, columns: Sequence[Column], limits: Sequence[Limits]) -> None:
        names = [str(k) for k in range(len(columns))]
        groups: dict[object, int] = {}
        own: list[int] = []
        for values in zip(*(c.tolist() for c in columns), strict=True) if columns else [()] * len(limits):
            key = key_of(dict(zip(names, values, strict=True)), names)
            own.append(groups.setdefault(key, len(groups)))
        firsts = np.unique(np.array(own, dtype=np.int64), return_index=True)[1]
        self._equal = Constants([c.take(firsts) for c in columns], len(firsts)) if columns else None
        self._ranges: dict[Order, Ranges] = {}
        for order in ORDERS:
            members = [k for k, one in enumerate(limits) if one.is_of(order)]
            if members:
                chosen = [limits[k] for k in members]
                self._ranges[order] = Ranges(order, chosen, members, [own[k] for k in members])

    def of_row(self, row: Row, names: Sequence[str]) -> Sequence[int]:
        """The rows of constants for some values of a row, of which the last lies in a range."""
        value = row[names[-1]]
        order = order_of(value)
        ranges = self._ranges.get(order) if order is not None else None
        if ranges is None:
            return ()
        groups = self._equal.of_row(row, names[:-1]) if self._equal is not None else (0,)
        return ranges.of(value, groups[0]) if groups else ()

    def pairs(self, columns: Sequence[Column], length: int) -> tuple[Ints, Ints]:
        """The pairs of a row and a row of constants for it."""
        groups = self._groups(columns[:-1], length)
        found = [ranges.pairs(columns[-1], groups) for ranges in self._ranges.values()]
        nothing = np.empty(0, dtype=np.int64)
        rows = np.concatenate([nothing, *(r for r, _ in found)])
        return rows, np.concatenate([nothing, *(n for _, n in found)])

    def known(self, batch: Batch, names: Sequence[str]) -> Mask:
        """Which rows have some row of constants."""
        groups = self._groups([batch.columns[n] for n in names[:-1]], len(batch))
        found: Mask = np.zeros(len(batch), dtype=np.bool_)
        for ranges in self._ranges.values():
            found |= ranges.holds(batch.columns[names[-1]], groups)
        return found

    def _groups(self, columns: Sequence[Column], length: int) -> Ints:
        """For each row the number of what must be equal, or -1."""
        if self._equal is None:
            return np.zeros(length, dtype=np.int64)
        groups = np.full(length, -1, dtype=np.int64)
        rows, numbers = self._equal.pairs(columns, length)
        groups[rows] = numbers
        return groups


class JoinConstants:
    """The constants of rules that are alike, and how tuples find them."""

    def __init__(self, plan: RulePlan, alike: Alike) -> None:
        values = dict(zip(alike.names, zip(*alike.rows, strict=True), strict=True)) if alike.names else {}
        table = {name: column(found) for name, found in values.items()}
        found, ranged = plan.constants, plan.ranged
        self._names = (*found.values(), *([ranged.variable] if ranged is not None else []))
        self.by = frozenset(found.values()) | (ranged.needs if ranged is not None else frozenset())
        """The columns of tuples that find their constants."""
        self._distance = ranged.distance if ranged is not None else None
        """What is computed of these: how far one stamp lies behind another."""
        # One limit may stand for several distances, of which one is found by a range, and the others are tested.
        done = found.keys() | (ranged.constants if ranged is not None and ranged.distance is None else frozenset())
        self._rest = {name: c for name, c in table.items() if name not in done} | {
            MEMBER: ints(np.arange(len(alike.members)))
        }
        self.count = len(alike.members)
        columns = [table[name] for name in found]
        self.constants: Constants | RangedConstants | None = None
        if ranged is not None:
            self.constants = RangedConstants(columns, _limits(ranged, values, self.count))
        elif found:
            self.constants = Constants(columns, self.count)

    def may(self, batch: Batch) -> Batch:
        """The tuples that have constants."""
        if self.constants is None:
            return batch
        known = self.constants.known(self._with_distance(batch), self._names)
        return batch if known.all() else batch.take(known)

    def joined(self, batch: Batch) -> Batch:
        """The tuples with all constants, each once for every rule that it may be an answer of."""
        if self.constants is None:
            rows = np.repeat(np.arange(len(batch)), self.count)
            others = np.tile(np.arange(self.count), len(batch))
        else:
            columns = self._with_distance(batch).columns
            rows, others = self.constants.pairs([columns[n] for n in self._names], len(batch))
        return paired(batch, rows, Batch(self._rest, self.count), others)

    def by_member(self, batch: Batch) -> list[tuple[int, Batch]]:
        """Tuples with all constants by the rules that they are answers of, by number."""
        order = np.argsort(batch[MEMBER], kind="stable")
        numbers = batch[MEMBER][order]
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        return [(int(batch[MEMBER][rows[0]]), batch.take(rows)) for rows in np.split(order, cuts) if len(rows)]

    def members_of(self, row: Row) -> Sequence[int]:
        """The rules that a tuple is an answer of, by number."""
        if self.constants is None:
            return range(self.count)
        if self._distance is not None:
            later, earlier = self._distance
            row = {**row, self._names[-1]: row[later] - row[earlier]}
        return self.constants.of_row(row, self._names)

    def _with_distance(self, batch: Batch) -> Batch:
        if self._distance is None:
            return batch
        later, earlier = self._distance
        return batch.with_columns({self._names[-1]: ints(batch[later] - batch[earlier])})


def _limits(ranged: ConstantRange, values: Mapping[str, Sequence[Value]], count: int) -> list[Limits]:
    """For each rule the range that it asks for."""
    open_end: Sequence[Value] = [None] * count
    least = values[ranged.least] if ranged.least is not None else open_end
    most = values[ranged.most] if ranged.most is not None else open_end
    return [Limits(a, b, ranged.above, ranged.below) for a, b in zip(least, most, strict=True)]


def known_constants(alike: Alike, names: Mapping[str, str]) -> tuple[Constants, tuple[str, ...]]:
    """The constants of a query that was made for rules that are alike, and its own names of them."""
    places = [alike.names.index(name) for name in names.values()]
    columns = [column([row[p] for row in alike.rows]) for p in places]
    return Constants(columns, len(alike.rows)), tuple(names)
