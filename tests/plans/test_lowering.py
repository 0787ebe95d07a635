"""This module shows that lowering is right: the plan of a program answers what the oracle answers."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings

from ephemera.algebra.check import check_plan
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Points
from ephemera.semantics.oracle import evaluate
from tests.plans.meaning import of_story, plan_answers, told_by_plans
from tests.strategies.cases import Case, answers, cases

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))
POINTS: tuple[Points, ...] = get_args(Points)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_plan_of_a_story_answers_what_the_oracle_answers(path: Path) -> None:
    rules, events, world = of_story(path)
    expected = answers(evaluate(rules, events, world))
    for points in POINTS:
        check_plan(lower(rules, points))
        assert told_by_plans(rules, plan_answers(rules, events, world, points)) == told_by_plans(rules, expected)


@settings(max_examples=30)
@given(cases())
def test_the_plan_of_a_random_program_answers_what_the_oracle_answers(case: Case) -> None:
    expected = answers(case.outcome())
    for points in POINTS:
        check_plan(lower(case.ruleset, points))
        assert plan_answers(case.ruleset, case.events, case.world, points) == expected
