"""This module is a driver that is run apart from the tests: a program over a history, held up where it is asked to be.

Where it is held up each task says in a file who it is, and goes on once there is a file called `go`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame

from ephemera.engine.cluster.message import Answers, EngineStats, Shipment, unpack
from ephemera.formats.encode_json import lines
from ephemera.language import compile
from ephemera.spark.batch.job import Job, Started, start
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.exchange import of_rows
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session
from tests.spark.history import PROGRAM


@dataclass(frozen=True, slots=True)
class Held:
    """Lets the first batch of each partition pass, and then waits."""

    folder: str

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        folder = Path(self.folder)
        for number, batch in enumerate(given):
            yield batch
            if number == 0:
                told = folder / f"task-{context.stageId()}-{context.partitionId()}-{context.taskAttemptId()}"
                told.with_suffix(".part").write_text(json.dumps([os.getpid(), os.getppid()]))
                told.with_suffix(".part").rename(told)
                while not (folder / "go").exists():
                    time.sleep(0.02)


def held(frame: DataFrame, folder: str) -> DataFrame:
    """The same rows, held up on their way."""
    return map_in_arrow(frame, Held(folder), frame.schema)


def told(started: Started, shipments: Iterable[Shipment]) -> Iterator[tuple[str, Any]]:
    """Answers as lines of JSON say them, and what engines tell of themselves."""
    for shipment in shipments:
        spread = started.spreads[shipment.program]
        match shipment:
            case Answers():
                events = unpack(shipment.events, spread.plan.catalogue)
                more = spread.recipient(shipment.rule)
                written = lines(events, spread.plan.catalogue, as_numbers=started.as_numbers, more=more)
                yield from (("answer", json.loads(line)) for line in written.to_pylist())
            case EngineStats():
                yield "stats", shipment.stats


def main(master: str, history: str, where: str, folder: str) -> None:
    """Prints the answers and what the engines tell of themselves."""
    cloudpickle.register_pickle_by_value(sys.modules[Held.__module__])  # type: ignore[no-untyped-call]
    spark = session(master)
    read = spark.read.parquet(history)
    job = Job(compile(PROGRAM)._compiled)
    started = start(spark, [job], [Input(held(read, folder) if where == "read" else read)], 4)
    rows = (held(started.shipped, folder) if where == "answer" else started.shipped).collect()
    print(json.dumps(list(told(started, of_rows(rows)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
