"""This module searches runs for what many rows ask for: a key, and a range of a stamp.

There are two ways. Buckets are made faster and asked faster, where few rows share one. Otherwise an index that is
sorted by key and stamp tells by two binary searches where a range begins and ends, however many rows lie in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.buckets import MOST_CANDIDATES, MOST_ROWS, ONE_CELL, SOME, Layout, slots, spread
from ephemera.kernels.columns import Column, Hashes, Ints
from ephemera.kernels.computed import Key
from ephemera.kernels.history import FAR, Run, ascends
from ephemera.kernels.keys import FEW as UNSORTED
from ephemera.kernels.keys import Numbering, hash_columns, joins, sorted_by

MOST_PAIRS = 1 << 16
"""So many pairs are made at a time: their columns stay in the cache of a core, which halves what a large join takes."""
MOST_IN_BUCKETS = 1 << 21
"""Where buckets have more candidates than these, an index is asked."""
NARROW = 4
"""A range is short if the run spans so many times as much."""


@dataclass(slots=True, eq=False)
class Question:
    """What rows ask a history for: a key, and a range of a stamp."""

    keys: tuple[Key, ...]
    """The columns of the history that are compared, some of them computed."""
    stamp: str
    least: Ints
    most: Ints
    columns: tuple[Column, ...]
    """The values that they must have."""
    is_crowded: bool = False
    """Whether some run had too many rows in its buckets."""
    limits: tuple[int, int, int] | None = None
    spread: dict[bool, Hashes] = field(default_factory=dict)
    slots: dict[tuple[Layout, int, bool], Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.least)

    def hashes(self, *, are_plain: bool = False) -> Hashes:
        """What tells keys apart, here and in runs: hashes, or what spreads keys that are whole numbers."""
        if are_plain not in self.spread:
            self.spread[are_plain] = (spread if are_plain else hash_columns)(self.columns, len(self))
        return self.spread[are_plain]

    def extent(self) -> tuple[int, int, int]:
        """How long the longest range is, and the times by which all have begun, and before which none ends."""
        if self.limits is None:
            is_open = int(self.least.min()) <= -FAR // 2 or int(self.most.max()) >= FAR // 2
            longest = FAR if is_open else int((self.most - self.least).max())
            self.limits = longest, int(self.least.max()), int(self.most.min())
        return self.limits

    def slots_in(self, layout: Layout, bits: int, *, last: bool) -> Ints:
        """Where in a table of buckets the first or the last cell of each range stands."""
        wanted = layout, bits, last
        if wanted not in self.slots:
            cells = (self.most if last else self.least) >> layout.width if layout.width < ONE_CELL else None
            self.slots[wanted] = slots(self.hashes(are_plain=layout.are_plain), cells, bits)
        return self.slots[wanted]


# ---- by buckets ------------------------------------------------------------------------------------------------


def bucket_pairs(run: Run, asked: Question) -> list[tuple[Ints, Ints]] | None:
    """The pairs of a row that asks and a row of the run that it asks for, each once; None if buckets do not help."""
    if not asked.keys or asked.is_crowded or not len(asked) or len(run.batch) >= MOST_ROWS:
        return None
    first, last = run.first(asked.stamp), run.last(asked.stamp)
    longest, begun, none_ends = asked.extent()
    asking: Ints | None = None
    if begun > last or none_ends < first:
        asking = ((asked.least <= last) & (asked.most >= first)).nonzero()[0]
        if not len(asking):
            return []
    if asked.keys in run.crowded:
        return None
    own = run.columns(asked.keys)
    are_plain = all(c.kind == "int" and c.values.dtype == np.int64 for c in (*own, *asked.columns))
    layout = Layout(are_plain, longest.bit_length() if longest * NARROW < last - first else ONE_CELL)
    buckets = run.by_buckets(asked.keys, asked.stamp, layout)
    pairs: list[tuple[Ints, Ints]] = []
    for again in (False, True) if layout.width < ONE_CELL else (False,):
        mine = asked.slots_in(layout, buckets.bits, last=again)
        some = asking
        if again:  # what begins and ends in one cell, or in two that share a slot, has been found
            beyond = mine != asked.slots_in(layout, buckets.bits, last=False)
            some = beyond.nonzero()[0] if asking is None else asking.compress(beyond.take(asking))
        mine = mine if some is None else mine.take(some)
        found = buckets.candidates(mine, min(MOST_CANDIDATES * len(mine) + SOME, MOST_IN_BUCKETS))
        if found is None:
            asked.is_crowded = True
            run.crowded.add(asked.keys)
            return None
        rows, at = found
        if some is not None:
            rows = some.take(rows)
        agree = buckets.agree(asked.columns, asked.hashes(are_plain=are_plain), rows, at)
        if begun > first or none_ends < last:
            stamps = buckets.stamps.take(at)
            agree &= (stamps >= asked.least.take(rows)) & (stamps <= asked.most.take(rows))
        left = agree.nonzero()[0]
        if len(left):
            pairs.append((rows.take(left), buckets.order.take(at.take(left))))
    return pairs


# ---- by an index -----------------------------------------------------------------------------------------------


def ranges(run: Run, asked: Question) -> tuple[Ints, Ints, Ints]:
    """The rows that ask for something the run may have, and for each where in its index that begins and ends.

    With an exact index of grain 1 all that lies between is what was asked for.
    """
    first = run.first(asked.stamp)
    asking: Ints = ((asked.least <= run.last(asked.stamp)) & (asked.most >= first)).nonzero()[0]
    if not len(asking):
        return asking, asking, asking
    index = run.index(asked.keys, asked.stamp)
    offset: Ints | None = None
    if index.keys is not None:
        asking, numbers = _keyed(run, index.keys, asked, asking, exact=index.exact)
        offset = numbers * index.span
    low, high = asked.least[asking] - index.first, asked.most[asking] - index.first
    if index.grain > 1:
        low, high = low // index.grain, high // index.grain
    low, high = np.maximum(low, 0), np.minimum(high, index.span - 2)
    if offset is not None:
        low, high = low + offset, high + offset
    starts = index.packed.searchsorted(low, side="left")
    stops = index.packed.searchsorted(high, side="right")
    return asking, starts, np.maximum(starts, stops)


def _keyed(run: Run, keys: Numbering, asked: Question, asking: Ints, *, exact: bool) -> tuple[Ints, Ints]:
    """Those of the rows that ask for a key of the run, and its numbers; many are sorted by them, to ask in turn."""
    hashes = asked.hashes()
    numbers = keys.find(hashes if len(asking) == len(hashes) else hashes[asking])
    found = (numbers >= 0).nonzero()[0]
    if len(found) < len(asking):
        asking, numbers = asking[found], numbers[found]
    if exact and asked.columns:
        rows = keys.rows[numbers]
        for own, c in zip(run.columns(asked.keys), asked.columns, strict=True):
            agree = joins(c.take(asking), own.take(rows))
            if not agree.all():
                asking, numbers, rows = asking[agree], numbers[agree], rows[agree]
    if len(asking) > UNSORTED and not ascends(numbers):
        order = sorted_by(numbers, len(keys))
        asking, numbers = asking[order], numbers[order]
    return asking, numbers


def search(run: Run, asked: Question) -> Iterator[tuple[Ints, Ints]]:
    """The pairs of a row that asks and a row of the run with its key and a stamp in its range, some at a time."""
    pairs = bucket_pairs(run, asked)
    if pairs is not None:
        yield from pairs
        return
    asking, starts, stops = ranges(run, asked)
    counts = stops - starts
    if not counts.any():
        return
    index = run.index(asked.keys, asked.stamp)
    for rows, places in _unfolded(asking, starts, counts):
        found = rows, index.order[places]
        yield found if index.grain == 1 and index.exact else _checked(run, asked, *found)


def _unfolded(asking: Ints, starts: Ints, counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Each row with each place of its range."""
    ends = counts.cumsum()
    total = int(ends[-1])
    if total == len(asking) and counts.max() == 1:
        yield asking, starts
        return
    shifts = starts - (ends - counts)
    for low in range(0, total, MOST_PAIRS):
        high = min(low + MOST_PAIRS, total)
        if high - low < total:
            first, last = np.searchsorted(ends, low, side="right"), np.searchsorted(ends, high, side="left") + 1
            within = np.minimum(ends[first:last], high) - np.maximum(ends[first:last] - counts[first:last], low)
            rows, moved = asking[first:last], shifts[first:last]
        else:
            rows, moved, within = asking, shifts, counts
        yield np.repeat(rows, within), np.arange(low, high) + np.repeat(moved, within)


def _checked(run: Run, asked: Question, rows: Ints, others: Ints) -> tuple[Ints, Ints]:
    """The pairs that agree, where an index does not tell all stamps or all keys apart."""
    stamps = run.batch[asked.stamp][others]
    agree = (stamps >= asked.least[rows]) & (stamps <= asked.most[rows])
    for own, c in zip(run.columns(asked.keys), asked.columns, strict=False):
        agree &= joins(c.take(rows), own.take(others))
    return rows[agree], others[agree]
