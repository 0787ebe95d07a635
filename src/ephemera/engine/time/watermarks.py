"""This module keeps the bounds of sources: how far each has come, and which events come too late for it.

An event that ends at t moves the bound of its source to just before t less its watermark, so that equal stamps are
never late. What then arrives at or behind the bound is late. Events are judged in the order in which they arrive, so
it makes no difference how they are cut into batches. No clock is known here: that time passes for a silent source is
told from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ephemera.kernels.columns import Ints, Mask
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import UNNAMED
from ephemera.rules.nodes import Catalogue


@dataclass(slots=True)
class Watermarks:
    """The bounds of a program's sources."""

    watermarks: Mapping[str, int]
    carried_by: Mapping[str, str]
    """For each label the source that it is read from."""
    bounds: dict[str, int] = field(default_factory=dict)
    first: int | None = None
    """The earliest end of all events that were not late, and of all instants that were closed."""
    last: int = -FAR
    """The latest of them, or how far time has passed for a silent source."""
    ended: int | None = None
    """The latest time of all when the input ended, if it has: clocks go no further."""

    @property
    def names(self) -> set[str]:
        """All of them."""
        return {*self.watermarks, *self.carried_by.values(), UNNAMED}

    def source(self, label: str) -> str:
        return self.carried_by.get(label, UNNAMED)

    def bound(self, names: frozenset[str]) -> int:
        """The bound of what depends on some sources: that of the slowest."""
        return min([self.bounds.get(name, -FAR) for name in names], default=-FAR)

    def fastest(self, names: frozenset[str]) -> int:
        """The bound of the fastest of some sources."""
        return max((self.bounds.get(name, -FAR) for name in names), default=-FAR)

    def arrive(self, name: str, times: Ints, ends: Ints) -> Mask:
        """Which events of a source come in time, given by when they arrive, in that order; its bound moves on.

        That is when they end, or when they begin where they are known from then on.
        """
        before = self.bounds.get(name, -FAR)
        reached = np.maximum.accumulate(times) - (self.watermarks.get(name, 0) + 1)
        known = np.maximum(np.concatenate([[before], reached[:-1]]), before)
        self.bounds[name] = max(before, int(reached[-1]))
        in_time = np.asarray(times > known, dtype=np.bool_)
        if in_time.any():
            self.span(int(ends[in_time].min()), int(ends[in_time].max()))
        return in_time

    def let_pass(self, name: str, time: int) -> None:
        """Time has passed for a silent source; one that was never heard begins where the slowest other stands."""
        bound = self.bounds.get(name, -FAR)
        others = [b for b in self.bounds.values() if b > -FAR]
        if bound > -FAR:
            self.bounds[name] = min(bound + time, FAR)
        elif others:
            self.bounds[name] = min(others)
        self.last = max(self.last, self.bounds.get(name, -FAR))

    def arrive_one(self, name: str, time: int, end: int) -> bool:
        """The same for one event."""
        before = self.bounds.get(name, -FAR)
        self.bounds[name] = max(before, time - self.watermarks.get(name, 0) - 1)
        if time > before:
            self.span(end, end)
        return time > before

    def span(self, first: int, last: int) -> None:
        """There are ends between these two, both included."""
        self.first = first if self.first is None else min(first, self.first)
        self.last = max(last, self.last)

    def advance(self, bound: int) -> None:
        """Everything that ends by then is here, whatever the source."""
        if bound < FAR:
            self.span(bound, bound)
        for name in self.names:
            self.bounds[name] = max(self.bounds.get(name, -FAR), bound)


def sources_of(catalogue: Catalogue) -> Watermarks:
    """The sources that a program declares."""
    return Watermarks(
        {source.name: source.watermark for source in catalogue.sources},
        {label: source.name for source in catalogue.sources for label in source.carries},
    )
