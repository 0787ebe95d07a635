"""This module writes a history of orders by columns, in the order of time, and knows a program of two levels for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM = """
EVENT order(id: int, customer: int); EVENT paid(id: int); EVENT complaint(customer: int);
late(i, c) <- o: order(i, c), w: extend(o, 50), while w: not paid(i);
angry(i, c) <- l: late(i, c), k: complaint(c), {l, k} within 60;
"""
PART = 100_000


def write_history(path: Path, count: int) -> None:
    """So many events: orders, most of them paid in time, and complaints."""
    types = pa.array(["order", "paid", "complaint"])
    schema = pa.schema([("event", pa.string()), ("time", pa.int64()), ("id", pa.int64()), ("customer", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, count, PART):
            n = np.arange(begin, min(begin + PART, count))
            kind = np.where(n % 10 == 7, 2, n % 2)
            number = np.where(kind == 1, n - 41, n)
            ids = pa.array(number, mask=(kind == 2))
            customers = pa.array(np.where(kind == 2, n * 31 % 23, n * 17 % 23), mask=(kind == 1))
            writer.write_table(
                pa.table([types.take(pa.array(kind)).cast(pa.string()), n, ids, customers], schema=schema)
            )


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a history as JSON objects."""
    rows = pq.read_table(path).to_pylist()
    return [
        {"event": row.pop("event"), "time": row.pop("time"), "data": {k: v for k, v in row.items() if v is not None}}
        for row in rows
    ]
