"""This module detects algebra expressions step by step: from what ends in a step, and what is kept of earlier ones.

What is kept are records (`algebra/detector`). Many events are taken by columns (`detect_columns`), a few row by row
(`detect_rows`); the records are rows as long as few events come, and columns else. In whatever portions the events
come, the same is found, since all that end together are there when their step is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ephemera.algebra.attributes import EVENT, as_written, begin, end, reference
from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import Primitive
from ephemera.base.tree import find
from ephemera.engine.operators.detect_columns import ColumnStep
from ephemera.engine.operators.detect_kept import KeptRecords, deaths_by
from ephemera.engine.operators.detect_keys import SharedHash
from ephemera.engine.operators.detect_rows import UNKEYED, Instance, RowStep
from ephemera.engine.operators.detect_state import (
    BEGIN,
    END,
    REFERENCE,
    SLOT,
    Kept,
    Shape,
    hashes_of,
    of_stored,
    with_hashes,
)
from ephemera.kernels.columns import UNBOUND, Batch, Column, Ints, ints, stack
from ephemera.kernels.history import FAR, History, Run
from ephemera.kernels.keys import all_distinct, hash_columns
from ephemera.kernels.tail import Row, of_rows
from ephemera.physical.nodes import DetectionPlan, Leaf
from ephemera.terms.events import Event
from ephemera.terms.values import key

FEW = 64
"""No more events than these are taken row by row, if the records are columns or few."""
SMALL = 4096
"""So few records become rows at once, when few events come."""
PATIENCE = 4
"""More of them do when few events have come so often."""

MUCH = 64
"""With so many times fewer events than there are records, only the records of their values are touched."""
MUCH_TO_COUNT = 8
"""The same where values are no numbers, which are merged by themselves."""
MOST_SERVED = 1 << 22
"""Events that serve all values are taken in portions of which no more rows are made."""


class Pool(Protocol):
    """The events of this step."""

    def find(self, references: Collection[int], /) -> Mapping[int, Event]:
        """Some of them by their references."""
        ...

    def ranks(self, references: Ints, /) -> Ints | None:
        """Where some that have the same time stand in the total order; None if columns do not tell."""
        ...


class Detecting:
    """The operator of an algebra expression: it owns its records, and finds the instances that end in a step."""

    def __init__(self, name: str, plan: DetectionPlan, detector: Detector, histories: Mapping[str, History]) -> None:
        self._name = name
        self._plan = detector
        self._inputs = [_Input(leaf, detector, p) for p, leaf in enumerate(plan.inputs)]
        used = {p.input for p in find(detector.expression, Primitive)}
        self._histories = [histories[leaf.source] if p in used else None for p, leaf in enumerate(plan.inputs)]
        """None for an input of which the expression, made smaller, has nothing left."""
        self._read = [(p, history) for p, history in enumerate(self._histories) if history is not None]
        self._shape = Shape(detector)
        self._kept = self._shape.nothing
        self._apart = KeptRecords(detector.shared, self._deaths, self._shape.empty)
        """The records by columns as long as much fewer events come than there are records."""
        self._rows: RowStep | None = RowStep(detector)
        """The records as rows, if they are rows."""
        self._few_steps = 0
        self._added: list[Batch] | None = None
        """The records that were added since somebody asked for that; None if nobody ever did."""
        self._starts, self._ends = begin(name), end(name)
        self._is_alone = not self._shape.serves_all
        """Whether an event counts for one value of the shared variables only."""

    def __len__(self) -> int:
        return self._rows.rows if self._rows is not None else len(self._kept) + len(self._apart)

    @property
    def nbytes(self) -> int:
        """About how much room the records take, if they are columns."""
        return 0 if self._rows is not None else self._kept.nbytes + self._apart.nbytes

    # ---- a step --------------------------------------------------------------------------------------------

    def step(self, seen: int, after: int, until: int, events: Pool) -> list[Row] | Batch | None:
        """The instances that end after one time and until another, from what came after a tick."""
        few: dict[int, list[Row]] = {}
        count = 0
        for p, history in self._read:
            rows = history.few_since(seen)
            if rows is None:
                count = FAR
                break
            if rows:
                few[p] = rows
                count += len(rows)
        if not count:
            if self._rows is not None:
                self._rows.expire(until)
            return None
        if count <= FEW or (self._rows is not None and count < FAR and count * 5 < len(self)):
            self._few_steps += 1
            if self._rows is not None or len(self) <= SMALL or self._few_steps >= PATIENCE:
                if count == 1 and self._is_alone and self._added is None:
                    return self._by_one_row(few, until)
                return self._by_rows([few.get(p, []) for p in range(len(self._inputs))], after, until, events)
        else:
            self._few_steps = 0
        inputs = [
            one.columns([run.batch for run in history.flush() if run.step > seen] if history is not None else [])
            for one, history in zip(self._inputs, self._histories, strict=True)
        ]
        return self._by_columns(inputs, after, until, events)

    def _by_columns(self, inputs: Sequence[Batch], after: int, until: int, events: Pool) -> list[Row] | Batch | None:
        def pick(p: int, batch: Batch, rows: Ints, groups: Ints) -> Ints:
            return self._picked(p, batch, rows, groups, events)

        halves = self._halves(inputs, after, until)
        if halves:
            found = [one for part in halves if (one := self._by_columns(*part, events)) is not None]
            batches = [of_rows(one) if isinstance(one, list) else one for one in found]
            return stack(batches) if batches else None
        count = sum(map(len, inputs))
        is_apart = self._is_alone and bool(self._plan.shared) and 0 < self._much(inputs) * count < len(self)
        if is_apart:
            inputs = [with_hashes(batch, hashes_of(self._plan.shared, batch)) for batch in inputs]
        kept = self._touched(inputs, until) if is_apart else self._as_columns()
        try:
            step = ColumnStep(self._shape, kept, inputs, pick, after, until)
        except SharedHash:
            self._give_back(kept, is_apart=is_apart)
            return self._by_rows([batch.rows() for batch in inputs], after, until, events, are_named=True)
        done = step.result(tells_added=self._added is not None)
        self._give_back(done.kept, is_apart=is_apart)
        if self._added is not None and done.added is not None:
            self._added.append(done.added)
        return done.found.renamed({BEGIN: self._starts, END: self._ends}) if len(done.found) else None

    def _much(self, inputs: Sequence[Batch]) -> int:
        are_numbers = all(b.columns[v].kind == "int" for b in inputs if len(b) for v in self._plan.shared)
        return MUCH if are_numbers and len(self._plan.shared) == 1 else min(MUCH, MUCH_TO_COUNT)

    def _touched(self, inputs: Sequence[Batch], until: int) -> Kept:
        """The records of the values that come; those of others stay apart."""
        if self._rows is not None or len(self._kept):
            self._apart.put(self._as_columns().stored(with_hashes=True))
            self._kept = self._shape.nothing
        hashes = np.concatenate([hashes_of(self._plan.shared, batch) for batch in inputs])
        return of_stored(self._shape, self._apart.take(hashes, until))

    def _give_back(self, kept: Kept, *, is_apart: bool) -> None:
        if is_apart:
            self._apart.put(kept.stored(with_hashes=True))
        else:
            self._kept = kept

    def _halves(self, inputs: Sequence[Batch], after: int, until: int) -> list[tuple[Sequence[Batch], int, int]]:
        """A step as two, one after the other, if very many rows would be made of events that serve all values."""
        if self._is_alone:
            return []
        serving = sum(len(b) for b, own in zip(inputs, self._inputs, strict=True) if not own.is_keyed)
        keys = len(self) + sum(len(b) for b, own in zip(inputs, self._inputs, strict=True) if own.is_keyed)
        ends = np.concatenate([batch[END] for batch in inputs])
        if serving * keys <= MOST_SERVED or not len(ends) or ends.min() == ends.max():
            return []
        middle = int(np.sort(ends)[(len(ends) - 1) // 2])
        middle = middle if middle < ends.max() else int(ends[ends < ends.max()].max())
        early = [batch.take(batch[END] <= middle) for batch in inputs]
        late = [batch.take(batch[END] > middle) for batch in inputs]
        return [(early, after, middle), (late, middle, until)]

    def _picked(self, p: int, batch: Batch, rows: Ints, groups: Ints, events: Pool) -> Ints:
        """Of rows that start and end together, group by group, the greatest in the total order."""
        references = batch[REFERENCE][rows]
        some_of, which = np.unique(references, return_inverse=True)
        ranks = events.ranks(some_of) if all_distinct(groups * len(some_of) + which) else None
        if ranks is not None:
            order = np.lexsort((ranks[which], groups))
            last = np.append(groups[order][1:] != groups[order][:-1], True)
            picked: Ints = rows[order[last]]
            return picked
        known = events.find(set(references.tolist()))
        some = batch.take(rows).rows()
        best: dict[int, tuple[Any, int]] = {}
        for row, group, one in zip(rows.tolist(), groups.tolist(), some, strict=True):
            place = (_place(one, known, self._inputs[p].variables), row)
            if group not in best or best[group][0] < place[0]:
                best[group] = place
        return np.array([best[group][1] for group in range(len(best))], dtype=np.int64)

    def _by_rows(
        self, few: Sequence[Sequence[Row]], after: int, until: int, events: Pool, *, are_named: bool = False
    ) -> list[Row] | None:
        rows = self._as_rows()
        occurrences: dict[Any, dict[int, dict[int, Instance]]] = {}
        tied: dict[tuple[Any, int, int], list[Row]] = {}
        for p, (own, given) in enumerate(zip(self._inputs, few, strict=True)):
            for one in given if are_named else own.rows(given):
                start, stop = one[BEGIN], one[END]
                which = rows.key_of(one) if own.is_keyed else UNKEYED if self._plan.shared else ()
                here = occurrences.setdefault(which, {}).setdefault(stop, {})
                before = here.get(p)
                if before is None or before[0] < start:
                    here[p] = (start, stop, one)
                    tied.pop((which, stop, p), None)
                elif before[0] == start:
                    tied.setdefault((which, stop, p), [before[2]]).append(one)
        for (which, stop, p), rivals in tied.items():
            best = rivals[_latest(rivals, events, self._inputs[p].variables)]
            occurrences[which][stop][p] = (best[BEGIN], stop, best)
        for by_end in occurrences.values():
            for here in by_end.values():
                for p, (start, stop, one) in here.items():
                    names = self._inputs[p].variables
                    here[p] = (start, stop, {n: one[n] for n in names if one.get(n, UNBOUND) is not UNBOUND})
        found, touched, new = rows.step(occurrences, until)
        if self._added is not None:
            fresh = set(new)
            made = rows.given([k for k in touched if k not in fresh], after) + rows.given(new)
            if made:
                self._added.append(of_rows(made))
        return [{self._starts: start, self._ends: stop, **values} for start, stop, values in found] or None

    def _by_one_row(self, few: Mapping[int, Sequence[Row]], until: int) -> list[Row] | None:
        """The same for one event, of which nobody has to be told."""
        ((p, (row,)),) = few.items()
        one = self._inputs[p].instance(row)
        if one is None:
            return None
        rows = self._as_rows()
        found = rows.step_one(rows.key_of(one[2]) if self._inputs[p].is_keyed else (), p, one, until)
        return None if found is None else [{self._starts: found[0], self._ends: found[1], **found[2]}]

    def _as_rows(self) -> RowStep:
        if self._rows is None:
            kept = self._as_columns()
            self._rows = RowStep(self._plan)
            self._rows.take_in(kept.stored().rows())
            self._kept = self._shape.nothing
        return self._rows

    def _as_columns(self) -> Kept:
        if self._rows is not None:
            made = self._rows.given()
            self._rows = None
            self._kept = of_stored(self._shape, of_rows(made)) if made else self._shape.nothing
        elif len(self._apart):
            self._kept = of_stored(self._shape, self._apart.whole())
            self._apart.clear()
        return self._kept

    # ---- state ---------------------------------------------------------------------------------------------

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what is here; what it returns goes back to that."""
        kept, added = self._as_columns(), len(self._added or ())

        def go_back() -> None:
            self._rows, self._kept = None, kept
            self._apart.clear()
            if self._added is not None:
                del self._added[added:]

        return go_back

    def checkpoint(self) -> list[Run]:
        """All records, as one run."""
        kept = self._as_columns()
        return [Run(kept.stored(), 0, 0, {})] if len(kept) else []

    def added(self) -> Batch | None:
        """The records that were added since this was last asked; from the first time on they are written down."""
        added, self._added = self._added, []
        return stack(added) if added else None

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:  # noqa: ARG002 - has no runs
        """Takes back records of an earlier life; it may have some already, and some may be followed by others."""
        if not len(batch):
            return
        self._kept = self._as_columns().and_more(of_stored(self._shape, batch))

    def expiry(self, batch: Batch) -> Ints | None:
        """The bound from which on each of some records is dead: too old, or followed by others that count instead."""
        deaths = np.full(len(batch), FAR, dtype=np.int64)
        if not len(batch):
            return deaths
        slots, ends = batch[SLOT], batch[END]
        shared = [batch.columns[v] for v in self._plan.shared if v in batch.columns]
        hashes = hash_columns(shared, len(batch)) if shared else np.zeros(len(batch), dtype=np.uint64)
        order = np.lexsort((ends, hashes, slots))
        is_followed = (slots[order][1:] == slots[order][:-1]) & (hashes[order][1:] == hashes[order][:-1])
        deaths = self._deaths(slots, batch[BEGIN])
        for number, (label, _) in enumerate(self._shape.limits):
            mine = slots == number
            if label is not None:
                rows = order[:-1][is_followed & mine[order][:-1]]
                others = order[1:][is_followed & mine[order][:-1]]
                deaths[rows] = np.minimum(deaths[rows], ends[others] + label)
        return deaths

    def _deaths(self, slots: Ints, begins: Ints) -> Ints:
        """The bound from which on each of some records is too old."""
        return deaths_by(self._shape.limits, slots, begins)

    def expire(self, bound: int) -> None:
        """Drops what is dead at a bound."""
        batch = self._as_columns().stored()
        deaths = self.expiry(batch)
        if deaths is not None and len(batch):
            self._kept = of_stored(self._shape, batch.take(deaths > bound))


_BEGIN, _END = begin(EVENT), end(EVENT)


class _Input:
    """How the tuples of a primitive are read."""

    def __init__(self, leaf: Leaf, plan: Detector, p: int) -> None:
        self.is_keyed = plan.keyed[p] and bool(plan.shared)
        self.variables: tuple[str, ...] = (*(plan.shared if plan.keyed[p] else ()), *plan.own[p])
        own = {new: old for old, new in leaf.names.items()}
        self._shared = plan.shared if self.is_keyed else ()
        stamps = {BEGIN: _BEGIN, END: _END, REFERENCE: reference(EVENT)}
        self._own: list[tuple[str, str]] = [(v, own.get(v, v)) for v in self.variables]
        self._names: list[tuple[str, str]] = [*stamps.items(), *self._own]

    def rows(self, given: Sequence[Row]) -> list[Row]:
        """Tuples under the names of the rule; a shared variable that is null meets nothing."""
        found: list[Row] = [{new: row[old] for new, old in self._names if old in row} for row in given]
        if not self._shared:
            return found
        return [row for row in found if all(row[v] is not None for v in self._shared)]

    def instance(self, row: Row) -> Instance | None:
        """One of them as an instance."""
        values = {new: row[old] for new, old in self._own if old in row}
        for name in self._shared:
            if values[name] is None:
                return None
        return row[_BEGIN], row[_END], values

    def columns(self, given: Sequence[Batch]) -> Batch:
        """The same by columns."""
        if not given:
            return Batch({n: ints(np.empty(0, dtype=np.int64)) for n, _ in self._names[:3]}, 0).with_columns(
                {n: Column(np.empty(0, dtype=object), "any") for n, _ in self._names[3:]}
            )
        every = stack(given)
        columns = {new: every.columns[old] for new, old in self._names if old in every.columns}
        batch = Batch(columns, len(every))
        for name in self._shared:
            if batch.columns[name].kind == "any":
                known = np.fromiter((v is not None for v in batch[name]), dtype=np.bool_, count=len(batch))
                batch = batch.take(known)
        return batch


def _latest(rivals: Sequence[Row], events: Pool, variables: Sequence[str]) -> int:
    """Which of some tuples that start and end together is the greatest in the total order."""
    known = events.find({row[REFERENCE] for row in rivals})
    return max(range(len(rivals)), key=lambda k: _place(rivals[k], known, variables))


def _place(row: Row, known: Mapping[int, Event], variables: Sequence[str]) -> Any:
    """Where a tuple stands in the total order: by its event, and then by what is bound."""
    bound = ((as_written(n), key(row[n])) for n in variables if row.get(n, UNBOUND) is not UNBOUND)
    return known[row[REFERENCE]].term.key, tuple(sorted(bound))
