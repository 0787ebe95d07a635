"""This module shows that weights add up and compare as figures 5 and 6 of the relevance paper say, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from ephemera.analysis.weights import ZERO, Weight, at_most, strict

SMALL = (-2, -1, 0, 1, 3)
PAIRS = tuple(product(SMALL, SMALL))
MARKS = tuple(product((False, True), (False, True)))
"""Whether a weight is inclusive, and whether it is doubtful."""


def sure(weight: Weight) -> Weight:
    return weight.guaranteed()


# ---- figure 5: strict and not strict -----------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_a_sum_is_strict_if_either_part_is(x: int, y: int) -> None:
    assert strict(x).plus(strict(y)) == strict(x + y)
    assert strict(x).plus(at_most(y)) == strict(x + y)
    assert at_most(x).plus(strict(y)) == strict(x + y)
    assert at_most(x).plus(at_most(y)) == at_most(x + y)


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_of_equal_bounds_the_strict_one_is_less(x: int, y: int) -> None:
    assert (strict(x) < strict(y)) is (x < y)
    assert (strict(x) < at_most(y)) is (x <= y)
    assert (at_most(x) < strict(y)) is (x < y)
    assert (at_most(x) < at_most(y)) is (x < y)


# ---- figure 6: guaranteed and not --------------------------------------------------------------------------


@pytest.mark.parametrize("made", [strict, at_most])
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_a_sum_is_guaranteed_only_if_both_parts_are(made: Callable[[int], Weight], x: int, y: int) -> None:
    asked, known = made(x), sure(made(x))
    assert asked.plus(made(y)) == made(x + y)
    assert asked.plus(sure(made(y))) == made(x + y)
    assert known.plus(made(y)) == made(x + y)
    assert known.plus(sure(made(y))) == sure(made(x + y))


@pytest.mark.parametrize("made", [strict, at_most])
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_of_equal_bounds_the_guaranteed_one_is_less(made: Callable[[int], Weight], x: int, y: int) -> None:
    assert (made(x) < made(y)) is (x < y)
    assert (made(x) < sure(made(y))) is (x < y)
    assert (sure(made(x)) < made(y)) is (x <= y)
    assert (sure(made(x)) < sure(made(y))) is (x < y)


# ---- both together -----------------------------------------------------------------------------------------


def test_the_bound_comes_first_then_strictness_then_the_guarantee() -> None:
    ascending = [
        Weight(bound, inclusive, doubtful)
        for bound in SMALL
        for inclusive in (False, True)
        for doubtful in (False, True)
    ]
    assert ascending == sorted(ascending)
    assert ascending[:4] == [sure(strict(-2)), strict(-2), sure(at_most(-2)), at_most(-2)]


def test_a_doubtful_strict_bound_is_less_than_a_guaranteed_one_that_is_not_strict() -> None:
    assert strict(3) < at_most(3, guaranteed=True)
    assert max(strict(3), at_most(3, guaranteed=True)) == at_most(3, guaranteed=True)


@pytest.mark.parametrize("first", MARKS)
@pytest.mark.parametrize("second", MARKS)
def test_a_sum_adds_bounds_and_marks_apart(first: tuple[bool, bool], second: tuple[bool, bool]) -> None:
    total = Weight(2, *first).plus(Weight(-5, *second))
    assert total.bound == -3
    assert total.is_strict is (not first[0] or not second[0])
    assert total.doubtful is (first[1] or second[1])
    assert total == Weight(-5, *second).plus(Weight(2, *first))


def test_nothing_is_added_by_the_distance_of_a_stamp_from_itself() -> None:
    for bound, marks in product(SMALL, MARKS):
        assert Weight(bound, *marks).plus(ZERO) == Weight(bound, *marks)


def test_order_and_sum_agree_where_marks_of_one_kind_are_left_out() -> None:
    # With both kinds they do not: a strict part takes the difference of < and ≤ away, and the guarantee decides anew.
    weights = [Weight(b, i, True) for b in SMALL for i in (False, True)]
    for first, second, more in product(weights, repeat=3):
        assert first.plus(more) <= second.plus(more) or first > second
    assert strict(3) < at_most(3, guaranteed=True)
    assert strict(3).plus(strict(0, guaranteed=True)) > at_most(3, guaranteed=True).plus(strict(0, guaranteed=True))


def test_weights_say_the_same_whoever_vouches_for_them() -> None:
    assert strict(1).says_the_same(strict(1, guaranteed=True))
    assert not strict(1).says_the_same(at_most(1))
    assert not at_most(1).says_the_same(at_most(2))
