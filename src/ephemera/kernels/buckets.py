"""This module finds rows by buckets: those of a run whose keys and times fall into one slot of a table.

A slot is some bits of a hash of the key and, where what is asked for is short against the run, of the cell of time.
Cells are so wide that a range touches two of them at most. So a question is one or two looks at a table, and nothing
is sorted by time. What shares a slot is compared with what was asked for: keys, and times where a range may end within
the run. That pays where few rows share a slot. Where many do, as with a key that has most events, a run says so, and
is searched by an index that is sorted by key and time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Column, Hashes, Ints, Mask
from ephemera.kernels.keys import hash_columns, joins

MOST_CANDIDATES = 6
"""A row that asks may be compared with so many rows on average."""
SOME = 64
"""So many rows may be compared whoever asks."""
DEEPEST = 32
"""A bucket with more rows is too full; tables count a few more."""
ROOM = 2
"""Of a table at least so many slots for each row."""
LEAST_BITS = 6
"""A table has at least 2 to the power of so many slots."""
MOST_BITS = 24
"""And at most."""
ONE_CELL = 63
"""The width of cells where all times are in one."""
_KEY = 0x9E3779B97F4A7C15
_CELL = np.uint64(0xC2B2AE3D27D4EB4F)
_COUNT_BITS = 6
_COUNT = (1 << _COUNT_BITS) - 1
MOST_ROWS = 1 << 31 - _COUNT_BITS
"""Of so many rows no buckets are made."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What buckets are made by."""

    are_plain: bool
    """Whether all keys are whole numbers, here and in what is asked; one multiplication spreads these."""
    width: int
    """So many bits of a time say where in its cell it is."""


def spread(columns: Sequence[Column], length: int) -> Hashes:  # noqa: ARG001 - as hashes are asked for
    """For each row a number whose first bits tell keys apart that are whole numbers; other bits do not."""
    factor = _KEY
    total: Hashes = columns[0].values.view(np.uint64) * np.uint64(factor)
    for c in columns[1:]:
        factor = factor * _KEY & 0xFFFFFFFFFFFFFFFF
        total += c.values.view(np.uint64) * np.uint64(factor)
    return total


def slots(hashes: Hashes, cells: Ints | None, bits: int) -> Ints:
    """Where in a table of 2^bits rows stand."""
    if cells is not None:
        hashes = hashes + cells.view(np.uint64) * _CELL
    return (hashes >> np.uint64(64 - bits)).view(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The rows of a run by slots."""

    order: Ints
    bits: int
    table: npt.NDArray[np.int32]
    """For each slot where its rows begin in that order, and how many they are, in one number."""
    stamps: Ints
    """In that order."""
    hashes: Hashes | None
    """The same; None if keys are compared as they are."""
    keys: tuple[Column, ...]
    """The same."""

    def candidates(self, asked: Ints, most: int) -> tuple[Ints, Ints] | None:
        """For each of some slots the places in the order of all its rows; None if they are too many.

        Gives which slot it was, and the place: first one of each slot, then a second one of those that have more.
        """
        entries = self.table.take(asked)
        rows = (entries != 0).nonzero()[0]
        entries = entries.take(rows)
        counts = entries & _COUNT
        places: Ints = (entries >> _COUNT_BITS).astype(np.int64)
        if not len(rows) or counts.max() > DEEPEST or counts.sum() > most:
            return (rows, places) if not len(rows) else None
        found = [(rows, places)]
        depth = 1
        while len(more := (counts > depth).nonzero()[0]):
            rows, counts, places = rows.take(more), counts.take(more), places.take(more) + 1
            found.append((rows, places))
            depth += 1
        if depth == 1:
            return found[0]
        return np.concatenate([r for r, _ in found]), np.concatenate([p for _, p in found])

    def agree(self, columns: Sequence[Column], hashes: Hashes, rows: Ints, at: Ints) -> Mask:
        """Which candidates have the keys that were asked for."""
        found: Mask | None = None
        if self.hashes is not None:
            found = self.hashes.take(at) == hashes.take(rows)
        for own, c in zip(self.keys, columns, strict=True):
            if found is None:
                found = joins(c.take(rows), own.take(at))
            else:
                left = found.nonzero()[0]
                found[left] = joins(c.take(rows.take(left)), own.take(at.take(left)))
        return np.ones(len(rows), dtype=np.bool_) if found is None else found


def bucketed(columns: Sequence[Column], stamps: Ints, layout: Layout) -> Buckets:
    """The buckets of some rows by their keys and times."""
    count = len(stamps)
    hashes = (spread if layout.are_plain else hash_columns)(columns, count)
    bits = min(max((ROOM * count).bit_length(), LEAST_BITS), MOST_BITS)
    low = count.bit_length()
    packed = slots(hashes, stamps >> layout.width if layout.width < ONE_CELL else None, bits)
    packed = packed << low
    packed |= np.arange(count)
    packed.sort()  # numbers that are all different, which numpy sorts without comparing one by one
    order = packed & ((1 << low) - 1)
    packed >>= low
    first = np.empty(count, dtype=np.bool_)
    first[:1] = True
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    starts = first.nonzero()[0]
    table = np.zeros(1 << bits, dtype=np.int32)
    table[packed.take(starts)] = (starts << _COUNT_BITS) | np.minimum(np.diff(starts, append=count), _COUNT)
    return Buckets(
        order,
        bits,
        table,
        stamps.take(order),
        None if layout.are_plain else hashes.take(order),
        tuple(c.take(order) for c in columns),
    )
