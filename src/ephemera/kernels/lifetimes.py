"""This module says how long tuples of a history matter, by their stamps: row by row, and by columns.

A reader needs a tuple until the least of the times by its stamps, and if it lasts as long as the reader asks; of
several readers the last one counts. A tuple whose own stamps rule it out for all of them matters at no time. With two
events and a relation between them this is exact: a tuple is dead as soon as no partner can arrive any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.analysis.nodes import ANY_LENGTH, Length
from ephemera.kernels.columns import Batch, Ints, Mask
from ephemera.kernels.event_columns import BEGIN, END
from ephemera.physical.nodes import Needed

FOREVER = 1 << 62
"""Further away than any time; sums with times stay within 64 bits."""


class Lifetimes:
    """What the readers of a history need; not all of them need everything."""

    def __init__(self, needed: Needed) -> None:
        self._readers = [
            (tuple((s, min(t, FOREVER)) for s, t in one.times), None if one.length == ANY_LENGTH else one.length)
            for one in needed or ()
        ]
        """Of each the times by stamps, and how long tuples have to last, if that is not any time."""
        self.is_endless = needed is None or not all(one.times for one in needed)
        """Whether some reader may need a tuple forever."""
        self.is_choosy = bool(self._readers) and needed is not None and all(one.length != ANY_LENGTH for one in needed)
        """Whether a tuple may matter at no time."""

    @property
    def lengths(self) -> list[Length]:
        """How long tuples have to last, for any of the readers."""
        return [ANY_LENGTH if length is None else length for _, length in self._readers]

    def of_row(self, row: Mapping[str, Any]) -> int:
        """The bound from which on a tuple is dead."""
        last = -FOREVER
        for times, length in self._readers:
            if length is not None and not _lasts(row[END] - row[BEGIN], length):
                continue
            until = FOREVER
            for stamp, time in times:
                until = min(until, row[stamp] + time)
            last = max(last, until)
        return last

    def of_batch(self, batch: Batch) -> Ints:
        """The same for many."""
        last = np.full(len(batch), -FOREVER, dtype=np.int64)
        for times, length in self._readers:
            until = np.full(len(batch), FOREVER, dtype=np.int64)
            for stamp, time in times:
                until = np.minimum(until, batch[stamp] + time)
            if length is not None:
                until = np.where(lasting(batch, [length]), until, -FOREVER)
            last = np.maximum(last, until)
        return last


def lasting(batch: Batch, lengths: Sequence[Length]) -> Mask:
    """Which rows last as long as one of some ranges says."""
    lasts = batch[END] - batch[BEGIN]
    found = np.zeros(len(batch), dtype=np.bool_)
    for length in lengths:
        within = lasts >= length.least
        found |= within if length.most is None else within & (lasts <= length.most)
    return found


def _lasts(length: int, asked: Length) -> bool:
    return asked.least <= length and (asked.most is None or length <= asked.most)
