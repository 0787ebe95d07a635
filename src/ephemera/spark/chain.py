"""This module lays out the stages of a live query once, and sends each batch through them.

To pack functions and to describe columns takes as long as a small batch, so both are done at the first one. A query has
a session of its own, in which Arrow batches may have any size: Spark asks for that behind each row, which takes as long
as all else that it does with the row. A place holds all shipments of a batch anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.engine.spread import Spread
from ephemera.spark.alone import Alone
from ephemera.spark.arrow import mapped, prepared
from ephemera.spark.letting_in import LettingIn, Reader
from ephemera.spark.places import NAMES, SCHEMA
from ephemera.spark.programs import Programs
from ephemera.spark.run import cores_of
from ephemera.spark.turns import TURN, Gathering, Last, Meeting, Turn

_ANY_SIZE = 2**31 - 1
"""The size for which Spark does not ask."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The stages of a live query."""

    first: Column
    """Lets events in."""
    others: tuple[Column, ...]
    """What runs behind each exchange."""
    alone: Column
    """All of them in one task."""
    place: Column
    places: int

    def send(self, frame: DataFrame, turn: Turn, *, is_small: bool) -> DataFrame:
        """All that comes of a batch; it is computed when somebody reads it, in this thread."""
        frame.sparkSession.sparkContext.setLocalProperty(TURN, turn.told())
        if is_small:
            return mapped(frame.coalesce(1), self.alone)
        sent = mapped(frame, self.first)
        for stage in self.others:
            sent = mapped(sent.repartitionById(self.places, self.place), stage)
        return sent


def laid_out(
    frame: DataFrame, spreads: Sequence[Spread], programs: Programs, readers: Sequence[Reader], last: Last
) -> Chain:
    """The stages for batches like this one; `last` is what is done with all that comes of one in each place."""
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_ANY_SIZE))
    first, others = LettingIn(programs, tuple(readers)), tuple(_behind(spreads, programs, last))
    places = spreads[0].places
    return Chain(
        prepared(first, SCHEMA, frame.columns),
        tuple(prepared(stage, SCHEMA, NAMES) for stage in others),
        prepared(Alone(first, others, places, _threads(frame.sparkSession)), SCHEMA, frame.columns),
        f.col("place"),
        places,
    )


def _threads(spark: SparkSession) -> int:
    """How many cores one task may use: all of this machine, but of a cluster its own."""
    return cores_of(spark) if str(spark.sparkContext.master).startswith("local") else 1


def _behind(spreads: Sequence[Spread], programs: Programs, last: Last) -> Iterator[Meeting | Gathering]:
    gathers = any(spread.needs_gathering for spread in spreads)
    levels = max((s.stages.levels for s in spreads), default=0)
    for level in range(levels):
        is_last = level == levels - 1 and not gathers
        yield Meeting(programs, level, last if is_last else None)
    if gathers or not levels:
        yield Gathering(programs, last)
