"""This module holds the clocks of live engines: none of them ever goes back.

How long a source has been silent is measured by a clock that only counts what has passed, so that it makes no
difference if somebody sets the time of day. Stamps of arrival are times of day; where that is set back, they go on from
where they were, at the speed of the clock, and are ahead of it until it has caught up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

Clock = Callable[[], int]


def wall_clock() -> int:
    """The time of day in microseconds."""
    return time.time_ns() // 1_000


def passing() -> int:
    """Microseconds that have passed since some moment; only differences mean something."""
    return time.monotonic_ns() // 1_000


class MonotonicClock:
    """What a clock says, but it never goes back: if the clock does, this goes on from where it stood.

    How much passes is told by another clock that is never set; without one, by what the first says while it goes on.
    """

    def __init__(self, clock: Clock, passed: Clock | None = None) -> None:
        self._clock = clock
        self._passed = passed
        self._said = clock()
        self._at = self._said if passed is None else passed()
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            now = self._clock()
            at = now if self._passed is None else self._passed()
            self._said = max(now, self._said + max(0, at - self._at))
            self._at = at
            return self._said

    def reach(self, time: int) -> None:
        """From now on it says this time at least."""
        with self._lock:
            self._said = max(self._said, time)
