"""This module shows how events leave a source: some at a time, and cut along time if they come in no order."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import ephemera
from ephemera.engine.cluster.message import BadInput, EventsFor, ReadCount, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.kernels.columns import Batch, ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World
from ephemera.spark.read import route_rows
from ephemera.spark.read.flat_events import AttributeColumn
from ephemera.spark.read.route_rows import FromSource, Waiting
from ephemera.spark.runtime.exchange import shipments_of


def events(*ends: int) -> Events:
    column = ints(np.array(ends))
    return Events("a", Batch({BEGIN: column, END: column}, len(ends)), 0, [])


def spans(parts: list[Events]) -> list[tuple[int, int, int]]:
    return [(int(p.batch[END].min()), int(p.batch[END].max()), len(p)) for p in parts]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_rows, "_LEAST", 4)
    monkeypatch.setattr(route_rows, "_MOST", 8)
    monkeypatch.setattr(route_rows, "_PIECE", 2)


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


def test_a_batch_goes_by_columns_and_one_by_one_and_is_counted_once() -> None:
    one = ephemera.compile("EVENT a(x: int); got(x) <- i: a(x);")._compiled
    spreads = [DistributedProgram(one, World(), number, 1, -FAR, FAR) for number in range(2)]
    lines = [None, b'{"event": "a", "time": 2, "data": [8]}', None, b"no JSON"]
    batch = pa.record_batch(
        {
            "event": pa.array([0, -1, 0, -1], pa.int32()),
            "e": pa.array([1_000_000, None, 3_000_000, None], pa.int64()),
            "x": pa.array([7, None, 9, None], pa.int64()),
            "rest": pa.array(lines, pa.binary()),
        }
    )
    function = FromSource(spreads, "lines", {("a", "x"): AttributeColumn("x", "int")}, ["a"])
    carried = list(shipments_of(function(iter([batch, batch.slice(0, 1), batch.slice(3)]))))
    for number in range(2):
        own = [s for s in carried if s.program == number]
        sent = [e for s in own if isinstance(s, EventsFor) for e in unpack(s.events, one.plan.catalogue).events()]
        assert Counter(event.time.end for event in sent) == {1_000_000: 2, 2_000_000: 1, 3_000_000: 1}
        assert [json.loads(s.first)["event"] for s in own if isinstance(s, BadInput)] == ["no JSON"] * 2
        assert {s.label: s.count for s in own if isinstance(s, ReadCount)} == {"a": 4, "": 2}
