"""This module runs programs on data frames of Spark and gives the answers as one.

Its columns are those of tables of answers, with the types that the rules let expect. Nothing is computed before
somebody reads it; only if rules ask the clock, the first and the last end of the events are looked up at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from ephemera.engine.answer_parts import Counting, Held, Layout, layout
from ephemera.engine.compiled import Compiled
from ephemera.engine.offered import Offer, check_columns
from ephemera.engine.shipments import OUT, Shipment, unpack
from ephemera.engine.table_reading import stamp_columns
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import World
from ephemera.spark.arrow import map_in_arrow
from ephemera.spark.failures import told_by
from ephemera.spark.places import shipments_of
from ephemera.spark.reading import Input
from ephemera.spark.run import Job, start

_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.NullType)
_INSTANTS = (t.TimestampType, t.TimestampNTZType, t.DateType)
_TYPES: dict[Held, t.DataType] = {
    "int": t.LongType(),
    "float": t.DoubleType(),
    "string": t.StringType(),
    "bool": t.BooleanType(),
    "time": t.TimestampType(),
    "json": t.StringType(),
}


@dataclass(frozen=True, slots=True)
class ToColumns:
    """Writes answers by columns; what else engines ship is left out."""

    layout: Layout

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._batch(s) for s in shipments_of(given) if s.group == OUT))

    def _batch(self, shipment: Shipment) -> pa.RecordBatch:
        return self.layout.batch(unpack(shipment, self.layout.catalogue), shipment.rule)


def run_frame(compiled: Compiled, frame: DataFrame, world: World, *, lenient: bool = False) -> DataFrame:
    """All that a program derives from the rows of a data frame: `event`, `begin`, `end` and the values."""
    check_columns([Offer("the data frame", frame.columns)], compiled.rules.resolved.catalogue, lenient=True)
    days = [day for given in world.calendars.values() for day in given]
    columns = layout(compiled.rules, _counting(frame, compiled.rules.resolved.catalogue), days)
    started = start(frame.sparkSession, [Job(compiled, world)], [Input(frame)], lenient=lenient)
    return map_in_arrow(started.shipped, ToColumns(columns), _schema(columns))


def _schema(columns: Layout) -> t.StructType:
    stamp: Held = "int" if columns.counts else "time"
    held: dict[str, Held] = {"event": "string", "begin": stamp, "end": stamp, **columns.columns}
    return t.StructType([t.StructField(name, _TYPES[kind]) for name, kind in held.items()])


def _counting(frame: DataFrame, catalogue: Catalogue) -> Counting:
    """Whether the columns of a data frame count units: those that say when, and those of attributes."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    stamps = all(isinstance(kinds[name], _WHOLE) for name in stamp_columns(kinds, catalogue))
    declared = [(n, d) for schema in catalogue.events.values() for n, d in schema.attributes or () if n in kinds]
    instants = any(isinstance(kinds[name], _INSTANTS) for name, _ in declared)
    whole = all(isinstance(kinds[name], _WHOLE) for name, d in declared if d.removesuffix("[]") == "time")
    return Counting(stamps, whole and not instants)
