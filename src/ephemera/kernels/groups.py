"""This module groups rows and aggregates whole numbers and doubles by columns.

It does what is exact by columns and says when that is not enough: sums of whole numbers that stay within 64 bits,
averages of sums that a double holds exactly, least and greatest values, numbers of rows and of distinct values. Sums
and averages of doubles are rounded once, from the exact sum, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import UNBOUND, Batch, Column, Doubles, Ints, ints
from ephemera.kernels.keys import hash_columns, numbered, same, sorted_by
from ephemera.terms.values import key

EXACT = 1 << 53
"""Up to here a double holds every whole number."""
SPLITTER = float((1 << 27) + 1)
"""Times a double, and taken away again, it leaves the upper half of its digits."""
MOST_TIMES = 1 << 26
"""Half of a double's digits times less than this is exact."""
PLAIN = (1e-200, 1e200)
"""Between these no digits of an average are lost when it is split."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows sorted by group."""

    order: Ints
    starts: Ints
    """Where each group begins in that order."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Ints:
        """A row of each group."""
        return self.order[self.starts]

    @property
    def sizes(self) -> Ints:
        return np.diff(np.append(self.starts, len(self.order)))


def grouped(batch: Batch, by: Sequence[str]) -> Groups:
    """The rows by some columns."""
    columns = [batch.columns[name] for name in by]
    numbering, numbers = numbered(hash_columns(columns, len(batch)))
    if len(numbering) == len(batch):
        rows = np.arange(len(batch))
        return Groups(rows, rows)
    if not all(same(c, c.take(numbering.rows[numbers])).all() for c in columns):
        return _one_by_one(columns)
    sizes = np.bincount(numbers)
    return Groups(sorted_by(numbers, len(numbering)), np.cumsum(sizes) - sizes)


def _one_by_one(columns: Sequence[Column]) -> Groups:
    """The same for the rare case that two groups have one hash."""
    rows: dict[tuple[object, ...], list[int]] = {}
    for number, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        rows.setdefault(tuple(() if v is UNBOUND else key(v) for v in values), []).append(number)
    sizes = [len(members) for members in rows.values()]
    order = np.array([number for members in rows.values() for number in members], dtype=np.int64)
    return Groups(order, np.cumsum([0, *sizes[:-1]]))


def aggregate(function: str, c: Column | None, groups: Groups) -> Column | None:
    """An aggregate for each group; None if it cannot be had exactly by columns."""
    if c is None:
        return ints(groups.sizes)
    if c.kind not in ("int", "float"):
        return None
    values = c.values[groups.order]
    match function:
        case "min":
            return Column(np.minimum.reduceat(values, groups.starts), c.kind)
        case "max":
            return Column(np.maximum.reduceat(values, groups.starts), c.kind)
        case "count":
            return _distinct(values, groups)
        case "sum" | "avg" if c.kind == "int":
            return _added(function, values, groups)
        case "sum" | "avg":
            return _of_doubles(math.fsum if function == "sum" else _mean, values, groups)
        case _:
            return None


def _of_doubles(added: Callable[[Sequence[float]], float], values: Doubles, groups: Groups) -> Column | None:
    """The sum or average of each group; None if one has no value."""
    stops = groups.starts + groups.sizes
    every = values.tolist()
    try:
        found = [added(every[i:k]) for i, k in zip(groups.starts.tolist(), stops.tolist(), strict=True)]
    except OverflowError:
        return None
    column = Column(np.array(found), "float")
    return column if np.isfinite(column.values).all() else None


def _mean(values: Sequence[float]) -> float:
    """The exact sum over the number of values, rounded once.

    The rounded sum over the number is that, or a double next to it. It is the one of which so many times leave less of
    the sum than half of its last digit; that difference is exact up to its own rounding, which comes last.
    """
    count = len(values)
    found = math.fsum(values) / count
    for _ in range(2):
        if count >= MOST_TIMES or not PLAIN[0] < abs(found) < PLAIN[1] or abs(math.frexp(found)[0]) == 0.5:
            break  # below a power of two digits are half as wide
        spread = found * SPLITTER
        upper = spread - (spread - found)
        left = math.fsum([*values, -upper * count, (upper - found) * count])
        if abs(left) < count * math.ulp(found) / 2:
            return found
        found = math.nextafter(found, math.copysign(math.inf, left))
    return float(sum(map(Fraction, values)) / count)


def _added(function: str, values: Ints, groups: Groups) -> Column | None:
    largest = max(abs(int(values.max())), abs(int(values.min())))
    most = int(groups.sizes.max()) * largest
    if most >= 1 << 62 or (function == "avg" and most >= EXACT):
        return None
    sums = np.add.reduceat(values, groups.starts)
    return ints(sums) if function == "sum" else average(sums, groups.sizes)


def average(sums: Ints, counts: Ints) -> Column:
    """Sums over counts, each rounded correctly: one by one where a double does not hold the sum."""
    if len(sums) and max(abs(int(sums.max())), abs(int(sums.min()))) >= EXACT:
        pairs = zip(sums.tolist(), counts.tolist(), strict=True)
        return Column(np.array([float(Fraction(s, n)) for s, n in pairs]), "float")
    return Column(sums / counts, "float")


def rounded(sums: Sequence[int], power: int, counts: Ints | None) -> Column:
    """Exact sums, whole numbers times a power of two, or averages if there are counts: each rounded once."""
    numbers = counts.tolist() if counts is not None else [1] * len(sums)
    above, below = 1 << max(power, 0), 1 << max(-power, 0)
    found = [s * above / (n * below) for s, n in zip(sums, numbers, strict=True)]
    return Column(np.array(found, dtype=np.float64), "float")


def _distinct(values: Ints, groups: Groups) -> Column:
    numbers = np.repeat(np.arange(len(groups)), groups.sizes)
    order = np.lexsort((values, numbers))
    new = np.concatenate([[True], (values[order][1:] != values[order][:-1]) | (np.diff(numbers[order]) > 0)])
    return ints(np.add.reduceat(new.astype(np.int64), groups.starts))
