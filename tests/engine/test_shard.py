"""This module shows that live programs answer the same in shards with durable state, whoever forgets or fails."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.algebra.lower import lower
from ephemera.analysis.limits import Limits
from ephemera.analysis.relevance import derive
from ephemera.engine.compiled import Compiled
from ephemera.engine.shipments import LATE
from ephemera.engine.spread import Spread
from ephemera.kernels.history import FAR
from ephemera.pipeline import compile
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from tests.engine.living import STREAMS, Beat, Host, arriving, cut, of_kind
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, cases


def spread_of(rules: Ruleset, world: World, places: int) -> Spread:
    plan = lower(rules)
    facts = derive(plan)
    return Spread(Compiled(rules, plan, facts, Limits(plan, facts)), world, 0, places, -FAR, FAR)


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_a_random_program_answers_what_the_oracle_answers(case: Case, seed: int, streams: bool) -> None:
    dice = Random(seed)
    rules = compile(case.program + STREAMS).compiled.rules if streams else case.ruleset
    spread = spread_of(rules, case.world, dice.choice([1, 2, 3]))
    in_time = sorted(case.events, key=lambda e: e.time.end)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(arriving(case.events, dice) if streams else in_time, dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    assert not of_kind(host.carried, LATE)
    found = outcome_of(rules, spread.compiled.plan, host.carried)
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))
    assert answers(found) == answers(case.outcome())
