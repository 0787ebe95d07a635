"""This module keeps the histories of a lane small: what no reader can need any more is dropped, and runs are merged.

A few histories are looked at after every step. Of very many, only those are that have grown, those of timers and
algebra expressions, and those that may be empty by now: a step must not cost what all rules together store.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from heapq import heappop, heappush

from ephemera.kernels.history import History

MANY = 64
"""More histories than these are very many."""


class Upkeep:
    """Some histories, and when each is looked at."""

    def __init__(
        self, histories: Mapping[str, History], queries: Container[str], emptied: Callable[[str], None]
    ) -> None:
        """`emptied` is told of histories that hold nothing any more."""
        self._histories = histories
        self._emptied = emptied
        self._others = [name for name in histories if name not in queries]
        self._grown: dict[str, None] = {}
        self._last_uses: list[tuple[int, str]] = []
        """From which bound on some histories may be empty; a heap."""
        self._waiting: set[str] = set()
        """The histories in it."""

    def grown(self, name: str) -> None:
        """A history has grown in this step."""
        self._grown[name] = None

    def restart(self) -> None:
        """All histories are looked at after the next step: what they hold was not put there by steps."""
        self._grown = dict.fromkeys(self._histories)

    def step(self, bound: int, tick: int) -> None:
        """A step has ended."""
        due, self._grown = self._grown, {}
        if len(self._histories) <= MANY:
            self._look_at(self._histories, bound, tick)
            return
        due.update(dict.fromkeys(self._others))
        while self._last_uses and self._last_uses[0][0] <= bound:
            name = heappop(self._last_uses)[1]
            self._waiting.discard(name)
            due[name] = None
        self._look_at(due, bound, tick)
        for name in due:
            last = self._histories[name].last_use
            if last is not None and name not in self._waiting:
                self._waiting.add(name)
                heappush(self._last_uses, (max(last, bound + 1), name))

    def _look_at(self, names: Iterable[str], bound: int, tick: int) -> None:
        for name in names:
            history = self._histories[name]
            if history.stored or history.tail is not None:
                history.expire(bound)
                history.compact(tick + 1)
                if history.is_empty:
                    self._emptied(name)
