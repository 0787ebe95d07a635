"""This module runs the batches of a live query in Spark's tasks: events are let in, met by shards, and answered.

A batch is one chain, as over history: what is read is routed, shuffled to the places of the shards, and met there level
by level. The words of all readers go to every place, so that each knows how far the sources have come within the batch.
A shard commits before anything of it goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame

from ephemera.engine.files import files_of
from ephemera.engine.shard import Shard
from ephemera.engine.shipments import HEARD, SCATTERED, Shipment
from ephemera.engine.spread import Spread
from ephemera.engine.standing import Standing, Word, moved, read_word
from ephemera.engine.store import Store
from ephemera.spark.failures import told_by
from ephemera.spark.marks import mark
from ephemera.spark.places import batches, exchanged, place_of_task, shipments_of
from ephemera.spark.programs import Programs

STALE = 50
"""A shard that has not been asked for so many batches is forgotten."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A batch: which one it is, which it goes on from, and where the programs stood before it."""

    query: str
    """Tells the queries that a worker has seen apart."""
    number: int
    before: int | None
    standings: Mapping[int, Standing]
    state: str
    """Where the shards have their state."""

    def standing(self, program: int) -> Standing:
        return self.standings.get(program, Standing())


@dataclass(frozen=True, slots=True)
class At:
    """A place in which a batch ends, and where the programs stand then."""

    spreads: Mapping[int, Spread]
    turn: Turn
    place: int
    standings: Mapping[int, Standing]

    def standing(self, program: int) -> Standing:
        return self.standings.get(program, self.turn.standing(program))


Last = Callable[[Iterable[Shipment], At], Iterator[Shipment]]
"""What is done with all that comes of a batch in one place."""


def after(turn: Turn, heard: Iterable[Shipment], spreads: Mapping[int, Spread]) -> dict[int, Standing]:
    """Where those programs stand after a batch of which something was heard."""
    words: dict[int, list[Word]] = {}
    for shipment in heard:
        words.setdefault(shipment.program, []).append(read_word(json.loads(bytes(shipment.load))))
    return {
        number: moved(turn.standing(number), own, spreads[number].merged.plan.catalogue)
        for number, own in words.items()
    }


@dataclass(frozen=True, slots=True)
class Meeting:
    """What runs in each place between two exchanges: the shard of one level, and what is done last, if this is it."""

    spreads: Programs
    level: int
    turn: Turn
    last: Last | None

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self._run(list(shipments_of(given)), place_of_task())))

    def _run(self, given: Sequence[Shipment], place: int) -> Iterator[Shipment]:
        heard = [s for s in given if s.group == HEARD]
        others = [s for s in given if s.group != HEARD]
        standings = after(self.turn, heard, self.spreads)
        mark("engines")
        shard = _shard(self.spreads, self.turn, self.level, place)
        found = list(shard.step(others, standings))
        written = shard.commit(self.turn.number)
        _keep(self.turn, self.level, place, shard)
        found += shard.told(written)
        if self.last is not None:
            yield from self.last(found, At(self.spreads, self.turn, place, standings))
            yield from heard if place == 0 else ()
            return
        yield from heard
        yield from found


@dataclass(frozen=True, slots=True)
class Gathering:
    """What runs behind the last level where several places may have given the same answer."""

    spreads: Programs
    turn: Turn
    last: Last

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self._run(list(shipments_of(given)), place_of_task())))

    def _run(self, given: Sequence[Shipment], place: int) -> Iterator[Shipment]:
        mark("gather")
        heard = [s for s in given if s.group == HEARD]
        standings = after(self.turn, heard, self.spreads)
        others = (s for s in given if s.group != HEARD)
        yield from self.last(self._gathered(others, place), At(self.spreads, self.turn, place, standings))
        yield from heard if place == 0 else ()

    def _gathered(self, shipments: Iterable[Shipment], place: int) -> Iterator[Shipment]:
        for (program, group), own in groupby(shipments, key=lambda s: (s.program, s.group)):
            if group == SCATTERED:
                yield from self.spreads[program].gather(place, own)
            else:
                yield from own


def run_turn(  # noqa: PLR0913, PLR0917 - what a batch runs on
    admitted: DataFrame, spreads: Sequence[Spread], programs: Programs, turn: Turn, places: int, last: Last
) -> DataFrame:
    """All that comes of what was let in; `last` is what is done with it in each place."""
    gathers = any(spread.needs_gathering for spread in spreads)
    levels = max((s.stages.levels for s in spreads), default=0)
    frame = admitted
    for level in range(levels):
        is_last = level == levels - 1 and not gathers
        frame = exchanged(frame, places, Meeting(programs, level, turn, last if is_last else None))
    return exchanged(frame, places, Gathering(programs, turn, last)) if gathers or not levels else frame


# ---- what workers remember -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Remembered:
    shards: dict[tuple[str, int, int], Shard] = field(default_factory=dict)


_REMEMBERED = _Remembered()


def _shard(spreads: Programs, turn: Turn, level: int, place: int) -> Shard:
    """The shard in the state before a batch. It is remembered again when it has committed."""
    shard = _REMEMBERED.shards.pop((turn.query, level, place), None)
    if shard is None:
        files, folder = files_of(turn.state)
        shard = Shard(spreads, level, place, Store(files, f"{folder}/{level}-{place}", mark))
    shard.come_to(turn.before)
    return shard


def _keep(turn: Turn, level: int, place: int, shard: Shard) -> None:
    kept = _REMEMBERED.shards
    kept[turn.query, level, place] = shard
    for key, other in list(kept.items()):
        if key[0] != turn.query or (other.batch or 0) < turn.number - STALE:
            del kept[key]
