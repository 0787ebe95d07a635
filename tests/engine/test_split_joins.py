"""This module shows that rules over different keys are split into stored joins, and answer the same."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import ephemera
from ephemera.algebra.check import check_plan
from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.base.span import Source
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.json_events import read_object
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import PhysicalPlan, prepare
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import Outcome, World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, cut
from tests.engine.spreading import outcome_of, spread_over
from tests.strategies import chains
from tests.strategies.cases import answers

SEEDS = 40
"""`test_rewrites` has more of them among the slow tests."""
SHOP = """
EVENT order(id: string, product: string); EVENT shipped(id: string, tracking: string);
EVENT delivered(tracking: string); EVENT returned(id: string);
"""
COMPLETED = "completed(i, p) <- o: order(i, p), s: shipped(i, t), d: delivered(t), o before s, {o, s, d} within 48;"
RENAMED = "completed(i, p) <- g: order(i, p), s: shipped(i, u), d: delivered(u), g before s, {g, s, d} within 48;"


def physical(program: str) -> PhysicalPlan:
    return ephemera.compile(program)._compiled.physical


def keys(program: str) -> dict[str, str | None]:
    """By what each rule is cut."""
    return {name: placed.key for name, placed in physical(program).stages.placed.items()}


def joins(program: str) -> list[str]:
    return [name for name, point in physical(program).distributed.plan.points.items() if point.kind == "join"]


def case(seed: int) -> tuple[Ruleset, Plan, Facts, list[Event]]:
    """A random chain, and a stream."""
    dice = Random(seed)
    checked = check(Source("chain.eq", chains.program(dice)))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    given = chains.stream(dice, 36)
    events = [e for g in given if isinstance(e := read_object(g, checked.plan.catalogue), Event)]
    return checked.rules, checked.plan, checked.facts, events


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_chain_answers_what_the_oracle_answers(seed: int) -> None:
    rules, plan, facts, events = case(seed)
    expected = evaluate(rules, events, World())
    for places in (1, 3):
        found, _ = spread_over(rules, plan, facts, events, World(), places)
        assert answers(found) == answers(expected)
        assert len(found.events) == len(set(found.events))
        assert letters(found) == letters(expected)


def letters(outcome: Outcome) -> set[str]:
    """The heads that had no value: the rule and what was bound."""
    return {f"{letter.rule} {sorted(letter.variables.items())}" for letter in outcome.dead_letters}


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_a_random_chain_answers_the_same_live_whoever_forgets_or_fails(seed: int) -> None:
    rules, plan, facts, events = case(seed)
    dice = Random(seed)
    spread = DistributedProgram(prepare(rules, plan, facts), World(), 0, dice.choice([1, 2, 3]), -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(sorted(events, key=lambda e: e.time.end), dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    found = outcome_of(rules, plan, host.carried)
    assert answers(found) == answers(evaluate(rules, events, World()))


def test_most_random_chains_are_split_and_many_answer() -> None:
    split = answered = 0
    for seed in range(SEEDS):
        rules, plan, facts, events = case(seed)
        own = prepare(rules, plan, facts).physical
        if own.distributed is not own:
            split += 1
            answered += bool(evaluate(rules, events, World()).events)
    assert split > SEEDS // 2
    assert answered > SEEDS // 6


def test_a_chain_over_two_keys_runs_in_all_partitions() -> None:
    assert keys(SHOP + COMPLETED) == {"completed[o,s]": "i", "completed": "t"}


def test_what_the_whole_rule_implies_bounds_a_stored_join() -> None:
    rule = "completed(i) <- o: order(i, _), s: shipped(i, t), d: delivered(t), o before s, s before d, {o, d} within 9;"
    lanes = physical(SHOP + rule).distributed.lanes.plans
    kept = {name: one.reach for lane in lanes.values() for name, one in lane.histories.items()}
    assert None not in kept.values()


def test_what_is_absent_may_have_a_key_of_its_own() -> None:
    events = "EVENT order(id: int, p: int); EVENT shipped(id: int, p: int); EVENT returned(id: int);"
    rule = "kept(i) <- o: order(i, p), s: shipped(j, p), {o, s} within 3, w: extend(o, 9), while w: not returned(i);"
    assert keys(events + rule) == {"kept[o,s]": "p", "kept": "i"}


@pytest.mark.parametrize(
    "rule",
    [
        "n(i, count(*)) <- o: order(i, p), s: shipped(i, t), d: delivered(t), {o, s, d} within 9, "
        "w: extend(o, 9), while w: collect returned(i);",  # answers are made of many tuples
        "n(i) <- o: order(i, p), s: shipped(i, t), d: delivered(t), e: delivered(t), d != e, {o, s, d, e} within 9;",
        "n(concat(i, p)) <- o: order(i, p), s: shipped(i, t), d: delivered(t), {o, s, d} within 9;",
        "n(i) <- o: order(i, p), s: shipped(j, t), {o, s} within 9;",  # nothing is shared
        "n(i) <- o: order(i, p), s: shipped(i, t), {o, s} within 9;",  # one key is enough
    ],
)
def test_a_rule_stays_whole(rule: str) -> None:
    assert joins(SHOP + rule) == []


def test_who_asks_for_events_of_any_type_is_not_given_stored_joins() -> None:
    assert joins(SHOP + COMPLETED + "DETECT seen { var L } ON event e: var L {{ }} END") == []


def test_an_event_from_outside_is_no_stored_join() -> None:
    spread = DistributedProgram(ephemera.compile(SHOP + COMPLETED)._compiled, World(), 0, 3, -FAR, FAR)
    (stored,) = joins(SHOP + COMPLETED)
    width = len(spread._routes[stored][0][1]._variables)
    event = read_object({"event": stored, "time": 1, "data": [1] * width}, spread.plan.catalogue)
    assert isinstance(event, Event)
    parts = of_events([event], spread.plan.catalogue.attributes)
    assert list(spread.route(parts)) == []
    assert list(spread.route(parts, after=0)) != []


def test_a_plan_with_stored_joins_is_sound() -> None:
    for seed in range(20):
        check_plan(physical(chains.program(Random(seed))).distributed.plan)


def test_the_names_of_state_do_not_depend_on_the_names_of_variables() -> None:
    names, others = (physical(SHOP + rule).distributed.rewritten.names for rule in (COMPLETED, RENAMED))
    assert sorted(names.rules.values()) == sorted(others.rules.values())
    assert sorted(names.histories.values()) == sorted(others.histories.values())
    assert set(names.rules.values()).isdisjoint(physical(SHOP + COMPLETED).rewritten.names.rules.values())
