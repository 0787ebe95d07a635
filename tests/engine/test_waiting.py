"""Events wait until a bound passes them, and those that are not due cost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest

from ephemera.engine.waiting import WaitingEvents
from ephemera.kernels.columns import Batch, column
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.tail import RowBatch


def _is_due(one: tuple[str, int, int], bound: int) -> bool:
    label, begin, end = one
    return (begin if label == "b" else end) <= bound


def _events(label: str, stamps: list[tuple[int, int]], *, as_rows: bool) -> Events:
    if as_rows:
        batch: Batch = RowBatch([{BEGIN: begin, END: end} for begin, end in stamps])
    else:
        batch = Batch({BEGIN: column([b for b, _ in stamps]), END: column([e for _, e in stamps])}, len(stamps))
    return Events(label, batch, 0, None)


def _plain(parts: Iterable[Events]) -> list[tuple[str, int, int]]:
    return [(p.label, b, e) for p in parts for b, e in zip(p.batch[BEGIN].tolist(), p.batch[END].tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_due_is_released_in_the_order_in_which_it_came(seed: int) -> None:
    """Those with the label `b` are due when they begin."""
    dice = Random(seed)
    waiting, there = WaitingEvents(frozenset("b")), list[tuple[str, int, int]]()
    for bound in range(0, 40, dice.choice([1, 3, 7])):
        for _ in range(dice.choice([0, 1, 5])):
            ends = [dice.randint(bound, bound + 12) for _ in range(dice.choice([1, 1, 2, 6]))]
            stamps = [(end - dice.randint(0, 5), end) for end in (sorted(ends) if dice.random() < 0.5 else ends)]
            part = _events(dice.choice("ab"), stamps, as_rows=dice.random() < 0.5)
            waiting.hold([part])
            there += _plain([part])
        due = [one for one in there if _is_due(one, bound)]
        assert _plain(waiting.release(bound)) == due
        there = [one for one in there if one not in due]
        assert len(waiting) == len(there)
        assert _plain(waiting) == there


def test_those_that_are_not_due_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = WaitingEvents()
    waiting.hold(_events("a", [(k, k)], as_rows=True) for k in range(1_000))
    looks: list[int] = []
    split = WaitingEvents._split

    def counted(self: WaitingEvents, part: Events, bound: int) -> tuple[Events, Events | None]:
        looks.append(bound)
        return split(self, part, bound)

    monkeypatch.setattr(WaitingEvents, "_split", counted)
    for bound in range(-500, 10):
        waiting.release(bound)
    assert len(looks) == 10
    assert len(waiting) == 990


def test_rows_of_columns_that_are_due_first_are_cut_and_not_copied() -> None:
    part = _events("a", [(k, k) for k in range(10)], as_rows=False)
    waiting = WaitingEvents()
    waiting.hold([part])
    (due,) = waiting.release(4)
    assert np.shares_memory(due.batch[END], part.batch[END])
