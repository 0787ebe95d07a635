"""This module shows what normal forms keep: names stay fresh, alternatives apart, absences their values."""

from __future__ import annotations

import pytest

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program


def normal_forms(text: str) -> list[str]:
    checked = check(Source("rules.eq", text))
    assert not checked.report.diagnostics, render_text(checked.report)
    return [form for rule in Program(checked).explain_json("rules") for form in rule["normal"]]


def codes(text: str) -> set[str]:
    return {str(d.code) for d in check(Source("rules.eq", text)).report.diagnostics}


def test_a_blank_never_meets_a_variable_of_the_author() -> None:
    assert normal_forms("r(_1) <- e: a(_1, _);") == ["r(_1) <-\n  e: a(_1, _2)"]


def test_a_name_that_was_made_up_never_meets_one_that_was_given() -> None:
    (form,) = normal_forms("r(x) <- `$1`: a(x), b(x), {`$1`} within 1h;")
    assert "$1: a(x),\n  $2: b(x)" in form


def test_what_one_branch_does_not_bind_takes_its_default() -> None:
    forms = normal_forms(
        'DETECT r { optional p { var P } with default "none" }'
        " ON or { event a: x {{ optional p { var P } }}, event b: y {{ }} } END"
    )
    assert [form.splitlines()[0] for form in forms] == ["r { p { var P } } <-", 'r { "none" } <-', 'r { "none" } <-']


def test_an_optional_part_of_a_collection_stays_for_each_binding() -> None:
    (form,) = normal_forms(
        'DETECT r { all i { var S, optional p { var P } with default "none" } group by { var S } } ON and {'
        " event w: win {{ }}, while w: collect item {{ sku { var S }, optional price { var P } }} } END"
    )
    assert 'optional p { var P } with default "none"' in form
    assert "optional price { var P }" in form


def test_a_table_gives_an_optional_variable_its_value() -> None:
    forms = normal_forms(
        "TABLE t(k: any, p: any);"
        'DETECT r { optional p { var P } with default "none" }'
        " ON and { event a: x {{ k { var K }, optional p { var P } }}, t(var K, var P) } END"
    )
    assert all(form.startswith("r { p { var P } } <-") for form in forms)


@pytest.mark.parametrize("binder", ["p(x)", "c: algebra (p(x); q(x))", "while e: collect p(x)"])
def test_without_is_tested_with_the_value_that_another_literal_binds(binder: str) -> None:
    (form,) = normal_forms(f"r(x) <- e: a {{{{ without b {{ var x }} }}}}, {binder};")
    assert "e matches a {{ without b { var x } }}" in form


def test_conditions_on_the_result_are_turned_round_too() -> None:
    (form,) = normal_forms("r(count(x)) <- a: a(x), b: b(x), having { b after a };")
    assert "having { a before b }" in form


def test_many_optional_parts_of_a_grouping_head_are_one_alternative() -> None:
    parts = " ".join(f"optional p{k} {{ var X{k} }}" for k in range(12))
    heads = " ".join(f"optional var X{k} with default 0" for k in range(12))
    assert len(normal_forms(f"DETECT a {{ all b {{ {heads} }} }} ON event e: q {{{{ {parts} }}}} END")) == 1
    assert codes(f"DETECT a {{ {heads} }} ON event e: q {{{{ {parts} }}}} END") == {"too-many-alternatives"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # identifiers, anchors and kinds are matters of one alternative
        (
            "r(x) <- or { and { a: y(x), v: extend(w, 1h), w: extend(v, 1h) },"
            " and { b: z(x), w: extend(b, 1h), v: extend(b, 1h) } };",
            {"timer-cycle"},
        ),
        (
            "r(x) <- or { and { a: y(x), v: extend(w, 1h), w: extend(a, 1h) }, and { v: z(x), w: extend(v, 1h) } };",
            set(),
        ),
        ("r(x) <- or { and { a: x(x), w: extend(a, 1h) }, a: r(x) };", set()),
        ("EVENT a(x: string); EVENT b(x: int); r(x) <- or { a(x), b(x) };", set()),
        ("EVENT a(x: string); EVENT b(x: int); p(1) <- e: algebra (a(x) | b(x));", set()),
        ("EVENT a(x: string); EVENT b(x: int); p(y) <- e: a(y), while e: not a(x), while e: not b(x);", set()),
        ("EVENT a(x: string); EVENT b(x: int); p(y) <- e: a(y), while e: not b(y);", {"type-clash"}),
        ("EVENT a(x: string); EVENT b(x: int); p(y) <- e: algebra (a(y); b(y));", {"type-clash"}),
        # an outer variable of a negated query has a value in every alternative
        ("p(1) <- e: a(), or { f: c(x), g: d() }, while e: not b(x);", {"unbound-variable"}),
        ("p(1) <- e: a(), or { f: c(x), g: d(x) }, while e: not b(x);", set()),
        # an event that may be any
        ("p(x) <- a(x), e: var E;", set()),
    ],
)
def test_a_rule_is_judged_alternative_by_alternative(text: str, expected: set[str]) -> None:
    assert codes(text) == expected
