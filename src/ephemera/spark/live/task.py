"""This module runs the batches of a live query in Spark's tasks: events are let in, met by shards, and answered.

A batch is one chain, as over history: what is read is routed, shuffled to the places of the shards, and met there level
by level. The words of all readers go to every place, so that each knows how far the sources have come within the batch.
A shard commits before anything of it goes on, and is kept for the next batch.

What runs in tasks is the same for all batches. Which batch it is they find in a property of their job.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from threading import Lock
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext

from ephemera.base.errors import InternalError
from ephemera.connect.systems.stretches import Stretch
from ephemera.engine.cluster.live_slices import Visited
from ephemera.engine.cluster.message import Shipment, SourceProgress
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.shard import Shard
from ephemera.engine.cluster.source_progress import PlaceProgress, Progress, moved, read_standing
from ephemera.engine.state.durable_files import files_of
from ephemera.engine.state.segment_store import Store
from ephemera.engine.state.segments import NOBODY, Origin
from ephemera.spark.live.fault_points import mark
from ephemera.spark.runtime.exchange import Programs, batches, gathered, in_order, place_of_task, shipments_of
from ephemera.spark.runtime.failures import told_by

A = TypeVar("A")
B = TypeVar("B")
TURN = "ephemera.turn"
"""The property of a job that says which batch it is of."""
QUERIES = 16
"""A process keeps the shards of so many queries."""
STALE = 50
"""A shard that its query has not asked for in so many batches is forgotten."""


@dataclass(frozen=True, slots=True)
class QueryKey:
    """A start of a live query, and the session that it runs in."""

    session: str
    run: str


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
    visited: Visited = field(default_factory=dict)
    """What is cut along time in this batch."""
    stretches: Mapping[int, tuple[Stretch, ...]] = field(default_factory=dict)
    """What it reads of systems, by the numbers of the inputs."""

    def standing(self, program: int) -> Progress:
        return self.standings.get(program, Progress())

    def told(self) -> str:
        """The turn as JSON."""
        told = {name: getattr(self, name) for name in ("number", "before", "state", "now", "running")}
        told |= {"query": asdict(self.query), "origin": asdict(self.origin)}
        standings = {str(number): standing.told() for number, standing in self.standings.items()}
        visited = [[program, *at, count] for program, own in self.visited.items() for at, count in own.items()]
        stretches = {str(number): [asdict(one) for one in own] for number, own in self.stretches.items()}
        told |= {"standings": standings, "visited": visited, "stretches": stretches}
        return json.dumps(told, ensure_ascii=False)


def turn_of_task() -> Turn:
    """The batch that the task at work belongs to."""
    context = TaskContext.get()
    text = context.getLocalProperty(TURN) if context is not None else None
    if text is None:
        raise InternalError("live", "a task of a live query was started without a batch")
    told = json.loads(text)
    standings = {int(number): read_standing(one) for number, one in told.pop("standings").items()}
    told |= {"query": QueryKey(**told["query"]), "origin": Origin(**told["origin"]), "running": tuple(told["running"])}
    visited: dict[int, dict[tuple[int, int], int]] = {}
    for program, group, home, count in told.pop("visited"):
        visited.setdefault(program, {})[group, home] = count
    stretches = {int(number): tuple(Stretch(**one) for one in own) for number, own in told.pop("stretches").items()}
    return Turn(**told, standings=standings, visited=visited, stretches=stretches)


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A place in which a batch ends, and where the programs stand then."""

    spreads: Mapping[int, DistributedProgram]
    turn: Turn
    place: int
    standings: Mapping[int, Progress]

    def standing(self, program: int) -> Progress:
        return self.standings.get(program, self.turn.standing(program))

    @property
    def texts(self) -> frozenset[int]:
        """The programs whose answers write their times as text, since some of their events did."""
        return frozenset(n for n, standing in {**self.turn.standings, **self.standings}.items() if standing.texts)


Last = Callable[[Iterable[Shipment], BatchPlace], Iterator[Shipment]]
"""What is done with all that comes of a batch in one place."""


def after(turn: Turn, seen: Iterable[SourceProgress], spreads: Mapping[int, DistributedProgram]) -> dict[int, Progress]:
    """Where those programs stand after a batch of which something was seen."""
    words: dict[int, list[PlaceProgress]] = {}
    for shipment in seen:
        words.setdefault(shipment.program, []).append(shipment.seen)
    return {number: moved(turn.standing(number), own, spreads[number].plan.catalogue) for number, own in words.items()}


# ---- shards ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ShardCache:
    """The shards of a process between the batches of live queries; it may be asked by several threads.

    A shard that is not there is loaded from its files, with the same answers. One goes

    - when its query has ended, which the next batch of another query of the same session tells;
    - when its query has done many batches without it, since another process runs it by now;
    - when more queries are kept than a limit: those of the query that was at work least recently.
    """

    queries: int = QUERIES
    _kept: dict[QueryKey, dict[tuple[int, int], Shard]] = field(default_factory=dict)
    """By query, that of the last batch last; then by level and place."""
    _lock: Lock = field(default_factory=Lock)

    def take(self, query: QueryKey, level: int, place: int) -> Shard | None:
        """Gives a shard away, so that one that fails in its batch is not found again."""
        with self._lock:
            return self._kept.get(query, {}).pop((level, place), None)

    def keep(self, query: QueryKey, running: Collection[str], level: int, place: int, shard: Shard) -> None:
        """Keeps a shard after a batch; `running` are the starts that are at work in the session of its query."""
        with self._lock:
            own = self._kept.pop(query, {})
            own[level, place] = shard
            self._kept[query] = {at: one for at, one in own.items() if (one.batch or 0) + STALE >= (shard.batch or 0)}
            for other in [k for k in self._kept if k.session == query.session and k != query and k.run not in running]:
                del self._kept[other]
            while len(self._kept) > self.queries:
                del self._kept[next(iter(self._kept))]

    def kept(self) -> list[QueryKey]:
        """The queries of which something is kept, that of the last batch last."""
        with self._lock:
            return [query for query, own in self._kept.items() if own]


_SHARDS = ShardCache()
"""The shards of this process, by query, level and place."""


def _shard(spreads: Programs, turn: Turn, level: int, place: int) -> Shard:
    """The shard in the state before a batch. It is kept again when it has committed."""
    shard = _SHARDS.take(turn.query, level, place)
    if shard is None:
        store_of = partial(_store, turn, level)
        shard = Shard(spreads, level, place, store_of(place), store_of)
    shard.come_to(turn.before)
    return shard


def _store(turn: Turn, level: int, place: int) -> Store:
    """Where a shard has its state."""
    files, folder = files_of(turn.state)
    return Store(files, f"{folder}/{level}-{place}", mark, origin=replace(turn.origin, level=level, place=place))


# ---- stages ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiveStage:
    """What runs in each place behind an exchange: the shard of one level, and what is done last, if this is it.

    Behind the last level there is none, and answers that several places may have given are given once.
    """

    spreads: Programs
    level: int | None
    last: Last | None

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("engine", self.run(in_order(shipments_of(given)), turn_of_task(), place_of_task())))

    def run(self, given: Sequence[Shipment], turn: Turn, place: int) -> Iterator[Shipment]:
        """What comes of the shipments to a place, which are in order."""
        seen = [s for s in given if isinstance(s, SourceProgress)]
        others = [s for s in given if not isinstance(s, SourceProgress)]
        standings = after(turn, seen, self.spreads)
        shipments = self._step(others, turn, place, standings)
        if self.last is not None:
            yield from self.last(shipments, BatchPlace(self.spreads, turn, place, standings))
            yield from seen if place == 0 else ()
            return
        yield from seen
        yield from shipments

    def _step(
        self, shipments: Sequence[Shipment], turn: Turn, place: int, standings: Mapping[int, Progress]
    ) -> Iterable[Shipment]:
        if self.level is None:
            mark("gather")
            return gathered(shipments, self.spreads, place)
        mark("engines")
        shard = _shard(self.spreads, turn, self.level, place)
        results = list(shard.step(shipments, standings, turn.visited))
        written = shard.commit(turn.number)
        _SHARDS.keep(turn.query, turn.running, self.level, place, shard)
        return [*results, *shard.told(written)]


def side_by_side(function: Callable[[A], B], given: Iterable[A], threads: int) -> Iterator[B]:
    """What a function makes of each of some things, in their order; no more of them are under way than threads.

    Arrow, numpy and the disk let other threads run while they work. In one task Spark would leave the other cores idle.
    """
    if threads == 1:
        yield from map(function, given)
        return
    left = iter(given)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[B]] = deque(pool.submit(function, one) for one in islice(left, threads))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(function, one) for one in islice(left, 1))
