"""This module keeps histories: the tuples of an input in runs, each sorted by key and stamp when it is asked.

A run holds the tuples of one step, or of several neighbours merged. It is searched by an index: the rows sorted by the
hash of some key columns and then by one stamp, with both packed into one number, so that a key and a range of time are
two binary searches. Indexes are made when they are first used, and thrown away with the run. A run whose every tuple
is irrelevant is dropped whole; runs merge only with neighbours of their size, and never so that they would be kept
much longer than their tuples matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ephemera.kernels.columns import Batch, Hashes, Ints, stack
from ephemera.kernels.hashing import hash_columns
from ephemera.kernels.tail import FEW, MANY, Row, Tail, of_rows

LARGEST = int(np.iinfo(np.int64).max)
FAR = 1 << 62
"""Further away than any time; sums with times stay within 64 bits."""
MERGE_BELOW = 1 << 18
"""Runs of more rows are not merged any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The rows of a run by key and stamp."""

    order: Ints
    keys: Hashes
    """The distinct hashes, ascending."""
    packed: Ints
    """For each row in order: the number of its key and its stamp in one."""
    first: int
    span: int
    grain: int
    """How many microseconds count as one; a search finds all that is asked for, and with a grain some more."""
    running: dict[str, Ints] = field(default_factory=dict)
    """For some columns the sums of all rows before each, in order; made when they are first asked for."""


@dataclass(slots=True, eq=False)
class Run:
    """Some tuples that arrived one after the other."""

    batch: Batch
    step: int
    """The step in which the last of them arrived."""
    number: int
    """Which run of its history it is; a merged one is new."""
    latest: dict[str, int]
    """The greatest value of each stamp."""
    indexes: dict[tuple[tuple[str, ...], str], Index] = field(default_factory=dict)

    def index(self, keys: Sequence[str], stamp: str) -> Index:
        """The rows by some columns and a stamp."""
        wanted = (tuple(keys), stamp)
        if wanted not in self.indexes:
            self.indexes[wanted] = _index(self.batch, keys, stamp)
        return self.indexes[wanted]


def _index(batch: Batch, keys: Sequence[str], stamp: str) -> Index:
    stamps: Ints = batch[stamp]
    first, last = int(stamps.min()), int(stamps.max())
    in_time: Ints | None = None if (np.diff(stamps) >= 0).all() else np.argsort(stamps, kind="stable")
    span = last - first + 2
    if not keys:
        order = np.arange(len(stamps)) if in_time is None else in_time
        return Index(order, np.zeros(1, dtype=np.uint64), stamps[order] - first, first, span, 1)
    hashes = hash_columns([batch.columns[k] for k in keys], len(batch))
    if in_time is None:
        order = np.argsort(hashes, kind="stable")
    else:
        order = in_time[np.argsort(hashes[in_time], kind="stable")]
    ascending = hashes[order]
    starts = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    numbers = np.cumsum(starts) - 1
    count = int(numbers[-1]) + 1
    # A run that spans so long a time that keys and microseconds do not fit one number counts time more coarsely.
    grain = 1
    while count * (span // grain + 2) >= LARGEST:
        grain *= 2
    width = span // grain + 2
    return Index(order, ascending[starts], numbers * width + (stamps[order] - first) // grain, first, width, grain)


class History:
    """The tuples of one input, in runs, and the newest few of them row by row."""

    def __init__(self, stamps: Sequence[str]) -> None:
        self.stored: list[Run] = []
        """The runs without the newest rows."""
        self.tail = Tail()
        self.stamps = tuple(stamps)
        self.collected = 0
        self.next_number = 0

    def __len__(self) -> int:
        return sum(len(run.batch) for run in self.stored) + len(self.tail)

    @property
    def is_empty(self) -> bool:
        return not self.stored and not self.tail.entries

    @property
    def runs(self) -> list[Run]:
        """All runs; from now on the newest rows are among them."""
        if self.tail:
            for step, batch in self.tail.take_all():
                self._store(batch, step)
        return self.stored

    @property
    def nbytes(self) -> int:
        return sum(run.batch.nbytes for run in self.runs)

    def append(self, batch: Batch, step: int) -> None:
        """The tuples that arrived in a step."""
        if 0 < len(batch) <= FEW:
            for row in batch.rows():
                self.tail.append(step, row)
        elif len(batch):
            self.runs.append(self._run(batch, step, self._latest(batch)))

    def few_since(self, step: int) -> list[Row] | None:
        """The rows that arrived after a step, or None if they are too many to be looked at row by row."""
        return self.tail.since(step) if not self.stored or self.stored[-1].step <= step else None

    def _store(self, batch: Batch, step: int) -> None:
        self.stored.append(self._run(batch, step, self._latest(batch)))

    def _latest(self, batch: Batch) -> dict[str, int]:
        return {s: int(batch[s].max()) for s in self.stamps}

    def _run(self, batch: Batch, step: int, latest: dict[str, int]) -> Run:
        self.next_number += 1
        return Run(batch, step, self.next_number, latest)

    def compact(self, before: int) -> None:
        """Merges neighbours of about the same size that arrived before a step, and makes many new rows a run."""
        if len(self.tail) >= MANY:
            step = self.tail.entries[-1][0]
            self._store(of_rows([row for _, row in self.tail.entries]), step)
            self.tail = Tail()
        runs = self.stored
        while len(runs) > 1 and runs[-1].step < before:
            last, other = runs[-1], runs[-2]
            if len(other.batch) > 2 * len(last.batch) or len(other.batch) + len(last.batch) > MERGE_BELOW:
                break
            latest = {s: max(last.latest[s], other.latest[s]) for s in self.stamps}
            runs[-2:] = [self._run(stack([other.batch, last.batch]), last.step, latest)]

    def forget(self, conditions: Sequence[Sequence[tuple[str, int]]]) -> None:
        """Drops the runs that are irrelevant to all readers, each with the least values of some stamps that count."""
        kept: list[Run] = []
        for run in self.stored:
            if _is_past(run.latest, conditions):
                self.collected += len(run.batch)
            else:
                kept.append(run)
        if len(kept) < len(self.stored):
            self.stored = kept
        while self.tail and _is_past(self.tail.entries[0][1], conditions):
            self.tail.drop_first()
            self.collected += 1


def _is_past(latest: Mapping[str, int], conditions: Sequence[Sequence[tuple[str, int]]]) -> bool:
    """Whether for every reader some stamp is too early to count."""
    for reader in conditions:
        for stamp, least in reader:
            if latest[stamp] < least:
                break
        else:
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What rows ask a history for: a key, and a range of a stamp."""

    keys: tuple[str, ...]
    """The columns of the history that the hashes are of."""
    hashes: Hashes
    stamp: str
    least: Ints
    most: Ints


def ranges(run: Run, asked: Question) -> tuple[Ints, Ints, Ints]:
    """The rows that ask for something the run has the key of, and for each where in its index that begins and ends."""
    index = run.index(asked.keys, asked.stamp)
    numbers = np.searchsorted(index.keys, asked.hashes)
    found = numbers < len(index.keys)
    found[found] = index.keys[numbers[found]] == asked.hashes[found]
    asking = np.flatnonzero(found)
    if not len(asking):
        return asking, asking, asking
    offset = numbers[asking] * index.span
    low = offset + np.clip((asked.least[asking] - index.first) // index.grain, 0, index.span - 1)
    high = offset + np.clip((asked.most[asking] - index.first) // index.grain, -1, index.span - 2)
    starts = np.searchsorted(index.packed, low, side="left")
    stops = np.searchsorted(index.packed, high, side="right")
    return asking, starts, np.maximum(starts, stops)


def search(run: Run, asked: Question) -> tuple[Ints, Ints]:
    """The pairs of a row that asks and a row of the run with its key and a stamp in its range."""
    asking, starts, stops = ranges(run, asked)
    counts = stops - starts
    total = int(counts.sum())
    if not total:
        return asking[:0], asking[:0]
    rows = np.repeat(asking, counts)
    ends = np.cumsum(counts)
    places = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(starts, counts)
    return rows, run.index(asked.keys, asked.stamp).order[places]


def running_sum(run: Run, asked: Question, name: str) -> Ints:
    """The sums of a column of whole numbers over all rows before each, in the order of an index, and over all."""
    index = run.index(asked.keys, asked.stamp)
    if name not in index.running:
        index.running[name] = np.concatenate([[0], np.cumsum(run.batch[name][index.order])])
    return index.running[name]
