"""This module lays out the stages of a live query once, and sends each batch through them, or all of it to one task.

To pack functions and to describe columns takes as long as a small batch, so both are done at the first one. A query has
a session of its own, in which Arrow batches may have any size: Spark asks for that behind each row, which takes as long
as all else that it does with the row. A place holds all shipments of a batch anyway.

To send a few rows from stage to stage takes Spark much longer than to work on them. So a small batch runs in one task,
without an exchange: one process reads it, and is all places of all levels one after the other. The shards are the same,
with the same state in the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.engine.cluster.message import EventsFor, ScatteredAnswers, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.spark.batch.job import cores_of
from ephemera.spark.live.intake import FromFiles, FromFrame, Intake, SourceReader
from ephemera.spark.live.task import TURN, Last, LiveStage, Turn, side_by_side, turn_of_task
from ephemera.spark.runtime.exchange import NAMES, SCHEMA, Programs, batches, in_order
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import mapped, prepared
from ephemera.spark.runtime.session import is_local

_ANY_SIZE = 2**31 - 1
"""The size for which Spark does not ask."""
_MOST = 4
"""Threads of a task at most; more get into each other's way."""
_WORTH_THREADS = 10_000
"""Events for which other threads are asked."""


@dataclass(frozen=True, slots=True)
class LiveStages:
    """The stages of a live query."""

    first: Column
    """Lets events in."""
    others: tuple[Column, ...]
    """What runs behind each exchange."""
    alone: Column
    """All of them in one task, and that always in the same process, which has all shards in mind."""
    is_light: bool
    """Whether what was read may be brought to one task as it is; else it has work of its own behind it."""
    place: Column
    places: int

    def send(self, frame: DataFrame, turn: Turn, *, is_small: bool) -> DataFrame:
        """All that comes of a batch; it is computed when somebody reads it, in this thread."""
        frame.sparkSession.sparkContext.setLocalProperty(TURN, turn.told())
        if is_small:
            return mapped(frame.coalesce(1) if self.is_light else frame.repartition(1), self.alone)
        sent = mapped(frame, self.first)
        for stage in self.others:
            sent = mapped(sent.repartitionById(self.places, self.place), stage)
        return sent


def laid_out(
    frame: DataFrame,
    spreads: Sequence[DistributedProgram],
    programs: Programs,
    readers: Sequence[SourceReader],
    last: Last,
) -> LiveStages:
    """The stages for batches like this one; `last` is what is done with all that comes of one in each place."""
    spark = frame.sparkSession  # that of the query, whose settings are no one else's
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_ANY_SIZE))
    others = tuple(_behind(spreads, programs, last))
    places, threads = spreads[0].places, _threads(spark)
    threaded = [replace(one, threads=threads) if isinstance(one, FromFiles) else one for one in readers]
    alone = OneTask(Intake(programs, threaded), others, places, threads)
    return LiveStages(
        prepared(spark, Intake(programs, tuple(readers)), SCHEMA, frame.columns),
        tuple(prepared(spark, stage, SCHEMA, NAMES) for stage in others),
        prepared(spark, alone, SCHEMA, frame.columns, pool="alone"),
        not any(isinstance(one, FromFrame) and one.is_foreign for one in readers),
        f.col("place"),
        places,
    )


def _threads(spark: SparkSession) -> int:
    """How many cores one task may use: some of this machine, but of a cluster its own."""
    return min(_MOST, cores_of(spark)) if is_local(spark) else 1


def _behind(spreads: Sequence[DistributedProgram], programs: Programs, last: Last) -> Iterator[LiveStage]:
    gathers = any(spread.needs_gathering for spread in spreads)
    levels = max((s.stages.levels for s in spreads), default=0)
    for level in range(levels):
        is_last = level == levels - 1 and not gathers
        yield LiveStage(programs, level, last if is_last else None)
    if gathers or not levels:
        yield LiveStage(programs, None, last)


# ---- in one task -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneTask:
    """All stages of a live query."""

    first: Intake
    others: Sequence[LiveStage]
    places: int
    threads: int
    """So many places are at work at once, if there is much to do."""

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        turn = turn_of_task()
        shipments = list(told_by("read", self.first.let_in(given, turn)))
        yield from batches(told_by("engine", self._run(shipments, turn)))

    def _run(self, shipments: Sequence[Shipment], turn: Turn) -> Iterator[Shipment]:
        for stage in self.others:
            shipments = self._met(stage, shipments, turn)
        yield from shipments

    def _met(self, stage: LiveStage, shipments: Sequence[Shipment], turn: Turn) -> list[Shipment]:
        met: list[list[Shipment]] = [[] for _ in range(self.places)]
        for shipment in shipments:
            met[shipment.place].append(shipment)

        def run(place: int) -> list[Shipment]:
            return list(stage.run(in_order(met[place]), turn, place))

        count = sum(s.events.count for s in shipments if isinstance(s, EventsFor | ScatteredAnswers))
        threads = self.threads if count >= _WORTH_THREADS else 1
        return [found for several in side_by_side(run, range(self.places), threads) for found in several]
