"""This module numbers the distinct hashes of a column, finds the number of a hash, and sorts rows by small numbers.

Many hashes are numbered by a table of slots: one row of each slot stands for it, and what shares a slot but not its
hash goes to the next table, or is sorted when few are left. So most hashes get ascending numbers, and many are never
sorted by comparing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ephemera.kernels.columns import Hashes, Ints, Mask

FEW = 512
"""So few hashes are sorted."""
MOST_BITS = 60
"""So many bits of a hash say where it stands."""
SMALL = 1 << 16
"""Numbers below this one are sorted in one pass over their bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Distinct hashes with their numbers."""

    hashes: Hashes
    """By number."""
    rows: Ints
    """For each number a row that has it."""
    levels: tuple[Level, ...]
    """The tables of slots, each for what shares a slot in the one before it."""
    sorted_from: int
    """From this number on the hashes stand in no table, and ascend."""

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, hashes: Hashes) -> Ints:
        """The number of each hash, or -1."""
        if not self.levels:
            return self._sorted(hashes)
        numbers = self.levels[0].find(hashes)
        left = np.flatnonzero((self.hashes[numbers] != hashes) & (numbers >= 0))
        for level in self.levels[1:]:
            asked = hashes[left]
            found = level.find(asked)
            numbers[left] = found
            left = left[(self.hashes[found] != asked) & (found >= 0)]
        if len(left):
            numbers[left] = self._sorted(hashes[left])
        return numbers

    def _sorted(self, hashes: Hashes) -> Ints:
        ascending = self.hashes[self.sorted_from :]
        if not len(ascending):
            return np.full(len(hashes), -1, dtype=np.int64)
        places = ascending[:-1].searchsorted(hashes)  # what is greater than all but the last can only be the last
        return np.where(ascending[places] == hashes, places + self.sorted_from, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A table of slots: some bits of a hash say where its number stands."""

    slots: npt.NDArray[np.int32]
    skip: np.uint64
    shift: np.uint64

    def find(self, hashes: Hashes) -> Ints:
        return self.slots[_places(hashes, self.skip, self.shift)].astype(np.int64)


def _places(hashes: Hashes, skip: np.uint64, shift: np.uint64) -> Ints:
    return ((hashes << skip if skip else hashes) >> shift).view(np.int64)


def _bits(count: int) -> int:
    """How many bits say the slots for so many hashes: room for some times as many, less where tables would be large."""
    return (4 * count if count < SMALL else 2 * count).bit_length()


def numbered(hashes: Hashes) -> tuple[Numbering, Ints]:
    """The distinct hashes, and the number of each row's."""
    if len(hashes) <= FEW:
        some, numbers = _by_sorting(hashes)
        return Numbering(hashes[some], some, (), 0), numbers
    levels: list[Level] = []
    rows: list[Ints] = []
    count, skip = 0, 0
    left: Ints | None = None
    numbers = np.empty(0, dtype=np.int64)
    while True:
        mine = hashes if left is None else hashes[left]
        bits = _bits(len(mine))
        if len(mine) <= FEW or skip + bits > MOST_BITS:
            break
        places = _places(mine, np.uint64(skip), np.uint64(64 - bits))
        slots = np.full(1 << bits, -1, dtype=np.int32)
        slots[places] = np.arange(len(mine), dtype=np.int32)
        used = np.flatnonzero(slots >= 0)
        first: Ints = slots[used].astype(np.int64)
        slots[used] = np.arange(count, count + len(used), dtype=np.int32)
        found: Ints = slots[places].astype(np.int64)
        distinct = mine[first]
        other = np.flatnonzero(distinct[found - count if count else found] != mine)
        if left is None:
            numbers = found
            rows.append(first)
            left = other
        else:
            numbers[left] = found
            rows.append(left[first])
            left = left[other]
        levels.append(Level(slots, np.uint64(skip), np.uint64(64 - bits)))
        count, skip = count + len(used), skip + bits
    if len(mine) and left is not None:
        first, inner = _by_sorting(mine)
        numbers[left] = inner + count
        rows.append(left[first])
    every = rows[0] if len(rows) == 1 else np.concatenate(rows)
    return Numbering(hashes[every], every, tuple(levels), count), numbers


def _by_sorting(hashes: Hashes) -> tuple[Ints, Ints]:
    """For each hash in their order the first row that has it, and each row's number."""
    order = hashes.argsort(kind="stable")
    if len(hashes) == 1:
        return order, order
    ascending = hashes[order]
    starts = np.empty(len(hashes), dtype=np.bool_)
    starts[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    numbers = np.empty(len(hashes), dtype=np.int64)
    numbers[order] = starts.cumsum() - 1
    return order[starts], numbers


def sorted_by(numbers: Ints, count: int) -> Ints:
    """The rows by their numbers, all below a count; rows of one number stay in their order."""
    if len(numbers) <= FEW:
        return np.argsort(numbers, kind="stable")
    order = np.argsort(numbers.astype(np.uint16), kind="stable")  # of so few bits numpy sorts without comparing
    while count > SMALL:
        numbers, count = numbers >> 16, -(-count // SMALL)
        order = order[np.argsort(numbers[order].astype(np.uint16), kind="stable")]
    return order


def all_distinct(hashes: Hashes) -> bool:
    """Whether no hash comes twice."""
    if len(hashes) <= FEW:
        ascending = np.sort(hashes)
        return not bool((ascending[1:] == ascending[:-1]).any())
    bits = _bits(len(hashes))
    places = (hashes >> np.uint64(64 - bits)).view(np.int64)
    slots = np.empty(1 << bits, dtype=np.int32)
    own = np.arange(len(hashes), dtype=np.int32)
    slots[places] = own
    holders = slots[places]
    others: Mask = holders != own
    rest = hashes[others]
    if (hashes[holders[others]] == rest).any():
        return False
    return len(rest) < 2 or all_distinct(rest << np.uint64(bits))  # what shared a slot is told apart by other bits
