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
from ephemera.engine.spread import Spread
from ephemera.kernels.history import FAR
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, cases


def spread_of(rules: Ruleset, world: World, places: int) -> Spread:
    plan = lower(rules)
    facts = derive(plan)
    return Spread(Compiled(rules, plan, facts, Limits(plan, facts)), world, 0, places, -FAR, FAR)


def beats(events: list[Event], dice: Random) -> list[Beat]:
    """Events by their ends, cut into batches; some batches have none."""
    ordered = sorted(events, key=lambda e: e.time.end)
    found: list[Beat] = []
    while ordered:
        size = dice.choice([0, 1, 1, 2, 3, 5, 8])
        found.append(Beat(ordered[:size]))
        ordered = ordered[size:]
    return [*found, Beat(ends=True)]


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 1_000_000))
def test_a_random_program_answers_what_the_oracle_answers(case: Case, seed: int) -> None:
    dice = Random(seed)
    spread = spread_of(case.ruleset, case.world, dice.choice([1, 2, 3]))
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for beat in beats(list(case.events), dice):
            host.beat(beat)
    found = outcome_of(case.ruleset, spread.compiled.plan, host.carried)
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))
    assert answers(found) == answers(case.outcome())
