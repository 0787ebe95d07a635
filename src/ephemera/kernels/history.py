"""This module keeps histories: the tuples of an input in runs, each sorted by key and stamp when it is asked.

A run holds the tuples of one step, or of several neighbours merged. It is searched by buckets, or by an index: the keys
are numbered, the rows sorted by the number of their key and then by one stamp, and both packed into one number, so that
a key and a range of time are a look at a table and two binary searches. Both are made when they are first used, and
thrown away with the run. A run whose every tuple is dead is dropped whole. What is dead in others is taken out when it
is more than a small part of all, from the runs that have most of it: so no more is stored than a little more than what
matters, and what that costs is shared by many tuples. Runs merge only with neighbours of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.buckets import Buckets, Layout, bucketed
from ephemera.kernels.columns import Batch, Column, Ints, stack
from ephemera.kernels.computed import Derived, Key
from ephemera.kernels.exact_sums import Digits
from ephemera.kernels.keys import Numbering, hash_columns, numbered, same, sorted_by
from ephemera.kernels.lifetimes import FOREVER, Lifetimes, lasting
from ephemera.kernels.tail import FEW, MANY, Row, RowBatch, Tail, of_rows
from ephemera.physical.nodes import Needed

LARGEST = int(np.iinfo(np.int64).max)
FAR = FOREVER
"""Further away than any time; sums with times stay within 64 bits."""
MERGE_BELOW = 1 << 18
"""Runs of more rows are not merged any more."""
SHARE = 8
"""A run spans no more than this part of the time for which its tuples matter, unless it is short."""
SHORT = 1 << 9
"""Runs of fewer rows are merged whatever they span."""
REMEMBERED = 1 << 12
"""Of runs of no more rows it is remembered when each row is dead; of others it is found again."""
SPARE = 12
"""No more than this part of the rows in runs is dead after a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The rows of a run by key and stamp."""

    order: Ints
    keys: Numbering | None
    """The numbers of the keys' hashes; None if all rows are alike."""
    exact: bool
    """Whether rows of one hash have one key."""
    packed: Ints
    """For each row in order: the number of its key and its stamp in one."""
    first: int
    span: int
    grain: int
    """How many microseconds count as one, so that keys and stamps fit one number."""
    summaries: dict[tuple[str, Key], Any] = field(default_factory=dict)
    """For some columns what sums and extremes of ranges are found by; made when they are first asked for."""


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
    first_death: int = FAR
    """The bound from which on the first of them is dead."""
    last_death: int = FAR
    """The bound from which on all of them are dead."""
    until: Ints | None = None
    """For each the bound from which on it is dead; of many it is found again when somebody asks."""
    deaths: Ints | None = None
    """The same in order; found when the first of them is dead."""
    earliest: dict[str, int] = field(default_factory=dict)
    """The least value of some stamps, found when it is first asked for."""
    indexes: dict[tuple[tuple[Key, ...], str], Index] = field(default_factory=dict)
    buckets: dict[tuple[tuple[Key, ...], str, Layout], Buckets] = field(default_factory=dict)
    crowded: set[tuple[Key, ...]] = field(default_factory=set)
    """The keys by which too many rows share a bucket."""
    digits: dict[Key, Digits | None] = field(default_factory=dict)
    """The digits of columns of doubles that are added up; None where they cannot be."""
    derived: dict[Derived, Column | None] = field(default_factory=dict)
    """The columns of computed keys, made when they are first asked for."""

    def column(self, key: Key) -> Column | None:
        """The values of a key; None if it is computed, and the run cannot be searched by it."""
        if isinstance(key, str):
            return self.batch.columns[key]
        if key not in self.derived:
            self.derived[key] = key.column(self.batch)
        return self.derived[key]

    def columns(self, keys: Sequence[Key]) -> list[Column]:
        """The values of the keys; all of them must be there."""
        return [c for c in map(self.column, keys) if c is not None]

    def first(self, stamp: str) -> int:
        """The least value of a stamp."""
        if stamp not in self.earliest:
            self.earliest[stamp] = int(self.batch[stamp].min())
        return self.earliest[stamp]

    def last(self, stamp: str) -> int:
        """The greatest value of a stamp."""
        if stamp not in self.latest:
            self.latest[stamp] = int(self.batch[stamp].max())
        return self.latest[stamp]

    def index(self, keys: Sequence[Key], stamp: str) -> Index:
        """The rows by some columns and a stamp."""
        wanted = (tuple(keys), stamp)
        if wanted not in self.indexes:
            self.indexes[wanted] = _index(self, keys, stamp)
        return self.indexes[wanted]

    def by_buckets(self, keys: tuple[Key, ...], stamp: str, layout: Layout) -> Buckets:
        """The rows by buckets of some columns and a stamp."""
        wanted = (keys, stamp, layout)
        if wanted not in self.buckets:
            self.buckets[wanted] = bucketed(self.columns(keys), self.batch[stamp], layout)
        return self.buckets[wanted]


def _index(run: Run, keys: Sequence[Key], stamp: str) -> Index:
    stamps: Ints = run.batch[stamp]
    first, last = run.first(stamp), run.last(stamp)
    span = last - first + 2
    if not keys:
        order = np.arange(len(stamps)) if ascends(stamps) else np.argsort(stamps, kind="stable")
        return Index(order, None, True, stamps[order] - first, first, span, 1)
    columns = run.columns(keys)
    numbering, numbers = numbered(hash_columns(columns, len(stamps)))
    exact = len(numbering) == len(stamps)
    exact = exact or all(bool(same(c, c.take(numbering.rows[numbers])).all()) for c in columns)
    # A run that spans so long a time that keys and microseconds do not fit one number counts time more coarsely.
    grain = 1
    while len(numbering) * (span // grain + 2) >= LARGEST:
        grain *= 2
    width = span // grain + 2
    order = sorted_by(numbers, len(numbering))
    since = (stamps - first)[order]
    packed = numbers[order] * width + (since if grain == 1 else since // grain)
    if not ascends(packed):
        again = np.argsort(packed, kind="stable")
        order, packed = order[again], packed[again]
    return Index(order, numbering, exact, packed, first, width, grain)


def ascends(values: Ints) -> bool:
    """Whether no value is below the one before it."""
    return len(values) < 2 or bool((values[1:] >= values[:-1]).all())


class History:
    """The tuples of one input, in runs, and the newest few of them row by row; it knows for how long they matter."""

    def __init__(self, stamps: Sequence[str], relevant: int | None = None, needed: Needed = None) -> None:
        self.stored: list[Run] = []
        """The runs without the newest rows."""
        self.tail: Tail | None = None
        """The newest rows, as soon as there were so few."""
        self.stamps = tuple(stamps)
        self._lifetimes = Lifetimes(needed) if needed is not None else None
        """For how long tuples matter; None is forever."""
        self._bound = -FAR
        """The last bound by which dead tuples were dropped."""
        self._look_again = -FAR
        """The bound before which no more tuples of the runs are dead than may be."""
        self.relevant = relevant
        """How far before the bound a tuple may end and still matter; None is any time."""
        self.collected = 0
        self.since = -FAR
        """What ended by then may be missing, or wrong: rules that came later needed more than was kept."""
        self.next_number = 0
        self._added: list[Batch] | None = None
        """What was appended since somebody asked for that; None if nobody ever did."""

    def __len__(self) -> int:
        return sum(len(run.batch) for run in self.stored) + (len(self.tail) if self.tail is not None else 0)

    @property
    def is_empty(self) -> bool:
        return not self.stored and not self.tail

    @property
    def last_use(self) -> int | None:
        """From which bound on it may be empty, if nothing more comes; None if it is, or keeps something for ever."""
        if self._lifetimes is None or self._lifetimes.is_endless:
            return None
        deaths = [run.last_death for run in self.stored]
        if self.tail:
            deaths.append(self.tail.last_death)
        return max(deaths, default=None)

    def flush(self) -> list[Run]:
        """Makes runs of the newest rows, too, so that all can be searched by columns; gives all runs."""
        if self.tail is not None:
            for step, batch in self.tail.by_step():
                self._store(batch, step)
            self.tail = None
        return self.stored

    def batches(self) -> list[Batch]:
        """All tuples by columns, for those who only look: where they are kept stays as it is."""
        newest = self.tail.rows if self.tail is not None else []
        return [*(run.batch for run in self.stored), *([of_rows(newest)] if newest else [])]

    @property
    def stored_bytes(self) -> int:
        """The bytes of all runs; the newest rows do not become one by being asked."""
        return sum(run.batch.nbytes for run in self.stored)

    def append(self, batch: Batch, step: int) -> None:
        """The tuples that arrived in a step, without those whose own stamps rule them out."""
        lifetimes = self._lifetimes
        if lifetimes is not None and lifetimes.is_choosy and len(batch):
            lasts = lasting(batch, lifetimes.lengths)
            if not lasts.all():
                self.collected += len(batch) - int(np.count_nonzero(lasts))
                batch = batch.take(lasts)
        if self._added is not None and len(batch):
            self._added.append(batch)
        if 0 < len(batch) <= FEW:
            tail = self.tail
            if tail is None:
                tail = self.tail = Tail()
            for row in batch.given if isinstance(batch, RowBatch) else batch.rows():
                tail.append(step, row, lifetimes.of_row(row) if lifetimes is not None else FAR)
        elif len(batch):
            self.flush()
            self._store(batch, step)

    def few_since(self, step: int) -> list[Row] | None:
        """The rows that arrived after a step, or None if they are too many to be looked at row by row."""
        if self.stored and self.stored[-1].step > step:
            return None
        return self.tail.since(step) if self.tail is not None else []

    def _store(self, batch: Batch, step: int) -> None:
        self.stored.append(self._run(batch, step))

    def _run(self, batch: Batch, step: int, latest: dict[str, int] | None = None, until: Ints | None = None) -> Run:
        self.next_number += 1
        run = Run(batch, step, self.next_number, latest or {s: int(batch[s].max()) for s in self.stamps})
        if self._lifetimes is not None:
            until = self._lifetimes.of_batch(batch) if until is None else until
            run.first_death, run.last_death = int(until.min()), int(until.max())
            run.until = until if len(batch) <= REMEMBERED else None
            self._look_again = min(self._look_again, run.first_death)
        return run

    def _until(self, run: Run) -> Ints | None:
        """For each tuple of a run the bound from which on it is dead; None if none of them ever is."""
        if run.until is not None or self._lifetimes is None:
            return run.until
        return self._lifetimes.of_batch(run.batch)

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what is here; what it returns goes back to that."""
        stored, added = list(self.stored), len(self._added or ())
        entries = self.tail.entries() if self.tail is not None else []

        def go_back() -> None:
            self.stored, self.tail = list(stored), Tail(entries) if entries else None
            if self._added is not None:
                del self._added[added:]

        return go_back

    def checkpoint(self) -> list[Run]:
        """All that it holds, in runs, which never change."""
        return self.flush()

    def added(self) -> Batch | None:
        """What was appended since this was last asked; from the first time on it is written down."""
        added, self._added = self._added, []
        return stack(added) if added else None

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:
        """Takes back tuples of an earlier life, which everybody had seen by that step."""
        self._store(batch, step)
        self.stored[-1].number = number or self.next_number

    @property
    def counts(self) -> list[int]:
        """How many tuples it has dropped and how many runs made; and from when on it is complete, if not always."""
        return [self.collected, self.next_number, *([self.since] if self.since > -FAR else [])]

    def count_on(self, collected: int, next_number: int, since: int = -FAR) -> None:
        """Counts on from there."""
        self.collected, self.next_number, self.since = collected, next_number, since

    def expiry(self, batch: Batch) -> Ints | None:
        """The bound from which on no reader asks for each of some tuples; None if some reader always may."""
        if self._lifetimes is None or self._lifetimes.is_endless:
            return None
        return self._lifetimes.of_batch(batch)

    def expire(self, bound: int) -> None:
        """Drops what is dead for all readers once all that arrives by the bound has come: of runs nearly all of it."""
        if self._lifetimes is None or bound >= FAR:
            return
        self._bound = bound
        if self.tail is not None:
            self.collected += self.tail.expire(bound)
        if not self.stored or bound < self._look_again:
            return
        kept = [run for run in self.stored if run.last_death > bound]
        self.collected += sum(len(run.batch) for run in self.stored) - sum(len(run.batch) for run in kept)
        self.stored = kept
        dead = [self._dead(run, bound) for run in kept]
        spare = sum(len(run.batch) for run in kept) // SPARE - sum(dead)
        if spare < 0:
            for k in sorted(range(len(kept)), key=lambda k: dead[k] / len(kept[k].batch), reverse=True):
                if spare >= 0 or not dead[k]:
                    break
                spare += dead[k]
                self.collected += dead[k]
                kept[k], dead[k] = self._without_dead(kept[k], bound), 0
        share = max(spare, 0) // max(len(kept), 1)
        self._look_again = min((_death(run, gone + share) for run, gone in zip(kept, dead, strict=True)), default=FAR)

    def _dead(self, run: Run, bound: int) -> int:
        """How many tuples of a run are dead."""
        if bound < run.first_death:
            return 0
        if run.deaths is None and (until := self._until(run)) is not None:
            run.deaths = np.sort(until)
        return int(run.deaths.searchsorted(bound, side="right")) if run.deaths is not None else 0

    def _without_dead(self, run: Run, bound: int) -> Run:
        """A run without what is dead in it."""
        until = self._until(run)
        if until is None:
            return run
        alive: Ints = np.flatnonzero(until > bound)
        living = self._run(run.batch.take(alive), run.step, until=until[alive])
        if run.deaths is not None:
            living.deaths = run.deaths[len(run.deaths) - len(alive) :]
        return living

    def compact(self, before: int, after: int = -1) -> None:
        """Merges neighbours of about the same size that arrived before and after a step; many new rows become a run.

        Runs that would span much of the time for which their tuples are relevant are not merged, since a run is kept as
        long as its last tuple.
        """
        tail = self.tail
        if tail is not None and len(tail) >= MANY:
            first, last_step = tail.steps
            if after < first and last_step < before:
                self._store(of_rows(tail.rows), last_step)
                self.tail = None
        runs = self.stored
        while len(runs) > 1 and runs[-1].step < before:
            last, other = runs[-1], runs[-2]
            if other.step <= after:
                break
            rows = len(other.batch) + len(last.batch)
            if len(other.batch) > 2 * len(last.batch) or rows > MERGE_BELOW:
                break
            if self.relevant is not None and rows > SHORT and self._span(other, last) * SHARE > self.relevant:
                break
            latest = {s: max(last.latest[s], other.latest[s]) for s in self.stamps}
            older, newer = other.until, last.until
            until: Ints | None = np.concatenate([older, newer]) if older is not None and newer is not None else None
            both = self._run(stack([other.batch, last.batch]), last.step, latest, until)
            runs[-2:] = [self._without_dead(both, self._bound) if both.first_death <= self._bound else both]

    def _span(self, a: Run, b: Run) -> int:
        """How far the last stamps of two runs lie apart at most."""
        stamp = self.stamps[-1]
        return max(a.last(stamp), b.last(stamp)) - min(a.first(stamp), b.first(stamp))


def _death(run: Run, number: int) -> int:
    """The bound from which on more than so many tuples of a run are dead, or at the latest all of them."""
    if run.deaths is None:
        return run.first_death
    return int(run.deaths[number]) if number < len(run.deaths) else run.last_death
