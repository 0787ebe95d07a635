"""This module shows that plans follow what comes: seen in a history before it runs, or live while it runs."""

from __future__ import annotations

from random import Random
from typing import Any

import ephemera
from ephemera.engine.engine import Engine
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.observe import observed
from ephemera.formats.json_events import read_object
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World
from ephemera.terms.events import Event

PROGRAM = """
EVENT f(x: int, y: int); EVENT g(y: int, z: int); EVENT r(z: int);
q(x, z) <- a: f(x, y), b: g(y, z), c: r(z), {a, b, c} within 20;
"""


def events(count: int, *, rare: int = 40) -> list[dict[str, Any]]:
    """Many f and g, and seldom an r."""
    dice = Random(5)
    found: list[dict[str, Any]] = []
    for k in range(count):
        label = "r" if k % rare == 0 else dice.choice("fg")
        data = [dice.randrange(8)] if label == "r" else [dice.randrange(8), dice.randrange(8)]
        found.append({"event": label, "time": k // 4, "data": data})
    return found


def parsed(program: ephemera.Program, rows: list[dict[str, Any]]) -> list[Event]:
    return [e for row in rows if isinstance(e := read_object(row, program.catalogue), Event)]


def test_what_is_seen_is_how_many_come_and_how_many_values_they_have() -> None:
    program = ephemera.compile(PROGRAM)
    parts = of_events(parsed(program, events(800)), program.catalogue.attributes)
    seen = observed(parts)
    assert round(seen.rates["r"], 1) == 0.1
    assert 1.5 < seen.rates["f"] < 2.5
    assert round(seen.distinct["f", 1]) == 8
    assert seen.origin("r") == "seen"


def test_events_of_one_moment_tell_nothing() -> None:
    program = ephemera.compile(PROGRAM)
    rows = [{"event": "r", "time": 1, "data": [1]}, {"event": "r", "time": 1, "data": [2]}]
    assert not observed(of_events(parsed(program, rows), program.catalogue.attributes))
    assert program.run(rows) == []


def test_a_history_is_run_by_what_is_seen_in_it() -> None:
    """Where r is rare, it is joined first, and that is stored."""
    program = ephemera.compile(PROGRAM)
    run = BatchRun(program._compiled, parsed(program, events(800)), World())
    (lane,) = run.engine.lanes.values()
    assert list(program._compiled.physical.rules) == ["q"]
    assert list(lane.rules) == ["q[b,c]", "q"]


def test_a_live_engine_takes_another_order_when_other_events_come_and_answers_the_same() -> None:
    """First r comes as often as others, then it hardly does: from then on it is searched first."""
    program = ephemera.compile(PROGRAM)
    later = [{**row, "time": row["time"] + 400} for row in events(4_000, rare=300)]
    rows = events(1_500, rare=2) + later
    live = Engine(program._compiled.physical, World())
    given: list[Event] = []
    (lane,) = live.lanes.values()
    for event in parsed(program, rows):
        found = live.send([event])
        given += [e for part in found.events for e in part.events()] + list(found.few)
    found = live.advance(FAR)
    given += [e for part in found.events for e in part.events()] + list(found.few)
    assert lane.reordering is not None
    assert lane.reordering.times > 0
    assert lane.rules["q"].plan.orders[1].probes[0].leaf == 2
    expected = BatchRun(program._compiled, parsed(program, rows), World()).run([]).events
    assert sorted(e.key for e in given) == sorted(e.key for e in expected) != []
