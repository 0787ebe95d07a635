"""This module runs programs live in places of one process: a host that forgets, fails and repeats as Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from ephemera.engine.cluster.admission import Admission
from ephemera.engine.cluster.message import EventsFor, ScatteredAnswers, Shipment, SourceProgress
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.shard import Shard
from ephemera.engine.cluster.source_progress import Progress, moved
from ephemera.engine.state.durable_files import Posix
from ephemera.engine.state.segment_store import Store
from ephemera.engine.state.segments import NOBODY, Origin
from ephemera.kernels.event_columns import of_events
from ephemera.terms.events import Event

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Beat:
    """What comes with a batch: events, and what is said of time."""

    events: Sequence[Event] = ()
    now: int | None = None
    closes: int | None = None
    ends: bool = False


STREAMS = "\nSTREAM s CARRIES a, b WATERMARK 240 sec;\nSTREAM t CARRIES c WATERMARK 420 sec;\n"
"""Two sources of the events of generated cases."""
_WATERMARKS = {"a": 240_000_000, "b": 240_000_000, "c": 420_000_000}


def arriving(events: Iterable[Event], dice: Random, watermarks: Mapping[str, int] = _WATERMARKS) -> list[Event]:
    """Events in an order in which they may arrive from these sources, none of them late."""

    def arrival(event: Event) -> float:
        return event.time.end + dice.random() * watermarks.get(event.term.label, 0)

    return sorted(events, key=arrival)


def cut(events: Sequence[Event], dice: Random) -> list[list[Event]]:
    """Events in batches, of which some have none."""
    found: list[list[Event]] = []
    while events:
        size = dice.choice([0, 1, 1, 2, 3, 5, 8])
        found.append(list(events[:size]))
        events = events[size:]
    return found


@dataclass(slots=True)
class Host:
    """A live program in places of one process.

    In every batch each place is taken by one of several workers, which may have the state before it, an earlier one, or
    none; some batches are done twice, the first time in vain.
    """

    spread: DistributedProgram
    folder: Path
    dice: Random
    workers: int = 3
    fails: bool = True
    cuts: bool = False
    """Whether batches are cut along time wherever they can be, into some slices."""
    sliced: int = 0
    """How often others did a slice of what is at home in one place."""
    standing: Progress = field(default_factory=Progress)
    batch: int = 0
    shards: dict[tuple[int, int, int], Shard] = field(default_factory=dict)
    carried: list[Shipment] = field(default_factory=list)
    """All that came of all batches."""
    bytes: list[int] = field(default_factory=list)
    origin: Origin = NOBODY

    def beat(self, beat: Beat) -> list[Shipment]:
        """What comes of one more batch."""
        if self.fails and self.dice.random() < 0.3:
            self._tried(beat)
            if self.dice.random() < 0.3:
                self.shards.clear()
        found, self.standing = self._tried(beat)
        self.batch += 1
        self.carried += found
        return found

    def _tried(self, beat: Beat) -> tuple[list[Shipment], Progress]:
        visited = self._visited() if self.cuts else {}
        carried = list(self._let_in(beat, visited))
        words = [s.seen for s in carried if isinstance(s, SourceProgress) and s.place == 0]
        standing = moved(self.standing, words, self.spread.plan.catalogue)
        standings = {0: standing} if words else {}
        carried = [s for s in carried if not isinstance(s, SourceProgress)]
        for level in range(self.spread.stages.levels):
            for place in range(self.spread.places):
                here = _in_order(s for s in carried if s.place == place)
                carried = [s for s in carried if s.place != place]
                shard = self._shard(level, place)
                carried += list(shard.step(here, standings, {0: visited}))
                self.sliced += sum(home != place for _, _, home in shard.done)
                written = shard.commit(self.batch)
                self.bytes.append(written.written)
                carried += shard.told(written)
        found: list[Shipment] = []
        for place in range(self.spread.places):
            here = _in_order(s for s in carried if s.place == place)
            found += self.spread.gather(place, of_kind(here, ScatteredAnswers))
            found += [s for s in here if not isinstance(s, ScatteredAnswers)]
        return found, standing

    def _visited(self) -> dict[tuple[int, int], int]:
        places = range(self.spread.places)
        homes = [(g, home) for g in self.spread.look_backs for home in places if self.dice.random() < 0.8]
        return {at: self.dice.randrange(2, len(places) + 1) for at in homes if len(places) > 1}

    def _let_in(self, beat: Beat, visited: Mapping[tuple[int, int], int]) -> Iterable[Shipment]:
        """Two readers share the events."""
        events = list(beat.events)
        self.dice.shuffle(events)
        half = self.dice.randrange(len(events) + 1)
        for part in (events[:half], events[half:]):
            gate = Admission(self.spread.for_batch(visited), self.standing)
            gate.now, gate.closes, gate.ends = beat.now, beat.closes, beat.ends
            yield from gate.let_in(of_events(part, self.spread.plan.catalogue.attributes))
            yield from gate.words(range(self.spread.places))

    def _shard(self, level: int, place: int) -> Shard:
        worker = self.dice.randrange(self.workers)
        shard = self.shards.get((worker, level, place))
        if shard is None or (self.fails and self.dice.random() < 0.1):
            store = self._store(level, place)
            shard = Shard({0: self.spread}, level, place, store, partial(self._store, level))
            self.shards[worker, level, place] = shard
        shard.come_to(self.batch - 1 if self.batch else None)
        return shard

    def _store(self, level: int, place: int) -> Store:
        origin = replace(self.origin, level=level, place=place)
        return Store(Posix(), f"{self.folder}/{level}-{place}", origin=origin)


def _in_order(shipments: Iterable[Shipment]) -> list[Shipment]:
    """What is for groups by group, home and time, and before it all else, by time."""

    def position(shipment: Shipment) -> tuple[int, int, int]:
        group, home = (shipment.group, shipment.home) if isinstance(shipment, EventsFor) else (-1, 0)
        return group, home, shipment.events.first if isinstance(shipment, EventsFor | ScatteredAnswers) else 0

    return sorted(shipments, key=position)


def of_kind(shipments: Iterable[Shipment], kind: type[S]) -> list[S]:
    """The shipments of a kind."""
    return [s for s in shipments if isinstance(s, kind)]
