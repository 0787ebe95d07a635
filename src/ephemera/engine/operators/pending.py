"""This module keeps the tuples of a rule that have not happened yet, and gives them when their time has come.

They are kept in parts, each sorted by when its tuples happen, so that what is due is the first rows of each part. Parts
merge with neighbours of their size, so there are few of them, and an event does not cost what is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.kernels.columns import Batch, Ints, stack


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    batch: Batch
    due: Ints
    """When each tuple happens, ascending."""

    def __len__(self) -> int:
        return len(self.due)


class Pending:
    """Tuples that wait for the bound."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._next: int | None = None
        """When the first of them happens."""
        self.journal: list[Batch] | None = None
        """What was added since it was last taken down; None if nobody does that."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def batch(self) -> Batch | None:
        """All of them."""
        return stack([p.batch for p in self._parts]) if self._parts else None

    def add(self, batch: Batch, due: Ints) -> None:
        """More tuples, with when they happen."""
        if not len(batch):
            return
        if self.journal is not None:
            self.journal.append(batch)
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
        parts, taken_down = list(self._parts), len(self.journal or ())

        def go_back() -> None:
            self._parts = list(parts)
            self._count()
            if self.journal is not None:
                del self.journal[taken_down:]

        return go_back

    def _count(self) -> None:
        self._next = min((int(p.due[0]) for p in self._parts), default=None)


def _sorted(batches: Sequence[Batch], due: Ints) -> _Part:
    batch = stack(batches)
    if len(due) == 1 or bool((due[1:] >= due[:-1]).all()):
        return _Part(batch, due)
    order = np.argsort(due, kind="stable")
    return _Part(batch.take(order), due[order])
