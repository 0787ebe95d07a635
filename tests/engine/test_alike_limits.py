"""This module shows that rules which differ in how far events may lie apart, and run as one, answer what each does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import Checked, check
from ephemera.rewrite import REWRITES
from ephemera.rewrite.alike_limits import MANY
from ephemera.rewrite.optimize import Alike, optimize
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from tests.engine.test_local import rows_at_a_time
from tests.strategies.cases import answers

DECLARED = """
EVENT A(id: int, x: int);
EVENT B(id: int, x: int);
EVENT C(id: int, x: int) LASTS AT MOST 9;
"""
LIMITS = (5, 6, 7, 8)
"""Seconds that are about alike."""

TEMPLATES = {
    "within": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), {{a,b}} within {s};",
    "before": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), a before[0, {s}] b;",
    "from and to": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), a before[{s}, {t}] b;",
    "at least": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), {{a,b}} {s} sec apart, {{a,b}} within 15;",
    "and a constant": "Q{n}(i, j) <- a: A(i, {n}), b: B(j, x), a before[0, {s}] b, x != {n};",
    "and a range": "Q{n}(i, j) <- a: A(i, x), b: B(j, y), a before[0, {s}] b, x < y, y <= {n};",
    "intervals": "Q{n}(i, j) <- c: C(i, x), b: B(j, x), b during[1, {s}, 0, {t}] c;",
    "one that lasts": "Q{n}(i) <- c: C(i, x), {{c}} within {s};",
    "either way": "Q{n}(i, j) <- c: C(i, x), b: B(j, x), (b before[0, {s}] c or c before[0, {t}] b);",
    "three": "Q{n}(i, j, k) <- a: A(i, x), b: B(j, x), c: C(k, x), {{a,b}} within 4, b before[0, {s}] c;",
    "a timer": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), w: extend(a, 3), b after[0, {s}] w;",
    "an absence": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), a before[0, {s}] b, w: extend(b, 3), while w: not C(_, x);",
    "a collection": "Q{n}(i, count(k)) <- a: A(i, x), b: B(j, x), a before[0, {s}] b, w: extend(b, 9),"
    " while w: collect C(k, x);",
    "what others read": "R{n}(i, x) <- a: A(i, x), b: B(j, x), a before[0, {s}] b;\n"
    "Q{n}(i, k) <- r: R{n}(i, x), c: C(k, x), {{r,c}} within 12;",
}


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    found: list[Event] = []
    for number in range(draw(st.integers(0, 30))):
        label, stop = draw(st.sampled_from("ABC")), draw(st.integers(0, 20))
        start = stop - (draw(st.integers(0, 9)) if label == "C" else 0)
        term = attributes_term(label, [("id", number % 7), ("x", draw(st.integers(0, 2)))])
        found.append(Event(term, Interval(start * 1_000_000, stop * 1_000_000), positional=True))
    return found


def checked_rules(template: str, limits: list[tuple[int, int]]) -> Checked:
    rules = [template.format(n=n, s=min(pair), t=max(pair)) for n, pair in enumerate(limits)]
    return check(Source("limits.eq", DECLARED + "\n".join(rules)))


def planned(checked: Checked) -> Compiled:
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    return prepare(checked.rules, checked.plan, checked.facts)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@settings(max_examples=4)
@given(limits=st.lists(st.tuples(*[st.sampled_from(LIMITS)] * 2), min_size=4, max_size=9), given_events=events())
def test_rules_that_differ_in_distances_answer_what_the_oracle_answers(
    template: str, limits: list[tuple[int, int]], given_events: list[Event]
) -> None:
    checked = checked_rules(template, [*((s, s) for s in LIMITS), *limits])
    assert checked.rules is not None
    expected = answers(evaluate(checked.rules, given_events, World()))
    ends = sorted({e.time.end for e in given_events})
    for stops, few in (([], 0), (ends, FEW), (ends, 0)):
        with rows_at_a_time(few):
            assert answers(BatchRun(planned(checked), given_events, World()).run(stops)) == expected


def alike(checked: Checked) -> list[Alike]:
    assert checked.plan is not None
    assert checked.facts is not None
    return list(optimize(checked.plan, checked.facts, REWRITES).alike.values())


@pytest.mark.parametrize("template", [one for one in TEMPLATES.values() if one != TEMPLATES["from and to"]])
def test_rules_that_differ_in_distances_are_one(template: str) -> None:
    (found, *_) = alike(checked_rules(template, [(s, s) for s in LIMITS]))
    assert len(found.members) == len(LIMITS)


def test_rules_none_of_which_asks_for_less_than_all_others_are_put_together_as_far_as_that_goes() -> None:
    limits = [(s, 9) for s in LIMITS] + [(4, s) for s in LIMITS]
    assert [len(found.members) for found in alike(checked_rules(TEMPLATES["from and to"], limits))] == [4, 4]


def test_a_few_rules_that_differ_in_distances_stay_apart() -> None:
    assert not alike(checked_rules(TEMPLATES["within"], [(s, s) for s in LIMITS[: MANY - 1]]))


def test_a_rule_that_keeps_far_more_than_others_stays_apart() -> None:
    (found,) = alike(checked_rules(TEMPLATES["within"], [*((s, s) for s in LIMITS), (3_600, 0)]))
    assert len(found.members) == len(LIMITS)


def test_what_is_put_together_keeps_events_as_long_as_the_rule_that_keeps_them_longest() -> None:
    plan = planned(checked_rules(TEMPLATES["before"], [(s, s) for s in LIMITS]))
    (lane,) = plan.physical.lanes.plans.values()
    assert {history.reach for history in lane.histories.values()} == {0, max(LIMITS) * 1_000_000}
