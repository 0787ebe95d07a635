"""This module is where a live query puts what comes of it: files, a table, people and functions.

Files are written in the places where answers are found. A table takes them from a frame, and whoever is delivered to
gets them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from ephemera.engine.cluster.message import Shipment
from ephemera.spark.live.fault_points import mark
from ephemera.spark.live.task import At, Last, Turn
from ephemera.spark.sinks.callback_sink import Delivery
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.spark.sinks.table_sink import TableSink


@dataclass(frozen=True, slots=True)
class QuerySinks:
    """All sinks of a query; each of them may be missing."""

    folders: FolderSink
    table: TableSink | None = None
    delivery: Delivery | None = None

    def open(self, spark: SparkSession, query: str, batch: int) -> None:
        """Before the first batch of a start."""
        self.folders.open(batch)
        if self.table is not None:
            self.table.open(spark, query)

    @property
    def last(self) -> Last:
        """What is done in each place."""
        return _Storing(self.folders)

    @property
    def needs_frame(self) -> bool:
        return self.table is not None

    def take(self, at: At, rows: Sequence[Shipment], frame: DataFrame | None) -> None:
        """What is done here."""
        if self.table is not None and frame is not None:
            mark("table write")
            self.table.write(frame, at.turn.number)
        if self.delivery is not None:
            replace(self.delivery, as_numbers=at.as_numbers).deliver(at.turn.number, rows)

    def settle(self, turn: Turn, rows: Sequence[Shipment]) -> None:
        """After the first batch of a start."""
        self.folders.settle(turn.number, rows)


@dataclass(frozen=True, slots=True)
class _Storing:
    folders: FolderSink

    def __call__(self, shipments: Iterable[Shipment], at: At) -> Iterator[Shipment]:
        yield from replace(self.folders, as_numbers=at.as_numbers).write(at.turn.number, at.place, shipments)
