"""This module reads the past of a live run in one process: files that are there, all of which are read first.

In the past nothing is late, so its order means nothing. It is taken as it comes where it is in the order of time, or
nearly so, and else sorted on disk first. Engines go as far as the past is sure to be whole: up to its latest event,
less the watermark of the source. What lies beyond waits for what is read live, in which it may come again: equal events
are one. What is read live and ended before is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ephemera.base.scratch import scratch
from ephemera.connect.external_sort import ExternalSort
from ephemera.connect.source import Source
from ephemera.connect.time_order import WINDOW, Input, OutOfOrder, as_they_come
from ephemera.engine.driver import SLICE
from ephemera.engine.engine import Found
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.formats.decode import Noticed, decoders_of
from ephemera.formats.decoded import Decoded
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import BEGIN, END, Events, size_of
from ephemera.kernels.history import FAR
from ephemera.terms.events import Event

_Slices = Iterable[tuple[int, Sequence[Sequence[Events]]]]
"""For each program events, with a time before which no more end that have not been given."""


class PastStopped(Exception):
    """Somebody ended the run before all of its past was read; nothing of it has been written."""


@dataclass(frozen=True, slots=True)
class Past:
    """Files that are read first, and by which programs, as which type if their events do not name theirs."""

    source: Source
    readers: Mapping[int, str | None] | None = None


@dataclass(slots=True)
class ReadPast:
    """The past as it is read; each program has an engine."""

    engines: Sequence[LiveEngine]
    past: Sequence[Past]
    noticed: Sequence[Noticed]
    """What each program notices of what it reads."""
    give: Callable[[Sequence[Found]], None]
    """Takes what is certain."""
    begin_anew: Callable[[], None]
    """Drops what has been given so far."""
    lenient: bool = False
    stop: Callable[[], bool] = lambda: False
    """Whether somebody wants it to end before all is read."""
    heard: Callable[[Sequence[Decoded]], None] = lambda _: None
    """Is told what has been read, program by program."""
    window: int = WINDOW
    inputs: list[Input] = field(default_factory=list)
    """The past as it is read now."""
    _seen: list[dict[str, int]] = field(init=False)
    """For each engine and source when the latest event arrived."""

    def read(self) -> list[dict[str, int]]:
        """How far each source of each program has come with all of it."""
        if all(one.source.can_reopen for one in self.past):
            try:
                return self._through(lambda: as_they_come(self.inputs, self._heed, self.window))
            except OutOfOrder:
                self.begin_anew()
                for engine in self.engines:
                    engine.begin_anew()
        with scratch("sort") as folder:
            return self._through(lambda: self._sorted(ExternalSort(folder, len(self.engines))))

    def _heed(self, found: Sequence[Decoded]) -> None:
        for engine, decoded in zip(self.engines, found, strict=True):
            engine.heed(decoded)
        self.heard(found)

    def _sorted(self, sort: ExternalSort) -> Iterator[tuple[int, list[list[Events]]]]:
        for one in self.inputs:
            while (found := one.read()) is not None:
                self._heed(found)
                sort.add([decoded.parts for decoded in found])
        yield from sort.slices(SLICE)

    def _through(self, slices: Callable[[], _Slices]) -> list[dict[str, int]]:
        self._seen = [{} for _ in self.engines]
        compiled = [engine.compiled for engine in self.engines]
        self.inputs = [
            Input(one.source, decoders_of(compiled, self.noticed, one.readers, one.source.only)) for one in self.past
        ]
        loaded = size = 0
        try:
            for first, parts in slices():
                if self.stop():
                    raise PastStopped
                if loaded >= SLICE or size >= WINDOW:
                    self._reach(first - 1)
                    loaded = size = 0
                for engine, seen, own in zip(self.engines, self._seen, parts, strict=True):
                    engine.load(own)
                    for part in own:
                        _note(part, engine, seen)
                loaded += max(sum(map(len, own)) for own in parts)
                size += sum(size_of(part) for own in parts for part in own)
            for noticed, one in zip(self.noticed, compiled, strict=True):
                noticed.check(one, lenient=self.lenient)
            return self._reach(FAR)
        finally:
            for source in self.inputs:
                source.close()

    def _reach(self, limit: int) -> list[dict[str, int]]:
        """Time passes, but no further than the past is whole."""
        bounds = [
            {name: min(limit, time - engine.watermark(name) - 1) for name, time in seen.items()}
            for engine, seen in zip(self.engines, self._seen, strict=True)
        ]
        self.give([engine.reach(own) for engine, own in zip(self.engines, bounds, strict=True)])
        return bounds


def _arrivals(part: Events, engine: LiveEngine) -> Ints:
    """When events arrive."""
    return part.batch[BEGIN if engine.catalogue.arrives_at_begin(part.label) else END]


def _note(part: Events, engine: LiveEngine, seen: dict[str, int]) -> None:
    if len(part):
        source = engine.source_of(part.label)
        seen[source] = max(seen.get(source, -FAR), int(_arrivals(part, engine).max()))


def without_known(decoded: Decoded, engine: LiveEngine, past: Mapping[str, int]) -> Decoded:
    """What is read live without what the past had, which ended by its bounds."""
    if not past:
        return decoded
    found = Decoded(decoded.count, bad=decoded.bad)
    for part, rows, form in zip(decoded.parts, decoded.rows, decoded.forms, strict=True):
        bound = past.get(engine.source_of(part.label), -FAR)
        is_new = _arrivals(part, engine) > bound
        found.add(part if is_new.all() else part.take(is_new), rows[np.flatnonzero(is_new)], as_numbers=form)
    return found


def is_known(event: Event, engine: LiveEngine, past: Mapping[str, int]) -> bool:
    """Whether the past had an event, or would have had it: it ended by its bounds."""
    time = event.time.begin if engine.catalogue.arrives_at_begin(event.term.label) else event.time.end
    return time <= past.get(engine.source_of(event.term.label), -FAR)
