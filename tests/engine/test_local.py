"""This module shows that the local engine answers what the oracle answers, however the history is cut into steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.state.identity import program_of
from ephemera.engine.state.snapshot import restore, take
from ephemera.kernels import history, search
from ephemera.kernels import keys as numbering
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import prepare
from ephemera.semantics.oracle import evaluate
from ephemera.stories.judge import judge
from ephemera.stories.read import read_story
from tests.plans.meaning import of_story
from tests.strategies.cases import Case, answers, cases, formed


@contextmanager
def rows_at_a_time(few: int) -> Iterator[None]:
    """Steps of no more tuples go row by row, and all others by columns; and rows soon become runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "FEW", few)
        patch.setattr(history, "MANY", 5)
        yield


STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds(path: Path) -> None:
    assert judge(read_story(path.read_text(encoding="utf-8")), path.name, engine="local") == []


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds_one_instant_at_a_time(path: Path) -> None:
    rules, events, world = of_story(path)
    plan = lower(rules)
    expected = answers(evaluate(rules, events, world))
    for few in (FEW, 0):
        with rows_at_a_time(few):
            batch = BatchRun(prepare(rules, plan, derive(plan), world.calendars), events, world)
            found = batch.run(sorted({e.time.end for e in events}))
        assert answers(found) == expected


@given(case=cases(), data=st.data())
def test_a_random_program_answers_what_the_oracle_answers(case: Case, data: st.DataObject) -> None:
    expected = formed(case.outcome())
    plan = lower(case.ruleset)
    facts = derive(plan)
    ends = sorted({e.time.end for e in case.events})
    cuts = data.draw(st.lists(st.sampled_from(ends), unique=True).map(sorted)) if ends else []
    for stops, few in (([], 0), (ends, FEW), (cuts, FEW), (cuts, 0)):
        with rows_at_a_time(few):
            found = BatchRun(prepare(case.ruleset, plan, facts), case.events, case.world).run(stops)
        assert formed(found) == expected


@given(case=cases())
@settings(max_examples=40)
def test_a_random_program_answers_the_same_by_the_ways_for_many_rows(case: Case) -> None:
    plan = lower(case.ruleset)
    facts = derive(plan)
    ends = sorted({e.time.end for e in case.events})
    expected = answers(case.outcome())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", 1)
        patch.setattr(search, "UNSORTED", 1)
        patch.setattr(history, "FEW", 0)
        for stops in ([], ends[::3]):
            patch.setattr(search, "MOST_PAIRS", 2)
            patch.setattr(search, "MOST_IN_BUCKETS", 2 if stops else search.MOST_IN_BUCKETS)  # first by buckets
            found = BatchRun(prepare(case.ruleset, plan, facts), case.events, case.world).run(stops)
            assert answers(found) == expected


@given(case=cases(), data=st.data())
def test_a_run_goes_on_from_a_snapshot(case: Case, data: st.DataObject) -> None:
    plan = lower(case.ruleset)
    facts = derive(plan)
    ends = sorted({e.time.end for e in case.events})
    compiled = prepare(case.ruleset, plan, facts)
    batch = BatchRun(compiled, case.events, case.world)
    batch.engine.load(of_events(case.events, plan.catalogue.attributes))
    everywhere = batch.engine.sources.names
    stop = data.draw(st.sampled_from(ends)) if ends else None
    for end in [*ends, FAR]:
        batch.take(batch.engine.advance(dict.fromkeys(everywhere, end)))
        if end == stop:
            program = program_of(compiled, case.world)
            taken = take(batch.engine, program)
            fresh = BatchRun(compiled, case.events, case.world).engine
            restore(fresh, program, plan.catalogue, taken)
            assert take(fresh, program).manifest == taken.manifest
            batch.engine = fresh
    assert answers(batch.finish()) == answers(case.outcome())
