"""This module turns what engines ship into answers: lines of JSON, or columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from ephemera.engine.cluster.message import BAD, DEAD, OUT, STATS, Shipment, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.encode_json import lines
from ephemera.kernels.event_columns import BEGIN, END
from ephemera.spark.runtime.exchange import shipments_of
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.packed_programs import Programs

KINDS = {OUT: "answer", DEAD: "dead", BAD: "bad", STATS: "stats"}
SCHEMA = "kind string, program int, e bigint, s bigint, event string, line string"
_ARROW = pa.schema(
    [
        ("kind", pa.string()),
        ("program", pa.int32()),
        ("e", pa.int64()),
        ("s", pa.int64()),
        ("event", pa.string()),
        ("line", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class ToLines:
    """Writes answers as lines of JSON, with their times; all else that was shipped comes as a line of its kind."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._lines(s) for s in shipments_of(given) if s.group in KINDS))

    def _lines(self, shipment: Shipment) -> pa.RecordBatch:
        spread = self.spreads[shipment.program]
        kind = KINDS[shipment.group]
        if kind != "answer":
            return _batch(kind, shipment.program, [0], [0], shipment.label, pa.array([bytes(shipment.load).decode()]))
        catalogue = spread.compiled.rules.resolved.catalogue
        events = unpack(shipment, catalogue)
        written = lines(events, catalogue, as_numbers=self.as_numbers, more=spread.recipient(shipment.rule))
        return _batch(kind, shipment.program, events.batch[END], events.batch[BEGIN], shipment.label, written)


def _batch(  # noqa: PLR0913, PLR0917
    kind: str,
    program: int,
    ends: Sequence[int] | np.ndarray,
    begins: Sequence[int] | np.ndarray,
    label: str,
    text: pa.Array,
) -> pa.RecordBatch:
    rows = len(text)
    arrays = [
        pa.repeat(pa.scalar(kind), rows),
        pa.repeat(pa.scalar(program, pa.int32()), rows),
        pa.array(ends, pa.int64()),
        pa.array(begins, pa.int64()),
        pa.repeat(pa.scalar(label), rows),
        text,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def as_lines(shipped: DataFrame, spreads: Sequence[DistributedProgram], *, as_numbers: bool) -> DataFrame:
    """What engines shipped, line by line."""
    return map_in_arrow(shipped, ToLines(Programs(spreads), as_numbers), SCHEMA)
