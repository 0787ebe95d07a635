"""This module counts and adds up the values above a limit in ranges of an array, without looking at each of them.

The values are numbered by their order. For each bit of these numbers, the first one first, the tree tells for every
place how many before it have the bit, and then the values without it go before those with it (a wavelet matrix, Claude
and Navarro 2012). So a range becomes two ranges in the next arrangement, of which one holds only values on one side of
the limit, and is counted, and the other is looked into by the next bit. Many ranges are asked for at a time. What is
left of them halves with each bit; where it is less than another arrangement would cost, it is looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Ints, Mask

SPARE = 1.0
"""Of so many values for each that there is it costs less to look at them than to arrange all by another bit."""


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """An arrangement of the values by one bit."""

    bit: int
    before: Ints
    """How many before each place, and in all, have the bit."""
    sums: Ints
    """The sums of the values before each place, and of all, once those without the bit go first."""
    without: int
    """How many do not have it."""


class ValueTree:
    """Whole numbers, whose sums must stay within 64 bits."""

    def __init__(self, values: Ints) -> None:
        self._numbers, self._ranks = _numbered(values)
        """The numbers of the values as they are arranged last, and the values themselves."""
        self._values: Any = values.astype(np.int32) if _are_small(values) else values
        self._sums = _running(values)
        self._levels: list[_Level] = []
        self._bits = max(len(self._numbers) - 1, 0).bit_length()

    def above(self, starts: Ints, stops: Ints, limits: Ints, *, equal: bool) -> tuple[Ints, Ints]:
        """For each range how many values are above its limit, or equal if that counts, and their sum."""
        least = self._numbers.from_limit(limits, equal=equal)
        every = least == 0
        some = (~every & (least < len(self._numbers))).nonzero()[0]
        counts = np.where(every, stops - starts, 0)
        sums = np.where(every, self._sums.take(stops) - self._sums.take(starts), 0)
        counts[some], sums[some] = self._from(starts.take(some), stops.take(some), least.take(some))
        return counts, sums

    def below(self, starts: Ints, stops: Ints, limits: Ints, *, equal: bool) -> tuple[Ints, Ints]:
        """The same for values that are less."""
        counts, sums = self.above(starts, stops, limits, equal=not equal)
        return stops - starts - counts, self._sums.take(stops) - self._sums.take(starts) - sums

    def _from(self, starts: Ints, stops: Ints, least: Ints) -> tuple[Ints, Ints]:
        """How many values have at least a number, and their sum; the number is that of some value."""
        counts, sums = np.zeros_like(starts), np.zeros_like(starts)
        inner = self._sums
        for depth in range(self._bits):
            if depth == len(self._levels):
                if int((stops - starts).sum()) <= len(self._ranks) * SPARE:
                    more = self._one_by_one(starts, stops, least)
                    return counts + more[0], sums + more[1]
                self._arrange()
            level = self._levels[depth]
            first, last = level.before.take(starts), level.before.take(stops)
            ones = first + level.without, last + level.without
            is_zero = (least >> level.bit & 1) == 0  # whoever has the bit is beyond
            counts += np.where(is_zero, last - first, 0)
            sums += np.where(is_zero, level.sums.take(ones[1]) - level.sums.take(ones[0]), 0)
            starts = np.where(is_zero, starts - first, ones[0])
            stops = np.where(is_zero, stops - last, ones[1])
            inner = level.sums
        return counts + (stops - starts), sums + (inner.take(stops) - inner.take(starts))

    def _arrange(self) -> None:
        """Arranges the values by the next bit, too."""
        bit = self._bits - 1 - len(self._levels)
        has = (self._ranks & (1 << bit)).astype(np.bool_)
        order = np.concatenate([(~has).nonzero()[0], has.nonzero()[0]])
        self._ranks, self._values = self._ranks.take(order), self._values.take(order)
        before = _running(has, np.int32)
        self._levels.append(_Level(bit, before, _running(self._values), len(order) - int(before[-1])))

    def _one_by_one(self, starts: Ints, stops: Ints, least: Ints) -> tuple[Ints, Ints]:
        """The same of ranges of the last arrangement, by looking at each value."""
        lengths = stops - starts
        ends = lengths.cumsum()
        begins = ends - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(starts - begins, lengths)
        passing = self._ranks.take(places) >= np.repeat(least, lengths)
        counts, sums = _running(passing), _running(np.where(passing, self._values.take(places), 0))
        return counts.take(ends) - counts.take(begins), sums.take(ends) - sums.take(begins)


@dataclass(frozen=True, slots=True, eq=False)
class _Close:
    """Numbers of values that lie so close together that each number of the range may be one."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def from_limit(self, limits: Ints, *, equal: bool) -> Ints:
        """The number from which on values are above limits, or equal."""
        if equal:
            return np.clip(limits, self.first, self.last + 1) - self.first
        return np.clip(limits, self.first - 1, self.last) - (self.first - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """Numbers of values that lie anywhere: their places among all that there are."""

    ascending: Ints

    def __len__(self) -> int:
        return len(self.ascending)

    def from_limit(self, limits: Ints, *, equal: bool) -> Ints:
        """The number from which on values are above limits, or equal."""
        return self.ascending.searchsorted(limits, side="left" if equal else "right")


def _numbered(values: Ints) -> tuple[_Close | _Apart, Ints]:
    """The values numbered by their order, in few bits."""
    first, last = int(values.min()), int(values.max())
    if last - first < len(values):
        return _Close(first, last), (values - first).astype(np.int32)
    ascending, numbers = np.unique(values, return_inverse=True)
    return _Apart(ascending), numbers.astype(np.int32)


def _are_small(values: Ints) -> bool:
    """Whether they fit into half of the bits, which are moved faster."""
    small = np.iinfo(np.int32)
    return bool(values.min() >= small.min and values.max() <= small.max)


def _running(values: Ints | Mask, kind: Any = np.int64) -> Ints:
    found = np.zeros(len(values) + 1, dtype=kind)
    np.cumsum(values, dtype=kind, out=found[1:])
    return found
