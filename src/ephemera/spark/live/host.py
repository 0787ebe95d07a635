"""This module hosts programs on Structured Streaming: one query, in which each batch is a chain of stages run once.

Spark says which batch it is and what came with it, and repeats a batch that was not finished. All else is ours: the
state of the shards, where the sources stand, and the answers are written under the number of the batch before Spark
commits it. A batch that is repeated goes on from the batch before it, and writes the same under the same names.

What comes of a batch goes to files, a table, systems, people and functions. Files are written in the places where
answers are found. A table takes them from a frame, and whoever is delivered to gets them here.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from ephemera.base.errors import EphemeraError
from ephemera.engine.cluster.live_slices import WORTHWHILE, LiveSlicing, Visited, visited_next
from ephemera.engine.cluster.message import Answers, ReadNotes, Shipment, SourceProgress
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.state.checkpoint_lock import CheckpointLock
from ephemera.engine.state.segments import Origin
from ephemera.formats.reading import Keys
from ephemera.spark.batch.job import Job, cores_of, places_of
from ephemera.spark.live.change_checkpoint import cut_otherwise, in_places, opened
from ephemera.spark.live.checkpoint import Checkpoint, Standings
from ephemera.spark.live.fault_points import mark
from ephemera.spark.live.intake import SourceReader
from ephemera.spark.live.positions import Positions, QueryStopping
from ephemera.spark.live.report import BatchReport, events_in, loads_in, report_of
from ephemera.spark.live.sources import Ticking
from ephemera.spark.live.stages import LiveStages, laid_out
from ephemera.spark.live.task import BatchPlace, Last, QueryKey, Turn, after
from ephemera.spark.runtime.exchange import Programs, is_a, of_rows
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.ship_package import ship
from ephemera.spark.sinks.callback_sink import Delivery
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.spark.sinks.outbox_sink import OutboxSink
from ephemera.spark.sinks.table_sink import TableSink
from ephemera.spark.sinks.target_sink import TargetSink

_PAUSE = 0.2
"""Seconds after which somebody who is in a hurry is seen."""


@dataclass(frozen=True, slots=True)
class QuerySinks:
    """All sinks of a query; each of them may be missing."""

    folders: FolderSink
    table: TableSink | None = None
    delivery: Delivery | None = None
    outbox: OutboxSink | None = None
    systems: TargetSink | None = None

    def open(self, spark: SparkSession, ledger: Checkpoint, batch: int, *, is_again: bool) -> None:
        """Before the first batch of a start; whether it is one that was planned before, and is done again alike."""
        query = ledger.query
        self.folders.open(batch)
        if self.outbox is not None:
            self.outbox.open(batch)
        if self.table is not None:
            self.table.open(spark, query)
        if self.systems is not None:
            self.systems.open(query, batch, ledger.root, is_again=is_again)

    @property
    def last(self) -> Last:
        """What is done in each place."""
        return _Storing(self.folders)

    @property
    def needs_frame(self) -> bool:
        return self.table is not None

    def take(self, at: BatchPlace, rows: Sequence[Shipment], frame: DataFrame | None) -> None:
        """What is done here."""
        if self.table is not None and frame is not None:
            mark("table write")
            self.table.write(frame, at.turn.number)
        if self.delivery is not None:
            replace(self.delivery, texts=at.texts).deliver(at.turn.number, rows)
        if self.systems is not None:
            mark("systems put")
            self.systems.put(at.turn.number, rows, at.texts)
        if self.outbox is not None:
            mark("outbox put")
            self.outbox.put(at.turn.number, rows, at.texts)

    def settle(self, turn: Turn, rows: Sequence[Shipment]) -> None:
        """After the first batch of a start."""
        self.folders.settle(turn.number, rows)


@dataclass(frozen=True, slots=True)
class _Storing:
    folders: FolderSink

    def __call__(self, shipments: Iterable[Shipment], at: BatchPlace) -> Iterator[Shipment]:
        yield from replace(self.folders, texts=at.texts).write(at.turn.number, at.place, shipments)


@dataclass(slots=True)
class Host:
    """A live query: it is called by Spark with each batch."""

    spark: SparkSession
    spreads: tuple[DistributedProgram, ...]
    ledger: Checkpoint
    readers: Sequence[SourceReader]
    sink: QuerySinks
    watch: Callable[[BatchReport], None] | None = None
    small: int = 0
    """A batch that follows one of fewer events, those of all programs together, is run in one task."""
    slicing: LiveSlicing = WORTHWHILE
    events: int | None = None
    """How many events came with the last batch that had some."""
    visited: Visited = field(default_factory=dict)
    """What of the next batch is cut along time."""
    is_busy: bool = False
    """Whether there was so much to do for the engines in that batch that one process would be slower than several."""
    hold: CheckpointLock | None = None
    """What lets no other run have the checkpoint."""
    ticking: Ticking | None = None
    """The time of silent sources, if there are any that move by the clock."""
    positions: Positions | None = None
    """How far systems are read, if some are."""
    planned: int = -1
    """The last batch that Spark had planned when this start began."""
    programs: Programs = field(init=False)
    failed: EphemeraError | None = None
    """What ended the query, if something did."""
    was_stopped: bool = False
    """Whether a batch was not begun, since somebody stops the query: what Spark then says is no failure."""
    keys: dict[int, Keys] = field(init=False)
    """Which keys the events of each program had since the start."""
    _query: QueryKey | None = None
    _has_begun: bool = False
    _chain: LiveStages | None = None
    _is_stopping: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _at_work: int | None = None
    """The thread that does the batch at hand."""
    _between: threading.Lock = field(default_factory=threading.Lock)
    """Who has this lets no batch begin, and has them wait."""

    def __post_init__(self) -> None:
        self.programs = Programs(self.spreads)
        self.keys = {spread.number: Keys(spread.plan) for spread in self.spreads}

    def __call__(self, frame: DataFrame, number: int) -> None:
        """A batch, as Spark counts them: from 0 on, whatever was read before."""
        with self._between:  # who changes the programs does not wait for Spark
            pass
        # Whoever stops the query has this and waits for Spark, which waits for us: so nothing here may wait.
        if self._is_stopping or not self._turn.acquire(blocking=False):
            self.was_stopped = True
            raise QueryStopping
        try:
            if self.ledger.was_before_a_change(self.ledger.base + number):
                self._done_before(self.ledger.base + number)
                return
            self._at_work = threading.get_ident()
            self._run(frame, self.ledger.base + number)
        except QueryStopping:
            self.was_stopped = True
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, people are told of it, in short
            self.failed = error if isinstance(error, EphemeraError) else failure(error)
            # Spark searches what it is told with a pattern that cannot cope with long texts.
            raise self.failed from None
        finally:
            self._at_work = None
            self._turn.release()

    def go_on_from(self, past: Host | None) -> None:
        """What was noticed while the past was read is known."""
        for number, keys in past.keys.items() if past is not None else ():
            self.keys[number].add(keys.told())

    @contextmanager
    def between_batches(self) -> Iterator[Callable[[], None]]:
        """The batch at hand is waited for, and the next one waits; unless it is told that this was the last one."""

        def end() -> None:
            self._is_stopping = True

        if self._at_work == threading.get_ident():
            raise EphemeraError(
                "programs change between two batches, and this is in one: call `change` from outside of what takes "
                "answers or reports"
            )
        with self._between, self._turn:
            yield end

    @contextmanager
    def paused(self, patience: float, in_a_hurry: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Lets no other batch begin; waits some seconds for that at hand, unless somebody is in a hurry."""
        self._is_stopping = True
        last = time.monotonic() + patience
        is_done = self._turn.acquire(timeout=min(patience, _PAUSE))
        while not is_done and time.monotonic() < last and not in_a_hurry():
            is_done = self._turn.acquire(timeout=_PAUSE)
        try:
            yield
        finally:
            if is_done:
                self._turn.release()

    def _run(self, frame: DataFrame, number: int) -> None:
        begin = time.perf_counter()
        mark("batch begins")
        if self.sink.outbox is not None:
            self.sink.outbox.wait_for_room(lambda: self._is_stopping)
        if self.hold is not None:
            self.hold.check()
        before = self.ledger.before(number)
        is_first = not self._has_begun
        if is_first:
            mark("open")
            self.sink.open(self.spark, self.ledger, number, is_again=self._was_planned(number))
            self._has_begun = True
        mark("plan")
        stretches = self.positions.cut(number, lambda: self._is_stopping) if self.positions is not None else {}
        before = self._named_now(before) if is_first else before
        if self._is_stopping and not any(stretches.values()):
            raise QueryStopping
        begin = time.perf_counter()  # to wait for something is not to work
        now = self.ticking.at(number, before) if self.ticking is not None else None
        origin = Origin(self.ledger.query, self.ledger.programs, places=self.spreads[0].places)
        if self._query is None:
            self._query = self._named(frame)
        running = tuple(str(query.runId) for query in self.spark.streams.active)
        last = number - 1 if number else None
        if self._chain is None:
            self._chain = laid_out(frame, self.spreads, self.programs, self.readers, self.sink.last)
        is_small = self.events is not None and self.events < self.small and not self.is_busy
        visited = {} if is_small else self.visited
        turn = Turn(self._query, number, last, before, self.ledger.state, origin, now, running, visited, stretches)
        shipped = self._chain.send(frame, turn, is_small=is_small)
        planned = time.perf_counter()
        rows, standings = self._taken(shipped, turn)
        if is_first:
            mark("settle")
            self.sink.settle(turn, rows)
        ran = time.perf_counter()
        self.ledger.commit(number, standings)
        if self.positions is not None:
            self.positions.commit()
        if self.sink.outbox is not None:
            self.sink.outbox.committed(number)
        self._learn(rows, before, standings)
        for row in rows:
            if isinstance(row, ReadNotes):
                self.keys[row.program].add(row.keys)
        if self.watch is not None:
            seconds = {"plan": planned - begin, "run": ran - planned, "commit": time.perf_counter() - ran}
            report = report_of(number, seconds, rows, self.spreads, standings, time.time_ns() // 1_000)
            slices = max((count for own in visited.values() for count in own.values()), default=1)
            delivery = self.sink.outbox.delivery.stats() if self.sink.outbox is not None else None
            self.watch(replace(report, in_one_task=is_small, slices=slices, delivery=delivery))

    def _done_before(self, number: int) -> None:
        """A batch that a version before did to its end, and that Spark does not know to be done."""
        mark("batch begins")
        if self.positions is not None:
            self.positions.cut(number, lambda: self._is_stopping)
            self.positions.commit()

    def _named_now(self, before: Standings) -> Standings:
        """Where programs stood, with what their partitions are called in this start."""
        if self.positions is None:
            return before
        return {number: standing.renamed(self.positions.partition_now) for number, standing in before.items()}

    def _was_planned(self, number: int) -> bool:
        """Whether all is written down that the answers of a batch depend on, so that they are those of before."""
        if number > self.planned or (self.positions is not None and self.ledger.positions_of(number) is None):
            return False
        return self.ticking is None or self.ledger.time_of(number) is not None

    def _learn(self, rows: Sequence[Shipment], before: Standings, after: Standings) -> None:
        """From a batch that had events: how the next is best done, if it is like that."""
        events, cores = sum(events_in(rows).values()), cores_of(self.spark)
        if events:
            loads = loads_in(rows)
            self.events = events
            self.is_busy = cores > 1 and self.slicing.is_busy(loads)
            self.visited = visited_next(self.spreads, loads, before, after, cores, self.slicing)

    def _named(self, frame: DataFrame) -> QueryKey:
        """This start of the query: Spark runs its jobs as a group of that name, unless the user renames it.

        So it is asked before the first batch, and once.
        """
        run = frame.sparkSession.sparkContext.getLocalProperty("spark.jobGroup.id")
        return QueryKey(str(self.spark._jsparkSession.hashCode()), run or uuid.uuid4().hex)

    def _taken(self, shipped: DataFrame, turn: Turn) -> tuple[list[Shipment], Standings]:
        """What came from the places besides answers, and where the programs stand then, after the sink has had all."""
        is_kept = self.sink.needs_frame
        kept = shipped.persist(StorageLevel.MEMORY_AND_DISK) if is_kept else shipped
        try:
            rows = of_rows((kept.where(~is_a(Answers)) if is_kept else kept).collect())
            heard = after(turn, [row for row in rows if isinstance(row, SourceProgress)], self.programs)
            at = BatchPlace(self.programs, turn, 0, {**turn.standings, **heard})
            self.sink.take(at, rows, kept.where(is_a(Answers)) if is_kept else None)
        finally:
            if is_kept:
                kept.unpersist()
        return rows, at.standings


def spread_live(
    spark: SparkSession, jobs: Sequence[Job], ledger: Checkpoint, shards: int | None
) -> tuple[DistributedProgram, ...]:
    """The programs of a live query, spread over as many shards as the checkpoint has."""
    ship(spark)
    spreads = opened(jobs, ledger, shards, max(2, places_of(spark) // 2))
    if shards is None or shards == spreads[0].places:
        return spreads
    cut_otherwise(ledger, spreads, shards)
    return tuple(in_places(one, shards) for one in spreads)
