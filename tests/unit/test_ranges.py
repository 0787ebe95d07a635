"""This module shows that ranges are found by columns and one by one as comparing with each of them finds them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.kernels import ranges as kernel
from ephemera.kernels.columns import column
from ephemera.kernels.ranges import ORDERS, Limits, Order, Ranges, beginning_with, order_of
from ephemera.terms.compute import compare
from ephemera.terms.values import Value

NUMBERS: list[Value] = [
    *(0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.5, 2.0, -0.0, float(2**53), float(2**63), -float(2**63), 1e300, -1e300),
]
TEXTS: list[Value] = ["", "a", "aa", "ab", "b", "\U0001f600"]
VALUES: dict[Order, list[Value]] = {"number": NUMBERS, "text": TEXTS}


def holds(limits: Limits, value: Value) -> bool:
    least = limits.least is None or compare(">" if limits.above else ">=", value, limits.least) is True
    most = limits.most is None or compare("<" if limits.below else "<=", value, limits.most) is True
    return least and most


@settings(max_examples=200)
@given(st.data())
def test_a_value_finds_the_ranges_that_hold_it_and_no_others(data: st.DataObject) -> None:
    order = data.draw(st.sampled_from(ORDERS))
    ends = st.sampled_from(VALUES[order])
    one = st.builds(Limits, st.none() | ends, st.none() | ends, st.booleans(), st.booleans())
    limits = data.draw(st.lists(one.filter(lambda r: (r.least, r.most) != (None, None)), min_size=1, max_size=12))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(limits), max_size=len(limits)))
    ranges = Ranges(order, limits, range(len(limits)), groups)
    kinds: list[list[Value]] = [[v for v in NUMBERS if type(v) is int], [v for v in NUMBERS if type(v) is float], TEXTS]
    mixed: list[Value] = [*NUMBERS, *TEXTS, None, True]
    kind = data.draw(st.sampled_from([*kinds, mixed]))
    values = data.draw(st.lists(st.sampled_from(kind), min_size=1, max_size=20))
    of = data.draw(st.lists(st.sampled_from([-1, *groups]), min_size=len(values), max_size=len(values)))
    expected = {
        (row, number)
        for row, (value, group) in enumerate(zip(values, of, strict=True))
        for number, (r, own) in enumerate(zip(limits, groups, strict=True))
        if own == group and order_of(value) == order and holds(r, value)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "MANY", data.draw(st.sampled_from([1, 1_000])))
        rows, numbers = ranges.pairs(column(values), np.array(of))
    found = list(zip(rows.tolist(), numbers.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert set(np.flatnonzero(ranges.holds(column(values), np.array(of))).tolist()) == {row for row, _ in expected}
    first = {
        number for number in range(len(limits)) for v in values if order_of(v) == order and holds(limits[number], v)
    }
    some = ranges.holding_some(column(values), 1_000)
    assert some == sorted(number for number in first if not groups[number])
    assert ranges.holding_some(column(values), -1) is None
    for row, (value, group) in enumerate(zip(values, of, strict=True)):
        if group >= 0 and order_of(value) == order:
            assert ranges.of(value, group) == sorted(number for k, number in expected if k == row)


@given(st.text(min_size=1, max_size=3), st.text(max_size=4))
def test_texts_that_begin_alike_are_a_range(first: str, text: str) -> None:
    for last in ("", chr(sys.maxunicode), chr(0xD7FF)):
        for other in (text, first + text, first[:-1] + text, first + last + text):
            assert holds(beginning_with(first + last), other) is other.startswith(first + last)
