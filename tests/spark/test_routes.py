"""This module shows how events wait for their shipment: some at a time, and cut along time if they come in no order."""

from __future__ import annotations

import numpy as np
import pytest

from ephemera.engine.events import BEGIN, END, Events
from ephemera.kernels.columns import Batch, ints
from ephemera.spark import routes
from ephemera.spark.routes import Waiting


def events(*ends: int) -> Events:
    column = ints(np.array(ends))
    return Events("a", Batch({BEGIN: column, END: column}, len(ends)), 0, [])


def spans(parts: list[Events]) -> list[tuple[int, int, int]]:
    return [(int(p.batch[END].min()), int(p.batch[END].max()), len(p)) for p in parts]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_LEAST", 4)
    monkeypatch.setattr(routes, "_MOST", 8)
    monkeypatch.setattr(routes, "_PIECE", 2)


def test_events_in_order_go_when_there_are_enough() -> None:
    waiting = Waiting(places=1)
    assert waiting.add([events(1, 2, 3)]) == []
    assert spans(waiting.add([events(3, 4)])) == [(1, 4, 5)]
    assert waiting.take() == []


def test_what_waits_goes_before_a_jump_back_in_time() -> None:
    waiting = Waiting(places=1)
    waiting.add([events(7, 8)])
    assert spans(waiting.add([events(1, 2)])) == [(7, 8, 2)]
    assert spans(waiting.take()) == [(1, 2, 2)]


def test_events_in_no_order_are_gathered_and_cut_along_time() -> None:
    waiting = Waiting(places=1)
    assert waiting.add([events(9, 1, 5, 3)]) == []
    assert spans(waiting.add([events(2, 8, 4, 6)])) == [(1, 2, 2), (3, 4, 2), (5, 6, 2), (8, 9, 2)]
