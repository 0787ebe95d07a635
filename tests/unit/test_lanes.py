"""This module shows that of many readers of a history those are left that keep whatever any of them keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ephemera.kernels.history import _is_past
from ephemera.physical.lanes import _longest

STAMPS = ("$.s", "$.e", "$.x")
READERS = st.lists(
    st.dictionaries(st.sampled_from(STAMPS), st.integers(0, 4), max_size=3).map(lambda one: tuple(one.items())),
    max_size=6,
)


@given(READERS, st.lists(st.integers(0, 8), min_size=3, max_size=3))
def test_what_is_past_for_the_longest_readers_is_past_for_all(
    readers: list[tuple[tuple[str, int], ...]], stamps: list[int]
) -> None:
    latest = dict(zip(STAMPS, stamps, strict=True))
    assert _is_past(latest, _longest(readers), 8) is _is_past(latest, readers, 8)


def test_of_readers_by_one_stamp_the_longest_is_left() -> None:
    assert _longest([(("$.e", time),) for time in range(1_000)]) == ((("$.e", 999),),)
