"""This module finds the instances of algebra expressions by columns: figures 2 and 4 of the paper for all keys at once.

A stream of instances has one row for each key and end, sorted by them; a key is a value of the shared variables, as a
number. Of a stream its *records* are the rows that start later than all before them with their key, so of records both
starts and ends ascend, and which of them starts last before a time is a binary search. What was kept of earlier steps
are records, too, that stand before those of the step.

An instance refers to its parts by rows: for each primitive whose variables are reported a row of what was kept or came,
or -1 for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np

from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import Composition, Detected, Limit, Never, Primitive
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Ints, Mask
from ephemera.kernels.keys import sorted_by

LARGEST = 1 << 62
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """Some instances of an expression."""

    keys: Ints
    begins: Ints
    ends: Ints
    parts: Mapping[int, Ints]
    """For each primitive that is told of where its rows are."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Ints | Mask) -> Instances:
        parts = {p: own[rows] for p, own in self.parts.items()}
        return Instances(self.keys[rows], self.begins[rows], self.ends[rows], parts)


class Axis:
    """Keys and times as one number each, in the order of keys and then of times."""

    def __init__(self, keys: int, times: Sequence[Ints]) -> None:
        """All times that are asked for are among these."""
        filled = [own for own in times if len(own)]
        self._first = min((int(own.min()) for own in filled), default=0)
        last = max((int(own.max()) for own in filled), default=0)
        self._width = last - self._first + 1
        self._known: Ints | None = None
        if self._width * (keys + 1) >= LARGEST:
            self._known = np.unique(np.concatenate(filled))
            self._width = len(self._known)
        self.keys = keys

    def of(self, keys: Ints, times: Ints) -> Ints:
        since = times - self._first if self._known is None else self._known.searchsorted(times)
        return keys * self._width + since

    def order(self, instances: Instances) -> tuple[Ints | None, Ints]:
        """The rows by key and end, None if they are, and these as numbers then."""
        packed = self.of(instances.keys, instances.ends)
        if _ascends(packed):
            return None, packed
        order = sorted_by(instances.keys, self.keys)
        if not _ascends(packed[order]):
            order = order[np.argsort(packed[order], kind="stable")]
        return order, packed[order]


def _ascends(values: Ints) -> bool:
    return len(values) < 2 or bool((values[1:] >= values[:-1]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records of a stream, sorted by key and end, and both as numbers."""

    rows: Instances
    packed: Ints

    def before(self, axis: Axis, keys: Ints, times: Ints, *, included: bool) -> Ints:
        """For each key and time the record that starts last of those that end before it, or with it; -1 is none."""
        places = self.packed.searchsorted(axis.of(keys, times), side="right" if included else "left") - 1
        if not len(self.rows):
            return places
        return np.where((places >= 0) & (self.rows.keys[places] == keys), places, NONE)


def records(kept: Instances, new: Instances, axis: Axis) -> Records:
    """The records of what was kept and what is new."""
    both = _stacked([kept, new])
    order, packed = axis.order(both)
    rows = both if order is None else both.take(order)
    starts = axis.of(rows.keys, rows.begins)
    is_record = np.ones(len(rows), dtype=np.bool_)
    is_record[1:] = starts[1:] > np.maximum.accumulate(starts)[:-1]
    if is_record.all():
        return Records(rows, packed)
    chosen = is_record.nonzero()[0]
    return Records(rows.take(chosen), packed[chosen])


def _stacked(several: Sequence[Instances]) -> Instances:
    filled = [one for one in several if len(one)]
    if len(filled) == 1:
        one = filled[0]
        return Instances(one.keys, one.begins, one.ends, _parts(one, _all_parts(several)))
    if not filled:
        return several[0]
    names = _all_parts(several)
    parts = [_parts(one, names) for one in filled]
    return Instances(
        np.concatenate([one.keys for one in filled]),
        np.concatenate([one.begins for one in filled]),
        np.concatenate([one.ends for one in filled]),
        {p: np.concatenate([own[p] for own in parts]) for p in names},
    )


def _all_parts(several: Sequence[Instances]) -> list[int]:
    return sorted({p for one in several for p in one.parts})


def _parts(one: Instances, names: Sequence[int]) -> dict[int, Ints]:
    return {p: one.parts[p] if p in one.parts else np.full(len(one), NONE, dtype=np.int64) for p in names}


class Evaluation:
    """The instances of an expression that end in a step, and the records that are left of it."""

    def __init__(
        self, plan: Detector, primitives: Mapping[int, Instances], kept: Sequence[Instances], keys: int
    ) -> None:
        """`primitives` are the occurrences of each, one for a key and an end; `kept` the records of each slot."""
        self._primitives = primitives
        self._kept = kept
        times = [own for one in (*primitives.values(), *kept) for own in (one.begins, one.ends)]
        self.axis = Axis(keys, times)
        self.records: list[Records] = []
        """For each slot."""
        self.found = self._of(plan.expression)

    def _of(self, e: Detected) -> Instances:
        match e:
            case Primitive(number, _):
                return self._primitives[number]
            case Never():
                none = np.empty(0, dtype=np.int64)
                return Instances(none, none, none, {})
            case Limit(operand, length):
                one = self._of(operand)
                return one.take(one.ends - one.begins <= length)
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

    def _slot(self, new: Instances) -> Records:
        """The records of the next slot."""
        found = records(self._kept[len(self.records)], new, self.axis)
        self.records.append(found)
        return found

    def _either(self, one: Instances, other: Instances) -> Instances:
        if not len(one) or not len(other):
            return _stacked([one, other])
        both = _stacked([one, other])
        order, packed = self.axis.order(both)  # rows that are equal stay in their order: left before right
        if order is None:
            order = np.arange(len(both))
        same = packed[1:] == packed[:-1]
        starts = both.begins[order]
        picked = np.ones(len(order), dtype=np.bool_)
        picked[:-1] &= ~(same & (starts[:-1] <= starts[1:]))
        picked[1:] &= ~(same & (starts[:-1] > starts[1:]))
        return both.take(order[picked])

    def _without(self, one: Instances, other: Instances) -> Instances:
        forbidden = self._slot(Instances(other.keys, other.begins, other.ends, {}))
        if not len(one) or not len(forbidden.rows):
            return one
        last = forbidden.before(self.axis, one.keys, one.ends, included=True)
        return one.take((last < 0) | (forbidden.rows.begins[last] < one.begins))

    def _then(self, one: Instances, other: Instances) -> Instances:
        firsts = self._slot(one)
        names = _all_parts([one, firsts.rows, other])
        first = firsts.before(self.axis, other.keys, other.begins, included=False)
        rows = (first >= 0).nonzero()[0]
        return _joined(firsts.rows, first[rows], other, rows, names)

    def _both(self, one: Instances, other: Instances) -> Instances:
        lefts, rights = self._slot(one), self._slot(other)
        names = _all_parts([lefts.rows, rights.rows])
        found: list[Instances] = []
        # An instance on the left that starts no earlier than one on the right that ends with it, and the last there.
        for new, others, is_left in ((one, rights, True), (other, lefts, False)):
            last = others.before(self.axis, new.keys, new.ends, included=True)
            beside = self._beside(new, other if is_left else one)
            rows = ((last >= 0) & (beside <= new.begins if is_left else beside < new.begins)).nonzero()[0]
            found.append(_joined(others.rows, last[rows], new, rows, names))
        both = _stacked(found)
        order, _ = self.axis.order(both)
        return both if order is None else both.take(order)

    def _beside(self, one: Instances, other: Instances) -> Ints:
        """For each row when what ends with it in another stream starts; far back if nothing does."""
        far = np.full(len(one), -LARGEST, dtype=np.int64)
        if not len(one) or not len(other):
            return far
        packed = self.axis.of(other.keys, other.ends)
        asked = self.axis.of(one.keys, one.ends)
        places = np.minimum(packed.searchsorted(asked), len(packed) - 1)
        return np.where(packed[places] == asked, other.begins[places], far)


def _joined(one: Instances, rows: Ints, other: Instances, others: Ints, names: Sequence[int]) -> Instances:
    """Rows of two streams side by side."""
    mine, yours = one.take(rows), other.take(others)
    parts: dict[int, Ints] = {}
    for p in names:
        left, right = mine.parts.get(p), yours.parts.get(p)
        if left is None or right is None:
            some = right if left is None else left
            parts[p] = np.full(len(rows), NONE, dtype=np.int64) if some is None else some
        else:
            parts[p] = np.where(right >= 0, right, left)
    return Instances(yours.keys, np.minimum(mine.begins, yours.begins), np.maximum(mine.ends, yours.ends), parts)


def latest_of_each(instances: Instances, axis: Axis) -> tuple[Ints, Ints]:
    """Of the occurrences of a primitive those that start last of all that end together, sorted by key and end.

    And all rows of which several start last together: of these only one was taken, whichever it is.
    """
    packed = axis.of(instances.keys, instances.ends)
    if len(packed) < 2 or bool((packed[1:] > packed[:-1]).all()):
        return np.arange(len(packed)), np.empty(0, dtype=np.int64)
    order = sorted_by(instances.keys, axis.keys)
    if not _ascends(packed[order]) or (packed[order][1:] == packed[order][:-1]).any():
        order = np.lexsort((instances.begins, packed))
    packed, begins = packed[order], instances.begins[order]
    same = packed[1:] == packed[:-1]
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = ~same
    if last.all():
        return order, np.empty(0, dtype=np.int64)
    group = np.concatenate([[0], np.cumsum(~same)])
    at_top = begins == begins[last][group]
    counts = np.bincount(group, at_top)
    return order[last], order[at_top & (counts[group] > 1)]
