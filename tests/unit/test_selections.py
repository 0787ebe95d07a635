"""This module shows where `next`, `first` and `last` are words of a selection, and what a selection leaves alone."""

from __future__ import annotations

import pytest

from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program
from ephemera.syntax.nodes import And, Rule, Selection
from ephemera.syntax.parser import parse


def selections(body: str) -> list[bool]:
    """Which items of a body are selections."""
    parsed = parse(Source("rules.eq", f"r() <- {body};"))
    assert not parsed.report.diagnostics, parsed.report
    (rule,) = parsed.program.statements
    assert isinstance(rule, Rule)
    assert isinstance(rule.body, And)
    return [isinstance(item, Selection) for item in rule.body.items]


@pytest.mark.parametrize(
    "item",
    [
        "next b(x) after i",
        "j: last b(x) before i",
        "first b { var X } in i",
        "last before(x) in i",
        "next mod(x) after i",
        "next `before`(x) after i",
        "next ns:b(x) after i",
        "next before:b(x) after i",
        "next after {{ }} after i",
        "next overlaps[ 1, 2 ] after i",
        "next var L {{ }} after i within 3",
    ],
)
def test_a_pattern_behind_the_word_makes_a_selection(item: str) -> None:
    assert selections(f"i: a(), {item}") == [False, True]


@pytest.mark.parametrize(
    "item",
    [
        "next before i",
        "last is null",
        "first mod (x) = 3",
        "first = last",
        "next(x)",
        "first: next(x)",
        "last {{ }}",
        "next < 3",
        "next overlaps[1, 2] i",
    ],
)
def test_without_one_the_word_is_a_name(item: str) -> None:
    assert selections(f"i: a(), {item}") == [False, False]


def test_what_a_selection_calls_its_own_is_called_by_nobody_else() -> None:
    body = "i: a(v2, j2), j: next b(v, w) after i within 3 where { v > w, j before k }, k: c(), {j, k} within 9"
    text = f"r(v, v2, j2) <- {body};"
    checked = check(Source("rules.eq", text))
    assert not checked.report.diagnostics, checked.report
    (form,) = Program(checked).explain_json("rules")[0]["normal"]
    assert "not j3: b(v3, w2) where { v3 > w2, j3 before k }" in form


def test_a_label_behind_without_is_every_event_that_carries_it() -> None:
    checked = check(
        Source("rules.eq", "r() <- i: a(), j: next b() after i within 3 without { c, d(1), b {{ x { 1 } }} };")
    )
    (form,) = Program(checked).explain_json("rules")[0]["normal"]
    assert all(
        f"not ${k}: {text}" in form for k, text in ((2, "b()"), (3, "c {{ }}"), (4, "d(1)"), (5, "b {{ x { 1 } }}"))
    )
