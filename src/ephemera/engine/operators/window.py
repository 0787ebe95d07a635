"""This module looks into windows without unfolding them: whether anything is in one, how much, its sum and extremes.

That is possible where a window is exactly a range of one stamp in an index: the events in it are points, and nothing
but when they happen and equal variables is asked of them. Then windows that overlap cost no more than windows that do
not. Elsewhere the range only narrows the search, and what it finds is tested.

A tuple looks into its windows once all that can lie in them is known. Until then it is pending. Such tuples are kept in
parts, each sorted by when its tuples happen, so that what is due is the first rows of each part. Parts merge with
neighbours of their size, so there are few of them, and an event does not cost what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import end, hidden
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Array, Batch, Column, Ints, Mask, ints, latest, stack
from ephemera.kernels.filter import times
from ephemera.kernels.history import FAR, History, Question, Run, ranges
from ephemera.kernels.keys import hash_columns
from ephemera.physical.nodes import Leaf, Range, Wanted, WindowPlan

COUNT = hidden("count")
LARGEST_SUM = 1 << 62


def named(wanted: Wanted) -> str:
    """The column of what is wanted."""
    return hidden(" ".join(wanted))


def question(batch: Batch, leaf: Leaf, keys: Sequence[str], stamp: str, limits: Sequence[Range]) -> Question:
    """What is asked of the history of a leaf for each row, in its own names."""
    own = {new: old for old, new in leaf.names.items()}
    columns = tuple(batch.columns[k] for k in keys)
    hashes = hash_columns(columns, len(batch))
    return Question(tuple(own.get(k, k) for k in keys), hashes, own.get(stamp, stamp), *between(batch, limits), columns)


def between(batch: Batch, limits: Sequence[Range]) -> tuple[Ints, Ints]:
    """For each row the least and the greatest stamp that is asked for."""
    least = np.full(len(batch), -FAR, dtype=np.int64)
    most = np.full(len(batch), FAR, dtype=np.int64)
    for limit in limits:
        known = times(batch, limit.known)
        if limit.earliest is not None:
            least = np.maximum(least, known - _near(limit.earliest))
        if limit.latest is not None:
            most = np.minimum(most, known + _near(limit.latest))
    return least, most


def _near(limit: int) -> int:
    """A limit with which times can be added up."""
    return max(-FAR, min(limit, FAR))


def in_window(batch: Batch, window: WindowPlan) -> Question:
    """What is asked of the history of a window; keys that are of no one kind are left to be compared."""
    keys = [k for k in window.keys if k in batch.columns and batch.columns[k].kind != "any"]
    return question(batch, window.leaf, keys, end(window.leaf.name), window.ranges)


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What is in the windows of some rows."""

    counts: Ints
    found: dict[Wanted, Column]


def look(window: WindowPlan, history: History, batch: Batch) -> Looked | None:
    """How much is in each window, and what else is wanted.

    None if the window has to be unfolded: what is asked does not say all, two keys share a hash, or sums get too large.
    """
    asked = in_window(batch, window) if window.is_exact else None
    if asked is None or len(asked.keys) < len(window.keys):
        return None
    own = {new: old for old, new in window.leaf.names.items()}
    counts = np.zeros(len(asked.least), dtype=np.int64)
    found: dict[Wanted, Column] = {}
    for run in history.flush():
        asking, starts, stops = ranges(run, asked)
        full = np.flatnonzero(stops > starts)
        if not len(full):
            continue
        index = run.index(asked.keys, asked.stamp)
        if index.grain > 1 or not index.exact:
            return None
        if len(full) < len(asking):
            asking, starts, stops = asking[full], starts[full], stops[full]
        for one in window.wanted:
            kind, so_far = run.batch.columns[own[one[1]]].kind, found.get(one)
            if so_far is not None and so_far.kind != kind:
                return None
            more = _of_run(run, asked, one[0], own[one[1]], len(history), starts, stops)
            if more is None:
                return None
            if so_far is None:
                so_far = found[one] = Column(np.zeros(len(counts), dtype=more.dtype), kind)
            so_far.values[asking] = _combined(one[0], so_far.values[asking], more, counts[asking] > 0)
        counts[asking] += stops - starts
    return Looked(counts, found)


def _of_run(run: Run, asked: Question, function: str, name: str, count: int, starts: Ints, stops: Ints) -> Array | None:  # noqa: PLR0913, PLR0917
    """What is wanted of the windows' parts in one run."""
    kind = run.batch.columns[name].kind
    if function != "sum" and kind in ("int", "float"):
        return _extremes(run, asked, name, function).of(starts, stops)
    if kind != "int" or _may_overflow(run, name, count):
        return None
    running = _running_sum(run, asked, name)
    return running[stops] - running[starts]


def _combined(function: str, before: Array, more: Array, had: Mask) -> Array:
    """What windows had in earlier runs, if anything, with what they have in this one."""
    if function == "sum":
        return before + more
    return np.where(had, np.minimum(before, more) if function == "min" else np.maximum(before, more), more)


def _may_overflow(run: Run, name: str, count: int) -> bool:
    values = run.batch[name]
    return max(abs(int(values.max())), abs(int(values.min()))) * count >= LARGEST_SUM


def summarized(batch: Batch, looked: Looked) -> Batch:
    """The rows with something in their windows, with how much and what else was wanted."""
    columns = {COUNT: ints(looked.counts), **{named(wanted): c for wanted, c in looked.found.items()}}
    return batch.with_columns(columns).take(looked.counts > 0)


# ---- sums and extremes of ranges of a run; what is made for them stays with its index ---------------------------


def _running_sum(run: Run, asked: Question, name: str) -> Ints:
    """The sums of a column of whole numbers over all rows before each, in the order of an index, and over all."""
    index = run.index(asked.keys, asked.stamp)
    if ("sum", name) not in index.summaries:
        index.summaries["sum", name] = np.concatenate([[0], np.cumsum(run.batch[name][index.order])])
    sums: Ints = index.summaries["sum", name]
    return sums


def _extremes(run: Run, asked: Question, name: str, function: str) -> Extremes:
    """The least or greatest values (`min`, `max`) of a column of numbers in ranges of an index."""
    index = run.index(asked.keys, asked.stamp)
    if (function, name) not in index.summaries:
        index.summaries[function, name] = Extremes(run.batch[name][index.order], greatest=function == "max")
    found: Extremes = index.summaries[function, name]
    return found


class Extremes:
    """The least or the greatest values in ranges of an array.

    For each power of two it keeps the extreme of all ranges of that length (a sparse table); any range is two of these
    that overlap. Tables are made only as far as the longest range that was asked for.
    """

    def __init__(self, values: Array, *, greatest: bool) -> None:
        self._choose: Any = np.maximum if greatest else np.minimum
        self._tables = [values]

    def of(self, starts: Ints, stops: Ints) -> Array:
        """The extreme of each range; none may be empty."""
        lengths = stops - starts
        levels = np.frexp(lengths)[1] - 1  # exact: no array is longer than a double can count
        extremes = np.empty(len(starts), dtype=self._tables[0].dtype)
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            rows = np.flatnonzero(levels == level)
            table = self._table(level)
            extremes[rows] = self._choose(table[starts[rows]], table[stops[rows] - (1 << level)])
        return extremes

    def _table(self, level: int) -> Array:
        while len(self._tables) <= level:
            last, half = self._tables[-1], 1 << (len(self._tables) - 1)
            self._tables.append(self._choose(last[:-half], last[half:]))
        return self._tables[level]


# ---- tuples whose windows are not known yet ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    batch: Batch
    due: Ints
    """When each tuple happens, ascending."""

    def __len__(self) -> int:
        return len(self.due)


class Pending:
    """The operator of tuples that wait for the bound; it owns them, and knows when each happens."""

    def __init__(self, ends: Sequence[str]) -> None:
        """A tuple happens when the last of these stamps is there."""
        self._ends = ends
        self._parts: list[_Part] = []
        self._next: int | None = None
        """When the first of them happens."""
        self._added: list[Batch] | None = None
        """What was added since somebody asked for that; None if nobody ever did."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def next(self) -> int | None:
        """When the first of them happens, if there is one."""
        return self._next

    def expiry(self, batch: Batch) -> Ints:
        """When each of some tuples happens."""
        return latest(batch, self._ends)

    def add(self, batch: Batch, due: Ints) -> None:
        """More tuples, with when they happen."""
        if not len(batch):
            return
        if self._added is not None:
            self._added.append(batch)
        self._put(batch, due)

    def _put(self, batch: Batch, due: Ints) -> None:
        self._parts.append(_sorted([batch], due))
        while len(self._parts) > 1 and len(self._parts[-2]) <= 2 * len(self._parts[-1]):
            other, last = self._parts[-2:]
            self._parts[-2:] = [_sorted([other.batch, last.batch], np.concatenate([other.due, last.due]))]
        self._count()

    def take(self, bound: int) -> list[Batch]:
        """Those that happen by then."""
        if self._next is None or self._next > bound:
            return []
        found: list[Batch] = []
        kept: list[_Part] = []
        for part in self._parts:
            count = int(np.searchsorted(part.due, bound, side="right"))
            if count:
                found.append(part.batch.cut(0, count))
            if count < len(part):
                kept.append(_Part(part.batch.cut(count, len(part)), part.due[count:]))
        self._parts = kept
        self._count()
        return found

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what waits; what it returns goes back to that."""
        parts, added = list(self._parts), len(self._added or ())

        def go_back() -> None:
            self._parts = list(parts)
            self._count()
            if self._added is not None:
                del self._added[added:]

        return go_back

    def checkpoint(self) -> list[Run]:
        """All of them, as one run."""
        return [Run(stack([p.batch for p in self._parts]), 0, 0, {})] if self._parts else []

    def added(self) -> Batch | None:
        """What was added since this was last asked; from the first time on it is written down."""
        added, self._added = self._added, []
        return stack(added) if added else None

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:  # noqa: ARG002 - has no runs
        """Takes back tuples of an earlier life."""
        if len(batch):
            self._put(batch, self.expiry(batch))

    def expire(self, bound: int) -> None:
        """Drops those that have happened by then."""
        self.take(bound)

    def _count(self) -> None:
        self._next = min((int(p.due[0]) for p in self._parts), default=None)


def _sorted(batches: Sequence[Batch], due: Ints) -> _Part:
    batch = stack(batches)
    if len(due) == 1 or bool((due[1:] >= due[:-1]).all()):
        return _Part(batch, due)
    order = np.argsort(due, kind="stable")
    return _Part(batch.take(order), due[order])
