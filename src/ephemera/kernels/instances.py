"""This module finds the instances of algebra expressions by columns: figures 2 and 4 of the paper for all keys at once.

A stream of instances has one row for each key and end, sorted by them; a key is a value of the shared variables, as a
number. A key and a time are one number (`Axis`), so when an instance starts and ends are two, and where all are points
these are the same array. Of a stream its *records* are the rows that start later than all before them with their key,
so of records both starts and ends ascend, and which of them starts last before a time is a binary search. What was kept
of earlier steps are records, too, that stand before those of the step.

An instance refers to its parts by rows: for each primitive whose variables are reported a row of what was kept or came,
or -1 for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np

from ephemera.algebra.nodes import Composition, Detected, Limit, Never, Primitive
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Ints, Mask
from ephemera.kernels.keys import sorted_by

MOST_BITS = 62
"""So many bits a key and a time may have together."""
FEW_RUNS = 64
"""Rows that ascend but for so few places are merged; others are sorted anew."""
NONE = -1


class Axis:
    """Keys and times as one number each, in the order of keys and then of times."""

    def __init__(self, times: Sequence[Ints]) -> None:
        """All times of instances are among these."""
        self._times = [own for own in times if len(own)]
        self._first = min((int(own.min()) for own in self._times), default=0)
        self._last = max((int(own.max()) for own in self._times), default=0)
        self._bits = (self._last - self._first).bit_length()
        self._known: Ints | None = None
        """All times, if their places among these are used instead; else times count from the first."""
        self.keys = 0

    @property
    def room(self) -> int:
        """How many bits are left for keys."""
        return MOST_BITS - self._bits

    def fit(self, keys: int) -> None:
        """So many keys there are."""
        self.keys = keys
        if keys.bit_length() > self.room:
            self._known = np.unique(np.concatenate(self._times))
            self._bits = len(self._known).bit_length()

    def of(self, keys: Ints, times: Ints) -> Ints:
        """Keys and times as one number."""
        if self._known is not None:
            return (keys << self._bits) + self._known.searchsorted(times)
        packed: Ints = keys << self._bits
        packed += times
        packed -= self._first
        return packed

    def keys_of(self, packed: Ints) -> Ints:
        """The keys of such numbers."""
        return packed >> self._bits

    def times_of(self, packed: Ints) -> Ints:
        """Their times."""
        since: Ints = packed & ((1 << self._bits) - 1)
        if self._known is not None:
            return self._known[since]
        since += self._first
        return since

    def are_of_one_key(self, ones: Ints, others: Ints) -> Mask:
        """Row by row whether two numbers have the same key."""
        return ((ones ^ others) >> self._bits) == 0  # type: ignore[no-any-return]

    def until(self, packed: Ints, time: int) -> Mask | None:
        """Which of them lie at a time or before it; None if all do."""
        if time >= self._last:
            return None
        if time < self._first:
            return np.zeros(len(packed), dtype=np.bool_)
        last = time - self._first if self._known is None else self._known.searchsorted(time, side="right") - 1
        return (packed & ((1 << self._bits) - 1)) <= last

    def instances(self, keys: Ints, begins: Ints, ends: Ints, parts: Mapping[int, Ints]) -> Instances:
        """Some instances by when they begin and end."""
        last = self.of(keys, ends)
        is_point = begins is ends or bool((begins == ends).all())
        return Instances(last if is_point else self.of(keys, begins), last, parts)

    def lasting(self, instances: Instances, most: int) -> Instances:
        """Those that last no longer than some time."""
        if instances.starts is instances.ends and most >= 0:
            return instances
        if self._known is None:
            lengths = instances.ends - instances.starts
        else:
            lengths = self.times_of(instances.ends) - self.times_of(instances.starts)
        return instances.taken(lengths <= most)

    def order(self, packed: Ints) -> Ints | None:
        """The rows by key and time; None if they are. Rows that are equal stay in their order."""
        falls = packed[1:] < packed[:-1]
        if not falls.any():
            return None
        if np.count_nonzero(falls) <= FEW_RUNS:
            return np.argsort(packed, kind="stable")  # numpy merges what ascends
        order = sorted_by(self.keys_of(packed), self.keys)
        by_key = packed[order]
        return order if ascends(by_key) else order[np.argsort(by_key, kind="stable")]


def ascends(values: Ints) -> bool:
    """Whether no value is below the one before it."""
    return bool((values[1:] >= values[:-1]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """Some instances of an expression: when they start and end, both with the key as one number."""

    starts: Ints
    ends: Ints
    """The same array as the starts if all are known to be points."""
    parts: Mapping[int, Ints]
    """For each primitive that is told of where its rows are."""

    def __len__(self) -> int:
        return len(self.ends)

    def take(self, rows: Ints) -> Instances:
        """Some of them, by their numbers."""
        ends = self.ends.take(rows)
        starts = ends if self.starts is self.ends else self.starts.take(rows)
        return Instances(starts, ends, {p: own.take(rows) for p, own in self.parts.items()})

    def taken(self, chosen: Mask) -> Instances:
        """Those that a mask leaves."""
        rows = chosen.nonzero()[0]
        return self if len(rows) == len(self) else self.take(rows)


EMPTY = Instances(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), {})


def records(kept: Instances, new: Instances, axis: Axis) -> Instances:
    """The records of what was kept and what is new, sorted by key and end."""
    rows = _stacked([kept, new])
    order = axis.order(rows.ends)
    if order is not None:
        rows = rows.take(order)
    if len(rows) < 2:
        return rows
    starts = rows.starts
    latest = starts if starts is rows.ends else np.maximum.accumulate(starts)
    is_record = np.ones(len(rows), dtype=np.bool_)
    np.greater(starts[1:], latest[:-1], out=is_record[1:])
    return rows.taken(is_record)


def _before(found: Instances, packed: Ints, *, included: bool) -> Ints:
    """For each key and time the record that starts last of those that end before it, or with it.

    If there is none, this is a record of a key before it, or -1.
    """
    return found.ends.searchsorted(packed, side="right" if included else "left") - 1


def _stacked(several: Sequence[Instances]) -> Instances:
    filled = [one for one in several if len(one)]
    names = _all_parts(several)
    if len(filled) < 2:
        one = filled[0] if filled else several[0]
        return one if len(one.parts) == len(names) else Instances(one.starts, one.ends, _parts(one, names))
    ends = np.concatenate([one.ends for one in filled])
    are_points = all(one.starts is one.ends for one in filled)
    starts = ends if are_points else np.concatenate([one.starts for one in filled])
    parts = [_parts(one, names) for one in filled]
    return Instances(starts, ends, {p: np.concatenate([own[p] for own in parts]) for p in names})


def _all_parts(several: Sequence[Instances]) -> list[int]:
    return sorted({p for one in several for p in one.parts})


def _parts(one: Instances, names: Sequence[int]) -> dict[int, Ints]:
    return {p: one.parts[p] if p in one.parts else np.full(len(one), NONE, dtype=np.int64) for p in names}


class Evaluation:
    """The instances of an expression that end in a step, and the records that are left of it."""

    def __init__(
        self, expression: Detected, primitives: Mapping[int, Instances], kept: Sequence[Instances], axis: Axis
    ) -> None:
        """`primitives` are the occurrences of each, one for a key and an end; `kept` the records of each slot."""
        self._primitives = primitives
        self._kept = kept
        self._axis = axis
        self.records: list[Instances] = []
        """For each slot, sorted by key and end."""
        self.found = self._of(expression)

    def _of(self, e: Detected) -> Instances:
        match e:
            case Primitive(number, _):
                return self._primitives[number]
            case Never():
                return EMPTY
            case Limit(operand, length):
                return self._axis.lasting(self._of(operand), length)
            case Composition(operator, left, right):
                one, other = self._of(left), self._of(right)
                match operator:
                    case "|":
                        return self._either(one, other)
                    case "+":
                        return self._both(one, other)
                    case "-":
                        return self._without(one, other)
                    case ";":
                        return self._then(one, other)
                    case _:
                        assert_never(operator)
            case _:
                assert_never(e)

    def _slot(self, new: Instances) -> Instances:
        """The records of the next slot."""
        found = records(self._kept[len(self.records)], new, self._axis)
        self.records.append(found)
        return found

    def _either(self, one: Instances, other: Instances) -> Instances:
        both = _stacked([one, other])
        if not len(one) or not len(other):
            return both
        order = self._axis.order(both.ends)  # rows that are equal stay in their order: left before right
        if order is not None:
            both = both.take(order)
        same = both.ends[1:] == both.ends[:-1]
        starts = both.starts
        picked = np.ones(len(both), dtype=np.bool_)
        picked[:-1] &= ~(same & (starts[:-1] <= starts[1:]))
        picked[1:] &= ~(same & (starts[:-1] > starts[1:]))
        return both.taken(picked)

    def _without(self, one: Instances, other: Instances) -> Instances:
        forbidden = self._slot(Instances(other.starts, other.ends, {}))
        if not len(one) or not len(forbidden):
            return one
        last = _before(forbidden, one.ends, included=True)
        # What is of a key before starts before, too, since the key counts more than the time.
        return one.taken((last < 0) | (forbidden.starts.take(last) < one.starts))

    def _then(self, one: Instances, other: Instances) -> Instances:
        firsts = self._slot(one)
        names = _all_parts([one, firsts, other])
        rows, others = self._earlier(firsts, other.starts, included=False)
        starts, ends = firsts.starts.take(others), other.ends.take(rows)
        return Instances(starts, ends, _joined(firsts, others, other, rows, names))

    def _earlier(self, found: Instances, packed: Ints, *, included: bool) -> tuple[Ints, Ints]:
        """The rows of keys and times before which a record ends, and for each the one that starts last."""
        if not len(found):
            return EMPTY.ends, EMPTY.ends
        last = _before(found, packed, included=included)
        has_one = self._axis.are_of_one_key(found.ends.take(np.maximum(last, 0)), packed) & (last >= 0)
        rows = has_one.nonzero()[0]
        return rows, last.take(rows)

    def _both(self, one: Instances, other: Instances) -> Instances:
        lefts, rights = self._slot(one), self._slot(other)
        names = _all_parts([lefts, rights])
        found: list[Instances] = []
        # An instance on the left that starts no earlier than one on the right that ends with it, and the last there.
        for new, others, is_left in ((one, rights, True), (other, lefts, False)):
            rows, last = self._earlier(others, new.ends, included=True)
            beside = _beside(new, other if is_left else one).take(rows)
            mine = new.starts.take(rows)
            chosen = (beside <= mine if is_left else beside < mine).nonzero()[0]
            rows, last = rows.take(chosen), last.take(chosen)
            starts = np.minimum(mine.take(chosen), others.starts.take(last))
            found.append(Instances(starts, new.ends.take(rows), _joined(others, last, new, rows, names)))
        both = _stacked(found)
        order = self._axis.order(both.ends)
        return both if order is None else both.take(order)


def _beside(one: Instances, other: Instances) -> Ints:
    """For each row when what ends with it in another stream starts; -1 if nothing does."""
    if not len(one) or not len(other):
        return np.full(len(one), NONE, dtype=np.int64)
    places = np.minimum(other.ends.searchsorted(one.ends), len(other) - 1)
    return np.where(other.ends.take(places) == one.ends, other.starts.take(places), NONE)


def _joined(one: Instances, rows: Ints, other: Instances, others: Ints, names: Sequence[int]) -> dict[int, Ints]:
    """The parts of rows of two streams side by side."""
    parts: dict[int, Ints] = {}
    for p in names:
        left = one.parts[p].take(rows) if p in one.parts else None
        right = other.parts[p].take(others) if p in other.parts else None
        if left is None or right is None:
            some = right if left is None else left
            parts[p] = np.full(len(rows), NONE, dtype=np.int64) if some is None else some
        else:
            parts[p] = np.where(right >= 0, right, left)
    return parts


def latest_of_each(instances: Instances, axis: Axis) -> tuple[Ints | None, Ints]:
    """Of the occurrences of a primitive those that start last of all that end together, sorted by key and end.

    None if these are all, in their order. And all rows of which several start last together: of these only one was
    taken, whichever it is.
    """
    packed = instances.ends
    if bool((packed[1:] > packed[:-1]).all()):
        return None, EMPTY.ends
    order = axis.order(packed)
    order = np.arange(len(packed)) if order is None else order
    packed = packed.take(order)
    same = packed[1:] == packed[:-1]
    if not same.any():
        return order, EMPTY.ends
    order = np.lexsort((instances.starts, instances.ends))
    begins = instances.starts.take(order)
    last = np.append(~same, True)
    group = np.concatenate([[0], np.cumsum(~same)])
    at_top = begins == begins[last][group]
    counts = np.bincount(group, at_top)
    return order[last], order[at_top & (counts[group] > 1)]
