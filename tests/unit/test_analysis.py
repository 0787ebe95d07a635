"""This module shows single facts of the analysis: histories, superfluous conditions, hulls, arrival at begin."""

from __future__ import annotations

import pytest

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.blame import Lasts, Within, blame
from ephemera.analysis.distances import Edge, contradiction
from ephemera.analysis.histories import histories
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.superfluous import superfluous
from ephemera.analysis.weights import at_most, strict
from ephemera.base.span import Source
from ephemera.base.time import HOUR
from ephemera.pipeline import check

EVENTS = "TIME UNIT 1 hour; EVENT a(x: int); EVENT b(x: int); EVENT c(x: int) LASTS AT MOST 3;\n"


def facts(program: str) -> Facts:
    found = check(Source("program.eq", EVENTS + program))
    assert found.facts is not None, found.report
    return found.facts


def kept(program: str, point: str = "p") -> dict[str, list[str]]:
    """For each input of a point its minimal condition, in hours."""
    return {
        r.name: [f"{b.stamp} {b.operator} {b.time.bound / HOUR:g}" for b in r.minimal if b.time is not None]
        for r in facts(program).of(point)
    }


def test_a_history_is_kept_while_any_reader_may_need_it() -> None:
    found = histories(
        facts(
            "p(x) <- i: a(x), j: b(x), {i, j} within 2; q(x) <- i: a(x), j: b(x), {i, j} within 5;"
            "r(x) <- i: a(x), w: extend(i, 4), while w: not b(x);"
        )
    )
    assert {h.point: [{s: w.bound // HOUR for s, w in c.items()} for c in h.conditions] for h in found} == {
        "a(v1)": [{"s": 5}],
        "b(v1)": [{"s": 5}],
    }


def test_a_history_with_an_unbounded_reader_is_kept_forever() -> None:
    found = histories(facts("p(x) <- i: a(x), j: b(x), {i, j} within 2; q(x) <- i: a(x), j: b(x), i before j;"))
    assert {h.point: h.is_bounded for h in found} == {"a(v1)": False, "b(v1)": True}


def test_conditions_that_the_others_imply_are_superfluous() -> None:
    program = "p(x) <- i: a(x), j: b(x), i before j, {i, j} within 2, {i, j} within 5, i before[0, 9] j;"
    found = check(Source("program.eq", EVENTS + program))
    assert found.plan is not None
    assert found.facts is not None
    assert superfluous(found.plan, found.facts, "p") == ["{i, j} within 5h", "i before[0s, 9h] j"]


def test_a_disjunction_is_taken_case_by_case() -> None:
    assert kept("p(x) <- i: a(x), j: b(x), (i before[0, 2] j or j before[0, 7] i);") == {
        "i": ["i.s >= 2"],
        "j": ["j.s >= 7"],
    }


def test_more_cases_than_are_told_apart_become_one_and_explain_says_so() -> None:
    choices = ", ".join("(i before j or j before i)" for _ in range(1))
    many = ", ".join(f"(i before[{k}, 20] j or j before[{k}, 20] i)" for k in range(8))
    found = facts(f"p(x) <- i: a(x), j: b(x), {choices}, {many};")
    assert found.hulls == ("p",)
    assert [b.time and b.time.bound // HOUR for r in found.of("p") for b in r.minimal] == [20, 20]
    text = ephemera.compile(f"{EVENTS} p(x) <- i: a(x), j: b(x), {choices}, {many};").explain("relevance")
    assert "more cases than are told apart" in text


def test_events_that_arrive_at_their_begin_are_waited_for_until_then() -> None:
    program = "EVENT d(x: int) LASTS AT MOST 9{}; p(x) <- i: a(x), j: d(x), i before[0, 2] j;"
    assert kept(program.format(" ARRIVES AT BEGIN")) == {"i": ["i.s >= 2"], "j": ["j.s >= 0"]}
    assert kept(program.format("")) == {"i": ["i.s >= 11"], "j": ["j.e >= 0"]}


def test_what_lies_in_a_window_is_decided_when_it_ends_even_if_it_was_known_before() -> None:
    program = "EVENT d(x: int) LASTS AT MOST 9 ARRIVES AT BEGIN; p(x) <- j: d(x), while j: not a(x);"
    assert kept(program) == {"j": ["j.e >= 0"], "$1": ["$1.s >= 9"]}


def test_the_look_back_of_a_rule_is_how_long_its_answers_may_last() -> None:
    found = facts(
        "p(x) <- i: a(x), w: extend(i, 4), while w: not b(x);"
        "q(x) <- i: p(x), j: a(x), i before[0, 2] j;"
        "r(x) <- i: p(x), j: a(x), i before j;"
    )
    assert [found.look_back(name) for name in ("p", "q", "r")] == [4 * HOUR, 6 * HOUR, None]


def test_an_absence_that_cannot_be_otherwise_is_told() -> None:
    found = facts("p(x) <- i: a(x), w: extend(i, 4), while w: not k: c(x) where { k before i };")
    assert found.idle == (("p", "k"),)


def test_an_absence_does_not_make_a_rule_impossible() -> None:
    found = facts("p(x) <- i: a(x), w: from-end(i, 2), while w: not c(x);")
    assert not found.never


def test_recursion_that_stays_within_a_limit_is_bounded() -> None:
    program = "EVENT e(x: int, y: int); p(x, y) <- i: e(x, y); p(x, z) <- i: p(x, y), j: e(y, z), {i, j} within 9;"
    assert kept(program, "p#2") == {"i": ["i.s >= 9"], "j": ["j.s >= 9"]}


def test_recursion_that_grows_is_unbounded() -> None:
    program = "EVENT e(x: int, y: int); p(x, y) <- i: e(x, y); p(x, z) <- i: p(x, y), j: e(y, z), i before[0, 1] j;"
    assert kept(program, "p#2") == {"i": ["i.e >= 1"], "j": ["j.s >= 0"]}
    found = facts(program)
    assert found.longest("p*") is None


def test_events_that_no_rule_derives_may_come_from_outside() -> None:
    found = facts("path(x, z) <- i: path(x, y), j: path(y, z), {i, j} within 5;")
    assert not found.never
    assert [r.is_bounded for r in found.of("path")] == [True, True]
    assert found.longest("path*") is None


def test_a_condition_of_an_absence_bounds_nothing_but_itself() -> None:
    program = "p(x) <- i: c(x), w: extend(i, 3), while w: not n: c(x) where { i overlaps n };"
    assert kept(program)["i"] == ["i.e >= 3"]


def test_what_comes_from_outside_may_be_shorter_than_what_rules_derive() -> None:
    found = facts("p(x) <- o: a(x), w: extend(o, 6); q(x) <- i: p(x), {i} within 1;")
    assert not found.never


def test_an_instance_that_is_rejected_may_be_the_one_that_is_picked() -> None:
    program = "EVENT e(x: int) LASTS AT MOST 9;"
    program += "p(x) <- z: algebra restricted (e(x) | (a(x); b(x))[2]), not {z} within 3, {z} within 9;"
    assert set(kept(program)) == {"z/1", "z/2", "z/3"}


def test_an_algebra_expression_of_too_many_alternatives_is_refused() -> None:
    factors = "; ".join("(a(x) | b(x) | c(x))" for _ in range(9))
    found = check(Source("program.eq", f"{EVENTS} p(x) <- z: algebra (({factors})[5]);"))
    assert [str(d.code) for d in found.report.diagnostics] == ["too-many-alternatives"]


@pytest.mark.parametrize(
    ("program", "cures"),
    [
        ("p(x) <- i: a(x), j: b(x), i before j;", [(Within(("i", "j")),)]),
        ("p(x) <- i: d(x), w: extend(i, 1), while w: not a(x);", [(Within(("i",)),), (Lasts("d", ("i",)),)]),
        (
            "p(x) <- i: a(x), j: b(x), k: c(x), i before j;",
            [(Within(("i", "j", "k")),)],
        ),
    ],
)
def test_the_fewest_missing_conditions_are_named(program: str, cures: list[object]) -> None:
    found = check(Source("program.eq", EVENTS + "EVENT d(x: int) LASTS ANY;" + program))
    assert found.plan is not None
    assert found.facts is not None
    assert list(blame(found.plan, found.facts)[0].cures) == cures


def test_a_contradiction_is_shown_by_its_cycle() -> None:
    edges = [
        Edge("a", "b", at_most(3)),
        Edge("b", "c", strict(-2)),
        Edge("c", "a", strict(-1)),
        Edge("a", "d", at_most(1)),
    ]
    assert set(contradiction(edges)) == set(edges[:3])
    assert contradiction(edges[:2]) == ()


def test_plans_with_joins_are_analysed_too() -> None:
    rules = check(
        Source("program.eq", EVENTS + "p(x) <- i: a(x), j: b(x), k: c(x), {i, j} within 2, {j, k} within 5;")
    ).rules
    assert rules is not None
    found = derive(lower(rules, "joins"))
    assert {(r.point, r.name) for r in found.relevance} == {("p[i,j]", "i"), ("p[i,j]", "j"), ("p", "i,j"), ("p", "k")}
