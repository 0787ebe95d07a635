"""This module judges which events of a type come too close to others, when the bound of their source passes them.

What has arrived waits until all is known that ends as early. Then it is judged in the order of time, by end, begin and
data, against the last good one with the same values. Of the good ones those are kept that something may still be too
close to, one for each value. Both what waits and what is kept are rows that die at a time that is known when they come,
so they are written down as all state is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ephemera.algebra.attributes import position
from ephemera.engine.waiting import WaitingEvents
from ephemera.kernels.columns import Batch, Hashes, Ints, Mask, column
from ephemera.kernels.event_columns import END, Events, distinct, of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.keys import hash_columns
from ephemera.rules.apart import told_apart_by, too_close, values_told_apart
from ephemera.rules.nodes import Apart
from ephemera.rules.outcome import CloseEvent
from ephemera.terms.atoms import Names
from ephemera.terms.events import Event
from ephemera.terms.values import Key

FEW = 32
"""So few events are judged one by one."""


@dataclass(slots=True)
class Added:
    """What came since somebody asked."""

    waiting: list[Events] = field(default_factory=list)
    good: list[Events] = field(default_factory=list)


class Separation:
    """The events of one type that wait to be judged, and the last good ones."""

    def __init__(self, label: str, apart: Apart, names: Names) -> None:
        self.label = label
        self._apart = apart
        self._names = names
        self.bound = -FAR
        """What ends by then has been judged."""
        self.waiting = WaitingEvents()
        self._last: dict[tuple[Key, ...], Event] = {}
        """The last good event of each value, as long as others may be too close to it."""
        self._ended: list[tuple[int, int, tuple[Key, ...]]] = []
        """A heap: when a good event ended, its number, its values; also of those that are not the last any more."""
        self._numbers = count()
        self._latest = -FAR
        """When the last of all good ones ended."""
        self._fresh: dict[tuple[Key, ...], None] = {}
        """The values of which there is another last one since what is new was written down."""
        self.close: list[CloseEvent] = []
        """Bad events, until somebody takes them."""
        self._added: Added | None = None

    def __len__(self) -> int:
        """How many good events are kept."""
        return len(self._last)

    def hold(self, parts: Iterable[Events]) -> None:
        """Events that wait for the bound to pass them."""
        parts = list(parts)
        self.waiting.hold(parts)
        if self._added is not None:
            self._added.waiting += parts

    def step(self, bound: int) -> list[Events]:
        """The good ones of the events that the bound has passed."""
        if bound <= self.bound:
            return []
        self.bound = bound
        released = self.waiting.release(bound)
        if not released:
            self._forget()
            return []
        parts = distinct(released)
        good = self._judged(parts)
        self._forget()
        taken = [part if mask.all() else part.take(mask) for part, mask in zip(parts, good, strict=True)]
        return [part for part in taken if len(part)]

    # ---- judging -------------------------------------------------------------------------------------------

    def _judged(self, parts: Sequence[Events]) -> list[Mask]:
        """Which events are good; those with no others near are not looked at one by one."""
        doubtful = [self._doubtful(part) for part in parts]
        good = [np.ones(len(part), dtype=np.bool_) for part in parts]
        several: list[tuple[Event, int, int]] = []
        for number, (part, mask) in enumerate(zip(parts, doubtful, strict=True)):
            rows = np.flatnonzero(mask)
            several += [(e, number, row) for e, row in zip(part.take(rows).events(), rows.tolist(), strict=True)]
        for event, number, row in sorted(several, key=lambda one: one[0].key):
            good[number][row] = self._is_good(event)
        for part, mask in zip(parts, doubtful, strict=True):
            alone = ~mask & (part.batch[END] + self._apart.distance > self.bound)
            for event in part.take(alone).events() if alone.any() else ():
                self._keep(told_apart_by(event, self._apart.per), event)
        return good

    def _is_good(self, event: Event) -> bool:
        values = told_apart_by(event, self._apart.per)
        before = self._last.get(values) if values is not None else None
        if before is not None and event.time.end - before.time.end < self._apart.distance:
            self.close.append(CloseEvent(event, too_close(event, before, self._apart)))
            return False
        self._keep(values, event)
        return True

    def _keep(self, values: tuple[Key, ...] | None, event: Event) -> None:
        """The last good one of some values."""
        if values is None or (values in self._last and self._last[values].time.end > event.time.end):
            return
        self._last[values] = event
        self._fresh[values] = None
        heappush(self._ended, (event.time.end, next(self._numbers), values))
        self._latest = max(self._latest, event.time.end)

    def _doubtful(self, events: Events) -> Mask:
        """Which events may be too close to one before, or one behind to them: by hashes of their values.

        Whatever ends so long after those before it that none can be too close is good, good as those may be.
        """
        every = np.ones(len(events), dtype=np.bool_)
        if events.arity is None or self._names is None or len(events) < FEW:
            return every
        hashes, ends = places_of(events, self._apart), events.batch[END]
        order = np.lexsort((ends, hashes))
        ends, hashes = ends[order], hashes[order]
        is_new = np.r_[True, hashes[1:] != hashes[:-1]]
        follows = np.r_[False, (ends[1:] - ends[:-1] < self._apart.distance)] & ~is_new
        if self._last:  # the first of its values may be too close to what came earlier
            follows |= is_new & (ends - self._latest < self._apart.distance)
        is_near = follows.copy()
        is_near[:-1] |= follows[1:] & ~is_new[1:]
        every[order] = is_near
        return every

    def _forget(self) -> None:
        """What nothing can be too close to any more is not kept; the others that are new are written down."""
        limit = self.bound - self._apart.distance
        while self._ended and self._ended[0][0] <= limit:
            _, _, values = heappop(self._ended)
            if values in self._last and self._last[values].time.end <= limit:
                del self._last[values]
        if self._added is not None:
            fresh = [self._last[values] for values in self._fresh if values in self._last]
            self._added.good += of_events(fresh, lambda _label: self._names)
        self._fresh = {}

    def take_close(self) -> list[CloseEvent]:
        """The bad events since this was last asked."""
        found, self.close = self.close, []
        return found

    # ---- state ---------------------------------------------------------------------------------------------

    def good(self) -> list[Events]:
        """The last good events that are kept."""
        return of_events(list(self._last.values()), lambda _label: self._names)

    def added(self) -> Added:
        """What came since this was last asked; from the first time on it is written down."""
        added, self._added = self._added, Added()
        return added or Added()

    def deaths(self, batch: Batch, *, is_good: bool) -> Ints:
        """The bound from which on each of some stored rows is dead."""
        ends: Ints = batch[END]
        return ends + (self._apart.distance if is_good else 0)

    def recall(self, good: Iterable[Events]) -> None:
        """Good events that were kept; some may be dead."""
        for event in (event for part in good for event in part.events()):
            self._keep(told_apart_by(event, self._apart.per), event)

    def restore(self, bound: int) -> None:
        """Goes on from a bound, once the rows of the state are there; what is dead goes."""
        self.bound = bound
        self.waiting.release(bound)
        self._forget()


def places_of(events: Events, apart: Apart) -> Hashes:
    """A hash of the values by which each event is told apart, the same for equal ones."""
    if events.arity is not None and events.names is not None:
        names = list(events.names)
        return hash_columns([events.batch.columns[position(names.index(name))] for name in apart.per], len(events))
    rows = [values_told_apart(event, apart.per) or (None,) * len(apart.per) for event in events.events()]
    return hash_columns([column([row[k] for row in rows]) for k in range(len(apart.per))], len(rows))
