"""This module makes the files of sinks from shipped answers: JSON lines, Parquet or CSV, each as one buffer."""

from __future__ import annotations

import json
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ephemera.engine.cluster.message import Shipment, pack
from ephemera.formats.encode_typed_arrow import UnlikeType
from ephemera.spark.sinks.encode_answers import Form

Format = Literal["json", "parquet", "csv"]
ENDINGS: dict[Format, str] = {"json": "jsonl", "parquet": "parquet", "csv": "csv"}


class Writer(Protocol):
    """Takes the answers of a partition; `close` gives the file."""

    def add(self, form: Form, shipment: Shipment) -> list[bytes]:
        """Some answers; gives back those that do not fit in, as dead letters."""

    def close(self) -> pa.Buffer: ...


def writer(kind: Format, *, as_numbers: bool) -> Writer:
    """What makes a file of a format; `as_numbers` says how lines write times."""
    return _Lines(as_numbers=as_numbers) if kind == "json" else _Columns(kind)


class _Lines:
    """A file of JSON lines."""

    def __init__(self, *, as_numbers: bool) -> None:
        self._as_numbers = as_numbers
        self._out = pa.BufferOutputStream()

    def add(self, form: Form, shipment: Shipment) -> list[bytes]:
        found = form.lines(form.events(shipment), shipment.rule, as_numbers=self._as_numbers)
        ended = pc.binary_join_element_wise(found, "\n", "")
        _, offsets, data = ended.buffers()
        if data is not None:
            ends = pa.Array.from_buffers(pa.int32(), len(ended) + 1, [None, offsets], offset=ended.offset)
            first, last = ends[0].as_py(), ends[-1].as_py()
            self._out.write(data.slice(first, last - first))
        return []

    def close(self) -> pa.Buffer:
        return self._out.getvalue()


class _Columns:
    """A file of columns, Parquet or CSV."""

    def __init__(self, kind: Format) -> None:
        self._kind = kind
        self._batches: list[pa.RecordBatch] = []

    def add(self, form: Form, shipment: Shipment) -> list[bytes]:
        try:
            self._batches.append(form.columns.batch(form.events(shipment), shipment.rule))
        except UnlikeType:
            fit, unfit = fitting(form, shipment)
            if fit is not None:
                self._batches.append(form.columns.batch(form.events(fit), fit.rule))
            return unfit
        return []

    def close(self) -> pa.Buffer:
        out = pa.BufferOutputStream()
        if self._kind == "parquet":
            _write_parquet(pa.Table.from_batches(self._batches), out)
        else:
            pyarrow.csv.write_csv(pa.Table.from_batches([_with_texts(batch) for batch in self._batches]), out)
        return out.getvalue()


def _write_parquet(table: pa.Table, out: pa.BufferOutputStream) -> None:
    """Numbers and times as differences: a quarter of the time and of the room that dictionaries take for them."""
    whole = {
        field.name for field in table.schema if pa.types.is_integer(field.type) or pa.types.is_temporal(field.type)
    }
    others = [name for name in table.column_names if name not in whole]
    pq.write_table(table, out, use_dictionary=others, column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"))


def fitting(form: Form, shipment: Shipment) -> tuple[Shipment | None, list[bytes]]:
    """The answers that fit their columns, and the others as dead letters.

    An event from outside may have a type that no rule lets expect. What comes of it stops no one.
    """
    events = form.events(shipment)
    try:
        form.columns.batch(events, shipment.rule)
    except UnlikeType:
        pass
    else:
        return shipment, []
    fit: list[int] = []
    unfit: list[bytes] = []
    for row in range(len(events)):
        one = events.take(np.array([row]))
        try:
            form.columns.batch(one, shipment.rule)
        except UnlikeType as error:
            line = form.lines(one, shipment.rule, as_numbers=False)[0].as_py()
            unfit.append(json.dumps({"reason": str(error), "event": line}, ensure_ascii=False).encode())
        else:
            fit.append(row)
    kept = events.take(np.array(fit, dtype=np.int64))
    return pack(kept, shipment.program, shipment.group, shipment.place, shipment.rule) if fit else None, unfit


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same with instants as text, as they are written everywhere else."""
    arrays = [
        pc.replace_substring(a.cast(pa.string()), " ", "T") if pa.types.is_timestamp(a.type) else a
        for a in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
