"""This module shows that hosts answer the same in however small slices of time their engines are driven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine import driver
from ephemera.engine.cluster import routing
from ephemera.engine.cluster.message import EventsFor, LateInput
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Engine, Found
from ephemera.engine.hosts import batch
from ephemera.formats.reading import read_event
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import prepare
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, cut, of_kind
from tests.engine.spreading import outcome_of, spread_over
from tests.strategies.cases import Case, answers, sample

CASES = 14


@pytest.fixture(scope="module")
def chosen() -> list[Case]:
    return [case for case in sample(CASES) if case is not None and len(case.events) > 4]


@pytest.fixture(autouse=True)
def steps() -> Iterator[list[int]]:
    """Slices are small, and how many steps engines have taken is counted."""
    taken = [0]
    advance = Engine.advance

    def counted(self: Engine, reached: int | Mapping[str, int]) -> Found:
        taken[0] += 1
        return advance(self, reached)

    with pytest.MonkeyPatch.context() as patch:
        for module in (driver, routing, batch):
            patch.setattr(module, "SLICE", 2)
        patch.setattr(Engine, "advance", counted)
        yield taken


def test_over_a_history(chosen: list[Case], steps: list[int]) -> None:
    for case in chosen:
        plan = lower(case.ruleset)
        run = batch.BatchRun(prepare(case.ruleset, plan, derive(plan)), case.events, case.world)
        assert answers(run.run(run.slices())) == answers(case.outcome()), case.program
    assert steps[0] > 3 * len(chosen)


def test_in_partitions(chosen: list[Case], steps: list[int]) -> None:
    for case in chosen:
        plan = lower(case.ruleset)
        found, _ = spread_over(case.ruleset, plan, derive(plan), case.events, case.world, 2)
        assert answers(found) == answers(case.outcome()), case.program
    assert steps[0] > 3 * len(chosen)


def test_in_shards_of_a_live_program(chosen: list[Case], steps: list[int]) -> None:
    batches = 0
    for seed, case in enumerate(chosen):
        plan, dice = lower(case.ruleset), Random(seed)
        spread = DistributedProgram(prepare(case.ruleset, plan, derive(plan)), case.world, 0, 1, -FAR, FAR)
        with TemporaryDirectory() as folder:
            host = Host(spread, Path(folder), dice, workers=1, fails=False)
            beats = [*map(Beat, cut(sorted(case.events, key=lambda e: e.time.end), dice)), Beat(ends=True)]
            for beat in beats:
                host.beat(beat)
            batches += len(beats) * len(spread.stages.groups)
        assert not of_kind(host.carried, LateInput)
        assert answers(outcome_of(case.ruleset, plan, host.carried)) == answers(case.outcome()), case.program
    assert steps[0] > batches


def test_what_goes_wrong_in_a_partition_says_which_event_was_the_last_to_come_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_engine: Engine, _reached: int | Mapping[str, int]) -> Found:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Engine, "advance", fails)
    program = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);")._compiled
    spread = DistributedProgram(program, World(), 0, 1, 1, 3)
    read = [read_event({"event": "a", "time": time, "data": [time]}, program) for time in (1, 2, 3)]
    events = [event for event in read if isinstance(event, Event)]
    routed = [s for event in events for s in spread.route(of_events([event], spread.plan.catalogue.attributes))]
    shipments = [one for one in routed if isinstance(one, EventsFor)]
    with pytest.raises(ZeroDivisionError) as error:  # a slice has two events, and the third waits to be taken in
        list(spread.run(0, 0, 0, shipments))
    (note,) = error.value.__notes__
    assert note.startswith("the last event taken in was")
    assert note.endswith('"data": [2]}')
