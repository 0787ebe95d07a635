"""This module keeps the records of an algebra expression by columns, so that a step touches only those of its keys.

Records lie in runs. A step takes those of the keys that come in it, and puts back what is left of them, as a run of its
own; runs merge with neighbours of their size. Keys are told by a bit of their hash, so a step may take a few records of
other keys, too, which changes nothing. What was taken, and what is dead, stays in its run until that is half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ephemera.algebra.attributes import Variable
from ephemera.engine.operators.detect_state import BEGIN, HASH, SLOT, hashes_of, with_hashes, without
from ephemera.kernels.columns import Batch, Hashes, Ints, Mask, stack
from ephemera.kernels.history import FAR

ROOM = 8
"""So many bits of the table there are for each key of a step."""
SAMPLE = 512
"""By about so many records it is told when half of a run is dead."""

Deaths: TypeAlias = Callable[[Ints, Ints], Ints]
"""By slots and begins from which bound on each of some records is dead, if no other follows it."""


class _Run:
    """Some records, and which of them are still there."""

    __slots__ = ("alive", "batch", "half_dead", "hashes", "left")

    def __init__(self, batch: Batch, hashes: Hashes, deaths: Deaths) -> None:
        self.batch, self.hashes = batch, hashes
        step = -(-len(batch) // SAMPLE)
        some = np.sort(deaths(batch[SLOT][::step], batch[BEGIN][::step]))
        self.half_dead = int(some[(len(some) - 1) // 2])
        """The bound from which on about half of all are dead."""
        self.alive: Mask | None = None
        """None if all are."""
        self.left = len(batch)

    def take(self, bits: Mask, shift: np.uint64) -> Batch | None:
        """The records of some keys, which are gone then; None if there are none."""
        chosen = bits[self.hashes >> shift]
        if self.alive is not None:
            chosen &= self.alive
        rows = chosen.nonzero()[0]
        if not len(rows):
            return None
        if self.alive is None:
            self.alive = ~chosen
        else:
            self.alive[rows] = False
        self.left -= len(rows)
        return with_hashes(self.batch.take(rows), self.hashes[rows])

    def rest(self) -> Batch:
        return self.batch if self.alive is None else self.batch.take(self.alive)


class KeptRecords:
    """The records of values of the shared variables."""

    def __init__(self, shared: Sequence[Variable], deaths: Deaths, empty: Batch) -> None:
        self._shared, self._deaths, self._empty = shared, deaths, empty
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(run.left for run in self._runs)

    @property
    def nbytes(self) -> int:
        return sum(run.batch.nbytes for run in self._runs)

    def whole(self) -> Batch:
        """All of them."""
        rest = [run.rest() for run in self._runs if run.left]
        return stack(rest) if rest else self._empty

    def clear(self) -> None:
        self._runs = []

    def put(self, batch: Batch) -> None:
        """More records, of keys of which there are none."""
        if not len(batch):
            return
        self._runs.append(_Run(without(batch, HASH), hashes_of(self._shared, batch), self._deaths))
        while len(self._runs) > 1 and self._runs[-2].left <= self._runs[-1].left:
            one, other = self._runs[-2:]
            self._runs[-2:] = [self._run(stack([one.rest(), other.rest()]), _rest(one), _rest(other))]

    def take(self, hashes: Hashes, bound: int) -> Batch:
        """The records of some keys, which are gone then; of others goes what is dead at a bound, where that is much."""
        size = max((ROOM * len(hashes)).bit_length(), 3)
        shift = np.uint64(64 - size)
        bits = np.zeros(1 << size, dtype=np.bool_)
        bits[hashes >> shift] = True
        taken = [some for run in self._runs if (some := run.take(bits, shift)) is not None]
        self._runs = [one for run in self._runs if (one := self._without_dead(run, bound)) is not None]
        return stack(taken) if taken else self._empty

    def _without_dead(self, run: _Run, bound: int) -> _Run | None:
        if bound < run.half_dead and 2 * run.left > len(run.batch):
            return run
        keep = self._deaths(run.batch[SLOT], run.batch[BEGIN]) > bound
        if run.alive is not None:
            keep &= run.alive
        return self._run(run.batch.take(keep), run.hashes[keep]) if keep.any() else None

    def _run(self, batch: Batch, *hashes: Hashes) -> _Run:
        return _Run(batch, np.concatenate(hashes) if len(hashes) > 1 else hashes[0], self._deaths)


def _rest(run: _Run) -> Hashes:
    return run.hashes if run.alive is None else run.hashes[run.alive]


def deaths_by(limits: Sequence[tuple[int | None, int | None]], slots: Ints, begins: Ints) -> Ints:
    """From which bound on records are dead by their limits."""
    found = np.full(len(slots), FAR, dtype=np.int64)
    for number, (_, within) in enumerate(limits):
        if within is not None:
            mine = slots == number
            found[mine] = begins[mine] + within
    return found
