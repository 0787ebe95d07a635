"""This module runs a live batch that is small in one task, without an exchange.

To send a few rows from stage to stage takes Spark much longer than to work on them. So one process reads the batch, and
is all places of all levels one after the other. The shards are the same, with the same state in the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ephemera.engine.shipments import Shipment
from ephemera.spark.failures import told_by
from ephemera.spark.letting_in import LettingIn
from ephemera.spark.places import batches
from ephemera.spark.turns import Gathering, Meeting, Turn, in_order, turn_of_task
from ephemera.spark.workers import begin_task


@dataclass(frozen=True, slots=True)
class Alone:
    """All stages of a live query."""

    first: LettingIn
    others: Sequence[Meeting | Gathering]
    places: int

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        shipments = list(told_by("read", self.first.let_in(given)))
        yield from batches(told_by("engine", self._run(shipments, turn_of_task())))

    def _run(self, shipments: Iterable[Shipment], turn: Turn) -> Iterable[Shipment]:
        for stage in self.others:
            shipments = self._met(stage, shipments, turn)
        return shipments

    def _met(self, stage: Meeting | Gathering, shipments: Iterable[Shipment], turn: Turn) -> list[Shipment]:
        met: list[list[Shipment]] = [[] for _ in range(self.places)]
        for shipment in shipments:
            met[shipment.place].append(shipment)
        return [found for place, own in enumerate(met) for found in stage.run(in_order(own), turn, place)]
