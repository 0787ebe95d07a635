"""This module shows that live programs answer the same in shards with durable state, whoever forgets or fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.cluster.message import LateInput
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.language import compile
from ephemera.physical.plan import prepare
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.living import STREAMS, Beat, Host, arriving, cut, of_kind
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, cases


def spread_of(rules: Ruleset, world: World, places: int) -> DistributedProgram:
    plan = lower(rules)
    facts = derive(plan)
    return DistributedProgram(prepare(rules, plan, facts, world.calendars), world, 0, places, -FAR, FAR)


@settings(max_examples=20)
@given(case=cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_a_random_program_answers_what_the_oracle_answers(case: Case, seed: int, streams: bool) -> None:
    _check_a_random_program(case, seed, streams=streams)


@pytest.mark.slow
@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_many_random_programs_answer_what_the_oracle_answers(case: Case, seed: int, streams: bool) -> None:
    _check_a_random_program(case, seed, streams=streams)


def _check_a_random_program(case: Case, seed: int, *, streams: bool) -> None:
    dice = Random(seed)
    rules = compile(case.program + STREAMS)._compiled.rules if streams else case.ruleset
    spread = spread_of(rules, case.world, dice.choice([1, 2, 3]))
    in_time = sorted(case.events, key=lambda e: e.time.end)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(arriving(case.events, dice) if streams else in_time, dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    assert not of_kind(host.carried, LateInput)
    found = outcome_of(rules, spread.compiled.plan, host.carried)
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))
    assert answers(found) == answers(case.outcome())


def test_what_a_batch_writes_does_not_grow_with_the_state() -> None:
    few, many = (_written(within) for within in (400, 4_000))
    assert many.stored > 8 * few.stored
    assert many.bytes < 2 * few.bytes  # tenfold state is merged once more, and larger segments never again


@dataclass(frozen=True, slots=True)
class _Written:
    stored: int
    bytes: float


def _written(within: int) -> _Written:
    """What a join over some seconds stores, and how much its last batches write, one event in each second."""
    text = f"TIME UNIT 1 sec; EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x), j: b(x), {{i, j}} within {within};"
    compiled = compile(text)._compiled
    spread = DistributedProgram(compiled, World(), 0, 1, -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), Random(1), workers=1, fails=False)
        for batch in range(400):
            seconds = range(20 * batch, 20 * batch + 20)
            lines = [{"event": "ab"[k % 2], "time": k, "data": [k * k % 97]} for k in seconds]
            host.beat(Beat([e for line in lines if isinstance(e := read_event(line, compiled), Event)]))
    shard = next(iter(host.shards.values()))
    stored = sum(len(h) for one in shard.engines for lane in one.lanes.values() for h in lane.histories.values())
    return _Written(stored, sum(host.bytes[200:]) / 200)
