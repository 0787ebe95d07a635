"""This module finds what a run reads: files, folders and globs of these, standard input, or what programs declare."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import BadGzipFile
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from ephemera.base.scratch import scratch
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, tell
from ephemera.connect.declared_streams import Place, declared_places, given_places, overlap
from ephemera.connect.file_source import STANDARD_INPUT, CannotRead, Files, Format, format_of, format_there
from ephemera.connect.found_files import found_files, literal, only_fitting
from ephemera.connect.source import Source
from ephemera.connect.systems.address import is_address
from ephemera.connect.systems.registry import is_system
from ephemera.connect.time_order import Input
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode import Noticed, decoders_of
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.reading import Reading
from ephemera.program import Program

if TYPE_CHECKING:
    from ephemera.connect.live.past import Past

_SOCKET = re.compile(r"(socket|tcp)://(.*)")
_HOST_AND_PORT = re.compile(r"(\[[^\]]+\]|[^:/]+):\d{1,5}/?")
_PIECE = 65_536
_DECLARED: dict[str, Format] = {"json": "json", "jsonl": "json", "parquet": "parquet", "csv": "csv", "xml": "xml"}


@dataclass(frozen=True, slots=True)
class Given:
    """Files of one format, or a place that only Spark can look into, such as `s3a://…`."""

    paths: tuple[str, ...]
    format: Format
    is_remote: bool = False
    only: str | None = None
    """The type of all events that do not name theirs, if a stream that carries one type reads them."""
    programs: frozenset[int] | None = None
    """The numbers of the programs that read it; None if all do."""

    @property
    def readers(self) -> dict[int, str | None] | None:
        """For each program that reads it the type of all events that do not name theirs; None if all read it alike."""
        return None if self.programs is None else dict.fromkeys(self.programs, self.only)


def found_inputs(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[Given]:
    """What there is to read: what is named, else what programs declare, else standard input."""
    places = _places(inputs, programs, paths, apart=True)
    return [_found(place) for place in places] or [Given((STANDARD_INPUT,), "json")]


def input_names(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[str]:
    """The same by name: files, folders and patterns as they were given or declared."""
    return list(dict.fromkeys(place.location for place in _places(inputs, programs, paths))) or [STANDARD_INPUT]


def _places(
    inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path], *, apart: bool = False
) -> list[Place]:
    catalogues, folders = [program.catalogue for program in programs], [path.parent for path in paths]
    if inputs:
        return given_places(inputs, catalogues, folders, apart=apart)
    return declared_places(catalogues, folders, apart=apart)


@dataclass(frozen=True, slots=True)
class LiveInput:
    """What a live run reads: standard input, a file, or what Spark reads."""

    name: str
    """As it was given."""
    format: Format = "json"
    only: str | None = None
    programs: frozenset[int] | None = None

    def readers(self, count: int) -> dict[int, str | None]:
        """The programs that read it, by their numbers, each with the type of all events that do not name theirs."""
        return dict.fromkeys(range(count) if self.programs is None else sorted(self.programs), self.only)

    @property
    def is_socket(self) -> bool:
        return _SOCKET.fullmatch(self.name) is not None

    @property
    def is_here(self) -> bool:
        """Whether it is read in this process: files are, and standard input."""
        if self.name == STANDARD_INPUT:
            return True
        return not is_address(self.name) and Path(self.name).exists() and not Path(self.name).is_dir()

    @property
    def place(self) -> str:
        """As Spark finds it."""
        if is_address(self.name):
            return self.name
        if Path(self.name).is_file():
            return only_fitting(self.name)
        return literal(self.name) if Path(self.name).is_dir() else str(Path(self.name).absolute())


def live_inputs(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[LiveInput]:
    """What a live run reads: what is named, else what programs declare, if they do."""
    places = _places(inputs, programs, paths)
    shared = overlap(places)
    if shared is not None:
        _refuse(shared)
    return [_live_input(place) for place in places]


def past_inputs(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[LiveInput]:
    """What is read before a live run goes on: files that are there."""
    found = live_inputs(inputs, programs, paths)
    if not found:
        _refuse("there is no past to read: name files or a folder with --input, and with --then what is read live")
    for one in found:
        if one.is_socket or one.name == STANDARD_INPUT:
            _refuse(f"the past is read from files that are there, and `{one.name}` is none; name it with --then")
        if is_system(one.name):
            _refuse(
                f"the past is read from files, and `{one.name}` is a system: read live, it begins where its address "
                "says, with no past before it"
            )
    return found


def past_sources(inputs: Sequence[str] | None, programs: Sequence[Program], paths: Sequence[Path]) -> list[Past]:
    """The same as sources of this process, each with the programs that read it."""
    from ephemera.connect.live.past import Past

    return [Past(file_source(one), one.readers) for one in found_inputs(inputs, programs, paths)]


def _live_input(place: Place) -> LiveInput:
    name = place.location
    if is_system(name):
        _check_format(place)
        return LiveInput(name, "json", place.only, place.programs)
    socket = _SOCKET.fullmatch(name)
    if socket is not None and _HOST_AND_PORT.fullmatch(socket[2]) is None:
        _refuse(f"cannot read {name}: a socket has a host and a port, such as socket://127.0.0.1:9999")
    if name != STANDARD_INPUT and not is_address(name) and Path(name).exists() and not os.access(name, os.R_OK):
        _refuse(f"cannot read {name}: Permission denied")
    if name != STANDARD_INPUT and not is_address(name) and not Path(name).exists():
        fixed = list(takewhile(lambda part: not set("*?[{") & set(part), Path(name).parts))
        if fixed == list(Path(name).parts):
            _refuse(f"cannot read {name}: there is no such file or folder; a folder may be empty, but must be there")
        if fixed and not Path(*fixed).is_dir():
            _refuse(f"cannot read {name}: there is no folder {Path(*fixed)}")
    form = _declared_format(name, place.format) or _format_there(name)
    return LiveInput(name, form, place.only, place.programs)


def _format_there(name: str) -> Format:
    try:
        return format_there(name)
    except ValueError as error:
        _refuse(str(error))


def _found(place: Place) -> Given:
    name = place.location
    if is_system(name):
        _check_format(place)
        return Given((name,), "json", is_remote=True, only=place.only, programs=place.programs)
    form = _declared_format(name, place.format)
    if name == STANDARD_INPUT:
        return Given((name,), form or "json", only=place.only, programs=place.programs)
    if is_address(name):
        return Given((name,), form or format_of(name), is_remote=True, only=place.only, programs=place.programs)
    files = found_files(name)
    if files is None:
        _refuse(f"cannot read {name}: No such file or directory")
    closed = next((file for file in files if not os.access(file, os.R_OK)), None)
    if closed is not None:
        _refuse(f"cannot read {closed}: Permission denied")
    if not files:
        tell(f"note: there are no files in {name}")
    formats = {form or format_of(file) for file in files} or {form or "json"}
    if len(formats) > 1:
        _refuse(f"cannot read {name}: it holds files of several formats, {', '.join(sorted(formats))}; name them apart")
    return Given(tuple(files), formats.pop(), only=place.only, programs=place.programs)


def _check_format(place: Place) -> None:
    """The messages of a system are of the format that its address names."""
    form = _declared_format(place.location, place.format)
    if form is not None and form != "json":
        _refuse(f"cannot read {place.location} as `{place.format}`: the address says the format, by ?format={form}")


def _declared_format(name: str, declared: str | None) -> Format | None:
    form = None if declared is None else _DECLARED.get(declared.lower())
    if declared is not None and form is None:
        _refuse(f"cannot read {name}: there is no format `{declared}`; there are {', '.join(sorted(_DECLARED))}")
    return form


def _refuse(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)


# ---- in this process -----------------------------------------------------------------------------------------


def source_of(given: Given, programs: Sequence[Program]) -> Source:
    """What is given, as a source of this process."""
    if given.paths and is_system(given.paths[0]):
        from ephemera.cli.systems import system_source

        found = system_source(given.paths[0], given.only, programs)
        if not isinstance(found, Source):
            _refuse(f"`{given.paths[0]}` has no history that could be read; read it live, by --mode stream")
        return found
    return file_source(given)


def file_source(given: Given) -> Files:
    """Files that are given, as a source of this process."""
    if given.is_remote:
        _refuse(f"cannot read {given.paths[0]}: only the engine `spark` can")
    return Files(given.paths, given.format)


def read_all(
    programs: Sequence[Program], given: Sequence[Given], emit: Sequence[str] = (), *, lenient: bool = False
) -> list[Reading]:
    """All events as each program reads them, for the oracle, which goes through them again and again.

    Ends the command if columns are missing, unless that is `lenient`.
    """
    readings = [program._reading(emit) for program in programs]
    noticed = [Noticed(reading.keys) for reading in readings]
    for one in given:
        source = source_of(one, programs)
        compiled = [reading.compiled for reading in readings]
        read = Input(source, decoders_of(compiled, noticed, one.readers))
        with told_of(source.name):
            while (found := read.read()) is not None:
                for reading, decoded in zip(readings, found, strict=True):
                    reading.gather(decoded)
        for reading, form in zip(readings, read.form, strict=True):
            reading.as_numbers = reading.as_numbers and form is not False
    for reading, own in zip(readings, noticed, strict=True):
        reading.warnings += own.warnings
        with told_of("the input"):
            own.check(reading.compiled, lenient=lenient)
    return readings


@contextmanager
def told_of(path: str | Path) -> Iterator[None]:
    """Ends the command if a file cannot be read: since there is none, or since what is in it is wrong."""
    try:
        yield
    except (WrongColumns, BadFile) as error:
        _refuse(str(error), WRONG_PROGRAM)
    except CannotRead as error:
        _refuse(str(error))
    except (BadGzipFile, EOFError, ValueError, zlib.error) as error:  # Arrow's errors are ValueErrors
        _refuse(f"cannot read {path}: {error}", WRONG_PROGRAM)
    except OSError as error:
        _refuse(f"cannot read {path}: {error.strerror or error}")


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
