"""This module shows strata, cycles and dependencies by label and shape."""

from __future__ import annotations

import pytest

from ephemera.base.span import Source
from ephemera.pipeline import Checked, check


def checked(text: str) -> Checked:
    return check(Source("strata.eq", text))


def strata(text: str) -> tuple[int, ...]:
    found = checked(text)
    assert found.rules is not None, found.report.diagnostics
    return found.rules.strata


def rules_needed(text: str, number: int) -> set[int]:
    found = checked(text)
    assert found.rules is not None, found.report.diagnostics
    return {n for d in found.rules.dependencies[number - 1] for n in d.rules}


def codes(text: str) -> set[str]:
    return {str(d.code) for d in checked(text).report.diagnostics}


def test_negation_grouping_and_timers_stand_above_what_they_need() -> None:
    assert strata(
        """
        b(x) <- i: a(x);
        c(x) <- i: b(x);
        d(x) <- i: a(x), while i: not b(x);
        e(count(x)) <- i: c(x);
        f(x) <- i: d(x), w: extend(i, 5);
        g(x) <- i: f(x), j: e(x);
        """
    ) == (1, 1, 2, 2, 3, 3)


def test_collecting_without_an_aggregate_is_positive() -> None:
    assert strata("b(x) <- i: a(x); c(x) <- w: a(_), while w: collect b(x);") == (1, 1)


def test_having_with_an_aggregate_groups() -> None:
    assert strata("b(x) <- i: a(x); c(i) <- w: a(i), while w: collect b(x), having count(x) > 2;") == (1, 2)


def test_positive_recursion_stays_in_one_stratum() -> None:
    assert strata("path(x, y) <- i: edge(x, y); path(x, z) <- i: edge(x, y), j: path(y, z);") == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "p() <- s: s(), while s: not q(); q() <- s: s(), while s: not p();",
        "p(count(x)) <- i: p(x);",
        "p(x) <- i: p(x), w: extend(i, 1);",
        "p(x) <- e: algebra (a(x) - q(x)); q(x) <- i: p(x);",
        "p(x) <- e: algebra (q(x); a(x)), w: extend(e, 1); q(x) <- i: p(x);",
        "DETECT p { all q { var X } } ON event i: p {{ q { var X } }} END",
        "p(x) <- s: s(x), while s: not q(x); q(x) <- r: r(x); r(x) <- p: p(x);",
        "p(x) <- s: s(x), while s: not y: q(x); DETECT q [ var X ] ON event p: p [ var X ] END",
        "p(x) <- s: s(x), while s: not p(x);",
        "DETECT p { } ON and { event s: s { var X }, while s: not var L {{ }} } END",
    ],
)
def test_a_cycle_that_is_not_positive_is_refused(text: str) -> None:
    assert codes(text) == {"not-stratifiable"}


@pytest.mark.parametrize(
    "text",
    [
        # another arity, other children, other brackets: the shapes can never meet
        "p(x) <- s: s(x), while s: not p(x, _);",
        "DETECT p { a { var X } } ON and { event s: s { var X }, while s: not p {{ b { var X } }} } END",
        "DETECT p { a { var X }, b { } } ON and { event s: s { var X }, while s: not p { a { var X } } } END",
        "DETECT p { a { var X }, b { } } ON and { event s: s { var X }, while s: not p [[ a { var X } ]] } END",
        'RAISE to(recipient="x", transport="console") { p { } } ON and { event s: s { }, while s: not p { } } END',
    ],
)
def test_what_can_never_match_is_no_cycle(text: str) -> None:
    assert codes(text) <= {"wrong-arity"}
    assert checked(text).rules is not None


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("p { a { var X } }", True),
        ("p {{ }}", True),
        ("p [[ ]]", True),
        ("p [ a { var X } ]", True),
        ("p { a { var X }, b { } }", False),
        ("p {{ desc a { var X } }}", True),
        ("p {{ without a { var Y }, var X }}", True),
        ("p { a { var X }, optional b { } }", True),
        ("q {{ var X }}", False),
        ("var L {{ var X }}", True),
        ("desc a { var X }", True),
        ("var X", True),
        ("p(x)", True),
        ("p(x, y)", False),
    ],
)
def test_dependencies_are_by_label_and_shape(pattern: str, matches: bool) -> None:
    text = f"DETECT p {{ a {{ var X }} }} ON event s: s {{ var X }} END DETECT z {{ }} ON event e: {pattern} END"
    assert (1 in rules_needed(text, 2)) is matches


def test_a_head_with_all_may_have_any_number_of_children() -> None:
    text = "DETECT p { all a { var X } } ON event s: s {{ var X }} END z(x) <- e: p(x, _, _);"
    assert rules_needed(text, 2) == {1}


def test_declared_events_are_the_same_by_position_and_by_name() -> None:
    text = "EVENT s(x: int); EVENT p(a: int, b: int); p(x, 1) <- s: s(x); DETECT z { } ON event e: p {{ a { 1 } }} END"
    assert rules_needed(text, 2) == {1}


def test_strata_by_hand_must_be_strata() -> None:
    good = "STRATUM b(x) <- i: a(x); END STRATUM c(x) <- i: a(x), while i: not b(x); END"
    assert codes(good) == set()
    later = "STRATUM c(x) <- i: b(x); END STRATUM b(x) <- i: a(x); END"
    assert codes(later) == {"stratum-order"}
    same = "STRATUM b(x) <- i: a(x); c(x) <- i: a(x), while i: not b(x); END"
    assert codes(same) == {"stratum-order"}


def test_a_long_cycle_is_printed_rule_by_rule() -> None:
    report = checked("p(x) <- s: s(x), while s: not q(x);\nq(x) <- r: r(x);\nr(x) <- p: p(x);\n").report
    (diagnostic,) = report.diagnostics
    assert diagnostic.notes == (
        "rule 1, `p`, needs the absence of `q` (negative)",
        "rule 2, `q`, asks for `r` (positive)",
        "rule 3, `r`, asks for `p` (positive)",
    )
