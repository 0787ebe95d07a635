"""This module is the time of the machine, for live engines: clocks that never go back, and sources that are silent.

How long a source has been silent is measured by a clock that only counts what has passed, so that it makes no
difference if somebody sets the time of day. Stamps of arrival are times of day; where that is set back, they go on from
where they were, at the speed of the clock, and are ahead of it until it has caught up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
        self._lock = threading.Lock()

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


class IdleSources:
    """The sources with an idle time, and from when on each moves by the clock.

    A source that was silent for its declared idle time moves on as the clock does, from where it stands, until it is
    heard again. The clock is an argument: whoever calls says what time it is.
    """

    def __init__(self, idle: Mapping[str, int], now: int, since: Mapping[str, int] | None = None) -> None:
        """`since` says from when on some of them do, as was known before."""
        self._idle = idle
        self.since = {name: (since or {}).get(name, now + wait) for name, wait in idle.items()}

    def heard(self, names: Iterable[str], now: int) -> None:
        """Something came from these sources."""
        self.since.update({name: now + self._idle[name] for name in names if name in self._idle})

    def passed(self, now: int) -> dict[str, int]:
        """The sources that are silent, and how much time has passed for each since this was asked last."""
        silent = {name: now - since for name, since in self.since.items() if now > since}
        self.since.update(dict.fromkeys(silent, now))
        return silent


class BackgroundClock(threading.Thread):
    """Moves an engine on with the time of day."""

    def __init__(
        self,
        advance: Callable[[], Sequence[dict[str, Any]]],
        deliver: Callable[[Sequence[dict[str, Any]]], None],
        every: float,
    ) -> None:
        super().__init__(name="ephemera-clock", daemon=True)
        self._advance = advance
        self._deliver = deliver
        self._every = every
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._every):
            answers = self._advance()
            if answers:
                self._deliver(answers)

    def stop(self) -> None:
        self._stopped.set()
        if self is not threading.current_thread():
            self.join()
