"""This module defines the weights of temporal distances: a bound, whether it is strict, and whether it is guaranteed.

A weight on an edge i → j says how far j may lie after i. Order and sum are those of figures 5 and 6 of the relevance
paper: bound first, then `<` before `≤`, then `!` (guaranteed by the input) before `?` (tested by the query). A sum is
strict if either part is, and guaranteed only if both are. There is no weight for infinity: an edge is there or not.
"""

from __future__ import annotations

from typing import NamedTuple


class Weight(NamedTuple):
    """A bound on a difference; as a tuple it has the order of the paper.

    >>> strict(3) < at_most(3) < strict(4), at_most(3, guaranteed=True) < at_most(3)
    (True, True)
    """

    bound: int
    inclusive: bool
    doubtful: bool
    """Whether the query tests it; else every tuple of the input satisfies it."""

    @property
    def is_strict(self) -> bool:
        return not self.inclusive

    def plus(self, other: Weight) -> Weight:
        """The weight of two edges in a row."""
        return Weight(self.bound + other.bound, self.inclusive and other.inclusive, self.doubtful or other.doubtful)

    def guaranteed(self) -> Weight:
        """The same bound, known to hold."""
        return Weight(self.bound, self.inclusive, False)

    def says_the_same(self, other: Weight) -> bool:
        """Whether bound and strictness are equal, whoever vouches for them."""
        return self[:2] == other[:2]


def at_most(bound: int, *, guaranteed: bool = False) -> Weight:
    """The weight (≤, bound)."""
    return Weight(bound, True, not guaranteed)


def strict(bound: int, *, guaranteed: bool = False) -> Weight:
    """The weight (<, bound)."""
    return Weight(bound, False, not guaranteed)


ZERO = at_most(0, guaranteed=True)
"""How far a stamp lies after itself."""
