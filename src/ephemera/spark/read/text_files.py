"""This module reads JSON lines and CSV files in Python, where the session is local and so are the files.

Each task reads some slices of files, by whole lines: a line belongs to the slice in which it begins. What is read, and
what is bad and why, is as in the local engine, since its decoders do it, by columns. Files of other machines and other
formats are read by Spark; packed ones are one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ephemera.connect.file_source import Files
from ephemera.connect.found_files import is_packed
from ephemera.connect.time_order import Input as Reading
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.check_columns import Offer
from ephemera.formats.decode import Batch, Cells, Decoder, Lines, Noticed
from ephemera.formats.decode_csv import BOM, header_of, is_empty, row_of
from ephemera.formats.decoded import Decoded
from ephemera.formats.reading import Keys
from ephemera.physical.plan import Compiled
from ephemera.spark.read.parquet import pruned
from ephemera.spark.read.route_rows import ReadCounts, Waiting, bad_input
from ephemera.spark.runtime.exchange import SCHEMA, batches
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import is_local

TextFormat = Literal["json", "csv"]
_SLICE = 8 << 20
"""Bytes that are worth a slice."""
_BLOCK = 1 << 20
"""Bytes that are decoded at a time."""
_MOST = 4
"""Programs for which lines are decoded one by one; Spark reads once for more of them."""


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Files of one format; of CSV with what their headers name, and where these end."""

    paths: tuple[str, ...]
    format: TextFormat
    headers: Mapping[str, tuple[tuple[str, ...], int]]
    only: str | None = None
    """The type of all events, if they do not name theirs."""

    def slices(self) -> list[tuple[str, int, int]]:
        """The files in pieces: where each begins and ends."""
        found: list[tuple[str, int, int]] = []
        for path in self.paths:
            size = Path(path).stat().st_size
            first = self.headers[path][1] if path in self.headers else 0
            if is_packed(path):
                found.append((path, 0, 0))
            else:
                found += [(path, at, min(at + _SLICE, size)) for at in range(first, size, _SLICE)]
        return found

    def offers(self) -> list[Offer]:
        """What CSV files offer."""
        return [Offer(Path(p).name, c, partial(_holds, p, c, end), self.only) for p, (c, end) in self.headers.items()]

    def counts(self, compiled: Compiled) -> bool:
        """Whether they write their times as numbers, by the first good event."""
        decoder = Decoder(compiled, Noticed(Keys(compiled.physical)), self.only)
        reading = Reading(Files(self.paths, self.format), [decoder])
        try:
            while reading.read() is not None:
                if reading.form[0] is not None:
                    return reading.form[0]
        finally:
            reading.close()
        return True

    def routed(
        self, spark: SparkSession, spreads: Sequence[DistributedProgram], wanted: Mapping[str, frozenset[str]]
    ) -> DataFrame:
        """Their events, on their way."""
        frame = spark.createDataFrame(self.slices(), "path string, first bigint, last bigint")
        columns = {path: names for path, (names, _) in self.headers.items()}
        return map_in_arrow(frame, FromText(tuple(spreads), dict(wanted), self.format, columns, self.only), SCHEMA)


def text_files(
    spark: SparkSession, paths: Sequence[str], form: TextFormat, only: str | None, programs: int
) -> TextFiles | None:
    """What there is to read in some files; None if Spark should read it."""
    if not is_local(spark) or programs > _MOST or not paths or not all(Path(path).is_file() for path in paths):
        return None
    if form == "csv" and any(map(is_packed, paths)):
        return None
    found = {path: _header(path) for path in paths} if form == "csv" else {}
    return TextFiles(tuple(paths), form, {path: header for path, header in found.items() if header is not None}, only)


def _header(path: str) -> tuple[tuple[str, ...], int] | None:
    """What the first line of a file names, and where the second begins; None if the file is empty."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not is_empty(line, number):
                return header_of(line, path), file.tell()
    return None


def _holds(path: str, columns: tuple[str, ...], first: int, label: str) -> bool:
    """Whether a CSV file has events of a type."""
    sought = label.encode()
    for block in _blocks(path, first, Path(path).stat().st_size):
        if sought in block:
            rows = (row_of(line, 0, columns) for line in block.split(b"\n") if sought in line)
            if any(row.cells is not None and row.cells["event"] == label for row in rows):
                return True
    return False


def _blocks(path: str, first: int, last: int) -> Iterator[bytes]:
    """The lines that begin between two places of a file, some at a time."""
    with Path(path).open("rb") as file:
        if first:
            file.seek(first - 1)
            file.readline()
        while (at := file.tell()) < last:
            piece = file.read(min(_BLOCK, last - at))
            yield piece if piece.endswith(b"\n") else piece + file.readline()


# ---- in workers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FromText:
    """Reads slices of files, and routes their events to programs."""

    spreads: tuple[DistributedProgram, ...]
    wanted: Mapping[str, frozenset[str]]
    format: TextFormat
    columns: Mapping[str, tuple[str, ...]]
    """What the headers of CSV files name."""
    only: str | None = None

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        readers = [_Reader(spread, self.wanted, self.only) for spread in self.spreads]
        numbers = _LineNumbers()
        for batch in given:
            for path, first, last in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                before = cache(partial(numbers.before, path, first))
                for block in self.read(path, first, last):
                    for reader in readers:
                        yield from reader.take(block, before)
        for reader in readers:
            yield from reader.close()

    def read(self, path: str, first: int, last: int) -> Iterator[Batch]:
        """The lines of a slice; those of CSV are counted from its first one."""
        if is_packed(path):
            opened = Files([path], self.format).open()
            while (batch := opened.read()) is not None:
                yield batch
            opened.close()
            return
        line = 1
        for number, block in enumerate(_blocks(path, first, last)):
            if self.format == "json":
                yield Lines(block.removeprefix(BOM) if first == number == 0 else block)
            else:
                yield Cells(block, path, self.columns[path], line)
                line += block.count(b"\n")


class _LineNumbers:
    """Counts the lines of files up to slices, of which later ones come later."""

    def __init__(self) -> None:
        self._path, self._at, self._lines = "", 0, 0

    def before(self, path: str, first: int) -> int:
        """How many lines begin before a slice."""
        if first == 0:
            return 0
        if path != self._path or first <= self._at:
            self._path, self._at, self._lines = path, 0, 0
        with Path(path).open("rb") as file:
            file.seek(self._at)
            while self._at < first - 1 and (piece := file.read(min(first - 1 - self._at, _BLOCK))):
                self._lines += piece.count(b"\n")
                self._at += len(piece)
        return self._lines + 1  # with the line that reaches into the slice, or ends before it


class RoutedEvents:
    """Events of one program that have been decoded, on their way."""

    def __init__(self, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]]) -> None:
        self._spread = spread
        self._wanted = wanted
        self._waiting = Waiting(spread.places)
        self.counts = ReadCounts(spread)

    def add(self, found: Decoded) -> Iterator[Shipment]:
        """More of them; what is no event goes elsewhere."""
        self.counts.add(found.parts)
        for bad in found.bad_events:
            self.counts.add_bad(bad)
            yield bad_input(self._spread, bad)
        parts = [pruned(part, self._wanted) for part in found.parts if len(part)]
        yield from self._spread.route(self._waiting.add(parts))

    def close(self) -> Iterator[Shipment]:
        """What is left, and how many there were."""
        yield from self._spread.route(self._waiting.take())
        yield from self.counts.told()


class _Reader:
    """Reads the events of one program."""

    def __init__(self, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]], only: str | None) -> None:
        self._spread = spread
        self._only = only
        self._routed = RoutedEvents(spread, wanted)
        self.close = self._routed.close

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self._spread.compiled, Noticed(self._routed.counts.keys), self._only)

    def take(self, batch: Batch, before: Callable[[], int]) -> Iterator[Shipment]:
        """Some lines; how many come before is asked only for those that are bad."""
        found: Decoded = self._decoder.decode(batch)
        if found.bad and isinstance(batch, Cells):
            found = self._decoder.decode(replace(batch, first=batch.first + before()))
        yield from self._routed.add(found)
