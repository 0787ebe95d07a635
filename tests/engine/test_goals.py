"""This module shows that programs answer what they are asked for as if they were asked for everything.

Each rewrite alone, each omitted, all together and none at all give what the oracle gives, with the same dead letters of
the rules that run: in one process, in several places, and live.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.hosts.batch import BatchRun
from ephemera.physical.plan import Compiled, physical_plan, prepare
from ephemera.rewrite.optimize import Rewrite
from ephemera.rules.emitted import emitted_label
from ephemera.rules.outcome import Outcome, World
from ephemera.semantics.oracle import evaluate
from tests.engine.rewriting import IN_ONE_PLACE, letter_of
from tests.engine.spreading import spread_over
from tests.strategies.cases import formed, sample
from tests.strategies.goals import SECOND, Goal, goals

GOALS = 24
"""`test_rewrites` runs more of them, and with the slow tests many."""


def letters(outcome: Outcome, compiled: Compiled) -> set[tuple[object, ...]]:
    """The dead letters of the rules that were asked for, with what has a name."""
    return {letter_of(one) for one in outcome.dead_letters if one.rule in compiled.physical.running}


def planned(goal: Goal) -> Compiled:
    return prepare(goal.checked.rules, goal.checked.plan, goal.checked.facts, (), goal.emit)


def run_with(compiled: Compiled, rewrites: Sequence[Rewrite], goal: Goal, stops: Sequence[int] = ()) -> Outcome:
    emit = compiled.physical.emit
    physical = physical_plan(compiled.rules, compiled.plan, compiled.facts, (), rewrites, emit=emit)
    found = BatchRun(replace(compiled, physical=physical), goal.events, World()).run(stops)
    found.only(emit)
    return found


def test_the_generator_makes_what_the_rewrites_are_about() -> None:
    plans = [planned(goal).physical.rewritten for goal in goals(GOALS)]
    assert sum(bool(plan.unasked) for plan in plans) > GOALS // 4
    assert sum(bool(plan.pushed) for plan in plans) > GOALS // 6
    assert sum(bool(plan.useless) for plan in plans) > 0
    assert sum(bool(plan.fused) for plan in plans) > GOALS // 12


@pytest.mark.parametrize("choice", IN_ONE_PLACE)
def test_answers_to_what_is_asked_for_are_those_of_the_whole_program(choice: str) -> None:
    for goal in goals(GOALS):
        compiled = planned(goal)
        whole = evaluate(goal.checked.rules, goal.events)
        expected = letters(whole, compiled)
        whole.only(goal.emit)
        found = run_with(compiled, IN_ONE_PLACE[choice], goal, [3 * SECOND, 7 * SECOND])
        assert formed(found) == formed(whole), (goal.program, goal.emit)
        assert letters(found, compiled) == expected, (goal.program, goal.emit)


def test_the_oracle_runs_no_rule_that_nobody_asked_for() -> None:
    for goal in goals(GOALS):
        compiled = planned(goal)
        whole = evaluate(goal.checked.rules, goal.events)
        part = evaluate(goal.checked.rules, goal.events, running=compiled.physical.running)
        assert letters(part, compiled) == letters(whole, compiled) == {letter_of(one) for one in part.dead_letters}
        whole.only(goal.emit)
        part.only(goal.emit)
        assert formed(part) == formed(whole)


def test_goals_are_met_in_several_places() -> None:
    for goal in goals(GOALS):
        checked = goal.checked
        expected = evaluate(checked.rules, goal.events)
        expected.only(goal.emit)
        found, _ = spread_over(checked.rules, checked.plan, checked.facts, goal.events, World(), 3, goal.emit)
        assert formed(found) == formed(expected), (goal.program, goal.emit)


def test_random_programs_that_are_asked_for_some_events_answer_these() -> None:
    for seed, case in enumerate(sample(12)):
        if case is None:
            continue
        labels = sorted({emitted_label(rule.head) or "" for rule in case.ruleset.resolved.rules} - {""})
        emit = (
            frozenset(Random(seed).sample(labels, Random(seed + 1).randint(1, len(labels)))) if labels else frozenset()
        )
        plan = lower(case.ruleset)
        facts = derive(plan)
        compiled = prepare(case.ruleset, plan, facts, (), emit)
        expected = case.outcome()
        dead = {(rule, reason) for rule, reason, *_ in letters(expected, compiled)}
        expected.only(emit)
        found = BatchRun(compiled, case.events, case.world).run(())
        found.only(emit)
        assert formed(found) == formed(expected), (case.program, emit)
        assert {(rule, reason) for rule, reason, *_ in letters(found, compiled)} == dead, (case.program, emit)
        spread, _ = spread_over(case.ruleset, plan, facts, case.events, case.world, 3, emit)
        assert formed(spread) == formed(expected), (case.program, emit)
