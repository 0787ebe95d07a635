"""This module lets the events of a live batch in: late ones are turned away, and a word is kept of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ephemera.engine.cluster.message import LateInput, Shipment, SourceProgress
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import PlaceProgress, Progress
from ephemera.engine.time.event_time import Watermarks, sources_of
from ephemera.formats.json_events import write_event
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.history import FAR

TOO_LATE = "it came behind the bound of its source"


class Admission:
    """What one reader lets in of a batch, for one program."""

    def __init__(self, spread: DistributedProgram, before: Progress) -> None:
        self._spread = spread
        self._before = before
        self._catalogue = spread.plan.catalogue
        self._sources: Watermarks = sources_of(self._catalogue)
        self._latest: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._parts: dict[str, dict[str, int]] = {}
        self._known = 0
        self.behind: dict[str, tuple[str, ...] | None] = {}
        """Partitions in which there is more to read, and of which sources; None for any."""
        self.now: int | None = None
        self.closes: int | None = None
        self.ends = False
        self.texts = False

    def let_in(self, parts: Iterable[Events], partition: str | None = None) -> Iterator[Shipment]:
        """Events on their way to where they meet, all of one partition if they have any; late ones go elsewhere."""
        good: list[Events] = []
        for part in parts:
            if not len(part):
                continue
            source = self._sources.source(part.label)
            times = self._arrivals(part)
            in_time = times > self._before.bound(source, partition)
            self._note(source, partition, times, part.batch[END][in_time])
            if in_time.all():
                good.append(part)
                continue
            good.append(part.take(in_time))
            is_late = ~in_time & (times > self._before.past.get(source, -FAR))
            self._known += len(times) - int(np.count_nonzero(in_time)) - int(np.count_nonzero(is_late))
            if is_late.any():
                yield from turned_away(self._spread, part.take(is_late), as_numbers=not self.texts)
        yield from self._spread.route([part for part in good if len(part)])

    def _arrivals(self, part: Events) -> Ints:
        return part.batch[BEGIN if self._catalogue.arrives_at_begin(part.label) else END]

    def _note(self, source: str, partition: str | None, times: Ints, ends: Ints) -> None:
        """Keeps in mind when events arrived, and when those of them end that came in time."""
        latest = int(times.max())
        known, name = (self._latest, source) if partition is None else (self._parts.setdefault(source, {}), partition)
        known[name] = max(latest, known.get(name, latest))
        self._counts[source] = self._counts.get(source, 0) + len(times)
        if len(ends):
            self._sources.span(int(ends.min()), int(ends.max()))

    def words(self, places: Sequence[int]) -> Iterator[Shipment]:
        """What was seen, for each of some places; nothing if nothing was."""
        first, last = self._sources.first, self._sources.last if self._sources.first is not None else None
        told = (self.now, self.closes, self.ends, self.texts, self._counts, self._parts, self.behind, self._known)
        word = PlaceProgress(self._latest, first, last, *told)
        if word == PlaceProgress():
            return
        for place in places:
            yield SourceProgress(self._spread.number, place, word)


def turned_away(spread: DistributedProgram, late: Events, *, as_numbers: bool) -> Iterator[Shipment]:
    """Events that are too late, each with the reason."""
    for event in late.events():
        told = write_event(event, spread.plan.catalogue, as_numbers=as_numbers)
        letter = {"reason": TOO_LATE, "event": json.dumps(told, ensure_ascii=False)}
        line = json.dumps(letter, ensure_ascii=False, default=str).encode()
        yield LateInput(spread.number, 0, 1, line)
