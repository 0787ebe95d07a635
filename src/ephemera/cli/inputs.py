"""This module finds what a run reads: files, folders and globs of these, standard input, or what programs declare."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from glob import glob
from gzip import BadGzipFile
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Literal, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from ephemera.base.scratch import scratch
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, tell
from ephemera.formats.arrow_columns import with_instants
from ephemera.formats.check_columns import Offer, WrongColumns, check_columns, offer_of
from ephemera.formats.compiled import Reading
from ephemera.formats.csv_rows import BOM, COMPRESSED, BadFile, Row, Sheet, opened
from ephemera.formats.decode_arrow import Reader
from ephemera.formats.decode_cells import event_of_row
from ephemera.formats.json_events import BadEvent, Message, decode_line, uses_text
from ephemera.formats.xml_messages import messages, placed
from ephemera.pipeline import Program

Format = Literal["json", "parquet", "csv", "xml"]
STANDARD_INPUT = "-"
_SOCKET = re.compile(r"(socket|tcp)://(.*)")
_HOST_AND_PORT = re.compile(r"(\[[^\]]+\]|[^:/]+):\d{1,5}/?")
_PIECE = 65_536
_FORMATS: dict[str, Format] = {".parquet": "parquet", ".csv": "csv", ".xml": "xml"}
_DECLARED: dict[str, Format] = {"json": "json", "jsonl": "json", "parquet": "parquet", "csv": "csv", "xml": "xml"}


@dataclass(frozen=True, slots=True)
class Given:
    """Files of one format, or a place that only Spark can look into, such as `s3a://…`."""

    paths: tuple[str, ...]
    format: Format
    is_remote: bool = False


def found_inputs(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[Given]:
    """What there is to read: what is named, else what programs declare, else standard input."""
    if inputs:
        return [_found(name) for name in inputs]
    return [_found(where, form) for where, form in _declared(programs, paths)] or [_found(STANDARD_INPUT)]


def input_names(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[str]:
    """The same by name: files, folders and patterns as they were given or declared."""
    return list(inputs or [where for where, _ in _declared(programs, paths)] or [STANDARD_INPUT])


@dataclass(frozen=True, slots=True)
class LiveInput:
    """What a live run reads: standard input, a file, or what Spark reads."""

    name: str
    """As it was given."""
    format: Format = "json"

    @property
    def is_socket(self) -> bool:
        return _SOCKET.fullmatch(self.name) is not None

    @property
    def is_here(self) -> bool:
        """Whether it is read in this process: files are, and standard input."""
        if self.name == STANDARD_INPUT:
            return True
        return "://" not in self.name and Path(self.name).exists() and not Path(self.name).is_dir()

    @property
    def place(self) -> str:
        """As Spark finds it."""
        if "://" in self.name:
            return self.name
        return literal(self.name) if Path(self.name).is_dir() else str(Path(self.name).absolute())


def live_inputs(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[LiveInput]:
    """What a live run reads: what is named, else what programs declare, if they do."""
    given = dict.fromkeys((name, None) for name in inputs) if inputs else _declared(programs, paths)
    return [_live_input(name, form) for name, form in given]


def _live_input(name: str, declared: str | None) -> LiveInput:
    socket = _SOCKET.fullmatch(name)
    if socket is not None and _HOST_AND_PORT.fullmatch(socket[2]) is None:
        _refuse(f"cannot read {name}: a socket has a host and a port, such as socket://127.0.0.1:9999")
    if name != STANDARD_INPUT and "://" not in name and Path(name).exists() and not os.access(name, os.R_OK):
        _refuse(f"cannot read {name}: Permission denied")
    if name != STANDARD_INPUT and "://" not in name and not Path(name).exists():
        fixed = list(takewhile(lambda part: not set("*?[{") & set(part), Path(name).parts))
        if fixed == list(Path(name).parts):
            _refuse(f"cannot read {name}: there is no such file or folder; a folder may be empty, but must be there")
        if fixed and not Path(*fixed).is_dir():
            _refuse(f"cannot read {name}: there is no folder {Path(*fixed)}")
    return LiveInput(name, _declared_format(name, declared) or _format(name))


def _declared(programs: Sequence[Program], paths: Sequence[Path]) -> dict[tuple[str, str | None], None]:
    """Where the sources of programs are, as these declare."""
    declared: dict[tuple[str, str | None], None] = {}
    for program, path in zip(programs, paths, strict=True):
        for source in program.catalogue.sources:
            if source.location is not None:
                where = source.location if "://" in source.location else str(path.parent / source.location)
                declared[where, source.format] = None
    return declared


def _found(name: str, declared: str | None = None) -> Given:
    form = _declared_format(name, declared)
    if name == STANDARD_INPUT:
        return Given((name,), "json")
    if "://" in name:
        return Given((name,), form or _format(name), is_remote=True)
    names = [name] if Path(name).exists() else sorted(glob(name, recursive=True))  # noqa: PTH207 - of any folder
    files = [file for one in names for file in _files(Path(one))]
    if not names:
        _refuse(f"cannot read {name}: No such file or directory")
    if not files:
        tell(f"note: there are no files in {name}")
    formats = {form or _format(file) for file in files} or {form or "json"}
    if len(formats) > 1:
        _refuse(f"cannot read {name}: it holds files of several formats, {', '.join(sorted(formats))}; name them apart")
    return Given(tuple(files), formats.pop())


def _declared_format(name: str, declared: str | None) -> Format | None:
    form = None if declared is None else _DECLARED.get(declared.lower())
    if declared is not None and form is None:
        _refuse(f"cannot read {name}: there is no format `{declared}`; there are {', '.join(sorted(_DECLARED))}")
    return form


def literal(path: str) -> str:
    """A path as it is, where Spark would see a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(Path(path).absolute()))


def _files(path: Path) -> list[str]:
    """The file itself, or all files of a folder; names that begin with `_` or `.` are marks, as they are for Spark."""
    if not path.is_dir():
        if not os.access(path, os.R_OK):
            _refuse(f"cannot read {path}: Permission denied")
        return [str(path)]
    every = (p for p in sorted(path.rglob("*")) if p.is_file())
    return [str(p) for p in every if not any(part.startswith(("_", ".")) for part in p.relative_to(path).parts)]


def _format(name: str) -> Format:
    return _FORMATS.get(Path(name.rstrip("/").removesuffix(COMPRESSED)).suffix.lower(), "json")


def _refuse(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


# ---- in this process -----------------------------------------------------------------------------------------


def read_all(programs: Sequence[Program], given: Sequence[Given], *, lenient: bool = False) -> list[Reading]:
    """The events as each program reads them; everything is read and decoded once, and each is told of it.

    Ends the command if columns are missing, unless that is `lenient`.
    """
    readings = [program.reading() for program in programs]
    for one in given:
        if one.is_remote:
            _refuse(f"cannot read {one.paths[0]}: only the engine `spark` can")
        for path in one.paths:
            with told_of(path):
                _read(path, one.format, readings)
    for reading in readings:
        if reading.offers:
            with told_of("the input"):
                check_columns(reading.offers, reading.compiled.rules.resolved.catalogue, lenient=lenient)
    return readings


@contextmanager
def told_of(path: str | Path) -> Iterator[None]:
    """Ends the command if a file cannot be read: since there is none, or since what is in it is wrong."""
    try:
        yield
    except (WrongColumns, BadFile) as error:
        _refuse(str(error), WRONG_PROGRAM)
    except (BadGzipFile, EOFError, ValueError, zlib.error) as error:  # Arrow's errors are ValueErrors
        _refuse(f"cannot read {path}: {error}", WRONG_PROGRAM)
    except OSError as error:
        _refuse(f"cannot read {path}: {error.strerror or error}")


def _read(path: str, form: Format, readings: Sequence[Reading]) -> None:
    match form:
        case "json":
            for line in _lines(path):
                message = decode_line(line)
                for reading in readings:
                    reading.add(message)
        case "csv":
            with opened(path) as file:
                _read_cells(Sheet(file, path), readings)
        case "xml":
            with opened(path) as file:
                for place, message in messages(iter(partial(file.read, _PIECE), b""), Path(path).name):
                    for reading in readings:
                        _add_message(place, message, reading)
        case "parquet":
            table = with_instants(pq.read_table(path), pq.ParquetFile(path).schema)
            for reading in readings:
                _offer(offer_of(table, Path(path).name), reading)
                _add_table(table, reading)


def _read_cells(sheet: Sheet, readings: Sequence[Reading]) -> None:
    labels: set[str] = set()
    for reading in readings:
        if sheet.is_empty:
            reading.warnings.append(f"{sheet.name} is empty")
        else:
            _offer(Offer(Path(sheet.name).name, sheet.columns, labels.__contains__), reading)
    for row in sheet.rows():
        labels.add((row.cells or {}).get("event", ""))
        for reading in readings:
            _add_cells(row, sheet.name, reading)


def _offer(offer: Offer, reading: Reading) -> None:
    """Notes what a file offers, which must say at least what and when."""
    check_columns([offer], reading.compiled.rules.resolved.catalogue, lenient=True)
    reading.offers.append(offer)


def _add_cells(row: Row, name: str, reading: Reading) -> None:
    event, given = event_of_row(row, Path(name).name, reading.compiled)
    reading.take(event, as_text=uses_text(given, reading.compiled.rules.resolved.catalogue))


def _add_message(place: str, message: Message, reading: Reading) -> None:
    event = placed(reading.compiled.read(message), place)
    reading.take(event, as_text=uses_text(message.data, reading.compiled.rules.resolved.catalogue))


def _add_table(table: pa.Table, reading: Reading) -> None:
    found = Reader(table, reading.compiled).read()
    for event in (event for part in found.parts for event in part.events()):
        reading.take(event, as_text=not found.numbers)
    for bad in sorted(found.bad, key=lambda one: one.row):
        row = table.slice(bad.row, 1).to_pylist()[0]
        reading.take(_as_given(BadEvent("", bad.reason, bad.label), row), as_text=False)


def _as_given(bad: BadEvent, row: Mapping[str, Any]) -> BadEvent:
    """A bad row with the row as a JSON object."""
    return BadEvent(json.dumps(row, default=str, ensure_ascii=False), bad.reason, bad.label)


def _lines(path: str) -> Iterator[bytes]:
    with nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else opened(path) as file:
        first = next(iter(file), b"").removeprefix(BOM)
        yield from (line.rstrip(b"\n") for line in chain([first], file) if line.strip())


@contextmanager
def spooled(given: Sequence[Given]) -> Iterator[list[Given]]:
    """The same with standard input in a file, as long as the block lasts."""
    if not any(one.paths == (STANDARD_INPUT,) for one in given):
        yield list(given)
        return
    with scratch("input") as folder:
        file = folder / "input.jsonl"
        with file.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target)
        stored = Given((str(file),), "json")
        yield [stored if one.paths == (STANDARD_INPUT,) else one for one in given]
