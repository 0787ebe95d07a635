"""This module is a driver that is run apart from the tests: a program over a history in one partition, and its memory.

What has been used at most is asked of the workers themselves, from inside and behind the last answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle

from ephemera.language import compile
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.exchange import answers_of
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session
from tests.spark.history import PROGRAM

BYTES = 4 << 20
"""What Spark hands to workers at a time: less than usual, so that a short history fills it often, too."""


def summary(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many answers there are, and the most memory that any worker has used so far, in kilobytes."""
    answers = sum(s.events.count for s in answers_of(given))
    peaks = []
    for process in Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split():
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{process}/status").read_text())
        peaks += [int(found[1])] if found is not None else []
    yield pa.RecordBatch.from_pydict({"answers": [answers], "workers": [len(peaks)], "peak": [max(peaks)]})


def main(history: str) -> None:
    """Prints the summary of each partition, which is all that comes to the driver."""
    cloudpickle.register_pickle_by_value(sys.modules[summary.__module__])  # type: ignore[no-untyped-call]
    spark = session("local[1]", more={"spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES)})
    started = start(spark, [Job(compile(PROGRAM)._compiled)], [Input(history)], 1)
    rows = map_in_arrow(started.shipped, summary, "answers bigint, workers bigint, peak bigint").collect()
    print(json.dumps([row.asDict() for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
