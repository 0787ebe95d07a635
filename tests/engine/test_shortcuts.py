"""This module shows that what plans leave out, and what windows are not unfolded for, changes no answer."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.operators.join import RuleJoin
from ephemera.formats.json_events import read_object
from ephemera.kernels import history, search
from ephemera.kernels import keys as numbering
from ephemera.kernels.columns import Batch as Columns
from ephemera.kernels.columns import ints
from ephemera.kernels.event_columns import Events, distinct
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import Outcome, World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from ephemera.terms.values import key
from tests.strategies.cases import answers

POINTS = "TIME UNIT 1 ms;\nEVENT A(i: int, x: any, v: any);\nEVENT B(j: int, x: any, w: any);\n"
LASTING = POINTS.replace("any);", "any) LASTS AT MOST 3;")
WINDOW = "while w: collect B(_, x, u);"
BODIES = {
    "within": "Q(i, j) <- a: A(i, x, _), b: B(j, x, _), {a, b} within 4;",
    "before": "Q(i, j) <- a: A(i, x, _), b: B(j, x, _), a before[1, 3] b;",
    "after": "Q(i, j) <- a: A(i, _, _), b: B(j, _, _), b after[0, 2] a;",
    "without a key": "Q(i) <- a: A(i, _, _), b: B(_, _, _), {a, b} within 2;",
    "the same values": "Q(x) <- a: A(_, x, _), b: B(_, x, v), {a, b} within 3, v > 1;",
    "compared": "Q(i, j) <- a: A(i, x, v), b: B(j, x, u), {a, b} within 5, u < v;",
    "three": "Q(i, j, k) <- a: A(i, x, _), b: B(j, x, _), c: A(k, x, _), "
    "a before b, b before[0, 3] c, {a, c} within 5;",
    "three, one free": "Q(i, k) <- a: A(i, x, _), b: B(_, _, v), c: A(k, x, v), {a, b} within 3, {b, c} within 3;",
    "chained": "C(i, j, x) <- a: A(i, x, _), b: B(j, x, _), {a, b} within 3;\n"
    "Q(i, j, k) <- c: C(i, j, x), d: A(k, x, _), c before[0, 4] d;",
    "absence": "Q(i) <- a: A(i, x, _), w: extend(a, 3), while(excl,incl) w: not B(_, x, _);",
    "absence of two": "Q(i, k) <- a: A(i, x, _), b: A(k, x, _), a before[0, 4] b, from a until b: not B(_, x, _);",
    "least": f"Q(i, min(u)) <- a: A(i, x, _), w: from-start-backward(a, 4), {WINDOW}",
    "greatest, least and count": f"Q(i, max(u), min(u), count(*)) <- a: A(i, x, _), w: extend(a, 4), {WINDOW}",
    "sum and greatest": f"Q(i, sum(u), max(u), avg(u)) <- a: A(i, x, _), w: from-start-backward(a, 6), {WINDOW}",
    "in the order of time": f"Q(i, first(u), last(u), nth(u, 2), list(u)) <- a: A(i, x, _), w: extend(a, 4), {WINDOW}",
    "first": f"Q(x, first(u), last(u)) <- a: A(_, x, _), w: from-start-backward(a, 6), {WINDOW}",
    "times": "Q(i, max(end(b)), top(j, 2 by u)) <- a: A(i, x, _), w: extend(a, 4), while w: collect b: B(j, x, u);",
    "next": "Q(i, j) <- a: A(i, x, _), b: next B(j, x, _) after a within 4;",
    "last": "Q(i, j) <- a: A(i, x, _), b: last B(j, x, v) before a within 4 where { v > 0 };",
    "first in a window": "Q(i, j) <- a: A(i, x, _), w: extend(a, 3), b: first B(j, _, _) in w;",
    "by value": f"Q(x, max(u)) <- a: A(_, x, _), w: from-start-backward(a, 6), {WINDOW}",
    "a head without a value": "Q(i / j) <- a: A(i, x, _), b: B(j, x, _), {a, b} within 3;",
}
VALUES = st.integers(0, 2) | st.sampled_from([1.0, 1.5, "a"])
NUMBERS = st.integers(-3, 3)
ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(0, 12), st.integers(0, 3), st.integers(0, 2), VALUES, NUMBERS),
    min_size=1,
    max_size=25,
)


@cache
def program(text: str) -> tuple[Ruleset, Plan, Facts]:
    rules = check(Source("shortcuts.eq", text)).rules
    assert rules is not None
    plan = lower(rules)
    return rules, plan, derive(plan)


def events_of(rows: list[tuple[Any, ...]], rules: Ruleset, *, lasting: bool) -> list[Event]:
    found: list[Event] = []
    for label, at, length, number, x, v in rows:
        data = {"i" if label == "A" else "j": number, "x": x, "v" if label == "A" else "w": v}
        time = [at, at + length] if lasting else at
        event = read_object({"event": label, "time": time, "data": data}, rules.resolved.catalogue)
        assert isinstance(event, Event), event
        found.append(event)
    return found


def letters(outcome: Outcome) -> set[tuple[Any, ...]]:
    """What came to nothing, with the variables that have a name."""
    return {
        (d.rule, d.reason, *sorted((n, key(v)) for n, v in d.variables.items() if not n.startswith("_")))
        for d in outcome.dead_letters
    }


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("name", BODIES)
@given(rows=ROWS, ways=st.tuples(st.booleans(), st.booleans()), cuts=st.sets(st.integers(0, 15)))
@settings(max_examples=30)
def test_the_answers_are_the_oracle_s(
    name: str, lasting: bool, rows: list[tuple[Any, ...]], ways: tuple[bool, bool], cuts: set[int]
) -> None:
    whole, many = ways
    rules, plan, facts = program((LASTING if lasting else POINTS) + BODIES[name])
    rows = [(*row[:4], int(row[3]), row[5]) for row in rows] if whole else rows
    events = events_of(rows, rules, lasting=lasting)
    expected = evaluate(rules, events, World())
    with pytest.MonkeyPatch.context() as patch:
        if many:
            patch.setattr(numbering, "FEW", 1)
            patch.setattr(history, "FEW", 1)
            patch.setattr(search, "MOST_PAIRS", 3)
            patch.setattr(search, "MOST_IN_BUCKETS", 3)
        found = BatchRun(prepare(rules, plan, facts), events, World()).run(sorted(cut * 1000 for cut in cuts))
    assert answers(found) == answers(expected)
    assert letters(found) == letters(expected)


def rule_of(text: str) -> RuleJoin:
    rules, plan, facts = program(text)
    engine = BatchRun(prepare(rules, plan, facts), [], World()).engine
    (lane,) = engine.lanes.values()
    return lane.rules["Q"]


def test_distances_that_ranges_see_to_are_not_tested_and_others_are() -> None:
    for name in ("within", "before", "after", "chained"):
        orders = rule_of(POINTS + BODIES[name]).plan.orders
        assert not any(order.tests or any(p.tests for p in order.probes) for order in orders), name
    within = rule_of(LASTING + BODIES["within"]).plan.orders
    assert all(p.tests for o in within for p in o.probes)


def test_a_search_by_the_tighter_stamp_needs_no_test() -> None:
    orders = rule_of(LASTING + BODIES["before"]).plan.orders
    assert [p.stamp for p in orders[0].probes] == ["b.s"]
    assert not any(p.tests for o in orders for p in o.probes)


def test_columns_that_nothing_needs_are_not_carried() -> None:
    (probe,) = rule_of(POINTS + BODIES["within"]).plan.orders[0].probes
    assert probe.kept == frozenset({"i", "j", "a.s", "a.e", "b.s", "b.e"})
    (probe,) = rule_of(POINTS + BODIES["a head without a value"]).plan.orders[0].probes
    assert probe.kept is None


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("few", [1, 512])
def test_equal_events_are_one(rows: list[tuple[int, int, int]], ordered: bool, few: int) -> None:
    rows = sorted(rows) if ordered else rows
    columns = {"$.s": ints([0] * len(rows)), "$.e": ints([e for e, _, _ in rows])}
    values = {"@0": ints([a for _, a, _ in rows]), "@1": ints([b for _, _, b in rows])}
    events = Events("A", Columns({**columns, **values}, len(rows)), 2, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", few)
        (found,) = distinct([events])
    kept = zip(*(found.batch[n].tolist() for n in ("$.e", "@0", "@1")), strict=True)
    assert list(kept) == list(dict.fromkeys(rows))
    assert found.is_set
    assert distinct([found]) == [found]
