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
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ephemera.algebra.nodes import Cross, Group, Join, Rename
from ephemera.algebra.scalar import Distance, Every, Formula, begin, end
from ephemera.kernels.columns import Array, Batch, Column, Ints, Mask, ints, latest, stack
from ephemera.kernels.filter import is_stamp, stamp
from ephemera.kernels.history import FAR, History, Question, Run, ranges
from ephemera.physical.nodes import Leaf, RulePlan
from ephemera.syntax.nodes import Derive
from ephemera.terms.construct import direct_variables
from ephemera.terms.nodes import Aggregate, Bool, Number, Text, Var

COUNT = "#count"
LARGEST_SUM = 1 << 62


Wanted: TypeAlias = tuple[str, str]
"""The sum, least or greatest value of a variable: `sum`, `min` or `max`, and the variable."""


def named(wanted: Wanted) -> str:
    """The column of what is wanted."""
    return "#" + " ".join(wanted)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """For each of some rows the range in which what lies in its window ends."""

    least: Ints
    most: Ints
    says_all: bool
    """Whether whatever ends in the range lies in the window: nothing else is asked of it but equal variables."""


def stretch(batch: Batch, leaf: Leaf, condition: Formula) -> Stretch:
    """The range of ends that a window's condition, with its own conditions on time, leaves for each row.

    A limit on an end, and a begin that is not before something, always narrow it. A begin that is not after something
    does so where events are points.
    """
    opens, closes = begin(leaf.name), end(leaf.name)
    not_after = (opens, closes) if leaf.is_point else (closes,)
    least = np.full(len(batch), -FAR, dtype=np.int64)
    most = np.full(len(batch), FAR, dtype=np.int64)
    says_all = leaf.is_point
    for part in condition.parts if isinstance(condition, Every) else (condition,):
        match part:
            case Distance(later, earlier, limit, strict) if later in not_after and is_stamp(batch, earlier):
                most = np.minimum(most, stamp(batch, earlier) + _near(limit) - strict)
            case Distance(later, earlier, limit, strict) if earlier in (opens, closes) and is_stamp(batch, later):
                least = np.maximum(least, stamp(batch, later) - _near(limit) + strict)
            case _:
                says_all = False
    return Stretch(least, most, says_all)


def _near(limit: int) -> int:
    """A limit with which times can be added up."""
    return max(-FAR, min(limit, FAR))


def keys_of(leaf: Leaf, batch: Batch) -> list[str] | None:
    """The variables that a leaf shares with a batch, if an index can tell them all."""
    shared = sorted(v for v in leaf.variables if v in batch.columns)
    if any(v not in leaf.sure or batch.columns[v].kind == "any" for v in shared):
        return None
    return shared


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What is in the windows of some rows."""

    counts: Ints
    found: dict[Wanted, Column]


def look(leaf: Leaf, history: History, asked: Question, wanted: Sequence[Wanted]) -> Looked | None:
    """How much is in each window, and what else is wanted; None if two keys share a hash, or it cannot be had so."""
    own = {new: old for old, new in leaf.names.items()}
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
        for one in wanted:
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


@dataclass(frozen=True, slots=True)
class Summary:
    """A rule that only counts, sums or asks for the extremes of what lies in one window."""

    right: Rename
    condition: Formula
    wanted: tuple[Wanted, ...]


def summary_of(plan: RulePlan) -> Summary | None:
    """The summary that a rule asks for, if that is all it asks of its collection."""
    e, group = plan.accumulated, plan.head
    if not isinstance(e, Join | Cross) or e.left != plan.positive or not isinstance(e.right, Rename):
        return None
    if not isinstance(group, Group) or group.having or len(group.collections) != 1:
        return None
    head, binds = group.head, frozenset(group.collections[0].binds)
    if not isinstance(head, Derive) or binds & frozenset[str]().union(*(direct_variables(a) for a in head.arguments)):
        return None
    wanted: list[Wanted] = []
    for argument in head.arguments:
        match argument:
            case Aggregate("count", None, False, ()):
                continue
            case Aggregate("sum" | "avg" | "min" | "max" as function, Var(name), False, ()) if name in binds:
                wanted.append(("sum" if function == "avg" else function, name))
            case Var() | Number() | Text() | Bool():
                continue
            case _:
                return None
    return Summary(e.right, e.condition, tuple(dict.fromkeys(wanted)))


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
