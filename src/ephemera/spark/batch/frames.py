"""This module runs programs on data frames of Spark and gives the answers as one.

Its columns are those of tables of answers, with the types that the rules let expect. Nothing is computed before
somebody reads it; only if rules ask the clock, the first and the last end of the events are looked up at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.engine.cluster.message import Answers, BadInput, Shipment, UndefinedHead, unpack
from ephemera.engine.hosts.batch import Run
from ephemera.formats.check_columns import Offer, check_columns, stamp_columns
from ephemera.formats.encode_typed_arrow import Counting, Layout, layout
from ephemera.formats.json_events import BadEvent
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import DeadLetter, World
from ephemera.spark.batch.first_reason import accumulator, observed, reason_of
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.connect_session import is_connect, outside_of_queries
from ephemera.spark.runtime.exchange import shipments_of
from ephemera.spark.runtime.failures import failure, told_by
from ephemera.spark.runtime.java import GONE, told_of_java
from ephemera.spark.runtime.map_in_arrow import map_in_arrow

SparkFrame: TypeAlias = DataFrame
"""What a program takes and gives where it runs on data frames of Spark."""
_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.NullType)
_INSTANTS = (t.TimestampType, t.TimestampNTZType, t.DateType)


@dataclass(frozen=True, slots=True)
class ToFrame:
    """Writes answers by columns; what else engines ship is left out, but the first bad event is told."""

    layout: Layout
    first: Accumulator[str] | None = None

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._batch(s) for s in self._heard(given) if isinstance(s, Answers)))

    def _heard(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        for shipment in shipments_of(given):
            if self.first is not None and isinstance(shipment, BadInput | UndefinedHead):
                self.first.add(reason_of(shipment.first))
            yield shipment

    def _batch(self, answers: Answers) -> pa.RecordBatch:
        return self.layout.batch(unpack(answers.events, self.layout.catalogue), answers.rule)


def run_frame(
    compiled: Compiled, frame: DataFrame, world: World, *, lenient: bool = False
) -> tuple[DataFrame, tuple[str, ...]]:
    """All that a program derives from the rows of a data frame: `event`, `begin`, `end` and the values; and notes."""
    with told_of_java(), outside_of_queries():
        columns = _layout(compiled, frame, world)
        # Nobody has asked for a row yet, so none is looked at.
        started = start(frame.sparkSession, [Job(compiled, world)], [Input(frame)], lenient=lenient, slicing=None)
        schema = from_arrow_schema(columns.schema)
        if is_connect(frame):
            return map_in_arrow(observed(started.shipped), ToFrame(columns), schema), started.notes
        return map_in_arrow(started.shipped, ToFrame(columns, accumulator(frame)), schema), started.notes


def run_whole_frame(compiled: Compiled, frame: DataFrame, world: World, *, lenient: bool = False) -> Run:
    """The same at once, with what could not be used. Spark keeps the answers as long as somebody has them in hand."""
    try:
        columns = _layout(compiled, frame, world)
        started = start(frame.sparkSession, [Job(compiled, world)], [Input(frame)], lenient=lenient)
        kept = started.shipped.localCheckpoint()
        computed = Computed(replace(started, shipped=kept))
        letters = [letter for _, letter in computed.letters()]
        messages = list(computed.messages())
        computed.close()
    except (PySparkException, *GONE) as error:
        raise failure(error) from error
    return Run(
        map_in_arrow(kept, ToFrame(columns), from_arrow_schema(columns.schema)),
        messages,
        [BadEvent(letter["event"], letter["reason"]) for letter in letters if "rule" not in letter],
        [DeadLetter(one["rule"], one["variables"], one["reason"]) for one in letters if "rule" in one],
        read=sum(computed.summary.read.values()),
        never=computed.never(),
        said=computed.summary.notes,
        warnings=computed.summary.warnings,
    )


def _layout(compiled: Compiled, frame: DataFrame, world: World) -> Layout:
    check_columns([Offer("the data frame", frame.columns)], compiled.rules.resolved.catalogue, lenient=True)
    days = [day for given in world.calendars.values() for day in given]
    return layout(compiled.rules, _counting(frame, compiled.rules.resolved.catalogue), days)


def _counting(frame: DataFrame, catalogue: Catalogue) -> Counting:
    """Whether the columns of a data frame count units: those that say when, and those of attributes."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    stamps = all(isinstance(kinds[name], _WHOLE) for name in stamp_columns(kinds, catalogue))
    schemas = [zip(s.columns, s.attributes or (), strict=True) for s in catalogue.events.values()]
    declared = [(column, d) for columns in schemas for column, (_, d) in columns if column in kinds]
    instants = any(isinstance(kinds[name], _INSTANTS) for name, _ in declared)
    whole = all(isinstance(kinds[name], _WHOLE) for name, d in declared if d.removesuffix("[]") == "time")
    return Counting(stamps, whole and not instants)
