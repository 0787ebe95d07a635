"""This module runs a sink of folders by itself, as the last thing in each partition of a frame of shipments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ephemera.spark.places import batches, place_of_task, shipments_of
from ephemera.spark.sinks import FolderSink


@dataclass(frozen=True, slots=True)
class LastStage:
    """What runs at the end of a batch in each partition."""

    sink: FolderSink
    batch: int

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(self.sink.write(self.batch, place_of_task(), shipments_of(given)))
