"""This module shows that rules which differ in constants, and run as one, answer what each of them answers alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rewrite import REWRITES
from ephemera.rewrite.optimize import optimize
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Value
from tests.engine.test_local import rows_at_a_time
from tests.strategies.cases import answers

DECLARED = """
EVENT A(id: int, x: int, v: any);
EVENT B(id: int, x: int, v: any);
"""
CONSTANTS = ["1", "2", "1.0", "2.5", '"a"', '"b"', "true"]
NUMBERS = ["1", "2", "2.0", "2.5", "3", "0.0", "9007199254740993", "9007199254740992.0", "9223372036854775807", "1e300"]
ENDS = [*NUMBERS, '"a"', '"ab"', '"b"', "true"]
"""Of ranges: numbers that doubles cannot tell apart, texts, and what compares with nothing."""

TEMPLATES = {
    "a pattern": "Q{n}(i, j) <- a: A(i, x, {c}), b: B(j, x, _), {{a,b}} within 5;",
    "two patterns": "Q{n}(i, j) <- a: A(i, x, {c}), b: B(j, x, {d}), {{a,b}} within 5;",
    "an equality": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, _), {{a,b}} within 5, v = {c};",
    "two equalities": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, w), {{a,b}} within 5, v = {c}, {d} = w;",
    "one variable twice": "Q{n}(i) <- a: A(i, x, v), v = {c}, v = {d};",
    "an inequality": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, w), {{a,b}} within 5, v < {c};",
    "a range": "Q{n}(i) <- a: A(i, x, v), v > {c}, v <= {d};",
    "a range the other way round": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, w), {{a,b}} within 5, {c} <= w, {d} > w;",
    "one end": "Q{n}(i) <- a: A(i, x, v), v >= {c};",
    "a range and an equality": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, w), {{a,b}} within 5, v >= {c}, w = {d};",
    "a range and a pattern": "Q{n}(i, j) <- a: A(i, x, {c}), b: B(j, x, w), {{a,b}} within 5, w < {d};",
    "two ranges": "Q{n}(i, j) <- a: A(i, x, v), b: B(j, x, w), {{a,b}} within 5, v > {c}, w < {d};",
    "the same end twice": "Q{n}(i) <- a: A(i, x, v), v > {c}, v > {d};",
    "a range and an inequality": "Q{n}(i) <- a: A(i, x, v), v < {c}, v != {d};",
    "a range and an absence": "Q{n}(i) <- a: A(i, x, v), w: extend(a, 3), while w: not B(_, x, {d}), v < {c};",
    "a range and a collection": "Q{n}(i, count(j)) <- a: A(i, x, v), w: extend(a, 3), v <= {c},"
    " while w: collect B(j, x, u) where {{ u > {d} }};",
    "an equality and a range of one": "Q{n}(i) <- a: A(i, x, v), v = {c}, v < {d};",
    "an alternative": "Q{n}(i) <- a: A(i, x, v), (v = {c} or x = {n});",
    "an absence": "Q{n}(i) <- a: A(i, x, _), w: extend(a, 3), while w: not B(_, x, {c});",
    "an absence under a condition": "Q{n}(i) <- a: A(i, x, v), w: extend(a, 3), while w: not B(_, x, _), v = {c};",
    "a collection": "Q{n}(i, count(j)) <- a: A(i, x, v), w: extend(a, 3), while w: collect B(j, x, {c}), v != {d};",
    "an optional collection of a constant": "Q{n}(i, count(j)) <- a: A(i, x, {c}), w: extend(a, 3),"
    " while w: collect optional B(j, x, {d});",
    "an optional collection under two conditions": "Q{n}(i) <- a: A(i, x, v), w: extend(a, 3),"
    " while w: collect optional B(j, x, u) where {{ u != {d} }}, v != {c}, j != {n}, having {{ count(j) < 2 }};",
    "two optional collections": "Q{n}(i, sum(j), max(k)) <- a: A(i, x, v), w: extend(a, 3), v != {c},"
    " while w: collect optional B(j, x, _), while w: collect optional B(k, _, {d}), j != {n};",
    "a constant in the head": "Q{n}(i, {c}) <- a: A(i, x, {d});",
    "what others read": "R(i, {c}) <- a: A(i, x, {c});\nQ{n}(i, j) <- r: R(i, {c}), b: B(j, x, _), {{r,b}} within 5;",
    "nothing": "Q{n}(i) <- a: A(i, x, x);",
}


KINDS: tuple[list[Value], ...] = (
    [1, 2, 1.0, 2.5, "a", "b", True, None, 3],
    [0, 1, 2, 3, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    [0.0, -0.0, 1.0, 2.0, 2.5, 3.0, float(2**53), float(2**63), -1e300],
    ["", "a", "aa", "ab", "b", "c"],
    [2**53 + 1, float(2**53), 1, 2.5, "ab", None],
)
"""The values of a stream: of one kind, so that columns hold them as such, or mixed."""


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    values = st.sampled_from(draw(st.sampled_from(KINDS)))
    found: list[Event] = []
    for number in range(draw(st.integers(0, 40))):
        end = draw(st.integers(0, 20))
        attributes = [("id", number % 7), ("x", draw(st.integers(0, 2))), ("v", draw(values))]
        term = attributes_term(draw(st.sampled_from("AB")), attributes)
        found.append(Event(term, Interval(end * 1_000_000, end * 1_000_000), positional=True))
    return found


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@settings(max_examples=8)
@given(data=st.data())
def test_rules_that_are_alike_answer_what_the_oracle_answers(template: str, data: st.DataObject) -> None:
    check_template(template, data)


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@settings(max_examples=30)
@given(data=st.data())
def test_rules_that_are_alike_answer_what_the_oracle_answers_to_more(template: str, data: st.DataObject) -> None:
    check_template(template, data)


def check_template(template: str, data: st.DataObject) -> None:
    """Some rules of a template, over some events."""
    constants = st.sampled_from(data.draw(st.sampled_from([CONSTANTS, NUMBERS, ENDS])))
    pairs = data.draw(st.lists(st.tuples(constants, constants), min_size=2, max_size=5))
    rules = [template.format(n=n, c=c, d=d) for n, (c, d) in enumerate(pairs)]
    checked = check(Source("alike.eq", DECLARED + "\n".join(rules)))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    given_events = data.draw(events())
    expected = answers(evaluate(checked.rules, given_events, World()))
    ends = sorted({e.time.end for e in given_events})
    for stops, few in (([], 0), (ends, FEW), (ends, 0)):
        with rows_at_a_time(few):
            found = BatchRun(prepare(checked.rules, checked.plan, checked.facts), given_events, World()).run(stops)
        assert answers(found) == expected


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_rules_that_are_alike_are_one(template: str) -> None:
    checked = check(
        Source("alike.eq", DECLARED + "\n".join(template.format(n=n, c=n + 10, d=n + 50) for n in range(3)))
    )
    assert checked.plan is not None
    assert checked.facts is not None
    (found, *_) = optimize(checked.plan, checked.facts, REWRITES).alike.values()
    assert len(found.members) == 3


def test_rules_that_differ_in_more_are_not_one() -> None:
    checked = check(
        Source(
            "alike.eq",
            DECLARED
            + "P(i) <- a: A(i, x, 1), b: B(j, x, _), {a,b} within 5;\n"
            + "Q(i) <- a: A(i, x, 2), b: B(j, x, _), {a,b} within 6;"
            + "R(i) <- a: A(i, x, 1); S(x) <- a: A(i, x, 2);",
        )
    )
    assert checked.plan is not None
    assert checked.facts is not None
    assert not optimize(checked.plan, checked.facts, REWRITES).alike
