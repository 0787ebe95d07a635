"""This module takes a step of an algebra expression by columns: many events, all values of shared variables at once.

What is kept are the records of each slot (`algebra/detector`) as rows: the slot, when the instance starts and ends, the
shared variables, and what else is bound in it. Events that serve all values of the shared variables leave records of
their own, which belong to values that have not come yet; a value that is new begins with these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ephemera.algebra.attributes import hidden
from ephemera.algebra.detector import Detector, Slot
from ephemera.algebra.nodes import Primitive
from ephemera.algebra.transform import Time
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.kernels.columns import UNBOUND, Batch, Column, Ints, Mask, concat, constant, ints, stack
from ephemera.kernels.instances import Axis, Evaluation, Instances, Records, latest_of_each, records
from ephemera.kernels.keys import hash_columns, meeting, numbered, same

SLOT = hidden("slot")
BEGIN, END, REFERENCE = hidden("s"), hidden("e"), hidden("ref")

SPARSE = 1 << 12
"""So many numbers are given to few keys without counting them."""

Pick: TypeAlias = Callable[[int, Batch, Ints, Ints], Ints]
"""Of some rows of a primitive, in groups by numbers, of which each starts and ends together: the row that is picked."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The records that are kept."""

    keyed: Batch
    unkeyed: Batch
    """Those of values of the shared variables that have not come yet."""

    def __len__(self) -> int:
        return len(self.keyed) + len(self.unkeyed)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What a step gives: the instances that are reported, what is kept then, and what of that is new."""

    found: Batch
    kept: Kept
    added: Batch | None


class SharedHash(Exception):
    """Two values of the shared variables have the same hash: it is for those to go on who compare values."""


class ColumnStep:
    """One step; `after` is the bound before it, `until` that behind it."""

    def __init__(  # noqa: PLR0913, PLR0917 - a step has these parts
        self, plan: Detector, kept: Kept, inputs: Sequence[Batch], pick: Pick, after: int, until: int
    ) -> None:
        self._plan = plan
        self._kept = kept
        self._inputs = inputs
        self._after, self._until = after, until
        self._keyed = len(kept.keyed)
        self._first = len(kept)
        """The place of the first row of an input, behind what is kept."""
        self._number_keys()
        told = [p for p in plan.reported if plan.own[p] or (plan.keyed[p] and not self._is_plain)]
        self._told = frozenset(told) if plan.shared else frozenset(p for p in plan.reported if plan.own[p])
        slots = plan.slots
        primitives = self._primitives(pick)
        held = [self._held(number, slot) for number, slot in enumerate(slots)]
        marked = [self._held(len(slots), None)] if plan.marks else []
        evaluation = Evaluation(plan, primitives, [*held, *marked], self._count)
        self._found = evaluation.found
        left = evaluation.records + [records(one, self._came(primitives), evaluation.axis) for one in marked]
        self._left = [
            self._alive(label, within, found, number)
            for number, ((label, within), found) in enumerate(zip(plan.limits, left, strict=True))
        ]

    # ---- keys ----------------------------------------------------------------------------------------------

    def _number_keys(self) -> None:
        """Numbers the values of the shared variables; the last number is that of those that have not come yet."""
        shared, kept = self._plan.shared, self._kept.keyed
        parts = [kept, *(b for b, keyed in zip(self._inputs, self._plan.keyed, strict=True) if keyed)]
        total = sum(map(len, parts))
        if not shared:
            self._numbers: Ints = np.zeros(total, dtype=np.int64)
            self._count, self._is_new, self._is_plain = 1, np.zeros(1, dtype=np.bool_), True
            return
        self._values = {v: concat([_column(b, v) for b in parts]) for v in shared}
        columns = list(self._values.values())
        self._is_plain = all(c.kind in ("int", "text") for c in columns)
        narrow = None if self._plan.serves_all else _narrow_range(columns)
        if narrow is not None:
            self._numbers, count = narrow
            self._one_of: Ints = np.zeros(count, dtype=np.int64)
            self._one_of[self._numbers] = np.arange(total)
        else:
            numbering, self._numbers = numbered(hash_columns(columns, total))
            self._one_of = numbering.rows
            if not all(bool(same(c, c.take(self._one_of[self._numbers])).all()) for c in columns):
                raise SharedHash
        self._count = len(self._one_of) + self._plan.serves_all
        self._is_new = np.ones(self._count, dtype=np.bool_)
        self._is_new[self._numbers[: len(kept)]] = False
        if self._plan.serves_all:
            self._is_new[-1] = False

    # ---- what comes in -------------------------------------------------------------------------------------

    def _primitives(self, pick: Pick) -> dict[int, Instances]:
        found: dict[int, Instances] = {}
        begun = self._keyed
        for p, (batch, keyed) in enumerate(zip(self._inputs, self._plan.keyed, strict=True)):
            rows: Ints = np.arange(len(batch))
            if keyed:
                keys = self._numbers[begun : begun + len(batch)]
                begun += len(batch)
            elif self._plan.shared:
                keys, rows = np.repeat(np.arange(self._count), len(batch)), np.tile(rows, self._count)
            else:
                keys = np.zeros(len(batch), dtype=np.int64)
            every = Instances(keys, batch[BEGIN][rows], batch[END][rows], {p: rows})
            found[p] = self._picked(p, batch, every, pick)
        return found

    def _picked(self, p: int, batch: Batch, every: Instances, pick: Pick) -> Instances:
        axis = Axis(self._count, [every.begins, every.ends])
        chosen, tied = latest_of_each(every, axis)
        one = every.take(chosen)
        rows = one.parts[p].copy()
        if len(tied):
            places = axis.of(one.keys, one.ends).searchsorted(axis.of(every.keys[tied], every.ends[tied]))
            groups, numbers = np.unique(places, return_inverse=True)
            rows[groups] = pick(p, batch, every.parts[p][tied], numbers)
        parts = {p: rows + self._first} if p in self._told else {}
        return Instances(one.keys, one.begins, one.ends, parts)

    def _came(self, primitives: Mapping[int, Instances]) -> Instances:
        """When events came that know the shared variables."""
        known = [one for p, one in primitives.items() if self._plan.keyed[p]]
        ends = np.concatenate([one.ends for one in known])
        return Instances(np.concatenate([one.keys for one in known]), ends, ends, {})

    def _held(self, number: int, slot: Slot | None) -> Instances:
        """The records of a slot that were kept, for all keys; without a slot when the last events of each came."""
        keyed, unkeyed = self._kept.keyed, self._kept.unkeyed
        rows = (keyed[SLOT] == number).nonzero()[0]
        keys, begins, ends = self._numbers[rows], keyed[BEGIN][rows], keyed[END][rows]
        if self._plan.serves_all:
            others = (unkeyed[SLOT] == number).nonzero()[0]
            served = np.append(self._is_new.nonzero()[0], self._count - 1)
            keys = np.concatenate([keys, np.repeat(served, len(others))])
            begins = np.concatenate([begins, np.tile(unkeyed[BEGIN][others], len(served))])
            ends = np.concatenate([ends, np.tile(unkeyed[END][others], len(served))])
            rows = np.concatenate([rows, np.tile(others + self._keyed, len(served))])
        told = () if slot is None or slot.is_time else self._told & {p.input for p in find(slot.operand, Primitive)}
        return Instances(keys, begins, ends, dict.fromkeys(told, rows))

    # ---- what is left --------------------------------------------------------------------------------------

    def _alive(self, label: Time, within: Time, found: Records, number: int) -> tuple[int, Instances]:
        """The records of a slot that may still matter."""
        rows = found.rows
        alive = np.ones(len(rows), dtype=np.bool_)
        if label is not None and len(rows):
            followed = rows.keys[1:] == rows.keys[:-1]
            alive[:-1] = ~(followed & (rows.ends[1:] <= self._until - label))
        if within is not None:
            alive &= rows.begins > self._until - within
        return number, rows if alive.all() else rows.take(alive)

    def result(self) -> Step:
        """What the step gives."""
        found = self._batch(self._found, self._plan.reported)
        slots = self._plan.slots
        parts: list[Batch] = []
        others: list[Batch] = []
        added: list[Batch] = []
        for number, rows in self._left:
            if not len(rows):
                continue
            is_new = (rows.ends > self._after) | self._is_new[rows.keys]
            made = self._records(rows, is_time=number >= len(slots) or slots[number].is_time)
            made = made.with_columns({SLOT: ints(np.full(len(rows), number))})
            if self._plan.serves_all:
                waits = rows.keys == self._count - 1
                others.append(made.take(waits))
                parts.append(made.take(~waits))
            else:
                parts.append(made)
            if is_new.any():
                added.append(made.take(is_new))
        empty = empty_rows(self._plan)
        new = stack(added) if added else None
        kept = Kept(stacked(parts, empty), stacked([_without_keys(b, self._plan) for b in others], empty))
        return Step(found, kept, new)

    def _records(self, rows: Instances, *, is_time: bool) -> Batch:
        """Records with the variables that may still be reported; nobody asks for those of mere times."""
        told = frozenset[int]() if is_time else self._plan.reported
        batch = self._batch(rows, told, self._plan.held)
        if not is_time:
            return batch
        names = {v: _column(self._inputs[p], v) for p in self._plan.held for v in self._plan.own[p]}
        fillers: dict[str, int | float | str] = {
            "int": 0,
            "float": 0.0,
            "text": "",
        }  # so that the columns stay of one kind
        return batch.with_columns({v: constant(fillers.get(c.kind, UNBOUND), len(rows)) for v, c in names.items()})

    def _batch(self, rows: Instances, told: frozenset[int], shown: Iterable[int] | None = None) -> Batch:
        columns: dict[str, Column] = {BEGIN: ints(rows.begins), END: ints(rows.ends)}
        columns |= self._shared_values(rows, told)
        for p in range(len(self._inputs)) if shown is None else shown:
            places = rows.parts.get(p)
            for variable in self._plan.own[p]:
                if p not in told or places is None:
                    columns[variable] = constant(UNBOUND, len(rows))
                else:
                    columns[variable] = self._own_values(p, variable, places)
        return Batch(columns, len(rows))

    def _own_values(self, p: int, variable: str, places: Ints) -> Column:
        """The values of a variable where the rows of a primitive are."""
        new = _column(self._inputs[p], variable)
        old = (places < self._first).nonzero()[0]
        if not len(old):
            return new.take(places - self._first)
        kept = concat([_column(self._kept.keyed, variable), _column(self._kept.unkeyed, variable)])
        asked = places[old]
        if len(kept) and asked.min() >= 0:
            few = _narrowed(kept.take(asked))
            if len(old) == len(places):
                return few
            if few.kind == new.kind and few.kind != "any":  # most rows are new: those that are not are put among them
                values = new.values.take(np.maximum(places - self._first, 0))
                values[old] = few.values
                return Column(values, few.kind)
        every = concat([kept, new, constant(UNBOUND, 1)])
        return _narrowed(every.take(np.where(places < 0, len(every) - 1, places)))

    def _shared_values(self, rows: Instances, told: frozenset[int]) -> dict[str, Column]:
        if not self._plan.shared:
            return {}
        real = np.minimum(rows.keys, len(self._one_of) - 1) if len(self._one_of) else rows.keys
        found: dict[str, Column] = {}
        for variable, values in self._values.items():
            if not len(self._one_of):
                found[variable] = constant(UNBOUND, len(rows))
                continue
            found[variable] = values.take(self._one_of[real])
            if not self._is_plain:
                found[variable] = self._met(variable, rows, told, found[variable])
            if self._plan.serves_all:
                waits = rows.keys >= len(self._one_of)
                if waits.any():
                    every = concat([found[variable], constant(UNBOUND, 1)])
                    found[variable] = every.take(np.where(waits, len(rows), np.arange(len(rows))))
        return found

    def _met(self, variable: str, rows: Instances, told: frozenset[int], known: Column) -> Column:
        """What the values of a shared variable become where those of the parts of an instance meet."""
        met: Column | None = None
        for p in sorted(told):
            places = rows.parts.get(p)
            if places is not None and self._plan.keyed[p]:
                one = self._own_values(p, variable, places)
                met = one if met is None else meeting(met, one)
        if met is None:
            return known
        lacks = np.fromiter((v is UNBOUND for v in met.tolist()), dtype=np.bool_, count=len(met))
        if not lacks.any():
            return met
        both = concat([met, known])
        return _narrowed(both.take(np.where(lacks, np.arange(len(met)) + len(met), np.arange(len(met)))))


def _narrow_range(columns: Sequence[Column]) -> tuple[Ints, int] | None:
    """Numbers for whole numbers that lie close together, and how many there are; some may be nobody's."""
    (one, *others) = columns
    if others or one.kind != "int" or not len(one):
        return None
    first = int(one.values.min())
    span = int(one.values.max()) - first + 1
    return (np.asarray(one.values, dtype=np.int64) - first, span) if span <= max(len(one), SPARSE) else None


def _column(batch: Batch, name: str) -> Column:
    return batch.columns[name] if name in batch.columns else constant(UNBOUND, len(batch))


def _narrowed(c: Column) -> Column:
    """A column of the narrowest kind, as columns of values that were read are."""
    if c.kind != "any":
        return c
    kinds = {type(v) for v in c.values}
    if kinds in ({int}, {float}, {str}):
        kind, dtype = {int: ("int", np.int64), float: ("float", np.float64), str: ("text", object)}[kinds.pop()]
        return Column(c.values.astype(dtype), kind)  # type: ignore[arg-type]
    return c


def _without_keys(batch: Batch, plan: Detector) -> Batch:
    return Batch({n: c for n, c in batch.columns.items() if n not in plan.shared}, len(batch))


def stacked(parts: Sequence[Batch], empty: Batch) -> Batch:
    """All rows of some batches; what is empty leaves columns of their kind."""
    filled = [part for part in parts if len(part)]
    return stack(filled) if filled else empty


def empty_rows(plan: Detector) -> Batch:
    """No records."""
    names = [SLOT, BEGIN, END]
    columns: Mapping[str, Column] = {name: ints(np.empty(0, dtype=np.int64)) for name in names}
    variables = [*plan.shared, *(v for p in plan.held for v in plan.own[p])]
    return Batch({**columns, **{v: Column(np.empty(0, dtype=object), "any") for v in variables}}, 0)


def mask_of(batch: Batch, plan: Detector) -> Mask:
    """Which of some records belong to values of the shared variables that have come."""
    if not plan.shared or not plan.serves_all:
        return np.ones(len(batch), dtype=np.bool_)
    if plan.shared[0] not in batch.columns:
        return np.zeros(len(batch), dtype=np.bool_)
    values = batch.columns[plan.shared[0]].tolist()
    return np.fromiter((v is not UNBOUND for v in values), dtype=np.bool_, count=len(batch))
