"""This module holds the events of one step: each once, whoever gave it, with a reference that tells it from others.

Rules that need each other take turns over them until nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import position
from ephemera.kernels.columns import Batch, Column, Ints, Mask, concat, ints
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events, distinct, meeting
from ephemera.kernels.tail import RowBatch, plain_key
from ephemera.rules.series import Series
from ephemera.terms.events import Event
from ephemera.terms.values import Key

PORTION = 16
"""So many events are taken at a time where recursion may grow."""
PATIENCE = 1_024
"""After so many rounds it is twice as many."""


class StepEvents:
    """What is released or derived in a step, by label; readers take up what they have not seen yet.

    Events from outside have references from 0 upwards, derived ones from -1 downwards.
    """

    def __init__(self, next_reference: int, next_derived: int) -> None:
        self.next_reference = next_reference
        self.next_derived = next_derived
        self._events: dict[str, list[Events]] = {}
        self._seen: dict[str, _Seen] = {}
        self._read: dict[tuple[str, str], int] = {}
        self.portion: int | None = None
        """How many events a reader is given at a time; None is all."""
        self._left: dict[str, list[Events]] = {}
        """What readers have not been given yet."""
        self._forms: dict[Event, Event] = {}
        """Events that came in several forms (`1` and `1.0`), in the one that they make together."""
        self.formed = 0
        """How often an event that was here got another form."""

    def add(self, parts: Sequence[Events], *, derived: bool = True) -> int:
        """More events; says how many of them are new."""
        total = 0
        for new in distinct(parts):
            fresh = self._unknown(self._in_one_form(new)) if self._events or self._forms else new
            if len(fresh):
                references = self._references(len(fresh), derived=derived)
                batch = _numbered(fresh.batch, references)
                self._events.setdefault(fresh.label, []).append(Events(fresh.label, batch, fresh.arity, fresh.names))
                total += len(fresh)
        return total

    def _references(self, count: int, *, derived: bool) -> range:
        if derived:
            self.next_derived -= count
            return range(self.next_derived + count, self.next_derived, -1)
        self.next_reference += count
        return range(self.next_reference - count, self.next_reference)

    def _in_one_form(self, new: Events) -> Events:
        """The events, those that are known to come in another form, too, in the one that all make together."""
        if not self._forms or _has_one_form(new):
            return new
        forms = {row: self._forms[event] for row, event in enumerate(new.events()) if event in self._forms}
        return meeting(new, forms)[0]

    def _unknown(self, new: Events) -> Events:
        known = self._events.get(new.label)
        if not known or not len(new):
            return new
        places = self._seen.setdefault(new.label, _Seen()).places(new, known)
        mask = np.fromiter((place is None for place in places), dtype=np.bool_, count=len(new))
        if mask.all():
            return new
        both: dict[int, dict[int, Event]] = {}
        again = [place for place in places if place is not None]
        if not all(_has_one_form(known[part]) for part in {part for part, _ in again}):
            for (part, row), event in zip(again, new.take(~mask).events(), strict=True):
                both.setdefault(part, {})[row] = event
        for part, others in both.items():
            known[part], changed = meeting(known[part], others)
            self._forms.update((event, event) for event in changed)
            self.formed += len(changed)
        return new.take(mask)

    def unread(self, reader: str, label: str | None) -> list[Events]:
        """The events of a label, or of any, that a reader has not taken yet; of many a portion, the newest."""
        if label is not None and label not in self._events and not self._left:
            return []
        found = self._left.pop(reader, [])
        for name in list(self._events) if label is None else [label]:
            parts = self._events.get(name, [])
            found += parts[self._read.get((reader, name), 0) :]
            self._read[reader, name] = len(parts)
        most = self.portion
        if most is None or sum(map(len, found)) <= most:
            return found
        taken: list[Events] = []
        while found and most:
            part = found.pop()
            if len(part) > most:
                found.append(part.take(np.arange(len(part) - most)))
                part = part.take(np.arange(len(part) - most, len(part)))
            taken.append(part)
            most -= len(part)
        if found:
            self._left[reader] = found
        return taken

    def find(self, references: Collection[int]) -> dict[int, Event]:
        """Some events of the step, by their references."""
        asked = np.fromiter(references, dtype=np.int64, count=len(references))
        found: dict[int, Event] = {}
        for part in (part for parts in self._events.values() for part in parts):
            rows = np.flatnonzero(np.isin(part.batch[REFERENCE], asked))
            if len(rows):
                some = part.take(rows)
                found.update(zip(some.batch[REFERENCE].tolist(), some.events(), strict=True))
        return found

    def ranks(self, references: Ints) -> Ints | None:
        """Where some events stand in the total order of what has the same time; None if columns do not tell."""
        every = [part for parts in self._events.values() for part in parts]
        found = [part for part in every if np.isin(references, part.batch[REFERENCE]).any()]
        shapes = {(part.label, part.arity) for part in found}
        if len(shapes) != 1 or found[0].arity is None:
            return None
        names = found[0].names
        # What is declared has its attributes in the order of their names, all else in that of the values.
        order = range(found[0].arity) if names is None else sorted(range(found[0].arity), key=names.__getitem__)
        columns = [concat([part.batch.columns[position(k)] for part in found]) for k in order]
        if any(c.kind not in ("int", "text") for c in columns):
            return None
        known = np.concatenate([part.batch[REFERENCE] for part in found])
        by_reference = np.argsort(known)
        rows = by_reference[np.minimum(known[by_reference].searchsorted(references), len(known) - 1)]
        if not bool((known[rows] == references).all()):
            return None
        taken = [c.take(rows) for c in columns]
        values = [c.values if c.kind == "int" else np.unique(c.values, return_inverse=True)[1] for c in taken]
        ranks = np.zeros(len(rows), dtype=np.int64)
        ranks[np.lexsort(values[::-1])] = np.arange(len(rows))
        return ranks

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what is here; what it returns goes back to that, but for the forms of events."""
        events, read = {label: list(parts) for label, parts in self._events.items()}, dict(self._read)
        derived = self.next_derived

        def go_back() -> None:
            self._events = {label: [self._in_one_form(part) for part in parts] for label, parts in events.items()}
            self._read, self._seen, self._left, self.next_derived = dict(read), {}, {}, derived

        return go_back

    @property
    def has_left(self) -> bool:
        """Whether a reader was not given all."""
        return bool(self._left)


class Used:
    """Which of the events from outside of a step some query has matched."""

    def __init__(self, first: int, count: int) -> None:
        """They have references from the first on, so many."""
        self._first = first
        self._released = count
        self._few: set[int] = set()
        """Those that came as rows, by reference."""
        self._many: Mask | None = None
        """The others, by place."""

    def mark(self, matched: Batch) -> None:
        """Some matches; derived events and those of earlier steps do not count."""
        if isinstance(matched, RowBatch):
            self._few.update(row[REFERENCE] for row in matched.given if row[REFERENCE] >= self._first)
            return
        if self._many is None:
            self._many = np.zeros(self._released, dtype=np.bool_)
        references: Ints = matched[REFERENCE]
        self._many[references[references >= self._first] - self._first] = True

    @property
    def count(self) -> int:
        """How many of them there are."""
        if self._many is None:
            return len(self._few)
        return int(np.count_nonzero(self._many)) + sum(not self._many[r - self._first] for r in self._few)


class _Seen:
    """Where the events of one label are, taken down when some more may equal them, and each once."""

    def __init__(self) -> None:
        self._places: dict[Key, tuple[int, int]] = {}
        """The part, and the row in it."""
        self._count = 0
        """How many parts are taken down."""
        self._is_flat = True

    def places(self, new: Events, known: Sequence[Events]) -> list[tuple[int, int] | None]:
        """For each of some events where it is among the known ones, which are as before and more behind them."""
        if self._is_flat and any(part.arity is None for part in (new, *known[self._count :])):
            self._places, self._count, self._is_flat = {}, 0, False
        for number in range(self._count, len(known)):
            self._places.update((k, (number, row)) for row, k in enumerate(self._keys_of(known[number])))
        self._count = len(known)
        return [self._places.get(k) for k in self._keys_of(new)]

    def _keys_of(self, events: Events) -> Iterable[Key]:
        """Events of both shapes are told apart as terms, flat ones by their values."""
        times = [events.batch[BEGIN].tolist(), events.batch[END].tolist()]
        if not self._is_flat:
            return zip(*times, (term.key for term in events.terms()), strict=True)
        return zip(
            *times, *(_told_apart(events.batch.columns[position(k)]) for k in range(events.arity or 0)), strict=True
        )


def _numbered(batch: Batch, references: range) -> Batch:
    if isinstance(batch, RowBatch):
        return batch.numbered(REFERENCE, references)
    return batch.with_columns({REFERENCE: ints(np.arange(references.start, references.stop, references.step))})


def _told_apart(c: Column) -> Iterable[Any]:
    return map(plain_key, c.tolist()) if c.kind == "any" else c.tolist()


def _has_one_form(part: Events) -> bool:
    """Whether no value of some events could equal another that is written otherwise."""
    values = (part.batch.columns[position(k)] for k in range(part.arity or 0))
    return part.arity is not None and all(c.kind in ("int", "text") for c in values)


# ---- rules that need each other take turns until nothing is new ----------------------------------------------


def run_to_fixpoint(
    turn: Callable[[], int], pool: StepEvents, growing: Sequence[Series], go_back: Sequence[Callable[[], None]]
) -> None:
    """Turns, each of which says how many events it gave, until the pool has nothing new for anybody.

    An event may be used before it has the form that it has at last, `1` for `1.0`. Then all goes back, and again.
    """
    while True:
        formed = pool.formed
        _take_turns(turn, pool, growing)
        if pool.formed == formed:
            return
        for one in go_back:
            one()


def _take_turns(turn: Callable[[], int], pool: StepEvents, growing: Sequence[Series]) -> None:
    """What does not end shows early if a few events are followed to their last answer before the others."""
    for series in growing:
        series.clear()
    rounds, new = 0, 1
    while new or pool.has_left:
        pool.portion = PORTION << rounds // PATIENCE if growing else None
        new = turn()
        rounds += 1
    pool.portion = None
