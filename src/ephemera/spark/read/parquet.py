"""This module reads Parquet files in Python, where the session is local and so are the files.

Python's readers give columns, and columns are what engines take; through Spark's, the columns become rows and columns
again. Each task reads some groups of rows, only the columns that programs use, and only the event types. What is read,
and what is bad and why, is as in the local engine, since its reader does it. Everything else that holds Parquet, such
as tables, folders of folders and other file systems, is read by Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ephemera.algebra.attributes import position
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.lacking import UNREAD
from ephemera.formats.arrow_columns import with_instants
from ephemera.formats.arrow_rows import shown_rows, values_of
from ephemera.formats.check_columns import Offer, refused_types, row_label, stamp_columns
from ephemera.formats.decode_arrow import Reader, offer_of
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.json_events import BadEvent
from ephemera.kernels.columns import Batch
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.spark.read.flat_events import ANY
from ephemera.spark.read.route_rows import ReadCounts, Waiting, bad_input
from ephemera.spark.runtime.exchange import SCHEMA, batches
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import is_local

_ROWS = 131_072
"""Rows that are read at a time."""
Unit = tuple[str, int]
"""A file, and one of its groups of rows."""


def units(spark: SparkSession, paths: Sequence[str]) -> list[Unit] | None:
    """What there is to read in some files or flat folders; None if Spark should read it."""
    if not is_local(spark):
        return None
    found: list[Unit] = []
    for name in paths:
        path = Path(name)
        files = [path] if path.is_file() else _files(path)
        if files is None:
            return None
        for file in files:
            found += units_of(str(file.resolve()))
    return found or None


def is_flat_here(spark: SparkSession, folder: Path) -> bool:
    """Whether a folder is one of this machine, without folders in it, and all tasks run here."""
    return is_local(spark) and _files(folder) is not None


def units_of(path: str) -> list[Unit]:
    """A file by its groups of rows."""
    try:
        return [(path, k) for k in range(pq.read_metadata(path).num_row_groups)]
    except pa.ArrowInvalid as error:
        raise BadFile(f"cannot read {Path(path).name}: {error}") from None


def _files(folder: Path) -> list[Path] | None:
    if not folder.is_dir() or any(p.is_dir() for p in folder.iterdir()):
        return None
    return sorted(p for p in folder.glob("*.parquet") if not p.name.startswith(("_", ".")))


def counts(given: Sequence[Unit], catalogue: Catalogue) -> bool:
    """Whether the columns that say when hold numbers, in all of some files."""
    schemas = [pq.read_schema(path) for path in dict.fromkeys(path for path, _ in given)]
    kinds = (schema.field(name).type for schema in schemas for name in stamp_columns(schema.names, catalogue))
    return all(pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_null(k) for k in kinds)


def offers(given: Sequence[Unit], only: str | None = None) -> list[Offer]:
    """What some files offer, those with the same columns together."""
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for path in dict.fromkeys(path for path, _ in given):
        by_columns.setdefault(tuple(pq.read_schema(path).names), []).append(path)
    return [Offer(_name(paths), columns, partial(_holds, paths), only) for columns, paths in by_columns.items()]


def _name(paths: Sequence[str]) -> str:
    return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _holds(paths: Sequence[str], label: str) -> bool:
    """Whether some of the files have events of a type."""
    tables = (batch for path in paths for batch in pq.ParquetFile(path).iter_batches(columns=["event"]))
    return any(offer_of(pa.Table.from_batches([batch]), "").holds(label) for batch in tables)


@dataclass(frozen=True, slots=True)
class GroupsOfRows:
    """Files by their groups of rows."""

    units: Sequence[Unit]
    only: str | None = None
    """The type of all events, if they do not name theirs."""

    def offers(self) -> list[Offer]:
        """What they offer."""
        return offers(self.units, self.only)

    def counts(self, compiled: Compiled) -> bool:
        """Whether they write their times as numbers."""
        return counts(self.units, compiled.rules.resolved.catalogue.carrying(self.only))

    def routed(
        self, spark: SparkSession, spreads: Sequence[DistributedProgram], wanted: Mapping[str, frozenset[str]]
    ) -> DataFrame:
        """Their events, on their way."""
        frame = spark.createDataFrame(list(self.units), "path string, row_group int")
        return map_in_arrow(frame, FromParquet(spreads, dict(wanted), only=self.only), SCHEMA)


def groups_of_rows(spark: SparkSession, paths: Sequence[str], only: str | None) -> GroupsOfRows | None:
    """What there is to read in some files or flat folders; None if Spark should read it."""
    found = units(spark, paths)
    return None if found is None else GroupsOfRows(found, only)


@dataclass(frozen=True, slots=True)
class FromParquet:
    """Reads groups of rows, and routes their events to programs that declare them alike."""

    spreads: Sequence[DistributedProgram]
    wanted: Mapping[str, frozenset[str]]
    complete: bool = False
    """Whether rows of a type for which not all columns are there are bad."""
    only: str | None = None
    """The type of all rows that name none, if they are of a stream that carries one."""

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    @property
    def _compiled(self) -> Compiled:
        return self.spreads[0].compiled.carrying(self.only)

    @property
    def _catalogue(self) -> Catalogue:
        return self._compiled.rules.resolved.catalogue

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        waiting = Waiting(self.spreads[0].places)
        counts = [ReadCounts(spread) for spread in self.spreads]
        for batch in given:
            for path, group in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                for parts, bad, others in self.read(path, group):
                    for own in counts:
                        own.pass_over(others)
                        own.add(parts)
                        for letter in bad:
                            own.add_bad(letter)
                    yield from (bad_input(spread, letter) for spread in self.spreads for letter in bad)
                    yield from self._all(waiting.add(parts))
        yield from self._all(waiting.take())
        yield from (word for own in counts for word in own.told())

    def read(self, path: str, group: int) -> Iterator[tuple[list[Events], list[BadEvent], Collection[str]]]:
        """The events of a group of rows, some at a time, what is none, and which types were passed over by then."""
        others: set[str] = set()
        for table, rows in self.tables(path, group, others=others):
            found = Reader(table, self._compiled, self._refused(path) if self.complete else None).read()
            shown = _shown(path, group, [int(rows[b.row]) for b in found.bad])
            bad = [BadEvent(row, b.reason, b.label) for b, row in zip(found.bad, shown, strict=True)]
            yield [pruned(part, self.wanted) for part in found.parts], bad, others
        yield [], [], others

    def _refused(self, path: str) -> Mapping[str, str]:
        return refused_types(pq.read_schema(path).names, Path(path).name, self._catalogue)

    def _all(self, parts: list[Events]) -> Iterator[Shipment]:
        for spread in self.spreads:
            yield from spread.route(parts)

    def tables(
        self, path: str, group: int, most: int = _ROWS, others: set[str] | None = None
    ) -> Iterator[tuple[pa.Table, np.ndarray]]:
        """The rows of a group that may be events of the programs, some at a time, and where they stand in it.

        `others` takes the types of all other rows.
        """
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        is_named = row_label(names, self._catalogue) is None
        if is_named:
            file = pq.ParquetFile(path, read_dictionary=["event"])  # there are few types, and many events of each
        used = {"event", *stamp_columns(names, self._catalogue), *self._columns()}
        first = 0
        columns = names if ANY in self.wanted else [n for n in names if n in used]
        for batch in file.iter_batches(most, row_groups=[group], columns=columns):
            rows = np.arange(first, first + batch.num_rows)
            first += batch.num_rows
            if is_named and ANY not in self.wanted:
                mine = self._mine(batch.column("event"), others if others is not None else set())
                if not mine.all():
                    rows = rows[mine]
                    batch = batch.filter(pa.array(mine))  # noqa: PLW2901 - what is left
            if batch.num_rows:
                yield with_instants(pa.Table.from_batches([batch]), file.schema), rows

    def _columns(self) -> Iterator[str]:
        """The columns of the attributes that programs use."""
        for label, names in self.wanted.items():
            schema = self._catalogue.events.get(label)
            known = {} if schema is None else dict(zip(schema.names, schema.columns, strict=True))
            yield from (known.get(name, name) for name in names)

    def _mine(self, event: pa.Array, others: set[str]) -> np.ndarray:
        """Which rows are events of the programs, or have no name, which somebody has to be told."""
        if not pa.types.is_dictionary(event.type):
            return np.ones(len(event), dtype=np.bool_)
        labels = values_of(event.dictionary, range(len(event.dictionary)))
        known = [not isinstance(label, str) or label in self.wanted for label in labels]
        others.update(islice((label for label, is_known in zip(labels, known, strict=True) if not is_known), UNREAD))
        numbers = event.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        mine: np.ndarray = np.array([*known, True])[numbers]
        return mine


def pruned(part: Events, wanted: Mapping[str, frozenset[str]]) -> Events:
    """Events without the attributes that nobody asks for."""
    asked = wanted.get(part.label)
    if part.arity is None or part.names is None or asked is None:
        return part
    places = {position(k) for k, name in enumerate(part.names) if name in asked}
    kept = {n: c for n, c in part.batch.columns.items() if n in (BEGIN, END) or n in places}
    return Events(part.label, Batch(kept, len(part)), part.arity, part.names)


def _shown(path: str, group: int, rows: Sequence[int]) -> list[str]:
    """Rows that are bad, as JSON objects."""
    found = shown_rows(pq.ParquetFile(path).read_row_group(group), rows) if rows else []
    return [json.dumps(row, default=str, ensure_ascii=False) for row in found]
