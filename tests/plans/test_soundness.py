"""This module shows that relevance is sound: deleting at every step all that is irrelevant changes no answer.

The cases are those of the generator. Every second stream comes twice, one after the other, so that there is something
to forget; in two of three cases the analysis is told how long the events of the stream last, as declarations would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pytest

from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan, Points
from ephemera.analysis.nodes import Bound, Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.weights import at_most
from ephemera.rules.nodes import Schema
from ephemera.terms.events import Event, Interval
from tests.plans.meaning import given
from tests.plans.stepwise import Conditions, Outcome, conditions_of, step_by_step, stored_by
from tests.strategies.cases import Case, sample

CASES = 36
LEAST_DELETED = 0.3
"""Of what was stored in a trial, on the average: a single one may store more than all others together."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan with its facts and a stream."""

    case: Case
    plan: Plan
    facts: Facts
    events: Sequence[Event]

    def run(self, conditions: Conditions) -> Outcome:
        return step_by_step(self.plan, conditions, given(self.case.ruleset, self.events, self.case.world))


def trials(points: Points, count: int = CASES) -> Iterator[Trial]:
    for number, case in enumerate(sample(count)):
        if case is not None:
            events = twice(case.events, 1_000_000 * (number % 5)) if number % 2 else case.events
            plan = lower(case.ruleset, points)
            yield Trial(case, plan, derive(declared(plan, events) if number % 3 else plan), events)


def twice(events: Sequence[Event], pause: int) -> list[Event]:
    """The stream, and after a pause the same again."""
    if not events:
        return []
    by = max(e.time.end for e in events) - min(e.time.begin for e in events) + 1 + pause
    again = [replace(e, time=Interval(e.time.begin + by, e.time.end + by)) for e in events]
    return [*events, *again]


def declared(plan: Plan, events: Sequence[Event]) -> Plan:
    """The plan as if the length of every base event were declared; only the analysis may see it."""
    longest: dict[str, int] = {}
    for e in events:
        longest[e.term.label] = max(longest.get(e.term.label, 0), e.time.end - e.time.begin)
    schemas = {label: Schema(label, None, longest=length) for label, length in longest.items()}
    return replace(plan, catalogue=replace(plan.catalogue, events=schemas))


@pytest.mark.parametrize("points", ["rules", "joins"])
@pytest.mark.parametrize("count", [CASES, pytest.param(3 * CASES, marks=pytest.mark.slow)])
def test_deleting_what_is_irrelevant_changes_nothing(points: Points, count: int) -> None:
    shares: list[float] = []
    for trial in trials(points, count):
        outcome = trial.run(stored_by(trial.facts))
        assert outcome.is_same, (trial.case.program, outcome.lost, outcome.gained)
        shares += [outcome.deleted / outcome.stored] if outcome.stored else []
    deleted = sum(shares) / len(shares)
    print(f"{deleted:.0%} of the tuples deleted, in {len(shares)} trials")
    assert deleted >= LEAST_DELETED


def test_what_engines_store_is_no_more_than_what_is_relevant() -> None:
    """So that the test above, which deletes by what engines store, deletes all that the conditions allow."""
    for trial in islice(trials("rules"), 30):
        deleted = [trial.run(by(trial.facts)).deleted for by in (conditions_of, stored_by)]
        assert deleted[0] <= deleted[1], trial.case.program


def test_keeping_half_as_long_is_noticed() -> None:
    """The test above can fail: conditions that are too short lose or gain answers in many cases."""
    changed = total = 0
    for trial in islice(trials("rules"), 60):
        short = {where: [_half(b) for b in bounds] for where, bounds in conditions_of(trial.facts).items()}
        total += 1
        changed += not trial.run(short).is_same
    assert changed >= total // 20


def _half(bound: Bound) -> Bound:
    return bound if bound.time is None else replace(bound, time=at_most(bound.time.bound // 2 - 1))
