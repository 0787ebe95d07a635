"""This module reads the files of a table of Delta Lake, and its log: what each version has added and taken away.

A version is a file of JSON lines, one action each. Files that only arrange rows anew, as `OPTIMIZE` makes them, say
that they change no data. The columns by which a table is partitioned stand in the log and not in its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import PyFileSystem

from ephemera.connect.source import ROWS
from ephemera.connect.systems.address import Address, NoAnswer
from ephemera.connect.systems.delta_client import check_readable, told

if TYPE_CHECKING:
    from deltalake import DeltaTable

Keep = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows, the columns that it does not hold, as they are in all of its rows, and which rows still count."""

    path: str
    values: Mapping[str, Any]
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """What a version has done."""

    number: int
    operation: str
    """What people call it, such as `WRITE` or `DELETE`."""
    added: Sequence[DataFile]
    takes_away: bool
    """Whether rows that were there before are there no more, or have changed."""
    table: str | None
    """The identity of the table, if it or its columns have changed."""


class Files:
    """The files of a table, read by its columns as they are now."""

    def __init__(self, address: Address, table: DeltaTable) -> None:
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - only who uses Delta Lake needs it

        self._address = address
        self._table = table
        self._place = PyFileSystem(DeltaStorageHandler(table.table_uri))
        self._look()

    def _look(self) -> None:
        check_readable(self._address, self._table)
        with told(self._address):
            self.schema: pa.Schema = pa.schema(self._table.schema().to_arrow())
            self.identity = str(self._table.metadata().id)

    def update(self) -> None:
        """Looks at the columns again, since they have changed."""
        with told(self._address):
            self._table.update_incremental()
        self._look()

    def present(self) -> list[DataFile]:
        """All files of the table as it was loaded, the oldest first: the same order whenever it is asked for."""
        with told(self._address):
            found = pa.table(self._table.get_add_actions())
            dropped = pa.table(self._table.deletion_vectors())
        names = [name for name in ("path", "modification_time", "partition") if name in found.column_names]
        keeps = dict(zip(map(unquote, dropped["filepath"].to_pylist()), dropped["selection_vector"], strict=True))
        rows: list[dict[str, Any]] = found.select(names).to_pylist()
        rows.sort(key=lambda row: (row["modification_time"], row["path"]))
        return [_present(unquote(row["path"]), row.get("partition"), keeps) for row in rows]

    def version(self, number: int) -> Version | None:
        """What a version has done; None if there is none of this number in the log."""
        with told(self._address):
            try:
                with self._place.open_input_stream(f"_delta_log/{number:020}.json") as file:
                    lines = file.read().splitlines()
            except FileNotFoundError:
                return None
        added: list[DataFile] = []
        operation, takes_away, table = "a change", False, None
        for line in lines:
            match msgspec.json.decode(line):
                case {"add": {"path": str(path), "dataChange": True, "partitionValues": dict(values), **more}}:
                    takes_away = takes_away or more.get("deletionVector") is not None
                    added.append(DataFile(unquote(path), values))
                case {"remove": {"dataChange": True}}:
                    takes_away = True
                case {"commitInfo": {"operation": str(name)}}:
                    operation = name
                case {"metaData": {"id": identity}}:
                    table = str(identity)
                case _:
                    pass
        return Version(number, operation, added, takes_away, table)

    def rows(self, file: DataFile, first: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """The rows of a file from one on, some at a time, each time with the number of the row behind them."""
        with told(self._address):
            try:
                opened = pq.ParquetFile(self._place.open_input_file(file.path), coerce_int96_timestamp_unit="us")
            except FileNotFoundError:
                raise NoAnswer(
                    f"`{self._address}`: {file.path} is gone, as VACUUM takes files that are long out of use; "
                    "begin anew with another checkpoint"
                ) from None
            with opened:
                groups, begin = _groups_from(opened, first)
                for batch in opened.iter_batches(ROWS, groups):
                    end = begin + len(batch)
                    skipped = max(0, first - begin)
                    if skipped < len(batch):
                        found = self._by_columns(batch.slice(skipped), file.values)
                        yield end, found if file.keep is None else _where(found, file.keep[begin + skipped : end])
                    begin = end

    def _by_columns(self, batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.Table:
        arrays = [self._column(batch, field, values) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field, values: Mapping[str, Any]) -> pa.Array:
        if field.name in values:
            return pa.repeat(_constant(values[field.name], field.type), len(batch))
        if field.name not in batch.schema.names:
            return pa.nulls(len(batch), field.type)
        found = batch.column(field.name)
        return found if found.type == field.type else found.cast(field.type)


def _groups_from(file: pq.ParquetFile, first: int) -> tuple[list[int], int]:
    """The groups of rows from that on which has a row, and the number of their first row."""
    begin = 0
    for group in range(file.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        if begin + count > first:
            return list(range(group, file.num_row_groups)), begin
        begin += count
    return [], begin


def _constant(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value of a column that the log holds: as text, in versions, or already by its type."""
    if value == "":  # which the log writes for null
        return pa.scalar(None, kind)
    if not isinstance(value, str) or pa.types.is_string(kind):
        return pa.scalar(value, kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        plain = pc.cast(pa.scalar(value.removesuffix("Z")), pa.timestamp("us"))
        return pc.assume_timezone(plain, "UTC").cast(kind)
    return pc.cast(pa.scalar(value), kind)


def _present(path: str, values: Mapping[str, Any] | None, keeps: Mapping[str, pa.ListScalar]) -> DataFile:
    mask = next((mask for uri, mask in keeps.items() if uri.endswith(f"/{path}")), None)
    return DataFile(path, values or {}, None if mask is None else mask.values.to_numpy(zero_copy_only=False))


def _where(table: pa.Table, keep: Keep) -> pa.Table:
    """The rows that still count; a mask that is too short says nothing of those behind it."""
    rest = np.ones(table.num_rows - len(keep), dtype=np.bool_)
    return table.filter(pa.array(np.concatenate([keep, rest])))
