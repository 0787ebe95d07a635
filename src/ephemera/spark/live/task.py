"""This module runs the batches of a live query in Spark's tasks: events are let in, met by shards, and answered.

A batch is one chain, as over history: what is read is routed, shuffled to the places of the shards, and met there level
by level. The words of all readers go to every place, so that each knows how far the sources have come within the batch.
A shard commits before anything of it goes on.

What runs in tasks is the same for all batches. Which batch it is they find in a property of their job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pyarrow as pa
from pyspark import TaskContext

from ephemera.base.errors import InternalError
from ephemera.engine.cluster.message import HEARD, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.shard import Shard
from ephemera.engine.cluster.source_progress import PlaceProgress, Progress, moved, read_standing, read_word
from ephemera.engine.state.durable_files import files_of
from ephemera.engine.state.segment_store import Store
from ephemera.engine.state.segments import NOBODY, Origin
from ephemera.spark.live.fault_points import mark
from ephemera.spark.live.shard_cache import QueryKey, ShardCache
from ephemera.spark.runtime.exchange import batches, gathered, place_of_task, shipments_of
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.packed_programs import Programs

TURN = "ephemera.turn"
"""The property of a job that says which batch it is of."""
_SHARDS = ShardCache()
"""The shards of this process between batches: a cache by query, level and place, whose module says what goes when."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A batch: which one it is, which it goes on from, and where the programs stood before it."""

    query: QueryKey
    """Tells the queries that a worker has seen apart."""
    number: int
    before: int | None
    standings: Mapping[int, Progress]
    state: str
    """Where the shards have their state."""
    origin: Origin = NOBODY
    """Whose state that is, whatever the level and the place."""
    now: int | None = None
    """The time that has passed for silent sources, if there are any that move by the clock."""
    running: tuple[str, ...] = ()
    """The starts of queries that are at work in the session; of others workers keep nothing."""

    def standing(self, program: int) -> Progress:
        return self.standings.get(program, Progress())

    def told(self) -> str:
        """The turn as JSON."""
        told = {name: getattr(self, name) for name in ("number", "before", "state", "now", "running")}
        told |= {"query": asdict(self.query), "origin": asdict(self.origin)}
        standings = {str(number): standing.told() for number, standing in self.standings.items()}
        return json.dumps({**told, "standings": standings}, ensure_ascii=False)


def turn_of_task() -> Turn:
    """The batch that the task at work belongs to."""
    context = TaskContext.get()
    text = context.getLocalProperty(TURN) if context is not None else None
    if text is None:
        raise InternalError("live", "a task of a live query was started without a batch")
    told = json.loads(text)
    standings = {int(number): read_standing(one) for number, one in told.pop("standings").items()}
    told |= {"query": QueryKey(**told["query"]), "origin": Origin(**told["origin"]), "running": tuple(told["running"])}
    return Turn(**told, standings=standings)


@dataclass(frozen=True, slots=True)
class At:
    """A place in which a batch ends, and where the programs stand then."""

    spreads: Mapping[int, DistributedProgram]
    turn: Turn
    place: int
    standings: Mapping[int, Progress]

    def standing(self, program: int) -> Progress:
        return self.standings.get(program, self.turn.standing(program))

    @property
    def as_numbers(self) -> bool:
        """Whether answers write their times as numbers: if all events of all programs did."""
        return not any(standing.texts for standing in {**self.turn.standings, **self.standings}.values())


Last = Callable[[Iterable[Shipment], At], Iterator[Shipment]]
"""What is done with all that comes of a batch in one place."""


def after(turn: Turn, heard: Iterable[Shipment], spreads: Mapping[int, DistributedProgram]) -> dict[int, Progress]:
    """Where those programs stand after a batch of which something was heard."""
    words: dict[int, list[PlaceProgress]] = {}
    for shipment in heard:
        words.setdefault(shipment.program, []).append(read_word(json.loads(bytes(shipment.load))))
    return {number: moved(turn.standing(number), own, spreads[number].plan.catalogue) for number, own in words.items()}


@dataclass(frozen=True, slots=True)
class Meeting:
    """What runs in each place between two exchanges: the shard of one level, and what is done last, if this is it."""

    spreads: Programs
    level: int
    last: Last | None

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self.run(in_order(shipments_of(given)), turn_of_task(), place_of_task())))

    def run(self, given: Sequence[Shipment], turn: Turn, place: int) -> Iterator[Shipment]:
        """What comes of the shipments to a place, which are in order."""
        heard = [s for s in given if s.group == HEARD]
        others = [s for s in given if s.group != HEARD]
        standings = after(turn, heard, self.spreads)
        mark("engines")
        shard = _shard(self.spreads, turn, self.level, place)
        found = list(shard.step(others, standings))
        written = shard.commit(turn.number)
        _SHARDS.keep(turn.query, turn.running, self.level, place, shard)
        found += shard.told(written)
        if self.last is not None:
            yield from self.last(found, At(self.spreads, turn, place, standings))
            yield from heard if place == 0 else ()
            return
        yield from heard
        yield from found


@dataclass(frozen=True, slots=True)
class Gathering:
    """What runs behind the last level where several places may have given the same answer."""

    spreads: Programs
    last: Last

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self.run(in_order(shipments_of(given)), turn_of_task(), place_of_task())))

    def run(self, given: Sequence[Shipment], turn: Turn, place: int) -> Iterator[Shipment]:
        """What comes of the shipments to a place, which are in order."""
        mark("gather")
        heard = [s for s in given if s.group == HEARD]
        standings = after(turn, heard, self.spreads)
        others = (s for s in given if s.group != HEARD)
        yield from self.last(gathered(others, self.spreads, place), At(self.spreads, turn, place, standings))
        yield from heard if place == 0 else ()


def in_order(given: Iterable[Shipment]) -> list[Shipment]:
    """Shipments by program, group and time. They are few, and Spark would need a stage of its own to sort them."""
    return sorted(given, key=lambda s: (s.program, s.group, s.first))


def _shard(spreads: Programs, turn: Turn, level: int, place: int) -> Shard:
    """The shard in the state before a batch. It is kept again when it has committed."""
    shard = _SHARDS.take(turn.query, level, place)
    if shard is None:
        files, folder = files_of(turn.state)
        origin = replace(turn.origin, level=level, place=place)
        store = Store(files, f"{folder}/{level}-{place}", mark, origin=origin)
        shard = Shard(spreads, level, place, store)
    shard.come_to(turn.before)
    return shard
