"""This module reads files as sources: JSON lines, CSV, Parquet and XML messages, packed or not, block by block.

A file is never held as a whole. Where it is packed it is unpacked as it is read: gzip, and Zstandard.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

import pyarrow as pa

from ephemera.base.errors import EphemeraError
from ephemera.connect.found_files import GZIP, ZSTANDARD, Paths, check_format, found_files, names_of
from ephemera.connect.source import ROWS, check_only
from ephemera.connect.systems.address import is_address
from ephemera.formats.arrow_columns import with_instants
from ephemera.formats.decode import Batch, Cells, Lines, Objects, Rows
from ephemera.formats.decode_csv import BOM, BadFile, header_of, is_empty
from ephemera.formats.json_lines import refuse_other
from ephemera.terms.errors import LARGEST_LINE

Format = Literal["json", "parquet", "csv", "xml"]
STANDARD_INPUT = "-"
FORMATS: dict[str, Format] = {".parquet": "parquet", ".csv": "csv", ".xml": "xml"}
"""Endings of names that say what is in a file; everything else is JSON lines."""
_BLOCK = 1 << 20
_PIECE = 65_536
_MESSAGES = 4_096
"""XML messages that are given at a time."""


def format_of(name: str) -> Format:
    """What is in a file, by its name."""
    plain = name.rstrip("/").lower().removesuffix(GZIP).removesuffix(ZSTANDARD)
    return FORMATS.get(Path(plain).suffix, "json")


def format_there(name: str) -> Format:
    """What a folder or a pattern holds: as its name says, or else as do the names of the files that are there.

    Raises a `ValueError` if these are of several formats.
    """
    if is_address(name) or format_of(name) != "json":
        return format_of(name)
    found = sorted({format_of(file) for file in found_files(name) or ()})
    if len(found) > 1:
        raise ValueError(
            f"`{name}` holds files of several formats, {', '.join(found)}; name them apart, by patterns such as "
            f"`{name.rstrip('/')}/*.{found[-1]}`"
        )
    return found[0] if found else "json"


def opened(path: str | Path) -> IO[bytes]:
    """A file for reading, unpacked if its name says that it is packed; `-` is standard input."""
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer
    if str(path).lower().endswith(GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if str(path).lower().endswith(ZSTANDARD):
        return cast("IO[bytes]", pa.input_stream(str(path), compression="zstd"))
    return Path(path).open("rb")


@dataclass(frozen=True, slots=True)
class Files:
    """Files one after the other: a path or several, each of a file, of a folder of files, or a pattern of these.

    >>> from ephemera import sources
    >>> sources.Files("examples/shop.jsonl").name
    'examples/shop.jsonl'
    """

    paths: Paths
    format: Format | None = None
    """By their names otherwise."""
    only: str | None = None
    """The type of all events that do not name theirs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", names_of(self.paths, "sources.Files"))
        check_only(self.only, "sources.Files")
        if self.format is not None:
            check_format(self.format, get_args(Format))

    @property
    def names(self) -> tuple[str, ...]:
        """The paths as they were given."""
        return cast("tuple[str, ...]", self.paths)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are there now; where nothing is, the path itself, so that reading it says so."""
        found = ([one] if one == STANDARD_INPUT else found_files(one) for one in self.names)
        return tuple(
            file for name, files in zip(self.names, found, strict=True) for file in ([name] if files is None else files)
        )

    @property
    def name(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{len(self.names)} files"

    @property
    def can_reopen(self) -> bool:
        """Whether all of them are files: a pipe gives everything once."""
        return all(path != STANDARD_INPUT and Path(path).is_file() for path in self.files)

    def open(self, position: tuple[int, int] | None = None) -> OpenFiles:
        """From the beginning, or from a batch of a file on, both counted from 0."""
        return OpenFiles(self, position or (0, 0))


class CannotRead(EphemeraError):
    """A file that cannot be opened."""


class OpenFiles:
    """Files that are being read."""

    def __init__(self, files: Files, position: tuple[int, int]) -> None:
        self._form = files.format
        self._paths = files.files
        self.position = position
        self.path: str | None = None
        """The file that is being read."""
        self._batches: Iterator[Batch] = iter(())
        self._sizes = [_size(path) for path in self._paths]
        self._total = max(1, sum(self._sizes))
        self._read_before = sum(self._sizes[: position[0]])
        self._read_of_file = 0

    def read(self) -> Batch | None:
        """The next batch of the file, or the first of the next file."""
        try:
            return self._read()
        except (gzip.BadGzipFile, EOFError, zlib.error, pa.ArrowException) as error:
            raise BadFile(f"cannot read {self.path}: {error}") from None
        except OSError as error:
            if error.errno is None:  # nothing is wrong with the file system: what is packed is broken or cut off
                raise BadFile(f"cannot read {self.path}: {error}") from None
            raise CannotRead(f"cannot read {self.path}: {error.strerror or error}") from None

    def _read(self) -> Batch | None:
        while True:
            batch = next(self._batches, None)
            if batch is not None:
                self.position = (self.position[0], self.position[1] + 1)
                self._read_of_file += _bytes(batch)
                return batch
            number = self.position[0] + (self.path is not None)
            if number >= len(self._paths):
                return None
            skipped = 0 if self.path is not None else self.position[1]
            self._read_before += self._sizes[self.position[0]] if self.path is not None else 0
            self.path = self._paths[number]
            self.position = (number, 0)
            self._read_of_file = 0
            self._batches = _batches(self.path, self._form or format_of(self.path))
            for _ in range(skipped):
                next(self._batches, None)
                self.position = (number, self.position[1] + 1)

    @property
    def part(self) -> float:
        """About how much has been read, by the sizes of files; what is packed is larger than its file."""
        own = self._sizes[self.position[0]] if self._sizes else 0
        return (self._read_before + min(self._read_of_file, own)) / self._total

    def close(self) -> None:
        if (end := getattr(self._batches, "close", None)) is not None:
            end()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _bytes(batch: Batch) -> int:
    match batch:
        case Lines(data) | Cells(data):
            return len(data)
        case Rows(table):
            return int(table.nbytes)
        case _:
            return 0


def _batches(path: str, form: Format) -> Iterator[Batch]:
    match form:
        case "json":
            return _json(path)
        case "csv":
            return _csv(path)
        case "parquet":
            return _parquet(path)
        case "xml":
            return _xml(path)


def _json(path: str) -> Iterator[Batch]:
    line = 1
    for block in _blocks(path):
        if line == 1:
            refuse_other(block, path)
        yield Lines(block.removeprefix(BOM) if line == 1 else block, path, line)
        line += block.count(b"\n")


def _csv(path: str) -> Iterator[Batch]:
    columns: tuple[str, ...] | None = None
    line = 1
    for block in _blocks(path):
        while columns is None and block:
            first, _, block = block.partition(b"\n")  # noqa: PLW2901 - what is left
            line += 1
            if not is_empty(first, line - 1):
                columns = header_of(first, path)
        if columns is None:
            continue
        yield Cells(block, path, columns, line)
        line += block.count(b"\n")
    if columns is None:
        yield Cells(b"", path, (), 1)


def _blocks(path: str) -> Iterator[bytes]:
    """A file in blocks of whole lines."""
    file = opened(path)
    with nullcontext() if path == STANDARD_INPUT else file:
        rest: list[bytes] = []
        while piece := file.read(_BLOCK):
            cut = piece.rfind(b"\n") + 1
            if not cut:
                if sum(map(len, rest)) <= LARGEST_LINE:  # a longer line is no event, whatever else is in it
                    rest.append(piece)
                continue
            yield b"".join([*rest, piece[:cut]])
            rest = [piece[cut:]]
        if any(rest):
            yield b"".join(rest)


def _parquet(path: str) -> Iterator[Batch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only who reads Parquet needs it

    with pq.ParquetFile(path) as file:
        row = 1
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(ROWS, row_groups=[group]):
                yield Rows(with_instants(pa.Table.from_batches([batch]), file.schema), path, first=row)
                row += batch.num_rows
        if not file.num_row_groups:
            yield Rows(with_instants(file.schema_arrow.empty_table(), file.schema), path)


def _xml(path: str) -> Iterator[Batch]:
    from ephemera.formats.xml_messages import messages  # noqa: PLC0415 - only who reads XML needs its parser

    with opened(path) as file:
        places: list[str] = []
        found: list[Any] = []
        for place, message in messages(iter(partial(file.read, _PIECE), b""), Path(path).name):
            places.append(place)
            found.append(message)
            if len(found) == _MESSAGES:
                yield Objects(found, places)
                places, found = [], []
        if found:
            yield Objects(found, places)
