"""This module shows that a live engine that is told nothing of how much comes is planned by what comes first.

Whatever is stored from then on, and whenever that is decided, its answers are those of the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ephemera
from ephemera.engine import first_look
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.rules.outcome import DeadLetter
from tests.strategies import planned

DECLARED = "EVENT c(id: int, v: int);\nEVENT d(id: int, w: int);\nEVENT e(id: int, u: int);\n"
RULE = "q(i, j, k) <- a: c(i, v), b: d(j, w), f: e(k, _), {a,b,f} within 160 sec, v + w = 99;\n"
PROGRAM = DECLARED + RULE
SEEN = "ecedeeee"


def stream(count: int, labels: str = SEEN) -> list[dict[str, Any]]:
    dice = Random(3)
    return [{"event": labels[k % len(labels)], "time": k, "data": [k, dice.randrange(100)]} for k in range(count)]


def stored(engine: LiveEngine) -> list[str]:
    return [p.name for p in engine.compiled.physical.plan.points.values() if p.kind == "join"]


def in_order(found: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(map(str, found))


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decided after a few events."""
    monkeypatch.setattr(first_look, "ENOUGH", 400)


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("size", [1, 17, 500])
def test_what_comes_first_says_which_joins_are_stored(size: int) -> None:
    events = stream(640)
    engine = ephemera.compile(PROGRAM).engine()
    assert not stored(engine)
    found: list[dict[str, Any]] = []
    for first in range(0, len(events), size):
        found += engine.send_many(events[first : first + size])
    assert stored(engine)
    assert in_order([*found, *engine.finish()]) == in_order(ephemera.compile(PROGRAM).run(events))


@pytest.mark.usefixtures("_soon")
def test_what_is_declared_is_not_looked_for() -> None:
    rated = PROGRAM.replace(");\nEVENT", ") RATE 1 per sec;\nEVENT").replace("u: int);", "u: int) RATE 1 per sec;")
    engine = ephemera.compile(rated).engine()
    engine.send_many(stream(640))
    assert not stored(engine)


@pytest.mark.usefixtures("_soon")
def test_an_engine_goes_on_from_a_snapshot_as_it_was_planned(tmp_path: Path) -> None:
    events = stream(640)
    engine = ephemera.compile(PROGRAM).engine()
    found: list[dict[str, Any]] = []
    last = None
    for first in range(0, 520, 40):  # before and after it is decided, each time only what is new
        found += engine.send_many(events[first : first + 40])
        last = engine.snapshot(last)
        last.save(tmp_path)
    other = ephemera.compile(PROGRAM).engine().restore(tmp_path)
    assert stored(other) == stored(engine) != []
    found += [*other.send_many(events[520:]), *other.finish()]
    assert in_order(found) == in_order(ephemera.compile(PROGRAM).run(events))


@pytest.mark.usefixtures("_soon")
def test_an_engine_that_was_restored_before_it_was_decided_stays_as_it_is() -> None:
    events = stream(640)
    engine = ephemera.compile(PROGRAM).engine()
    found = engine.send_many(events[:50])
    other = ephemera.compile(PROGRAM).engine().restore(engine.snapshot())
    found += [*other.send_many(events[50:]), *other.finish()]
    assert not stored(other)
    assert in_order(found) == in_order(ephemera.compile(PROGRAM).run(events))


@pytest.mark.usefixtures("_soon")
def test_rules_change_behind_a_plan_by_what_came() -> None:
    events = stream(640)
    engine = ephemera.compile(PROGRAM).engine()
    found = engine.send_many(events[:450])
    engine.change(ephemera.compile(PROGRAM + "r(k) <- f: e(k, _), k > 600;\n"))
    found += [*engine.send_many(events[450:]), *engine.finish()]
    assert stored(engine)
    whole = ephemera.compile(PROGRAM).run(events)
    assert in_order([one for one in found if one["event"] == "q"]) == in_order(whole)


@pytest.mark.usefixtures("_soon")
def test_what_has_no_value_is_told_once() -> None:
    program = ephemera.compile(DECLARED + RULE.replace("q(i, j, k)", "q(i, j, 1 / (k mod 2))"))
    events = stream(640)
    engine = program.engine()
    told = []
    for first in range(0, len(events), 20):
        engine.send_many(events[first : first + 20])
        if first % 60 == 0:
            told += engine.take_dead_letters()
    engine.finish()
    told += engine.take_dead_letters()
    expected = program.run_all(events).undefined
    assert sorted(map(_told, told)) == sorted(map(_told, expected)) != []


def test_random_programs_answer_the_same_whenever_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = 0
    for seed in range(24):
        dice = Random(seed)
        own = planned.make(dice)
        try:
            program = ephemera.compile(re.sub(" RATE [^;]*", "", own.program))
            engine = program.engine(emit=own.emit)
        except ephemera.ProgramError:
            continue
        monkeypatch.setattr(first_look, "ENOUGH", dice.choice((4, 9, 20)))
        events = sorted(own.events, key=_end)
        found: list[dict[str, Any]] = []
        while events:
            count = dice.randint(1, 7)
            found += engine.send_many(events[:count])
            events = events[count:]
        found += engine.finish()
        decided += bool(engine._seen)
        assert in_order(found) == in_order(program.run(own.events, emit=own.emit)), (seed, own.program)
    assert decided > 3


def _told(letter: DeadLetter) -> list[tuple[str, object]]:
    return sorted((name, value) for name, value in letter.variables.items() if not name.startswith("_"))


def _end(event: dict[str, Any]) -> Any:
    time = event["time"]
    return time[1] if isinstance(time, list) else time
