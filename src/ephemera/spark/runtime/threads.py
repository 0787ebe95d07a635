"""This module works on several things at once in one task, where Spark would leave the other cores idle.

Arrow, numpy and the disk let other threads run while they work, and they do most of what there is to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def side_by_side(function: Callable[[A], B], given: Iterable[A], threads: int) -> Iterator[B]:
    """What a function makes of each of some things, in their order; no more of them are under way than threads."""
    if threads == 1:
        yield from map(function, given)
        return
    left = iter(given)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[B]] = deque(pool.submit(function, one) for one in islice(left, threads))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(function, one) for one in islice(left, 1))
