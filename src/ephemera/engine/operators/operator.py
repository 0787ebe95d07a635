"""This module says what an operator is: a part of a lane that owns its state, which nobody else writes.

An operator has a `step`, which takes what is new and gives what follows from it. What it keeps from step to step are
rows, which never change and are dead from a bound on that is known when they come, and a few numbers (`counts`,
`count_on`). So its state is written down either whole (`checkpoint`) or by what was added (`added`), and comes back by
one verb (`restore`). Rules that need each other take turns, and sometimes have to begin again; then what was marked
before goes back to what it was (`mark`).

`match.Query`, `match.AbsoluteTimer` and `detect.Detector` make tuples, each in histories of its own
(`kernels/history.History`); `join.RuleJoin` makes tuples that happen, and those that do not yet are in its
`window.Pending`; `head.HeadBuilder` makes events, and keeps only heads without a value until they are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ephemera.kernels.columns import Batch, Ints
from ephemera.kernels.history import Run


class Rows(Protocol):
    """The rows that an operator owns."""

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what is here; what it returns goes back to that."""
        ...

    def checkpoint(self) -> Sequence[Run]:
        """All of them, in runs."""
        ...

    def added(self) -> Batch | None:
        """What was added since this was last asked; from the first time on it is written down."""
        ...

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:
        """Takes back rows of an earlier life: those of a run, or some that were added."""
        ...

    def expiry(self, batch: Batch) -> Ints | None:
        """The bound from which on each of some rows is dead; None if they live for ever."""
        ...

    def expire(self, bound: int) -> None:
        """Drops what is dead at a bound."""
        ...
