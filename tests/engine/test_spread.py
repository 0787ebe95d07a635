"""This module shows that a program answers the same wherever its events are, in one place or in several."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.base.span import Source
from ephemera.formats.json_events import read_object
from ephemera.physical.placement import Placement
from ephemera.pipeline import check
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.spreading import spread_over
from tests.plans.meaning import of_story
from tests.strategies.cases import Case, answers, cases

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds_in_several_places(path: Path) -> None:
    rules, events, world = of_story(path)
    plan = lower(rules)
    facts = derive(plan)
    expected = answers(evaluate(rules, events, world))
    for places in (1, 3):
        found, _ = spread_over(rules, plan, facts, events, world, places)
        assert len(found.events) == len(set(found.events))
        assert len(found.messages) == len(set(found.messages))
        assert answers(found) == expected


@settings(max_examples=30)
@given(case=cases())
def test_a_random_program_answers_what_the_oracle_answers(case: Case) -> None:
    plan = lower(case.ruleset)
    facts = derive(plan)
    for places in (1, 2, 7):
        found, _ = spread_over(case.ruleset, plan, facts, case.events, case.world, places)
        assert answers(found) == answers(case.outcome())
        assert len(found.events) == len(set(found.events))
        assert len(found.messages) == len(set(found.messages))


SHOP = """
EVENT order(id: string, customer: int); EVENT paid(id: string); EVENT complaint(customer: int);
late(i, c) <- o: order(i, c), w: extend(o, 5), while w: not paid(i);
"""


def test_rules_that_agree_on_their_key_run_side_by_side() -> None:
    found = _stages(SHOP + "unpaid(i) <- l: late(i, c), p: paid(i), {l, p} within 10;")
    assert [(g.level, g.rules) for g in found.groups] == [(0, ("late", "unpaid"))]
    assert found.placed["unpaid"].key == "i"
    assert not found.scattered


def test_rules_with_different_keys_are_levels() -> None:
    found = _stages(SHOP + "angry(c) <- l: late(i, c), k: complaint(c), {l, k} within 10;")
    assert [(g.level, g.rules) for g in found.groups] == [(0, ("late",)), (1, ("angry",))]


def test_a_rule_without_a_key_has_one_place() -> None:
    found = _stages(SHOP + "any(i, c) <- o: order(i, c), k: complaint(d), {o, k} within 10;")
    assert found.placed["any"].key is None
    assert found.placed["late"].key == "i"


def test_what_the_clock_derives_is_derived_in_one_place() -> None:
    program = """
    EVENT order(id: string); EVENT paid(id: string, customer: int);
    hour(h) <- t: timer:datetime(minute: 0, hour-of-day: h);
    quiet(h) <- t: timer:datetime(minute: 30, hour-of-day: h), w: extend-begin(t, 300), while w: not order(i);
    next(i, h) <- o: paid(i, c), t: timer:datetime(minute: 0, hour-of-day: h), o before t, {o, t} within 300;
    """
    checked = check(Source("shop.eq", program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    given: list[dict[str, object]] = [{"event": "order", "time": 397 * n, "data": [f"o{n}"]} for n in range(50)]
    given += [{"event": "paid", "time": 211 * n, "data": [f"o{n}", n % 7]} for n in range(100)]
    events = [e for g in given if isinstance(e := read_object(g, checked.plan.catalogue), Event)]
    expected = evaluate(checked.rules, events, World())
    found, busy = spread_over(checked.rules, checked.plan, checked.facts, events, World(), 4)
    assert len(found.events) == len(expected.events)
    assert answers(found) == answers(expected)
    assert {e.term.label for e in found.events} == {"hour", "quiet", "next"}
    assert len(busy) > 1


def test_what_does_not_show_its_key_may_be_derived_twice() -> None:
    assert _stages(SHOP + "somebody(c) <- o: order(i, c), p: paid(i), {o, p} within 10;").scattered == {"somebody"}


def _stages(program: str) -> Placement:
    return ephemera.compile(program)._compiled.physical.stages
