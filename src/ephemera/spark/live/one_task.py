"""This module runs a live batch that is small in one task, without an exchange.

To send a few rows from stage to stage takes Spark much longer than to work on them. So one process reads the batch, and
is all places of all levels one after the other. The shards are the same, with the same state in the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ephemera.engine.cluster.message import SCATTERED, Shipment
from ephemera.spark.live.intake import Intake
from ephemera.spark.live.task import Gathering, Meeting, Turn, in_order, turn_of_task
from ephemera.spark.runtime.exchange import batches
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.threads import side_by_side

_WORTH_THREADS = 10_000
"""Events for which other threads are asked."""


@dataclass(frozen=True, slots=True)
class OneTask:
    """All stages of a live query."""

    first: Intake
    others: Sequence[Meeting | Gathering]
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

    def _met(self, stage: Meeting | Gathering, shipments: Sequence[Shipment], turn: Turn) -> list[Shipment]:
        met: list[list[Shipment]] = [[] for _ in range(self.places)]
        for shipment in shipments:
            met[shipment.place].append(shipment)

        def run(place: int) -> list[Shipment]:
            return list(stage.run(in_order(met[place]), turn, place))

        count = sum(s.count for s in shipments if s.group >= 0 or s.group == SCATTERED)
        threads = self.threads if count >= _WORTH_THREADS else 1
        return [found for several in side_by_side(run, range(self.places), threads) for found in several]
