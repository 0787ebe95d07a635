"""This module keeps events until a bound passes them, so that a step costs what it releases, not what waits.

Behind a bound that lags, as with `WATERMARK 10 min`, most of what has come waits. Parts lie in a heap by when the first
of their events is due, so those that are not due are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ephemera.kernels.event_columns import BEGIN, END, Events


class WaitingEvents:
    """Events that wait: to their end, or to their begin if their label is one of those that are used early."""

    def __init__(self, early: Set[str] = frozenset()) -> None:
        self._early = early
        self._parts: list[tuple[int, int, Events]] = []
        """A heap: when the first event of a part is due, the number of the part, the part."""
        self._numbers = count()

    def __len__(self) -> int:
        """How many events wait."""
        return sum(len(part) for _, _, part in self._parts)

    def __iter__(self) -> Iterator[Events]:
        """The parts in the order in which they came."""
        return iter([part for _, _, part in sorted(self._parts, key=lambda one: one[1])])

    def hold(self, parts: Iterable[Events]) -> None:
        """Events that wait from now on."""
        for part in parts:
            if len(part):
                heappush(self._parts, (part.first(self._stamp(part)), next(self._numbers), part))

    def release(self, bound: int) -> list[Events]:
        """The events that the bound has passed, in the order in which they came; they wait no longer."""
        released: list[tuple[int, Events]] = []
        kept: list[tuple[int, int, Events]] = []
        while self._parts and self._parts[0][0] <= bound:
            _, number, part = heappop(self._parts)
            due, rest = self._split(part, bound)
            released.append((number, due))
            if rest is not None:
                kept.append((rest.first(self._stamp(rest)), number, rest))
        for one in kept:
            heappush(self._parts, one)
        return [part for _, part in sorted(released, key=lambda one: one[0])]

    def _stamp(self, part: Events) -> str:
        return BEGIN if part.label in self._early else END

    def _split(self, part: Events, bound: int) -> tuple[Events, Events | None]:
        """What is due by the bound, of which there is something, and what is not."""
        if len(part) == 1:
            return part, None
        ready = part.batch[self._stamp(part)] <= bound
        due = int(np.count_nonzero(ready))
        if due == len(part):
            return part, None
        if ready[:due].all():  # in the order of time, nothing is copied
            batch = part.batch
            return replace(part, batch=batch.cut(0, due)), replace(part, batch=batch.cut(due, len(part)))
        return part.take(ready), part.take(~ready)
