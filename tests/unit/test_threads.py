"""This module shows that what is done in several threads comes in order, a few at a time."""

from __future__ import annotations

import threading
from itertools import count, islice

import pytest

from ephemera.spark.live.task import side_by_side


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 20])
def test_each_thing_is_worked_on_once_and_in_order(threads: int, length: int) -> None:
    assert list(side_by_side(lambda n: n * n, range(length), threads)) == [n * n for n in range(length)]


def test_as_many_are_under_way_as_there_are_threads() -> None:
    both = threading.Barrier(2, timeout=30)
    assert list(side_by_side(lambda n: (both.wait(), n)[1], range(10), 2)) == list(range(10))


def test_no_more_is_taken_than_is_worked_on() -> None:
    numbers = count()
    assert list(islice(side_by_side(lambda n: n, numbers, 3), 5)) == [0, 1, 2, 3, 4]
    assert next(numbers) <= 5 + 3


def test_nothing_is_under_way_any_more_when_something_went_wrong() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(number: int) -> None:
        if number == 0:
            assert begun.wait(30)
            raise ValueError("on purpose")
        begun.set()
        threading.Event().wait(0.05)
        ended.set()

    with pytest.raises(ValueError, match="on purpose"):
        list(side_by_side(work, range(2), 2))
    assert ended.is_set()


def test_what_goes_wrong_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda n: 1 // (n - 3), range(9), 2))
