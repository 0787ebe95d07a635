"""This module takes a step of an algebra expression by columns: many events, all values of shared variables at once.

What is kept are the records of each slot (`detect_state`), in the order of the numbers that values of the shared
variables had in the step before (`detect_keys`), and of their ends: so they are seldom sorted, only merged with what
is new. A value that is new begins with the records of events that serve all values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ephemera.algebra.transform import Time
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.operators.detect_keys import SharedValues
from ephemera.engine.operators.detect_state import (
    BEGIN,
    END,
    HASH,
    Kept,
    Shape,
    column_of,
    narrowed,
    stored_parts,
    without,
)
from ephemera.kernels.columns import UNBOUND, Batch, Column, Ints, concat, constant, ints, stack
from ephemera.kernels.instances import EMPTY, Axis, Evaluation, Instances, latest_of_each, records
from ephemera.kernels.keys import meeting

Pick: TypeAlias = Callable[[int, Batch, Ints, Ints], Ints]
"""Of some rows of a primitive, in groups by numbers, of which each starts and ends together: the row that is picked."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What a step gives: the instances that are reported, what is kept, and what of that is new, as stored rows."""

    found: Batch
    kept: Kept
    added: Batch | None


class ColumnStep:
    """One step; `after` is the bound before it, `until` that behind it."""

    def __init__(  # noqa: PLR0913, PLR0917 - a step has these parts
        self, shape: Shape, kept: Kept, inputs: Sequence[Batch], pick: Pick, after: int, until: int
    ) -> None:
        self._shape, self._kept, self._inputs = shape, kept, inputs
        self._after, self._until = after, until
        self._unkeyed = kept.unkeyed or ()
        self._columns: dict[tuple[int, str], Column] = {}
        every = (*kept.keyed, *self._unkeyed, *inputs)
        self._axis = Axis([own for batch in every for own in _times(batch)])
        known = [batch for batch, keyed in zip(inputs, shape.keyed, strict=True) if keyed]
        self._keys = SharedValues(shape, [*kept.keyed, *known], len(kept.keyed), self._axis.room)
        self._axis.fit(self._keys.count)
        self._told = shape.own_reported
        """The primitives of which it matters which events are parts of an instance."""
        if not self._keys.is_plain:
            self._told |= {p for p in shape.reported if shape.keyed[p]}
        primitives = self._primitives(pick)
        slots = [self._held(number) for number in range(len(shape.limits))]
        evaluation = Evaluation(shape.expression, primitives, slots, self._axis)
        self._found = evaluation.found
        left = evaluation.records
        if shape.marks:
            left = [*left, records(slots[-1], self._came(primitives), self._axis)]
        self._left = [self._alive(*limit, found) for limit, found in zip(shape.limits, left, strict=True)]

    # ---- what comes in -------------------------------------------------------------------------------------

    def _primitives(self, pick: Pick) -> dict[int, Instances]:
        found: dict[int, Instances] = {}
        numbers = iter(self._keys.numbers[len(self._kept.keyed) :])
        count = self._keys.count
        for p, (batch, keyed) in enumerate(zip(self._inputs, self._shape.keyed, strict=True)):
            begins, ends = _times(batch)
            if keyed or not self._shape.shared:
                keys = next(numbers) if keyed else np.zeros(len(batch), dtype=np.int64)
                rows: Ints | None = None
            else:
                keys, rows = np.repeat(np.arange(count), len(batch)), np.tile(np.arange(len(batch)), count)
                begins, ends = begins[rows], ends[rows]
            found[p] = self._picked(p, batch, self._axis.instances(keys, begins, ends, {}), rows, pick)
        return found

    def _picked(self, p: int, batch: Batch, every: Instances, rows: Ints | None, pick: Pick) -> Instances:
        chosen, tied = latest_of_each(every, self._axis)
        one = every if chosen is None else every.take(chosen)
        if p not in self._told and not len(tied):
            return one
        of_all = np.arange(len(every)) if rows is None else rows
        places = of_all if chosen is None else of_all.take(chosen)
        if len(tied):
            groups, numbers = np.unique(one.ends.searchsorted(every.ends[tied]), return_inverse=True)
            places = places.copy()
            places[groups] = pick(p, batch, of_all[tied], numbers)
        return Instances(one.starts, one.ends, {p: places + self._first(p)} if p in self._told else {})

    def _came(self, primitives: Mapping[int, Instances]) -> Instances:
        """When events came that know the shared variables."""
        ends = np.concatenate([one.ends for p, one in primitives.items() if self._shape.keyed[p]])
        return Instances(ends, ends, {})

    def _held(self, number: int) -> Instances:
        """The records of a slot that were kept, for all keys."""
        batch, keys = self._kept.keyed[number], self._keys.numbers[number]
        begins, ends = _times(batch)
        rows: Ints | None = None
        if self._unkeyed and len(self._unkeyed[number]):
            others = self._unkeyed[number]
            served = np.append(self._keys.is_new.nonzero()[0], self._keys.count - 1)
            keys = np.concatenate([keys, np.repeat(served, len(others))])
            begins = np.concatenate([begins, np.tile(others[BEGIN], len(served))])
            ends = np.concatenate([ends, np.tile(others[END], len(served))])
            rows = np.concatenate([np.arange(len(batch)), len(batch) + np.tile(np.arange(len(others)), len(served))])
        told = self._told & self._shape.parts[number]
        if told and rows is None:
            rows = np.arange(len(batch))
        parts = {p: self._base(p, number) + rows for p in told if rows is not None}
        return self._axis.instances(keys, begins, ends, parts)

    # ---- rows of primitives: of the slots that keep it, and then those that come -----------------------------

    def _sources(self, p: int) -> list[Batch]:
        mine = [k for k, parts in enumerate(self._shape.parts) if p in parts]
        kept = [batch for k in mine for batch in (self._kept.keyed[k], *self._unkeyed[k : k + 1])]
        return [*kept, self._inputs[p]]

    def _first(self, p: int) -> int:
        """The place of the first row that comes."""
        return sum(map(len, self._sources(p)[:-1]))

    def _base(self, p: int, number: int) -> int:
        """The place of the first row of a slot."""
        mine = [k for k, parts in enumerate(self._shape.parts) if p in parts and k < number]
        return sum(len(self._kept.keyed[k]) + sum(map(len, self._unkeyed[k : k + 1])) for k in mine)

    def _own_values(self, p: int, variable: str, places: Ints) -> Column:
        """The values of a variable where the rows of a primitive are."""
        every = self._columns.get((p, variable))
        if every is None:
            every = concat([column_of(batch, variable) for batch in self._sources(p) if len(batch)] or [_NOTHING])
            self._columns[p, variable] = every
        if len(places) and places.min() < 0:
            every = concat([every, constant(UNBOUND, 1)])
            places = np.where(places < 0, len(every) - 1, places)
        return narrowed(every.take(places))

    # ---- what is left --------------------------------------------------------------------------------------

    def _alive(self, label: Time, within: Time, found: Instances) -> Instances:
        """The records of a slot that may still matter."""
        axis = self._axis
        if label is not None and len(found) > 1:
            followed = axis.are_of_one_key(found.ends[1:], found.ends[:-1])
            in_time = axis.until(found.ends[1:], self._until - label)
            if in_time is not None:
                followed &= in_time
            found = found.taken(np.append(~followed, True))
        if within is None:
            return found
        is_old = axis.until(found.starts, self._until - within)
        return EMPTY if is_old is None else found.taken(~is_old)

    def result(self, *, tells_added: bool = True) -> Step:
        """What the step gives."""
        left = [self._records(number, rows) for number, rows in enumerate(self._left)]
        added = self._added(left) if tells_added else None
        found = self._batch(self._found, self._told, range(len(self._inputs)))
        if not self._shape.serves_all:
            return Step(found, Kept(self._shape, tuple(left), None), added)
        waits = [self._keys_of(rows) == self._keys.count - 1 for rows in self._left]
        shared = self._shape.shared
        others = [
            Batch({n: c for n, c in batch.columns.items() if n not in shared}, len(batch)).take(mask)
            for batch, mask in zip(left, waits, strict=True)
        ]
        mine = tuple(batch.take(~mask) for batch, mask in zip(left, waits, strict=True))
        return Step(found, Kept(self._shape, mine, tuple(others) if any(map(len, others)) else None), added)

    def _added(self, left: Sequence[Batch]) -> Batch | None:
        """The records that are new."""
        new: list[Batch] = []
        for batch, rows in zip(left, self._left, strict=True):
            is_new = batch[END] > self._after
            if self._shape.serves_all:
                is_new |= self._keys.is_new[self._keys_of(rows)]
            new.append(batch.take(is_new))
        parts = [without(part, HASH) for part in stored_parts(self._shape, new)]
        return stack(parts) if parts else None

    def _keys_of(self, rows: Instances) -> Ints:
        return self._axis.keys_of(rows.ends)

    def _records(self, number: int, rows: Instances) -> Batch:
        """Records with the variables that may still be reported; nobody asks for those of mere times."""
        kept = self._shape.parts[number]
        return self._keys.with_hashes(self._batch(rows, self._told & kept, sorted(kept)), self._keys_of(rows))

    def _batch(self, rows: Instances, told: frozenset[int], shown: Sequence[int] | range) -> Batch:
        ends = ints(self._axis.times_of(rows.ends))
        columns = {BEGIN: ends if rows.starts is rows.ends else ints(self._axis.times_of(rows.starts)), END: ends}
        columns |= self._shared_values(rows, told)
        for p in shown:
            places = rows.parts.get(p)
            for variable in self._shape.own[p]:
                if p not in told or places is None:
                    columns[variable] = constant(UNBOUND, len(rows))
                else:
                    columns[variable] = self._own_values(p, variable, places)
        return Batch(columns, len(rows))

    def _shared_values(self, rows: Instances, told: frozenset[int]) -> dict[str, Column]:
        if not self._shape.shared:
            return {}
        found = self._keys.columns(self._keys_of(rows))
        if not self._keys.is_plain:
            found = {v: self._met(v, rows, told, c) for v, c in found.items()}
        return found

    def _met(self, variable: str, rows: Instances, told: frozenset[int], known: Column) -> Column:
        """What the values of a shared variable become where those of the parts of an instance meet."""
        met: Column | None = None
        for p in sorted(told):
            places = rows.parts.get(p)
            if places is not None and self._shape.keyed[p]:
                one = self._own_values(p, variable, places)
                met = one if met is None else meeting(met, one)
        if met is None:
            return known
        lacks = np.fromiter((v is UNBOUND for v in met.tolist()), dtype=np.bool_, count=len(met))
        if not lacks.any():
            return met
        both = concat([met, known])
        return narrowed(both.take(np.where(lacks, np.arange(len(met)) + len(met), np.arange(len(met)))))


_NOTHING = Column(np.empty(0, dtype=object), "any")


def _times(batch: Batch) -> tuple[Ints, Ints]:
    """When its rows begin and end; one array if they are points for certain."""
    return batch[BEGIN], batch[END]
