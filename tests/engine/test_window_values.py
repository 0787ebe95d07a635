"""This module shows that windows are summed up as the oracle does it: above or below a limit, and what is computed."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.operators.join import RuleJoin
from ephemera.formats.json_events import read_object
from ephemera.kernels import search as searching
from ephemera.kernels import value_tree
from ephemera.kernels.exact_sums import ExactSums, digits_of, running
from ephemera.kernels.value_tree import ValueTree
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.strategies.cases import answers

OPERATORS = (">", ">=", "<", "<=", "=", "!=")
FOLDED = ("S", "C", "L", "K", "N", "E", "F", "D")
"""The rules that need not be unfolded where all values are whole numbers."""


@cache
def program(written: str) -> tuple[Ruleset, Plan, Facts]:
    """Sums, counts, absences and extremes, with a key and without, the limit on either side and computed."""
    window = "w: extend(n, 6 sec), while w:"
    text = (
        "EVENT a(i: int, k: int, v: any);\nEVENT b(j: int, k: int, y: any);\n"
        f"S(i, sum(y), avg(y), count(*)) <- n: a(i, _, v), {window} collect b(_, _, y) where {{ y {written} v }};\n"
        f"C(i, count(*)) <- n: a(i, k, v), {window} collect b(_, k, y) where {{ v {written} y }};\n"
        f"L(i, sum(y)) <- n: a(i, k, v), {window} collect b(_, k, y) where {{ y {written} v + 1 }};\n"
        f"K(i, sum(y)) <- n: a(i, k, _), {window} collect b(_, k, y) where {{ y {written} 2 }};\n"
        f"N(i) <- n: a(i, k, v), {window} not b(_, k, y) where {{ y {written} v }};\n"
        f"M(i, min(y), max(y)) <- n: a(i, k, v), {window} collect b(_, k, y) where {{ y {written} v }};\n"
        f"O(i, sum(j)) <- n: a(i, k, v), {window} collect b(j, k, y) where {{ y {written} v }};\n"
        f"E(i, sum(y * 2 - j), avg(y + j), max(y * y), count(*)) <- n: a(i, k, _), {window} collect b(j, k, y);\n"
        f"F(i, sum(y * 1), min(-y)) <- n: a(i, _, _), {window} collect b(_, _, y);\n"
        f"D(i, sum(y), avg(y), max(y)) <- n: a(i, k, _), {window} collect b(_, k, y);\n"
        f"G(i, sum(y * 1), sum(y * 1.0), max(y / 2), max(7)) <- n: a(i, _, _), {window} collect b(_, _, y);\n"
    )
    found = check(Source("values.eq", text))
    assert found.rules is not None, found.report
    assert found.plan is not None
    assert found.facts is not None
    return found.rules, found.plan, found.facts


def run(rules: Ruleset, plan: Plan, facts: Facts, events: list[Event]) -> Any:
    compiled = prepare(rules, plan, facts)
    return BatchRun(compiled, events, World()).run([])


WHOLE = st.integers(-3, 6) | st.sampled_from([2**62, -(2**62), 2**63 - 1])
DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 0.25, -0.0, 1e100, 3.0])
MIXED = WHOLE | st.sampled_from([0.5, 2.0, "x", None])


@settings(deadline=None, max_examples=25)
@pytest.mark.parametrize("written", OPERATORS)
@pytest.mark.parametrize("crowded", [False, True])
@given(data=st.data())
def test_windows_with_a_limit_are_the_oracle_s(written: str, crowded: bool, data: st.DataObject) -> None:
    rules, plan, facts = program(written)
    values = data.draw(st.sampled_from([WHOLE, MIXED, DOUBLES]))
    row = st.tuples(st.sampled_from("abbb"), st.integers(0, 14), st.integers(0, 1), values)
    rows = data.draw(st.lists(row, min_size=1, max_size=16))
    told = [
        {"event": label, "time": [at, at], "data": [number, k, value]}
        for number, (label, at, k, value) in enumerate(rows)
    ]
    events = [e for one in told if isinstance(e := read_object(one, rules.resolved.catalogue), Event)]
    assert len(events) == len(told)
    with pytest.MonkeyPatch.context() as patch:
        if crowded:
            patch.setattr(searching, "MOST_CANDIDATES", 0)
            patch.setattr(searching, "SOME", 0)
        found = run(rules, plan, facts, events)
    assert answers(found) == answers(evaluate(rules, events, World()))


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules whose windows are unfolded from now on."""
    unfolded: list[str] = []
    plain = RuleJoin._unfolded

    def unfold(self: RuleJoin, *arguments: Any) -> Any:
        unfolded.append(self.plan.point)
        return plain(self, *arguments)

    monkeypatch.setattr(RuleJoin, "_unfolded", unfold)
    return unfolded


@pytest.mark.parametrize("written", [">", ">=", "<", "<="])
def test_whole_numbers_are_summed_up_without_being_unfolded(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, plan, facts = program(written)
    unfolded = noted(monkeypatch)
    told = [{"event": "ab"[n % 4 > 0], "time": [n, n], "data": [n, n % 2, n * 7 % 5]} for n in range(60)]
    events = [e for one in told if isinstance(e := read_object(one, rules.resolved.catalogue), Event)]
    assert answers(run(rules, plan, facts, events)) == answers(evaluate(rules, events, World()))
    assert unfolded
    assert not [point for point in unfolded if point.startswith(FOLDED)]


def test_doubles_are_summed_up_without_being_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, plan, facts = program(">")
    unfolded = noted(monkeypatch)
    told = [{"event": "ab"[n % 4 > 0], "time": [n, n], "data": [n, n % 2, n * 0.7 % 5]} for n in range(60)]
    events = [e for one in told if isinstance(e := read_object(one, rules.resolved.catalogue), Event)]
    assert answers(run(rules, plan, facts, events)) == answers(evaluate(rules, events, World()))
    assert "S" in unfolded
    assert "D" not in unfolded


@example(values=[1e16, 1.0, -1e16], ranges=[(0, 3)])
@given(
    values=st.lists(
        st.floats(-1e9, 1e9) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 0.0, -0.0]),
        min_size=1,
        max_size=30,
    ),
    ranges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=9),
)
def test_ranges_of_doubles_are_added_up_exactly(values: list[float], ranges: list[tuple[int, int]]) -> None:
    digits = digits_of(np.array(values))
    if digits is None:
        assert any((v and not 1e-9 < abs(v) < 1e9) or (v == 0.0 and math.copysign(1, v) < 0) for v in values)
        return
    pairs = [sorted((min(a, len(values)), min(b, len(values)))) for a, b in ranges]
    sums = ExactSums(len(pairs))
    starts, stops = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    sums.add_ranges(np.arange(len(pairs)), running(digits, np.arange(len(values))), starts, stops)
    each = [(row, other) for row, (a, b) in enumerate(pairs) for other in range(a, b)]
    sums.add_each(np.array([r for r, _ in each], dtype=int), digits, np.array([o for _, o in each], dtype=int))
    whole, power = sums.whole()
    found = [one * Fraction(2) ** power for one in whole.tolist()]
    assert found == [2 * sum(map(Fraction, values[a:b]), Fraction()) for a, b in pairs]


@example(values=[5], ranges=[(0, 1)], limits=[5], looked_at=0.0)
@given(
    values=st.lists(st.integers(-4, 9) | st.integers(-(2**50), 2**50), min_size=1, max_size=40),
    ranges=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=9),
    limits=st.lists(st.integers(-6, 11) | st.integers(-(2**63), 2**63 - 1), min_size=9, max_size=9),
    looked_at=st.sampled_from([0.0, 0.1, 1.0, 100.0]),
)
def test_a_tree_of_values_counts_as_python_does(
    values: list[int], ranges: list[tuple[int, int]], limits: list[int], looked_at: float
) -> None:
    """However many are looked at one by one; the second question finds what was arranged for the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_tree, "SPARE", looked_at)
        _counts_as_python_does(values, ranges, limits)


def _counts_as_python_does(values: list[int], ranges: list[tuple[int, int]], limits: list[int]) -> None:
    tree = ValueTree(np.array(values))
    pairs = [sorted((min(a, len(values)), min(b, len(values)))) for a, b in ranges]
    starts, stops = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    own = np.array(limits[: len(pairs)])
    for side, equal, is_in in (
        (tree.above, False, operator.gt),
        (tree.above, True, operator.ge),
        (tree.below, False, operator.lt),
        (tree.below, True, operator.le),
    ):
        held = [[v for v in values[a:b] if is_in(v, x)] for (a, b), x in zip(pairs, limits, strict=False)]
        counts, sums = side(starts, stops, own, equal=equal)
        assert counts.tolist() == list(map(len, held))
        assert sums.tolist() == list(map(sum, held))
