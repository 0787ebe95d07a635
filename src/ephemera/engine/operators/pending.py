"""This module keeps the tuples of a rule that have not happened yet, and gives them when their time has come.

They are kept in parts, each sorted by when its tuples happen, so that what is due is the first rows of each part. Parts
merge with neighbours of their size, so there are few of them, and an event does not cost what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.kernels.columns import Batch, Ints, latest, stack
from ephemera.kernels.history import Run


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    batch: Batch
    due: Ints
    """When each tuple happens, ascending."""

    def __len__(self) -> int:
        return len(self.due)


class Pending:
    """The operator of tuples that wait for the bound; it owns them, and knows when each happens."""

    def __init__(self, ends: Sequence[str]) -> None:
        """A tuple happens when the last of these stamps is there."""
        self._ends = ends
        self._parts: list[_Part] = []
        self._next: int | None = None
        """When the first of them happens."""
        self._added: list[Batch] | None = None
        """What was added since somebody asked for that; None if nobody ever did."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def expiry(self, batch: Batch) -> Ints:
        """When each of some tuples happens."""
        return latest(batch, self._ends)

    def add(self, batch: Batch, due: Ints) -> None:
        """More tuples, with when they happen."""
        if not len(batch):
            return
        if self._added is not None:
            self._added.append(batch)
        self._put(batch, due)

    def _put(self, batch: Batch, due: Ints) -> None:
        self._parts.append(_sorted([batch], due))
        while len(self._parts) > 1 and len(self._parts[-2]) <= 2 * len(self._parts[-1]):
            other, last = self._parts[-2:]
            self._parts[-2:] = [_sorted([other.batch, last.batch], np.concatenate([other.due, last.due]))]
        self._count()

    def take(self, bound: int) -> list[Batch]:
        """Those that happen by then."""
        if self._next is None or self._next > bound:
            return []
        found: list[Batch] = []
        kept: list[_Part] = []
        for part in self._parts:
            count = int(np.searchsorted(part.due, bound, side="right"))
            if count:
                found.append(part.batch.cut(0, count))
            if count < len(part):
                kept.append(_Part(part.batch.cut(count, len(part)), part.due[count:]))
        self._parts = kept
        self._count()
        return found

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what waits; what it returns goes back to that."""
        parts, added = list(self._parts), len(self._added or ())

        def go_back() -> None:
            self._parts = list(parts)
            self._count()
            if self._added is not None:
                del self._added[added:]

        return go_back

    def checkpoint(self) -> list[Run]:
        """All of them, as one run."""
        return [Run(stack([p.batch for p in self._parts]), 0, 0, {})] if self._parts else []

    def added(self) -> Batch | None:
        """What was added since this was last asked; from the first time on it is written down."""
        added, self._added = self._added, []
        return stack(added) if added else None

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:  # noqa: ARG002 - has no runs
        """Takes back tuples of an earlier life."""
        if len(batch):
            self._put(batch, self.expiry(batch))

    def expire(self, bound: int) -> None:
        """Drops those that have happened by then."""
        self.take(bound)

    def _count(self) -> None:
        self._next = min((int(p.due[0]) for p in self._parts), default=None)


def _sorted(batches: Sequence[Batch], due: Ints) -> _Part:
    batch = stack(batches)
    if len(due) == 1 or bool((due[1:] >= due[:-1]).all()):
        return _Part(batch, due)
    order = np.argsort(due, kind="stable")
    return _Part(batch.take(order), due[order])
