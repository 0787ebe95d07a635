"""This module shows that the checker of plans finds what would go wrong; such plans are our own mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ephemera.algebra.attributes import TERM, Variable, begin, end
from ephemera.algebra.check import check_plan
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Base,
    Cross,
    Difference,
    Expression,
    Gap,
    Input,
    Join,
    Match,
    Merge,
    Plan,
    Point,
    Project,
    RelativeTimer,
    Rename,
    Select,
    Union,
)
from ephemera.algebra.scalar import Distance, Holds, InsideCalendar, Matches, SameEvent, less
from ephemera.base.errors import InternalError
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import Atom, Label, Number, Var

PATTERN = Atom(Label("a"), (Var("v1"),))


def plan() -> Plan:
    rules = check(Source("program.eq", "p(x) <- i: a(x), j: b(x), i before j;")).rules
    assert rules is not None
    return lower(rules)


def use(query: str, name: str, variable: str = "x") -> Rename:
    return Rename(Input(query), (("$", name),), ((Variable("v1"), Variable(variable)),))


A, B = use("a(v1)", "i"), use("b(v1)", "j")


def with_point(expression: Expression) -> Plan:
    whole = plan()
    return replace(whole, points={**whole.points, "new": Point("new", "join", expression)})


@pytest.mark.parametrize(
    "expression",
    [
        A,
        Join(A, B, less(end("i"), begin("j"))),
        Cross(A, use("b(v1)", "j", "y")),
        AntiSemiJoin(A, B, Distance(end("j"), end("i"), 0)),
        Union((A, use("b(v1)", "i"))),
        Difference(A, Join(A, B)),
        RelativeTimer(A, "w", "extend", "i", 1),
        Gap(Join(A, B), "w", "i", "j"),
        Merge(Join(A, B), "r", ("i", "j")),
    ],
)
def test_a_sound_plan_passes(expression: Expression) -> None:
    check_plan(with_point(expression))


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (Input("nothing"), "new uses nothing, which is not there"),
        (Match(A, "i", PATTERN), "has no events to match"),
        (Select(A, less(end("i"), begin("j"))), "tests j.s, which is not there"),
        (Select(A, SameEvent("i", "j")), "tests j.ref"),
        (Select(A, Matches("j", PATTERN, ())), "tests j.ref"),
        (Select(A, InsideCalendar(("j",), "cal:x")), "tests j.s"),
        (Select(A, Holds(Comparison("=", Var("z"), Number(1)))), "tests z"),
        (Project(A, (TERM,)), "keeps $term"),
        (Rename(A, (("k", "l"),), ()), "renames k"),
        (Rename(A, (), ((Variable("z"), Variable("y")),)), "renames z"),
        (RelativeTimer(A, "w", "extend", "j", 1), "is anchored to j"),
        (RelativeTimer(A, "i", "extend", "i", 1), "is called i"),
        (Merge(Join(A, B), "r", ("i",)), "would forget j.e"),
        (Merge(A, "r", ("j",)), "covers j"),
        (Cross(A, B), "multiplies what shares x"),
        (Join(A, A), "joins by i.e, which is no data"),
        (AntiSemiJoin(A, B), "waits forever for j.e"),
        (Union((A, B)), "mixes what has no stamps in common"),
        (Difference(A, B), "which the right lacks"),
    ],
)
def test_an_unsound_plan_is_refused(expression: Expression, complaint: str) -> None:
    with pytest.raises(InternalError, match=complaint.replace("$", r"\$")):
        check_plan(with_point(expression))


def test_points_come_in_an_order_in_which_they_can_be_computed() -> None:
    whole = plan()
    turned = replace(whole, points=dict(reversed(list(whole.points.items()))))
    with pytest.raises(InternalError, match="comes later"):
        check_plan(turned)


def test_rules_that_ask_for_the_same_share_a_query() -> None:
    rules = check(Source("p.eq", "p(x) <- i: a(x, y), y > 1; q(u) <- k: a(u, v), l: a(v, u), {k, l} within 1h;")).rules
    assert rules is not None
    queries = [p for p in lower(rules).points.values() if p.kind == "query"]
    assert [p.name for p in queries] == ["a(v1, v2)"]
    assert queries[0].expression == Match(Base("a"), "$", Atom(Label("a"), (Var("v1"), Var("v2"))))


def test_a_query_reads_only_what_may_match() -> None:
    rules = check(Source("p.eq", "p(x) <- i: a(x); q(x) <- i: p(x); r(x, y) <- i: p(x, y);")).rules
    assert rules is not None
    points = lower(rules).points
    assert isinstance(points["p(v1)"].expression, Match)
    assert points["p(v1)"].expression.input == Input("p*")
    assert points["p*"].expression == Union((Base("p"), Input("p")))
    assert isinstance(points["p(v1, v2)"].expression, Match)
    assert points["p(v1, v2)"].expression.input == Base("p")
