"""A source has come as far as the slowest of its partitions, but those that are silent or empty hold no one back."""

from __future__ import annotations

import numpy as np

import ephemera
from ephemera.connect.live.partitions import Partitions

SECOND = 1_000_000


def partitions(declared: str = "") -> Partitions:
    program = ephemera.compile(f"EVENT a(x: int); STREAM s CARRIES a {declared}; p(x) <- i: a(x);")
    return Partitions(program.catalogue, program.engine().sources, now=0)


def arrive(own: Partitions, partition: str, time: int, now: int = 0) -> bool:
    """Whether an event of that second comes in time."""
    marks = own.heard(partition, ["a"], now)
    times = np.array([time * SECOND], dtype=np.int64)
    return bool(marks.arrive("s", times, times)[0])


def test_the_slowest_partition_holds_its_source_back() -> None:
    own = partitions()
    arrive(own, "0", 10)
    arrive(own, "1", 4)
    assert own.reached((), 0)["s"] == 4 * SECOND - 1


def test_an_event_is_late_by_its_own_partition_only() -> None:
    own = partitions()
    assert arrive(own, "0", 10)
    assert arrive(own, "1", 4)
    assert not arrive(own, "0", 9)
    assert arrive(own, "1", 5)


def test_a_partition_that_has_not_been_read_to_its_end_holds_all_back() -> None:
    own = partitions()
    arrive(own, "0", 10)
    assert "s" not in own.reached({"1"}, 0)
    assert own.reached((), 0)["s"] == 10 * SECOND - 1


def test_a_partition_that_was_empty_begins_where_the_source_stands() -> None:
    own = partitions()
    arrive(own, "0", 10)
    own.reached((), 0)
    assert not arrive(own, "1", 9)
    assert arrive(own, "1", 10)


def test_a_silent_partition_holds_no_one_back_until_it_is_heard_again() -> None:
    own = partitions("IDLE 1 min")
    arrive(own, "0", 10, now=0)
    arrive(own, "1", 4, now=0)
    arrive(own, "0", 50, now=61 * SECOND)
    assert own.reached((), 61 * SECOND)["s"] == 50 * SECOND - 1
    assert not arrive(own, "1", 20, now=62 * SECOND)
    arrive(own, "0", 60, now=62 * SECOND)
    assert own.reached((), 62 * SECOND)["s"] == 50 * SECOND - 1


def test_where_all_are_silent_time_passes_by_the_clock() -> None:
    own = partitions("IDLE 1 min")
    arrive(own, "0", 10, now=0)
    assert own.reached((), 60 * SECOND)["s"] == 10 * SECOND - 1
    assert own.reached((), 65 * SECOND)["s"] == 15 * SECOND - 1
    assert own.reached((), 66 * SECOND)["s"] == 16 * SECOND - 1


def test_what_was_reached_survives_a_restart() -> None:
    own = partitions()
    arrive(own, "0", 10)
    arrive(own, "1", 4)
    own.reached((), 0)
    other = partitions()
    other.restore(own.checkpoint())
    assert not arrive(other, "1", 3)
    assert other.reached((), 0)["s"] == 4 * SECOND - 1
