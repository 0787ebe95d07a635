"""This module writes streams to files as users have them: JSON lines, CSV and Parquet, by columns, some rows at a time.

A file is made once: it stands in its folder under a name that says all it depends on, and only when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bench.data import Ints, Stream
from bench.queries import Case

Format: TypeAlias = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
ROWS = 262_144
"""Rows that are written at a time; in Parquet a group, so that several tasks can read one file."""
SEED = 11
"""Of the order of files that are in none."""
PLAIN = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")


@dataclass(frozen=True, slots=True)
class File:
    """A stream in a file."""

    case: Case
    events: int
    format: Format
    is_shuffled: bool = False
    """Otherwise its lines are in the order of time."""
    has_objects: bool = False
    """For JSON lines: data by name; otherwise by position."""

    @property
    def name(self) -> str:
        order = "-shuffled" if self.is_shuffled else ""
        data = "-objects" if self.has_objects and self.format == "jsonl" else ""
        return f"{self.case.stream_name}-{self.events}{order}{data}.{self.format}"

    def write(self, stream: Stream, folder: Path) -> Path:
        """The file of the stream in this folder, made if it is not there."""
        path = folder / self.name
        if not path.exists():
            order = np.random.default_rng(SEED).permutation(len(stream)) if self.is_shuffled else None
            partial = path.with_name(f"partial-{path.name}")
            match self.format:
                case "jsonl":
                    _write_json(tables(stream, order), partial, has_objects=self.has_objects)
                case "csv":
                    _write_csv(tables(stream, order), partial)
                case "parquet":
                    _write_parquet(tables(stream, order), partial)
            partial.rename(path)
        return path


def tables(stream: Stream, order: Ints | None = None) -> Iterator[pa.Table]:
    """The events with the columns of files, so many rows at a time."""
    letters = pa.array(list(stream.types))
    for first in range(0, max(len(stream), 1), ROWS):
        rows: Any = slice(first, first + ROWS) if order is None else order[first : first + ROWS]
        kind = pa.array(stream.kind[rows].astype(np.int32))
        yield pa.table(
            {
                "event": pa.DictionaryArray.from_arrays(kind, letters).cast(pa.string()),
                "time": stream.end[rows],
                "id": stream.id[rows],
                "x": stream.x[rows],
                "v": stream.v[rows],
            }
        )


def _write_json(batches: Iterator[pa.Table], path: Path, *, has_objects: bool) -> None:
    before = (', "data": {"id": ', ', "x": ', ', "v": ', "}}\n") if has_objects else (', "data": [', ", ", ", ", "]}\n")
    with path.open("wb") as file:
        for batch in batches:
            event, time, *values = (batch[name].combine_chunks().cast(pa.string()) for name in batch.column_names)
            parts: list[Any] = ['{"event": "', event, '", "time": ', time]
            for text, value in zip(before, values, strict=False):
                parts += [text, value]
            lines = pc.binary_join_element_wise(*parts, before[-1], "")
            file.write(b"".join(chunk.buffers()[2] for chunk in _chunks(lines)))


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def _write_csv(batches: Iterator[pa.Table], path: Path) -> None:
    with path.open("wb") as file:
        for number, batch in enumerate(batches):
            if not number:
                file.write(f"{','.join(batch.column_names)}\n".encode())
            pyarrow.csv.write_csv(batch, file, PLAIN)


def _write_parquet(batches: Iterator[pa.Table], path: Path) -> None:
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as file:
        file.write_table(first)
        for batch in batches:
            file.write_table(batch)
