"""This module shows that every kind of shipment comes out of an exchange as it went in, and in one order."""

from __future__ import annotations

import random
from typing import get_args

import pyarrow as pa

from ephemera.engine.cluster.message import (
    Answers,
    BadInput,
    EngineStats,
    EventsFor,
    LateInput,
    MessagesToSend,
    PackedEvents,
    ReadCount,
    ReadNotes,
    ScatteredAnswers,
    Shipment,
    SourceProgress,
    StoredAnswers,
    UndefinedHead,
    run_groups,
)
from ephemera.engine.cluster.source_progress import PlaceProgress
from ephemera.spark.runtime.exchange import NAMES, batches, in_order, kind_of, of_rows, shipments_of

EARLY, LATER = (PackedEvents("a", arity, 3, first, b"\x00packed") for arity, first in ((2, -5), (None, 7)))
SEEN = PlaceProgress({"s": 9}, -2, 9, 11, None, True, False, {"s": 4})
ALL: list[Shipment] = [
    SourceProgress(0, 1, SEEN),
    ReadCount(0, 0, "a", 12),
    ReadNotes(0, 0, ("a note with \ud800 in it",), {"a": [3, ["x"], ["ä", "\ud800"]]}),
    EngineStats(0, 1, {"events": 4, "histories": {"h": [1, None]}}),
    BadInput(0, 0, 1, '{"reason": "ä", "event": "{"}'.encode()),
    LateInput(0, 0, 2, b"{}"),
    UndefinedHead(0, 1, 1, b"{}"),
    StoredAnswers(0, 1, "late", 8),
    ScatteredAnswers(0, 1, 3, EARLY),
    ScatteredAnswers(0, 1, 0, LATER),
    Answers(0, 1, 2, EARLY),
    EventsFor(0, 1, 0, 1, LATER),
    EventsFor(0, 1, 2, 0, LATER),
    EventsFor(0, 1, 2, 1, EARLY),
    MessagesToSend(0, 1, 2, EARLY),
    EventsFor(1, 1, 0, 1, EARLY),
]
"""One of each kind at least, in the order in which a place takes them."""


def test_all_kinds_are_here() -> None:
    assert {type(shipment) for shipment in ALL} == set(get_args(Shipment))


def test_shipments_come_out_as_they_went_in() -> None:
    (batch,) = batches(ALL)
    assert batch.schema.names == NAMES
    found = list(shipments_of([batch]))
    assert found == ALL
    packed = [s.events.load for s in found if isinstance(s, EventsFor | Answers | ScatteredAnswers)]
    assert all(isinstance(load, pa.Buffer) for load in packed), "events are not copied"
    rows = batch.to_pylist()
    assert of_rows(rows) == ALL
    assert [kind_of(row) for row in rows] == [type(shipment) for shipment in ALL]


def test_places_take_what_comes_by_program_kind_group_and_time() -> None:
    shuffled = ALL.copy()
    random.Random(3).shuffle(shuffled)
    assert in_order(shuffled) == ALL


def test_groups_get_what_is_for_them_and_all_else_passes_on() -> None:
    ran: list[tuple[int, int, int, list[Shipment]]] = []

    def run(program: int, group: int, home: int, events: object) -> object:
        ran.append((program, group, home, list(events)))  # type: ignore[call-overload]
        return iter([ReadCount(program, 0, "ran", group)])

    def runs_here(program: int, group: int) -> bool:
        return (program, group) != (0, 0)

    passed = list(run_groups(ALL, runs_here, run, [(0, 2, 1), (2, 5, 1)]))  # type: ignore[arg-type]
    assert ran == [(0, 2, 0, ALL[12:13]), (0, 2, 1, ALL[13:14]), (1, 0, 1, ALL[15:]), (2, 5, 1, [])]
    came = [ReadCount(program, 0, "ran", group) for program, group, _, _ in ran]
    assert passed == [*ALL[:12], *came[:2], ALL[14], *came[2:]]
