"""This module says whose turn it is where more is due than can be sent at once: each server has its own places.

A server that hangs keeps its own places busy, however many recipients it has, and none of another server. Servers take
turns, and of the recipients of one those come first that did not fail last. It has no thread and no clock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Task = TypeVar("Task")

EACH = 16
"""So many messages are under way to one server at most."""
MOST = 128
"""So many are under way in all, but for servers that have none."""


@dataclass(slots=True)
class _Waiting(Generic[Task]):
    """What waits for a server: for recipients that have not failed last, and for others."""

    first: deque[Task] = field(default_factory=deque)
    then: deque[Task] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self.first) + len(self.then)

    def take(self) -> Task:
        return (self.first or self.then).popleft()


@dataclass(slots=True)
class Turns(Generic[Task]):
    """What waits and how much is under way, server by server.

    >>> turns = Turns[str](each=2)
    >>> for task in ("a1", "a2", "a3", "b1"):
    ...     turns.add(task[0], task)
    >>> list(turns.ready())
    ['a1', 'b1', 'a2']
    >>> turns.done("a")
    >>> list(turns.ready())
    ['a3']
    """

    each: int = EACH
    most: int = MOST
    _waiting: dict[Hashable, _Waiting[Task]] = field(default_factory=dict)
    """In the order of their turns."""
    _under_way: Counter[Hashable] = field(default_factory=Counter)
    _total: int = 0

    def add(self, server: Hashable, task: Task, *, has_failed: bool = False) -> None:
        """Something is to be sent to a server."""
        own = self._waiting.setdefault(server, _Waiting())
        (own.then if has_failed else own.first).append(task)

    def ready(self) -> list[Task]:
        """What is to be begun now; it is under way then, until it is `done`."""
        found: list[Task] = []
        while (server := self._next()) is not None:
            own = self._waiting.pop(server)
            found.append(own.take())
            if own:
                self._waiting[server] = own  # behind the others
            self._under_way[server] += 1
            self._total += 1
        return found

    def _next(self) -> Hashable | None:
        for server in self._waiting:
            under_way = self._under_way[server]
            if under_way < self.each and (self._total < self.most or (not under_way and self._total < 2 * self.most)):
                return server
        return None

    def done(self, server: Hashable) -> None:
        """Something that was under way to a server has ended."""
        self._total -= 1
        self._under_way[server] -= 1
        if not self._under_way[server]:
            del self._under_way[server]

    def clear(self) -> int:
        """Nothing waits any more; says how much did."""
        waited = sum(map(len, self._waiting.values()))
        self._waiting.clear()
        return waited
