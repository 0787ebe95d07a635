"""This module knows how far the sources of a program have come, where each is read in several partitions.

Each partition has an order of its own, so events are judged by the bound of their partition, and a source has come as
far as the slowest of its partitions. A partition counts for a source

- from its first event of that source on;
- before that, as long as it has not been read to where it ended when the run began, since there may be such events;
- not while it has been silent for the idle time of the source. If all are silent, time passes by the clock.

One that begins to count, or does so again, begins where the source stands. No clock is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ephemera.engine.time.event_time import Watermarks, sources_of
from ephemera.kernels.history import FAR
from ephemera.rules.nodes import Catalogue


class Partitions:
    """The partitions of all that one program reads, by their names."""

    def __init__(self, catalogue: Catalogue, names: Iterable[str], now: int) -> None:
        """`now` is what a clock says in microseconds, of which only differences mean something."""
        self._catalogue = catalogue
        self._names = sorted(names)
        self._idle = {source.name: source.idle for source in catalogue.sources if source.idle is not None}
        self._marks: dict[str, Watermarks] = {}
        self._heard: dict[tuple[str, str], int] = {}
        self._began = now
        self._moved: dict[str, int] = {}
        """For each source that moves by the clock, until when it has."""
        self.bounds: dict[str, int] = {}
        """How far each source has come."""
        self.past: dict[str, int] | None = None
        """How far each had come with the past that was read first, if one was."""
        self.awaits_past = False
        """Whether one is to be read before anything else."""

    def go_on(self, catalogue: Catalogue, names: Iterable[str]) -> None:
        """The program has changed: all have come as far as they had, and from now on what it declares counts."""
        self._catalogue, self._names = catalogue, sorted(names)
        self._idle = {source.name: source.idle for source in catalogue.sources if source.idle is not None}
        self._moved = {name: until for name, until in self._moved.items() if name in self._idle}
        self.bounds = {name: bound for name, bound in self.bounds.items() if name in self._names}
        for partition, marks in self._marks.items():
            self._marks[partition] = now = sources_of(catalogue)
            now.bounds.update((name, bound) for name, bound in marks.bounds.items() if name in now.names)
            now.restore(marks.first, marks.last)

    def heard(self, partition: str, labels: Iterable[str], now: int) -> Watermarks:
        """Events of some types come in a partition: how far that has come, which their arrival moves on."""
        marks = self._marks.setdefault(partition, sources_of(self._catalogue))
        for name in {marks.source(label) for label in labels}:
            self._heard[partition, name] = now
            if name in self.bounds:
                marks.bounds[name] = max(marks.bounds.get(name, -FAR), self.bounds[name])
        return marks

    def reached(self, behind: Collection[str], now: int) -> dict[str, int]:
        """How far the sources have come; `behind` are partitions that have not been read to where they ended."""
        for name in self._names:
            if not any(self._bound(partition, name) is None for partition in behind):
                self._reach(name, now)
        for name in self._names:  # one never heard of holds no one back when its idle time is over
            if name not in self.bounds and name in self._idle and now > self._began + self._idle[name]:
                others = [bound for bound in self.bounds.values() if bound > -FAR]
                if others and not behind:
                    self.bounds[name] = min(others)
        return dict(self.bounds)

    def behind_the_past(self, bounds: Mapping[str, int], now: int) -> None:
        """A past was read first, with which the sources have come so far; it was no silence."""
        self.past, self.awaits_past, self._began = dict(bounds), False, now
        self.bounds.update(bounds)

    @property
    def silent(self) -> frozenset[str]:
        """The sources that are silent, so that they move by the clock."""
        return frozenset(self._moved)

    def _bound(self, partition: str, name: str) -> int | None:
        marks = self._marks.get(partition)
        return None if marks is None else marks.bounds.get(name)

    def _reach(self, name: str, now: int) -> None:
        own = {p: bound for p, marks in self._marks.items() if (bound := marks.bounds.get(name)) is not None}
        idle = self._idle.get(name)
        counted = [b for p, b in own.items() if idle is None or now <= self._heard.get((p, name), self._began) + idle]
        if counted:
            self._moved.pop(name, None)
            self.bounds[name] = max(self.bounds.get(name, -FAR), min(counted))
        elif idle is not None and (own or name in self.bounds):
            last = max([self._heard.get((p, name), self._began) for p in own], default=self._began)
            if not own and now <= last + idle:  # known from a past, and not silent for so long
                return
            stands = max([self.bounds.get(name, -FAR), *own.values()])
            since = self._moved.get(name, last + idle)
            self.bounds[name] = min(stands + max(now - since, 0), FAR)
            self._moved[name] = now

    # ---- state ---------------------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """How far all have come, as JSON has it."""
        partitions = {p: dict(m.bounds) for p, m in self._marks.items()}
        past = {"past": self.past} if self.past is not None or self.awaits_past else {}
        return {"sources": dict(self.bounds), "partitions": partitions, **past}

    def restore(self, stored: Mapping[str, Any], now: Callable[[str], str | None] = str) -> None:
        """Stands where another stood; `now` says what its partitions are called now, if they are left."""
        self.bounds = dict(stored["sources"])
        self.past = stored.get("past")
        self.awaits_past = "past" in stored and self.past is None
        for partition, bounds in stored["partitions"].items():
            name = now(partition)
            if name is not None:
                self._marks.setdefault(name, sources_of(self._catalogue)).bounds.update(bounds)
