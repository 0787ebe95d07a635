"""This module shows that programs by the clock answer the same over any streams, whichever of them speaks first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.cluster.message import LateInput
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import BatchRun
from ephemera.formats.json_events import write_event
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled, prepare
from ephemera.semantics.oracle import evaluate
from tests.engine.living import Beat, Host, of_kind
from tests.engine.spreading import outcome_of, spread_over
from tests.strategies.cases import answers
from tests.strategies.clocks import SECOND, Timed, timed


def compiled(case: Timed) -> Compiled:
    plan = lower(case.rules)
    facts = derive(plan)
    return prepare(case.rules, plan, facts, case.world.calendars)


@given(case=timed(), places=st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_a_history_answers_what_the_oracle_answers(case: Timed, places: int) -> None:
    program = compiled(case)
    events = [e for e, _ in case.arrivals]
    expected = answers(evaluate(case.rules, events, case.world))
    for cuts in ([], sorted({e.time.end for e in events})):
        assert answers(BatchRun(program, events, case.world).run(cuts)) == expected
    found, _ = spread_over(case.rules, program.plan, program.facts, events, case.world, places)
    assert answers(found) == expected
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))


@given(case=timed(), one_by_one=st.booleans())
@settings(max_examples=40)
def test_live_it_answers_the_same_whoever_speaks_first(case: Timed, one_by_one: bool) -> None:
    program = ephemera.compile(case.program)
    engine = program.engine(calendars=case.world.calendars, allow_unbounded=True)
    found: list[Mapping[str, Any]] = []
    for events, closes in case.batches:
        told = [write_event(e, program.catalogue, as_numbers=True) for e in events]
        for some in [[one] for one in told] if one_by_one else [told]:
            found += engine.send_many(some)
        found += engine.advance(closes / SECOND) if closes is not None else []
    found += engine.finish()
    assert not engine.late
    assert _lines(found) == _expected(case, program)


@given(case=timed(), seed=st.integers(0, 1_000_000))
@settings(max_examples=40)
def test_in_shards_it_answers_the_same_whoever_speaks_first(case: Timed, seed: int) -> None:
    dice = Random(seed)
    program = compiled(case)
    spread = DistributedProgram(program, case.world, 0, dice.choice([1, 3]), -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice, fails=dice.random() < 0.3)
        for events, closes in case.batches:
            host.beat(Beat(events, closes=closes))
        host.beat(Beat(ends=True))
    assert not of_kind(host.carried, LateInput)
    found = outcome_of(case.rules, program.plan, host.carried)
    assert answers(found) == case.expected()
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))


FIVES = """
EVENT bid(x: int); EVENT person(n: int); STREAM s CARRIES bid; STREAM u CARRIES person;
five(n) <- t: timer:datetime(second: n), n mod 5 = 0;
none(n) <- h: five(n), w: extend-begin(h, 1), while w: not bid(_);
"""


def test_an_instant_that_is_closed_counts_as_an_end() -> None:
    engine = ephemera.compile(FIVES).engine()
    assert engine.send({"event": "bid", "time": 16, "data": [1]}) == []
    assert [(a["event"], a["time"]) for a in engine.advance(9)] == [("none", [9, 10]), ("none", [14, 15])]
    assert [a["time"] for a in engine.send({"event": "bid", "time": 21, "data": [2]})] == [[19, 20]]
    assert [(a["event"], a["time"]) for a in engine.finish()] == [("five", 10), ("five", 15), ("five", 20)]


def _expected(case: Timed, program: ephemera.Program) -> list[str]:
    told = [write_event(e, program.catalogue, as_numbers=True) for e, _ in case.arrivals]
    told += [{"event": "noise", "time": t / SECOND, "data": []} for _, t in case.arrivals if t is not None]
    run = program.run_all(told, engine="oracle", calendars=case.world.calendars)
    return _lines([*run.answers, *run.messages])


def _lines(found: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(answer) for answer in found)
