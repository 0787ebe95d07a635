"""This module writes answers to one file, sorted: JSON lines, CSV or Parquet, as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pv

from ephemera.connect.atomic_files import CannotWrite, WholeFile, append, is_open_end
from ephemera.connect.found_files import is_packed, name_of
from ephemera.connect.sink import spooled
from ephemera.connect.staged_answers import StagedAnswers
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.encode_json import iso_texts

Form = Literal["json", "csv", "parquet"]
_BUFFER = 1 << 20
_GROUP = 1 << 20
"""Rows of a group in a Parquet file, at most."""


def form_of(name: str) -> Form:
    """What a file would hold, by its name."""
    ending = Path(name).suffix.lower()
    return "parquet" if ending == ".parquet" else "csv" if ending == ".csv" else "json"


@dataclass(frozen=True, slots=True)
class File:
    """One file of answers, sorted by time.

    >>> from ephemera import sinks
    >>> sinks.File("answers.parquet").path
    'answers.parquet'
    """

    path: str | os.PathLike[str]

    def __post_init__(self) -> None:
        path = name_of(self.path, "sinks.File")
        object.__setattr__(self, "path", path)
        if is_packed(path):
            raise ValueError(f"answers are not packed; name `{path}` without its last ending")

    def open(self) -> OpenFile:
        """Begins to write, beside what may be there under that name."""
        return OpenFile(Path(self.path), form_of(str(self.path)))


class OpenFile:
    """A file that is being written."""

    def __init__(self, target: Path, form: Form) -> None:
        self._target = target
        self._form = form
        self._is_pipe = is_open_end(target)
        self._file: Any = spooled() if self._is_pipe else WholeFile(target)
        self._writer: Any = None
        self._stream: Any = None
        self._staged: StagedAnswers | None = None

    def write(self, answers: AnswerBatch) -> None:
        """Adds some answers."""
        if self._form == "json":
            self._file.write(answers.lines())
            return
        if answers.form.is_open:
            self._staged = self._staged or StagedAnswers(answers.form)
            self._staged.add(answers)
        else:
            self._write(answers.table())

    def _write(self, table: pa.Table) -> None:
        if self._form == "csv":
            table = with_texts(table)
        if self._writer is None:
            stream = pa.BufferedOutputStream(pa.PythonFile(self._file, mode="w"), _BUFFER)
            self._writer = (
                pv.CSVWriter(stream, table.schema) if self._form == "csv" else _parquet_writer(stream, table.schema)
            )
            self._stream = stream
        if self._form == "csv":
            self._writer.write_table(table)
        else:
            self._writer.write_table(table, _GROUP)

    def commit(self) -> None:
        """Gives the file its name; a pipe gets everything now."""
        if self._staged is not None:
            schema, tables = self._staged.tables()
            for table in tables:
                self._write(table)
            if self._writer is None:  # there was no answer, and that is written, too
                self._write(schema.empty_table())
            self._staged.close()
        if self._writer is not None:
            self._writer.close()
            self._stream.flush()
        if not self._is_pipe:
            self._file.commit()
            return
        self._file.seek(0)
        append(self._pieces(), self._target)
        self._file.close()

    def _pieces(self) -> Iterator[bytes]:
        return iter(partial(self._file.read, 1 << 20), b"")

    def abort(self) -> None:
        """Leaves nothing."""
        if self._staged is not None:
            self._staged.close()
        if self._writer is not None:
            with suppress(CannotWrite, OSError):
                self._writer.close()
        if self._is_pipe:
            self._file.close()
        else:
            self._file.abort()


def _parquet_writer(stream: Any, schema: pa.Schema) -> Any:
    """Numbers and times are written as differences: a quarter of the time and room that dictionaries take for them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only who writes Parquet needs it

    whole = {one.name for one in schema if pa.types.is_integer(one.type) or pa.types.is_temporal(one.type)}
    others = [name for name in schema.names if name not in whole]
    differences = dict.fromkeys(whole, "DELTA_BINARY_PACKED")
    return pq.ParquetWriter(stream, schema, use_dictionary=others, column_encoding=differences)


def with_texts(table: pa.Table) -> pa.Table:
    """The same with times as texts in ISO 8601, as CSV has them."""
    for k, column in enumerate(table.columns):
        if pa.types.is_timestamp(column.type):
            whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            stamps = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            texts = pa.array(iso_texts(stamps).to_pylist(), mask=whole.is_null().to_numpy(zero_copy_only=False))
            table = table.set_column(k, table.column_names[k], texts)
    return table
