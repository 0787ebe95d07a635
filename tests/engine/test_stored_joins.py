"""This module shows that joins which are stored or shared change no answer, and are stored where that pays."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import ephemera
from ephemera.analysis.flows import Statistics
from ephemera.base.span import Source
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Engine
from ephemera.formats.json_events import read_object
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import PhysicalPlan, physical_plan, prepare
from ephemera.pipeline import check
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, cut
from tests.engine.spreading import outcome_of, spread_over
from tests.engine.test_split_joins import case, letters
from tests.strategies import chains
from tests.strategies.cases import answers

SEEDS = 20
SHARING = sys.modules["ephemera.rewrite.share_joins"]
EVENTS = "EVENT c(id: int, v: int) RATE 1 per sec; EVENT d(id: int, w: int) RATE 1 per sec; EVENT e(u: int){};"
SELECTIVE = "q(i, j) <- a: c(i, v), b: d(j, w), f: e(_), {a, b, f} within 1 min, v + w = 999;"


def joins(plan: PhysicalPlan) -> list[str]:
    return [name for name, point in plan.plan.points.items() if point.kind == "join"]


def planned(program: str, statistics: Statistics | None = None) -> PhysicalPlan:
    checked = check(Source("p.eq", program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    return physical_plan(checked.rules, checked.plan, checked.facts, statistics=statistics)


def shared_case(seed: int) -> tuple[str, list[dict[str, object]]]:
    """A random chain, the same with other names and a condition that says nothing new, and a stream."""
    dice = Random(seed)
    text = chains.program(dice)
    declared, rules = text.split("\n", 1)
    renamed = re.sub(r"\b([xyzu])\b", r"\1\1", re.sub(r"\be([0-9])\b", r"g\1", rules))
    again = re.sub(r";\s*$", ", {g0} within 99;", renamed.strip())
    return f"{declared}\n{rules}\n{again.replace('p(', 'again(', 1)}", chains.stream(dice, 36)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_rule_answers_the_same_if_all_its_joins_are_stored(seed: int) -> None:
    rules, plan, facts, events = case(seed)
    compiled = prepare(rules, plan, facts, points="joins")
    expected = evaluate(rules, events, World())
    engine = Engine(compiled.physical, World())
    engine.load(of_events(events, plan.catalogue.attributes))
    given = engine.advance(FAR)
    found = [e for part in given.events for e in part.events()] + list(given.few)
    assert sorted(map(repr, found)) == sorted(map(repr, expected.events))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rules_that_share_joins_answer_what_the_oracle_answers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHARING, "_gain", len)
    program, stream = shared_case(seed)
    checked = check(Source("p.eq", program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    events = [e for g in stream if isinstance(e := read_object(g, checked.plan.catalogue), Event)]
    expected = evaluate(checked.rules, events, World())
    for places in (1, 3):
        found, _ = spread_over(checked.rules, checked.plan, checked.facts, events, World(), places)
        assert answers(found) == answers(expected)
        assert letters(found) == letters(expected)


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_shared_joins_live_whoever_forgets_or_fails(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHARING, "_gain", len)
    program, stream = shared_case(seed)
    checked = check(Source("p.eq", program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    events = [e for g in stream if isinstance(e := read_object(g, checked.plan.catalogue), Event)]
    dice = Random(seed)
    compiled = prepare(checked.rules, checked.plan, checked.facts)
    spread = DistributedProgram(compiled, World(), 0, dice.choice([1, 2, 3]), -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(sorted(events, key=lambda e: e.time.end), dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    found = outcome_of(checked.rules, checked.plan, host.carried)
    assert answers(found) == answers(evaluate(checked.rules, events, World()))


def test_most_random_chains_share_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHARING, "_gain", len)
    shared = [seed for seed in range(SEEDS) if joins(planned(shared_case(seed)[0]))]
    assert len(shared) > SEEDS // 2


def test_a_selective_join_is_stored_where_the_third_event_comes_often() -> None:
    assert joins(planned(EVENTS.format(" RATE 50 per sec") + SELECTIVE)) == ["q[a,b]"]
    assert joins(planned(EVENTS.format(" RATE 1 per hour") + SELECTIVE)) == []


def test_what_was_seen_counts_more_than_what_was_declared() -> None:
    program = EVENTS.format(" RATE 1 per hour") + SELECTIVE
    assert joins(planned(program, Statistics({"e": 50.0}))) == ["q[a,b]"]


def test_the_rare_event_is_searched_first() -> None:
    program = (
        "EVENT f(x: int, y: int) RATE 100 per sec; EVENT g(y: int, z: int) RATE 100 per sec; EVENT r(z: int){};"
        "q(x, z) <- a: f(x, y), b: g(y, z), c: r(z), {{a, b, c}} within 1 min;"
    )
    rare = planned(program.format(" RATE 1 per hour")).rules["q"]
    assert [probe.leaf for probe in rare.orders[1].probes] == [2, 0]
    often = planned(program.format(" RATE 100000 per sec")).rules["q"]
    assert [probe.leaf for probe in often.orders[1].probes] == [0, 2]


def test_rules_share_a_join_whatever_they_call_it() -> None:
    events = "EVENT a(x: int, v: int) RATE 9 per sec; EVENT b(x: int, w: int) RATE 9 per sec; EVENT n(x: int);"
    first = "p(x) <- i: a(x, v), j: b(x, w), {i, j} within 1h, v > w, t: extend(j, 1 min), while t: not n(x);"
    other = "q(k, m) <- f: a(k, m), g: b(k, o), {f, g} within 1h, m > o, t: extend(g, 2 min), while t: not n(k);"
    plan = planned(events + first + other)
    assert len(joins(plan)) == 1
    again = planned(events + other + first)
    assert sorted(plan.rewritten.names.rules.values()) == sorted(again.rewritten.names.rules.values())
    assert sorted(plan.rewritten.names.histories.values()) == sorted(again.rewritten.names.histories.values())


@pytest.mark.parametrize(
    "other",
    [
        "q(x) <- i: a(x, v), j: b(x, w), {i, j} within 2h, v > w;",  # another time
        "q(x) <- i: a(x, v), j: b(y, w), {i, j} within 1h, v > w;",  # other keys
        "q(x) <- i: a(x, v), j: a(x, w), {i, j} within 1h, v > w;",  # other events
        "q(x, count(*)) <- i: a(x, v), j: b(x, w), {i, j} within 1h, v > w, while j: collect n(x);",  # grouped
    ],
)
def test_what_is_not_the_same_join_is_not_shared(other: str) -> None:
    events = "EVENT a(x: int, v: int); EVENT b(x: int, w: int); EVENT n(x: int);"
    first = "p(x) <- i: a(x, v), j: b(x, w), {i, j} within 1h, v > w;"
    assert joins(planned(events + first + other)) == []


def test_rules_that_wait_for_different_sources_share_nothing() -> None:
    events = "EVENT a(x: int, v: int) RATE 9 per sec; EVENT b(x: int, w: int) RATE 9 per sec; EVENT n(x: int);"
    rules = (
        "p(x) <- i: a(x, v), j: b(x, w), {i, j} within 1h, v > w;"
        "q(x) <- i: a(x, v), j: b(x, w), {i, j} within 1h, v > w, t: extend(j, 1h), while t: not n(x);"
    )
    apart = 'STREAM s FROM "s.csv" CARRIES a, b; STREAM t FROM "t.csv" CARRIES n;'
    assert joins(planned(events + apart + rules)) == []
    assert len(joins(planned(events + 'STREAM s FROM "s.csv" CARRIES a, b, n;' + rules))) == 1


def test_a_program_of_one_rule_twice_runs_as_one() -> None:
    program = ephemera.compile(
        "EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x), j: b(x), {i, j} within 9; "
        "q(x, 1) <- k: a(x), l: b(x), {k, l} within 9;"
    )
    rows = [{"event": "a", "time": 1, "data": [1]}, {"event": "b", "time": 3, "data": [1]}]
    assert program.run(rows) == [
        {"event": "p", "time": [1, 3], "data": [1]},
        {"event": "q", "time": [1, 3], "data": [1, 1]},
    ]
