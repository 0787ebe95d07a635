"""This module says by columns what is kept for an algebra expression: the records of each slot of its detector.

Each slot has a batch of its own: when its records start and end, the shared variables, and what else is bound in them
that may be reported. In stored state all are rows of one batch, which says the slot of each. Events that serve all
values of the shared variables leave records of their own, which belong to values that have not come yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

import numpy as np

from ephemera.algebra.attributes import Variable, hidden
from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import Primitive
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.kernels.columns import UNBOUND, Batch, Column, Hashes, Mask, constant, ints, stack
from ephemera.kernels.keys import hash_columns

SLOT = hidden("slot")
BEGIN, END, REFERENCE = hidden("s"), hidden("e"), hidden("ref")
HASH = hidden("hash")
"""The hash of the shared variables, where it is known; those of records that have it were told apart by it before."""

_FILLERS: dict[str, int | float | str] = {"int": 0, "float": 0.0, "text": ""}
"""What stands where nobody asks for a value, so that the columns of stored rows stay of one kind."""


class Shape:
    """What each step asks of a detector, found once."""

    def __init__(self, plan: Detector) -> None:
        self.expression, self.shared = plan.expression, plan.shared
        self.keyed, self.own, self.reported = plan.keyed, plan.own, plan.reported
        self.limits, self.marks, self.serves_all = plan.limits, plan.marks, plan.serves_all
        self.parts: tuple[frozenset[int], ...] = (
            tuple(
                frozenset() if slot.is_time else plan.held.intersection(p.input for p in find(slot.operand, Primitive))
                for slot in plan.slots
            )
            + (frozenset(),) * plan.marks
        )
        """For each slot, and for when values came, the primitives that are told of in its records."""
        self.own_reported = frozenset(p for p in plan.reported if plan.own[p])
        self.held_variables = [v for p in sorted(plan.held) for v in plan.own[p]]
        self.empty = no_rows([SLOT, BEGIN, END], [*plan.shared, *self.held_variables])
        """No stored rows."""
        self.nothing = Kept(self, tuple(self._none(k) for k in range(len(self.limits))), None)

    def _none(self, slot: int) -> Batch:
        return no_rows([BEGIN, END], [*self.shared, *self.variables(slot)])

    def variables(self, slot: int) -> list[Variable]:
        """What the records of a slot keep besides the shared variables."""
        return [v for p in sorted(self.parts[slot]) for v in self.own[p]]


def no_rows(numbers: Sequence[str], others: Sequence[str]) -> Batch:
    """A batch without rows."""
    none = Column(np.empty(0, dtype=object), "any")
    return Batch({**{n: ints(np.empty(0, dtype=np.int64)) for n in numbers}, **dict.fromkeys(others, none)}, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The records that are kept, slot by slot; it never changes."""

    shape: Shape
    keyed: tuple[Batch, ...]
    unkeyed: tuple[Batch, ...] | None
    """Those of values of the shared variables that have not come yet; None if there are none."""

    def __len__(self) -> int:
        return sum(map(len, self.keyed)) + sum(map(len, self.unkeyed or ()))

    @property
    def nbytes(self) -> int:
        """About how much room they take."""
        return sum(batch.nbytes for batch in (*self.keyed, *(self.unkeyed or ())))

    def stored(self, *, with_hashes: bool = False) -> Batch:
        """All of them as rows of one batch; with their hashes if all have them and somebody wants them."""
        parts = [part for slots in (self.keyed, self.unkeyed or ()) for part in stored_parts(self.shape, slots)]
        if with_hashes and all(HASH in part.columns for part in parts):
            return stack(parts) if parts else self.shape.empty
        parts = [without(part, HASH) for part in parts]
        return stack(parts) if parts else self.shape.empty

    def and_more(self, others: Kept) -> Kept:
        """These and others."""
        pairs = zip(self.keyed, others.keyed, strict=True)
        unkeyed = self.unkeyed or others.unkeyed
        if self.unkeyed is not None and others.unkeyed is not None:
            unkeyed = tuple(starmap(_both, zip(self.unkeyed, others.unkeyed, strict=True)))
        return Kept(self.shape, tuple(starmap(_both, pairs)), unkeyed)


def stored_parts(shape: Shape, slots: Sequence[Batch]) -> list[Batch]:
    """The records of slots as rows that say their slot."""
    kinds = {v: c.kind for batch in slots if len(batch) for v, c in batch.columns.items()}
    found: list[Batch] = []
    for number, batch in enumerate(slots):
        if not len(batch):
            continue
        is_time = not shape.parts[number]
        fillers: dict[str, Column] = {
            v: constant(_FILLERS.get(kinds.get(v, "any"), UNBOUND), len(batch)) for v in shape.held_variables if is_time
        }
        found.append(batch.with_columns({SLOT: ints(np.full(len(batch), number)), **fillers}))
    return found


def of_stored(shape: Shape, batch: Batch) -> Kept:
    """Records from rows that say their slot."""
    if not len(batch):
        return shape.nothing
    mine = _is_keyed(shape, batch)
    keyed = _slots(shape, batch if mine is None else batch.take(mine), shape.shared)
    unkeyed = None if mine is None or mine.all() else _slots(shape, batch.take(~mine), ())
    return Kept(shape, keyed, unkeyed)


def _slots(shape: Shape, batch: Batch, shared: Sequence[Variable]) -> tuple[Batch, ...]:
    found: list[Batch] = []
    slots = batch[SLOT]
    for number in range(len(shape.limits)):
        rows = (slots == number).nonzero()[0]
        names = [n for n in (BEGIN, END, HASH, *shared, *shape.variables(number)) if n in batch.columns]
        mine = Batch({n: batch.columns[n] for n in names}, len(batch)).take(rows)
        found.append(Batch({n: narrowed(c) for n, c in mine.columns.items()}, len(mine)))
    return tuple(found)


def _is_keyed(shape: Shape, batch: Batch) -> Mask | None:
    """Which of some stored rows belong to values of the shared variables that have come; None if all do."""
    if not shape.serves_all:
        return None
    if shape.shared[0] not in batch.columns:
        return np.zeros(len(batch), dtype=np.bool_)
    values = batch.columns[shape.shared[0]].tolist()
    return np.fromiter((v is not UNBOUND for v in values), dtype=np.bool_, count=len(batch))


def _both(one: Batch, other: Batch) -> Batch:
    if len(one) and len(other):
        return stack([without(one, HASH), without(other, HASH)])
    return one if len(one) else other


def without(batch: Batch, name: str) -> Batch:
    """The batch without a column."""
    if name not in batch.columns:
        return batch
    return Batch({n: c for n, c in batch.columns.items() if n != name}, len(batch))


def hashes_of(shared: Sequence[Variable], batch: Batch) -> Hashes:
    """What values of the shared variables are told apart by."""
    if HASH in batch.columns:
        return batch[HASH].view(np.uint64)
    return hash_columns([column_of(batch, v) for v in shared], len(batch))


def with_hashes(batch: Batch, hashes: Hashes) -> Batch:
    """The batch with these hashes."""
    return batch.with_columns({HASH: Column(hashes.view(np.int64), "int")})


def narrowed(c: Column) -> Column:
    """A column of the narrowest kind, as columns of values that were read are."""
    if c.kind != "any":
        return c
    kinds = {type(v) for v in c.values}
    if kinds in ({int}, {float}, {str}):
        kind, dtype = {int: ("int", np.int64), float: ("float", np.float64), str: ("text", object)}[kinds.pop()]
        return Column(c.values.astype(dtype), kind)  # type: ignore[arg-type]
    return c


def column_of(batch: Batch, name: str) -> Column:
    """A column; one that is not there has no values."""
    return batch.columns[name] if name in batch.columns else constant(UNBOUND, len(batch))
