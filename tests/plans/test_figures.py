"""This module shows that the relevance conditions of the papers' examples come out: R figures 3 and 4, and more.

R is the paper on relevance. Conditions are written as there, `c.s >= now-5`, in the unit of the program. Plan 1 has a
materialization point for each rule, plan 2 for each join, too.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ephemera.algebra.attributes import begin, end
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Cross, Input, Plan, Point, Points, Rename, Select, Union
from ephemera.algebra.scalar import Distance, every
from ephemera.analysis.knowledge import describe_plan
from ephemera.analysis.nodes import Bound, Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.weights import Weight
from tests.strategies.cases import compiled

HOUR = 3_600_000_000
SECOND = 1_000_000
MS = 1_000

CHAIN = """
    TIME UNIT 1 hour;
    F(x) <- c: C(x), d: D(x), e: E(x), c before d, {c,d} within 4, d before e, {d,e} within 1;
    C(x) <- a: A(x), b: B(x), {a,b} within 2;
"""


def plan_of(program: str, points: Points = "rules") -> Plan:
    rules = compiled(program)
    assert rules is not None
    return lower(rules, points)


def facts_of(program: str, points: Points = "rules") -> Facts:
    return derive(plan_of(program, points))


def written(bounds: Iterable[Bound], unit: int) -> str:
    return " and ".join(
        f"{b.stamp} forever" if b.time is None else f"{b.stamp} {b.operator} now-{b.time.bound / unit:g}"
        for b in bounds
    )


def maximal(facts: Facts, unit: int = HOUR) -> dict[str, str]:
    """For each input of each point, as `point <- name`, how long it is kept by all its stamps."""
    return {f"{r.point} <- {r.name}": written(r.keep_while, unit) for r in facts.relevance}


def minimal(facts: Facts, unit: int = HOUR) -> dict[str, str]:
    """The same without what is implied."""
    return {f"{r.point} <- {r.name}": written(r.minimal, unit) for r in facts.relevance}


# ---- figures 3 and 4 ---------------------------------------------------------------------------------------


def test_figure_3_plan_1_has_these_conditions() -> None:
    assert maximal(facts_of(CHAIN)) == {
        "C <- a": "a.s >= now-2 and a.e >= now-2",
        "C <- b": "b.s >= now-2 and b.e >= now-2",
        "F <- c": "c.s >= now-5 and c.e >= now-5",
        "F <- d": "d.s >= now-1 and d.e >= now-1",
        "F <- e": "e.s > now-1 and e.e >= now-0",
    }


def test_figure_3_plan_1_has_these_minimal_conditions() -> None:
    assert minimal(facts_of(CHAIN)) == {
        "C <- a": "a.s >= now-2",
        "C <- b": "b.s >= now-2",
        "F <- c": "c.s >= now-5",
        "F <- d": "d.s >= now-1",
        "F <- e": "e.s > now-1 and e.e >= now-0",
    }


def test_figure_3_plan_2_has_these_minimal_conditions() -> None:
    assert minimal(facts_of(CHAIN, "joins")) == {
        "C <- a": "a.s >= now-2",
        "C <- b": "b.s >= now-2",
        "F[c,d] <- c": "c.s >= now-4",
        "F[c,d] <- d": "d.s > now-4 and d.e >= now-0",
        "F <- c,d": "d.s >= now-1",
        "F <- e": "e.s > now-1 and e.e >= now-0",
    }


def test_figure_4_is_the_matrix_of_the_first_rule() -> None:
    ((_, closure),) = describe_plan(plan_of(CHAIN)).cases["F"]
    stamps = ("c.s", "c.e", "d.s", "d.e", "e.s", "e.e")

    def entry(weight: Weight | None) -> str:
        assert weight is not None
        return f"{'<' if weight.is_strict else ''}{weight.bound / HOUR:g}"

    assert {i: " ".join(entry(closure.distance(i, j)) for j in stamps) for i in stamps} == {
        "c.s": "0 2 4 4 5 5",
        "c.e": "0 0 4 4 5 5",
        "d.s": "<0 <0 0 <1 1 1",
        "d.e": "<0 <0 0 0 1 1",
        "e.s": "<0 <0 <0 <0 0 <1",
        "e.e": "<0 <0 <0 <0 0 0",
    }


# ---- the union of R 4.7 ------------------------------------------------------------------------------------

LASTING = "TIME UNIT 1 hour; P(x) <- a: A(x), b: B(x);"
PAIR = Cross(Rename(Input("A(v1)"), (("$", "i"),), ()), Rename(Input("B(v1)"), (("$", "j"),), ()))
"""All pairs of an event i and an event j, which may last any time."""


def with_points(*points: Point) -> Facts:
    """What is known about points that are made by hand."""
    plan = plan_of(LASTING)
    queries = {name: p for name, p in plan.points.items() if p.kind == "query"}
    return derive(Plan(queries | {p.name: p for p in points}, (), plan.catalogue))


@pytest.mark.parametrize(("strict", "sign"), [(True, ">"), (False, ">=")])
def test_what_one_input_of_a_union_guarantees_covers_nothing_of_the_other(strict: bool, sign: str) -> None:
    within = every(Distance(end(x), begin(y), 2 * HOUR, strict) for x in "ij" for y in "ij")
    facts = with_points(
        Point("R1", "join", Select(PAIR, Distance(end("i"), begin("j"), 0, strict))),
        Point("R2", "join", PAIR),
        Point("Q", "join", Select(Union((Input("R1"), Input("R2"))), within)),
    )
    assert {r.input: written(r.minimal, HOUR) for r in facts.of("Q")} == {
        "R1": f"i.s {sign} now-2 and j.e >= now-0",
        "R2": f"i.s {sign} now-2 and j.s {sign} now-2",
    }


# ---- absence -----------------------------------------------------------------------------------------------

OVERDUE = "EVENT shipped(id: int); overdue(id) <- o: order(id), w: extend(o, 6h), while w: not s: shipped(id);"


@pytest.mark.parametrize(
    ("lasting", "order", "shipped"),
    [
        ("", "o.s >= now-6", "s.s >= now-6"),
        ("LASTS AT MOST 1h", "o.e >= now-6", "s.s >= now-7"),
        ("LASTS ANY", "o.e >= now-6", ""),
    ],
)
def test_how_long_a_shipment_matters_hangs_on_how_long_orders_last(lasting: str, order: str, shipped: str) -> None:
    facts = facts_of(f"EVENT order(id: int) {lasting}; {OVERDUE}")
    assert minimal(facts) == {"overdue <- o": order, "overdue <- s": shipped}
    assert [r.is_bounded for r in facts.relevance] == [True, shipped != ""]


def test_what_is_too_long_for_its_window_stops_nothing() -> None:
    facts = facts_of("""
        TIME UNIT 1 hour;
        EVENT A(x: int); EVENT S(x: int); EVENT T(x: int);
        L(x) <- s: S(x), t: T(x), s before[3,4] t;
        P(x) <- a: A(x), w: extend(a, 2), while w: not l: L(x);
    """)
    assert not facts.never
    assert not facts.idle  # one that comes from outside may be shorter than those that the rule derives
    assert minimal(facts)["P <- a"] == "a.s >= now-2"


def test_what_is_absent_does_not_shorten_the_window() -> None:
    absent = "while w: not s: S(x) where { duration(s) >= 0h }, while(excl,excl) w: not t: T(x)"
    facts = facts_of(f"EVENT A(x: int); EVENT S(x: int); EVENT T(x: int); P(x) <- a: A(x), w: extend(a, 2h), {absent};")
    assert minimal(facts) == {"P <- a": "a.s >= now-2", "P <- s": "s.s >= now-2", "P <- t": "t.s > now-2"}


# ---- the queries of the benchmark --------------------------------------------------------------------------

BENCH = """
    TIME UNIT 1 ms;
    EVENT A(id: int, x: int, v: int); EVENT B(id: int, x: int, v: int);
    EVENT D(id: int, x: int, v: int); EVENT E(id: int, x: int, v: int);
    Q1(i, j) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 2h;
    C(i, j, x) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 2h;
    Q2(i, j, k, l) <- c: C(i, j, x), d: D(k, x, _), e: E(l, x, _),
                      c before d, c before[0h,4h] d, d before e, d before[0h,1h] e;
    Q3(i) <- a: A(i, x, _), w: extend(a, 1h), while(excl,incl) w: not b: B(_, x, _);
    Q4(i, avg(v)) <- a: A(i, x, _), w: from-start-backward(a, 1h), while w: collect b: B(_, x, v);
"""
LIFETIMES = """
    TIME UNIT 1 ms;
    EVENT A(id: int, x: int) LASTS AT MOST 2; EVENT B(id: int, x: int) LASTS AT MOST 2;
    Q5m(i, j) <- a: A(i, _), b: B(j, _), b after[1,2] a;
    Q5r(i, j) <- a: A(i, x), b: B(j, x), b after[1,2] a;
"""


def test_points_of_the_benchmark_matter_as_long_as_their_queries_say() -> None:
    assert minimal(facts_of(BENCH)) == {
        "Q1 <- a": "a.s >= now-2",
        "Q1 <- b": "b.s >= now-2",
        "C <- a": "a.s >= now-2",
        "C <- b": "b.s >= now-2",
        "Q2 <- c": "c.e >= now-5",
        "Q2 <- d": "d.s >= now-1",
        "Q2 <- e": "e.s >= now-0",
        "Q3 <- a": "a.s >= now-1",
        "Q3 <- b": "b.s > now-1",
        "Q4 <- a": "a.s >= now-0",
        "Q4 <- b": "b.s >= now-1",
    }


def test_lifetimes_of_the_benchmark_matter_from_their_ends() -> None:
    found = minimal(facts_of(LIFETIMES), MS)
    assert found["Q5m <- a"] == found["Q5r <- a"] == "a.e >= now-4"
    assert found["Q5m <- b"] == found["Q5r <- b"] == "b.e >= now-0"


# ---- fixed times, contradictions, recursion ----------------------------------------------------------------


def test_two_dates_bound_how_long_what_lies_between_them_matters() -> None:
    facts = facts_of("""
        EVENT A(x: int); EVENT B(x: int);
        P(x) <- a: A(x), b: B(x), a after datetime("2026-01-01T00:00Z"), b before datetime("2026-01-02T00:00Z");
    """)
    assert minimal(facts) == {"P <- a": "a.s > now-24", "P <- b": ""}


def test_two_events_are_never_each_before_the_other() -> None:
    # Rules that say so in two conditions are refused, so this one is made by hand.
    both = every([Distance(end("i"), begin("j"), 0, strict=True), Distance(end("j"), begin("i"), 0, strict=True)])
    facts = with_points(Point("P", "rule", Select(PAIR, both)))
    assert list(facts.never) == ["P"]
    assert facts.known["P"] is None
    assert facts.relevance == ()


@pytest.mark.parametrize(
    "conditions",
    [
        "a before b, b before c, c before a",
        "a during b, b during c, c before a",
        "a before b, {a,b} within 2, b before c, {b,c} within 2, a before[5,9] c",
        "a before b, b before c, a before[0us,1us] c",
    ],
)
def test_what_contradicts_itself_never_happens(conditions: str) -> None:
    facts = facts_of(f"P(x) <- a: A(x), b: B(x), c: C(x), {conditions}; Q(x) <- d: D(x);")
    assert list(facts.never) == ["P"]
    assert [r.point for r in facts.relevance] == ["Q"]


RECURSION = "EVENT e(x: int, y: int); p(x,y) <- i: e(x,y); p(x,z) <- i: p(x,y), j: e(y,z), {};"


def test_recursion_is_bounded_if_its_answers_are() -> None:
    facts = facts_of(RECURSION.format("{i,j} within 9"))
    found = minimal(facts, SECOND)
    assert (found["p#2 <- i"], found["p#2 <- j"]) == ("i.s >= now-9", "j.s >= now-9")
    assert facts.look_back("p#2") == 9 * SECOND


def test_recursion_without_a_limit_keeps_its_answers_forever() -> None:
    facts = facts_of(RECURSION.format("i before j"))
    found = maximal(facts, SECOND)
    assert found["p#2 <- i"] == "i.s forever and i.e forever"
    assert found["p#2 <- j"] == "j.s >= now-0 and j.e >= now-0"
    assert facts.look_back("p#2") is None
