"""This module lets rules that need each other take turns until nothing is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ephemera.engine.operators.step_events import StepEvents
from ephemera.rules.series import Series

PORTION = 16
"""So many events are taken at a time where recursion may grow."""
PATIENCE = 1_024
"""After so many rounds it is twice as many."""


def run(
    turn: Callable[[], int], pool: StepEvents, growing: Sequence[Series], go_back: Sequence[Callable[[], None]]
) -> None:
    """Turns, each of which says how many events it gave, until the pool has nothing new for anybody.

    An event may be used before it has the form that it has at last, `1` for `1.0`. Then all goes back, and again.
    """
    while True:
        formed = pool.formed
        _run(turn, pool, growing)
        if pool.formed == formed:
            return
        for one in go_back:
            one()


def _run(turn: Callable[[], int], pool: StepEvents, growing: Sequence[Series]) -> None:
    """What does not end shows early if a few events are followed to their last answer before the others."""
    for series in growing:
        series.clear()
    rounds, new = 0, 1
    while new or pool.has_left:
        pool.portion = PORTION << rounds // PATIENCE if growing else None
        new = turn()
        rounds += 1
    pool.portion = None
