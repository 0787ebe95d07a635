"""This module adds up doubles exactly, many sums at a time, so that each is rounded once, in the end.

Each double is cut into digits of thirty bits: whole numbers worth powers of two, which are the same ones for all
doubles. Digits are added up as whole numbers, in running sums or one by one, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ephemera.kernels.columns import Array, Doubles, Ints, objects

BITS = 30
"""Of a digit; so sums of many digits stay within 64 bits."""
MOST_DIGITS = 8
"""Doubles of which some are so much greater than others are added up one by one."""
NEAR = (1e-100, 1e100)
"""Between these no power of two that counts is beyond what doubles hold."""

Digits = Mapping[int, Ints]
"""Columns of digits, each by how often two to the thirtieth is in what it is worth."""


def digits_of(values: Doubles) -> Digits | None:
    """The digits of doubles; None where they are too far apart, or one is none of those that can be cut."""
    sizes = np.abs(values[values != 0.0])
    has_odd_zero = bool(np.signbit(values[values == 0.0]).any())  # a sum of such zeros has a sign
    if has_odd_zero or not (np.isfinite(values).all() and ((sizes > NEAR[0]) & (sizes < NEAR[1])).all()):
        return None
    if not len(sizes):
        return {0: np.zeros(len(values), dtype=np.int64)}
    exponents = np.frexp(sizes)[1]
    first, last = -(-int(exponents.max()) // BITS) - 1, (int(exponents.min()) - 53) // BITS
    if first - last >= MOST_DIGITS:
        return None
    found: dict[int, Ints] = {}
    left = values
    for place in range(first, last - 1, -1):
        worth = 2.0 ** (BITS * place)
        digit = np.trunc(left / worth)
        left = left - digit * worth
        found[place] = digit.astype(np.int64)
    return found


def running(digits: Digits, order: Ints) -> Digits:
    """The sums of the digits before each row in an order, and of all."""
    found: dict[int, Ints] = {}
    for place, own in digits.items():
        sums = found[place] = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(own.take(order), out=sums[1:])
    return found


class ExactSums:
    """So many sums, which grow."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._digits: dict[int, Ints] = {}

    def add_each(self, rows: Ints, digits: Digits, others: Ints) -> None:
        """Adds doubles one by one, each to the sum of a row, which may be there several times."""
        for place, own in digits.items():
            np.add.at(self._at(place), rows, own.take(others))

    def add_ranges(self, rows: Ints, sums: Digits, starts: Ints, stops: Ints) -> None:
        """Adds ranges of doubles, whose running sums are given, each to the sum of another row."""
        for place, own in sums.items():
            self._at(place)[rows] += own.take(stops) - own.take(starts)

    def _at(self, place: int) -> Ints:
        if place not in self._digits:
            self._digits[place] = np.zeros(self._count, dtype=np.int64)
        return self._digits[place]

    def whole(self) -> tuple[Array, int]:
        """The sums as whole numbers of any size, and the power of two that one is worth."""
        last = min(self._digits, default=0)
        found = [0] * self._count
        for place in range(max(self._digits, default=0), last - 1, -1):
            own = self._at(place).tolist()
            found = [(before << BITS) + digit for before, digit in zip(found, own, strict=True)]
        return objects(found), BITS * last
