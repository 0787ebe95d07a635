"""This module shows that rules that differ in distances or timers, and run as one, answer what each of them does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import Checked, check
from ephemera.rewrite import REWRITES, alike_limits
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
    "an absence in a timer": "Q{n}(i) <- a: A(i, x), w: extend(a, {s}), while w: not B(_, x);",
    "a collection in a timer": "Q{n}(i, count(j), max(j)) <- c: C(i, x), w: extend(c, {s}), while w: collect B(j, x);",
    "an unfolded collection": "Q{n}(i, count(j)) <- a: A(i, x), w: from-end-backward(a, {s}),"
    " while w: collect C(j, y) where {{ y > x }};",
    "an optional collection": "Q{n}(i, count(j)) <- a: A(i, x), w: extend(a, {s}), while w: collect optional B(j, x);",
    "a timer alone": "Q{n}(i) <- c: C(i, x), w: shift-forward(c, {s});",
    "a timer that may not be": "Q{n}(i) <- c: C(i, x), w: shorten(c, {s}), while w: not B(_, x);",
    "a timer before": "Q{n}(i) <- c: C(i, {n}), w: extend-begin(c, {s}), while w: not B(_, 1);",
    "a timer behind which": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), w: from-start(a, {s}), w before[0, {t}] b;",
    "a timer in which": "Q{n}(i, j) <- a: A(i, x), c: C(j, x), w: extend(a, {s}), c during w, {{a,c}} within {t};",
    "a timer on a timer": "Q{n}(i) <- a: A(i, x), v: shift-forward(a, {s}), w: extend(v, {t}), while w: not B(_, x);",
    "a timer and a distance": "Q{n}(i, j) <- a: A(i, x), b: B(j, x), a before[0, {s}] b, w: extend(b, {t}),"
    " while w: not C(_, x);",
    "a timer and a constant": "Q{n}(i) <- a: A(i, x), x = {n}, w: extend(a, {s}), while w: not B(_, x), i != {t};",
    "a timer whose answers others read": "R{n}(i, x) <- a: A(i, x), w: extend(a, {s}), while w: not B(_, x);\n"
    "Q{n}(i, k) <- r: R{n}(i, x), c: C(k, x), {{r,c}} within 12;",
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
def test_rules_that_differ_in_lengths_of_time_answer_what_the_oracle_answers(
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
def test_rules_that_differ_in_lengths_of_time_are_one(template: str) -> None:
    (found, *_) = alike(checked_rules(template, [(s, s) for s in LIMITS]))
    assert len(found.members) == len(LIMITS)


def test_rules_none_of_which_asks_for_less_than_all_others_are_one() -> None:
    (found,) = alike(checked_rules(TEMPLATES["from and to"], [(5, 6), (6, 7), (7, 8), (6, 8)]))
    assert len(found.members) == len(LIMITS)


@pytest.mark.parametrize("template", ["within", "an absence in a timer"])
def test_variables_may_have_other_names_in_rules_that_are_one(template: str) -> None:
    rules = [TEMPLATES[template].format(n=n, s=s) for n, s in enumerate(LIMITS)]
    rules[-1] = rules[-1].replace("(i, x)", "(k, y)").replace("(i", "(k").replace("x)", "y)").replace("a:", "c:")
    rules[-1] = rules[-1].replace("extend(a,", "extend(c,").replace("{a,", "{c,")
    checked = check(Source("limits.eq", DECLARED + "\n".join(rules)))
    assert checked.rules is not None, checked.report
    (found,) = alike(checked)
    assert len(found.members) == len(LIMITS)
    given_events = [
        Event(
            attributes_term(label, [("id", n), ("x", n % 2)]), Interval(n * 1_000_000, n * 1_000_000), positional=True
        )
        for n, label in enumerate("ABBAABAABBBAABABA")
    ]
    expected = answers(evaluate(checked.rules, given_events, World()))
    assert answers(BatchRun(planned(checked), given_events, World()).run([])) == expected


def test_a_few_rules_that_differ_in_distances_stay_apart() -> None:
    assert not alike(checked_rules(TEMPLATES["within"], [(s, s) for s in LIMITS[: MANY - 1]]))


def test_a_rule_that_keeps_far_more_than_others_stays_apart() -> None:
    (found,) = alike(checked_rules(TEMPLATES["within"], [*((s, s) for s in LIMITS), (3_600, 0)]))
    assert len(found.members) == len(LIMITS)


def test_what_is_put_together_keeps_events_as_long_as_the_rule_that_keeps_them_longest() -> None:
    plan = planned(checked_rules(TEMPLATES["before"], [(s, s) for s in LIMITS]))
    (lane,) = plan.physical.lanes.plans.values()
    assert {history.reach for history in lane.histories.values()} == {0, max(LIMITS) * 1_000_000}


@pytest.mark.parametrize("name", ["an absence in a timer", "a collection in a timer", "a timer on a timer"])
def test_rules_that_differ_in_timers_keep_together_what_they_keep_apart(name: str) -> None:
    checked = checked_rules(TEMPLATES[name], [(s, s) for s in LIMITS])
    alone = checked_rules(TEMPLATES[name], [(max(LIMITS), max(LIMITS))])
    assert _needed(planned(checked)) == _needed(planned(alone))


def _needed(compiled: Compiled) -> list[object]:
    (lane,) = compiled.physical.lanes.plans.values()
    return [(history.needed, history.reach) for history in lane.histories.values()]


TIMED = "EVENT A(id: int, x: int);\nEVENT B(id: int, x: int);\n" + "\n".join(
    TEMPLATES["an absence in a timer"].format(n=n, s=s) for n, s in enumerate(LIMITS)
)


def _of_each(label: str, count: int = 30) -> list[dict[str, object]]:
    return [{"event": "B" if k % 7 == 3 else label, "time": k, "data": [k, k % 3]} for k in range(count)]


def _in_order(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(str, found))


def test_what_waits_for_timers_of_rules_that_are_one_goes_on_from_a_snapshot_in_other_words() -> None:
    events = _of_each("A")
    first = ephemera.compile(TIMED).engine()
    rules = TIMED.replace("(i, x)", "(k, z)").replace("(i)", "(k)").replace("(_, x)", "(_, z)").split("\n")
    second = ephemera.compile("\n".join([*rules[:2], *reversed(rules[2:])])).engine()
    found = first.send_many(events[:17])
    second.restore(first.snapshot())
    found = [*found, *second.send_many(events[17:]), *second.finish()]
    assert _in_order(found) == _in_order(ephemera.compile(TIMED).run(events))


def test_the_state_of_a_version_that_kept_rules_apart_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    events = _of_each("A", 40)
    with monkeypatch.context() as before:
        before.setattr(alike_limits, "MANY", 1 << 30)
        apart = ephemera.compile(TIMED).engine()
        found = apart.send_many(events[:9])
        taken = apart.snapshot()
    other = ephemera.compile(TIMED).engine().restore(taken)
    found += [*other.send_many(events[9:20]), *ephemera.compile(TIMED).engine().restore(other.snapshot()).finish()]
    assert _in_order(found) == _in_order(ephemera.compile(TIMED).run(events[:20]))


def test_a_rule_joins_those_that_differ_in_timers_while_it_runs_and_leaves_them() -> None:
    events = _of_each("A", 60)
    rules = TIMED.split("\n")
    at_work = ephemera.compile("\n".join(rules[:-1])).engine()
    found = at_work.send_many(events[:20])
    at_work.change(ephemera.compile(TIMED), look_back="available")
    found += at_work.send_many(events[20:40])
    at_work.change(ephemera.compile("\n".join(rules[:-1])))
    found += [*at_work.send_many(events[40:]), *at_work.finish()]
    kept = [answer for answer in found if answer["event"] != "Q3"]
    assert _in_order(kept) == _in_order(ephemera.compile("\n".join(rules[:-1])).run(events))
