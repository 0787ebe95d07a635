"""This module shows that of all readers of a history only those are left that decide how long it is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ephemera.analysis.nodes import Length
from ephemera.kernels.lifetimes import Lifetimes
from ephemera.physical.lanes import _longest
from ephemera.physical.nodes import Reader

LENGTHS = st.builds(Length, st.integers(0, 3), st.none() | st.integers(0, 4))
READERS = st.lists(
    st.builds(
        lambda times, length: Reader(tuple(sorted(times.items())), length),
        st.dictionaries(st.sampled_from(["$.s", "$.e"]), st.integers(0, 5)),
        LENGTHS,
    ),
    max_size=6,
)


@given(readers=READERS, begin=st.integers(0, 5), length=st.integers(0, 4))
def test_a_tuple_lives_as_long_for_the_longest_readers_as_for_all(
    readers: list[Reader], begin: int, length: int
) -> None:
    row = {"$.s": begin, "$.e": begin + length}
    assert Lifetimes(_longest(readers)).of_row(row) == Lifetimes(tuple(readers)).of_row(row)


def test_of_readers_by_one_stamp_the_longest_is_left() -> None:
    assert _longest([Reader((("$.e", time),)) for time in range(1_000)]) == (Reader((("$.e", 999),)),)
