"""This module looks into windows without unfolding them: whether anything is in one, how much, its sum and extremes.

That is possible where a window is exactly a range of one stamp in an index: the events in it are points, and nothing
but when they happen and equal variables is asked of them. Then windows that overlap cost no more than windows that do
not. Elsewhere the range only narrows the search, and what it finds is tested.

A tuple looks into its windows once all that can lie in them is known. Until then it is pending. Such tuples are kept in
parts, each sorted by when its tuples happen, so that what is due is the first rows of each part. Parts merge with
neighbours of their size, so there are few of them, and an event does not cost what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import end, hidden
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Array, Batch, Column, Ints, Mask, ints, latest, stack
from ephemera.kernels.computed import Key, computed
from ephemera.kernels.exact_sums import Digits, ExactSums, digits_of, running
from ephemera.kernels.filter import times
from ephemera.kernels.history import FAR, History, Run
from ephemera.kernels.search import Question, bucket_pairs, ranges
from ephemera.physical.nodes import Leaf, Range, Wanted, WindowPlan
from ephemera.terms.compute import Scope
from ephemera.terms.nodes import Expression, Var

COUNT = hidden("count")
LARGEST_SUM = 1 << 62


def named(wanted: Wanted) -> str:
    """The column of what is wanted."""
    return hidden(f"{wanted.function} {wanted.text}")


def worth(wanted: Wanted) -> str:
    """The column of the power of two that one is worth, where what is wanted are exact sums of doubles."""
    return hidden(f"worth of {wanted.function} {wanted.text}")


def question(batch: Batch, leaf: Leaf, keys: Sequence[str], stamp: str, limits: Sequence[Range]) -> Question:
    """What is asked of the history of a leaf for each row, in its own names."""
    own = {new: old for old, new in leaf.names.items()}
    columns = tuple(batch.columns[k] for k in keys)
    return Question(tuple(own.get(k, k) for k in keys), own.get(stamp, stamp), *between(batch, limits), columns)


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


class Looked:
    """What is in the windows of some rows."""

    def __init__(self, windows: int, most: int) -> None:
        """No window holds more than so many."""
        self.counts: Ints = np.zeros(windows, dtype=np.int64)
        self.found: dict[Wanted, Column] = {}
        self.exact: dict[Wanted, ExactSums] = {}
        """The sums of doubles."""
        self._most = most

    def so_far(self, run: Run, wanted: Wanted, of: Key) -> Array | None:
        """What is wanted of each window, to be added to from a column of a run; None if it cannot be had exactly."""
        c, found = run.column(of), self.found.get(wanted)
        if c is None or c.kind not in ("int", "float") or (found is not None and found.kind != c.kind):
            return None
        if wanted in self.exact:
            return None
        if wanted.function == "sum" and (c.kind != "int" or _may_overflow(c.values, self._most)):
            return None
        if found is None:
            found = self.found[wanted] = Column(np.zeros(len(self.counts), dtype=c.values.dtype), c.kind)
        return found.values

    def sums(self, wanted: Wanted) -> ExactSums | None:
        """The sums of doubles of each window, to be added to; None if some values before were whole numbers."""
        if wanted in self.found:
            return None
        return self.exact.setdefault(wanted, ExactSums(len(self.counts)))

    def add_pairs(self, values: Array, function: str, rows: Ints, more: Array) -> None:
        """Adds values one by one, each to what is wanted of a window."""
        if function == "sum":
            np.add.at(values, rows, more)
            return
        first = (self.counts.take(rows) == 0).nonzero()[0]
        values[rows.take(first)] = more.take(first)
        (np.minimum if function == "min" else np.maximum).at(values, rows, more)


def look(window: WindowPlan, history: History, batch: Batch, scope: Scope) -> Looked | None:
    """How much is in each window, and what else is wanted.

    None if the window has to be unfolded: what is asked does not say all, two keys share a hash, sums get too large, or
    what is computed is no whole number.
    """
    asked = in_window(batch, window) if window.is_exact else None
    if asked is None or len(asked.keys) < len(window.keys):
        return None
    own = {new: old for old, new in window.leaf.names.items()}
    wanted = {one: _key(one.value, own, scope) for one in window.wanted}
    looked = Looked(len(asked), len(history))
    for run in history.flush():
        pairs = bucket_pairs(run, asked)
        is_had = _by_ranges(run, asked, wanted, looked) if pairs is None else _by_pairs(run, pairs, wanted, looked)
        if not is_had:
            return None
    return looked


def _key(e: Expression, own: Mapping[str, str], scope: Scope) -> Key:
    """The column of a history that has the values of an expression."""
    return own.get(e.name, e.name) if isinstance(e, Var) else computed(e, own, scope, whole=True)


def _by_pairs(run: Run, pairs: Sequence[tuple[Ints, Ints]], wanted: Mapping[Wanted, Key], looked: Looked) -> bool:
    """Adds what windows hold of a run one by one; whether all could be had."""
    for rows, others in pairs:
        for one, of in wanted.items():
            if _adds_doubles(run, one, of):
                exact, digits = looked.sums(one), _digits(run, of)
                if exact is None or digits is None:
                    return False
                exact.add_each(rows, digits, others)
                continue
            values = looked.so_far(run, one, of)
            if values is None:
                return False
            looked.add_pairs(values, one.function, rows, values_of(run, of).take(others))
        looked.counts += np.bincount(rows, minlength=len(looked.counts))
    return True


def _by_ranges(run: Run, asked: Question, wanted: Mapping[Wanted, Key], looked: Looked) -> bool:
    """Adds what windows hold of a run, each at once; whether all could be had."""
    asking, starts, stops = ranges(run, asked)
    full = np.flatnonzero(stops > starts)
    if not len(full):
        return True
    index = run.index(asked.keys, asked.stamp)
    if index.grain > 1 or not index.exact:
        return False
    if len(full) < len(asking):
        asking, starts, stops = asking[full], starts[full], stops[full]
    for one, of in wanted.items():
        if _adds_doubles(run, one, of):
            exact, digits = looked.sums(one), _running_digits(run, asked, of)
            if exact is None or digits is None:
                return False
            exact.add_ranges(asking, digits, starts, stops)
            continue
        values = looked.so_far(run, one, of)
        if values is None:
            return False
        if one.function == "sum":
            sums = _running_sum(run, asked, of)
            more = sums[stops] - sums[starts]
        else:
            more = _extremes(run, asked, of, one.function).of(starts, stops)
        values[asking] = _combined(one.function, values[asking], more, looked.counts[asking] > 0)
    looked.counts[asking] += stops - starts
    return True


def _combined(function: str, before: Array, more: Array, had: Mask) -> Array:
    """What windows had in earlier runs, if anything, with what they have in this one."""
    if function == "sum":
        return before + more
    return np.where(had, np.minimum(before, more) if function == "min" else np.maximum(before, more), more)


def values_of(run: Run, of: Key) -> Array:
    """The values of a column that the run has."""
    return run.columns([of])[0].values


def _may_overflow(values: Ints, count: int) -> bool:
    return max(abs(int(values.max())), abs(int(values.min()))) * count >= LARGEST_SUM


def summarized(batch: Batch, looked: Looked) -> Batch:
    """The rows with something in their windows, with how much and what else was wanted."""
    columns = {COUNT: ints(looked.counts), **{named(wanted): c for wanted, c in looked.found.items()}}
    for wanted, exact in looked.exact.items():
        sums, power = exact.whole()
        columns[named(wanted)] = Column(sums, "any")
        columns[worth(wanted)] = ints(np.full(len(batch), power))
    return batch.with_columns(columns).take(looked.counts > 0)


# ---- sums and extremes of ranges of a run; what is made for them stays with its index ---------------------------


def _adds_doubles(run: Run, wanted: Wanted, of: Key) -> bool:
    c = run.column(of) if wanted.function == "sum" else None
    return c is not None and c.kind == "float"


def _digits(run: Run, of: Key) -> Digits | None:
    """The digits of a column of doubles, if they can be added up so."""
    if of not in run.digits:
        run.digits[of] = digits_of(values_of(run, of))
    return run.digits[of]


def _running_digits(run: Run, asked: Question, of: Key) -> Digits | None:
    """The sums of the digits over all rows before each, in the order of an index, and over all."""
    digits, index = _digits(run, of), run.index(asked.keys, asked.stamp)
    if digits is None:
        return None
    if ("digits", of) not in index.summaries:
        index.summaries["digits", of] = running(digits, index.order)
    found: Digits = index.summaries["digits", of]
    return found


def _running_sum(run: Run, asked: Question, of: Key) -> Ints:
    """The sums of a column of whole numbers over all rows before each, in the order of an index, and over all."""
    index = run.index(asked.keys, asked.stamp)
    if ("sum", of) not in index.summaries:
        index.summaries["sum", of] = np.concatenate([[0], np.cumsum(values_of(run, of)[index.order])])
    sums: Ints = index.summaries["sum", of]
    return sums


def _extremes(run: Run, asked: Question, of: Key, function: str) -> Extremes:
    """The least or greatest values (`min`, `max`) of a column of numbers in ranges of an index."""
    index = run.index(asked.keys, asked.stamp)
    if (function, of) not in index.summaries:
        index.summaries[function, of] = Extremes(values_of(run, of)[index.order], greatest=function == "max")
    found: Extremes = index.summaries[function, of]
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
