"""This module runs programs over a history in this process from the command line: files in, one sorted file out."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ephemera.base.errors import EphemeraError
from ephemera.cli.deliver import delivering
from ephemera.cli.files import (
    FAILED,
    WRONG_COMMAND,
    WRONG_PROGRAM,
    bad_letter,
    undefined_letter,
    utf_8,
    write_out_bytes,
)
from ephemera.cli.inputs import Given, source_of
from ephemera.cli.progress import (
    count_lines,
    is_shown,
    note_lines,
    shown_progress,
    tell_notes,
    tell_unused,
    tell_warnings,
)
from ephemera.cli.systems import system_target, told_systems
from ephemera.connect.atomic_files import CannotWrite, WholeFile, append, is_open_end
from ephemera.connect.file_sink import File
from ephemera.connect.file_source import CannotRead
from ephemera.connect.local_run import LetterSink, ProgramRun, RunFailed, run_local
from ephemera.connect.several_sinks import Several, ToSystem
from ephemera.connect.sink import Console, Sink, spooled
from ephemera.connect.systems.registry import is_system
from ephemera.connect.written_places import Destination, Names
from ephemera.deliver.sink import DeliveringSink
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.encode_typed_arrow import UnlikeType
from ephemera.formats.json_events import BadEvent
from ephemera.program import Program
from ephemera.rules.outcome import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ephemera.cli.spark import Wanted

Rows = Mapping[str, Iterable[Mapping[str, Any]]]


def run_here(
    programs: Sequence[Program],
    paths: Sequence[Path],
    tables: Sequence[Rows],
    given: Sequence[Given],
    wanted: Wanted,
    *,
    places: Sequence[Destination],
) -> None:
    """Runs programs by the engine in this process."""
    began = time.monotonic()
    worlds = [program._world(own, until=wanted.until) for program, own in zip(programs, tables, strict=True)]
    runs = [
        ProgramRun(program._planned(wanted.emit, wanted.points).beside(world.calendars), world)
        for program, world in zip(programs, worlds, strict=True)
    ]
    letters = Letters(wanted.dead_letter, wanted.names)
    sources = [source_of(one, programs) for one in given]
    sink = _sink(places)
    with told(paths), told_systems(), delivering([run.compiled for run in runs], wanted.delivery) as delivery:
        readers = [one.readers for one in given]
        out = sink if delivery is None else DeliveringSink(sink, delivery)
        with shown_progress(paths[0].name, wanted=wanted.progress) as tell:
            runs = run_local(runs, sources, out, letters.open, readers=readers, lenient=wanted.lenient, progress=tell)
    letters.tell(runs)
    tell_notes(note for run in runs for note in run.said)
    if is_shown(wanted=wanted.progress):
        _print_summary(programs, runs, wanted.names, time.monotonic() - began)
    tell_warnings((note for run in runs for note in run.warnings), strict=wanted.strict)


def _sink(places: Sequence[Destination]) -> Sink:
    sinks: list[tuple[Sink, Names]] = []
    for place in places:
        if place.location is None:
            sinks.append((Console(write_out_bytes), place.names))
        elif is_system(place.location):
            sinks.append((ToSystem(system_target(place.location)), place.names))
        else:
            sinks.append((File(place.location), place.names))
    (first, names), *more = sinks
    return first if not more and names is None else Several(sinks)


@contextmanager
def told(paths: Sequence[Path]) -> Iterator[None]:
    """Ends the command if a run cannot begin, or fails."""
    try:
        yield
    except CannotWrite:
        raise
    except CannotRead as error:
        raise _end(str(error), WRONG_COMMAND) from None
    except (WrongColumns, BadFile) as error:
        raise _end(str(error), WRONG_PROGRAM) from None
    except RunFailed as error:
        raise _end(f"{paths[error.program]}: {error}", FAILED) from None
    except (UnlikeType, EphemeraError) as error:
        raise _end(str(error), FAILED) from None


def _end(message: str, code: int) -> click.exceptions.Exit:
    click.echo(message, err=True)
    return click.exceptions.Exit(code)


@dataclass(slots=True)
class Letters:
    """What could not be used: where it goes, and the first of it."""

    target: Path | None
    names: Sequence[dict[str, str]]
    first: dict[str, Any] | None = None

    def open(self) -> LetterSink:
        """Begins anew."""
        self.first = None
        return _OpenLetters(self)

    def tell(self, runs: Sequence[ProgramRun]) -> None:
        """Says what was not used, if nobody keeps it."""
        count = sum(run.bad + run.undefined for run in runs)
        if self.target is None and self.first is not None:
            tell_unused(count, self.first)


class _OpenLetters(LetterSink):
    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        target = letters.target
        self._file = WholeFile(target) if target is not None and not is_open_end(target) else None
        self._held = spooled() if target is not None and self._file is None else None

    def bury(self, program: int, bad: Sequence[BadEvent], undefined: Sequence[DeadLetter]) -> None:
        found = [*map(bad_letter, bad), *map(undefined_letter, undefined)]
        named = [letter | self._letters.names[program] for letter in found]
        self._letters.first = self._letters.first or next(iter(named), None)
        lines = utf_8("".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in named))
        if self._file is not None:
            self._file.write(lines)
        elif self._held is not None:
            self._held.write(lines)

    def commit(self) -> None:
        if self._file is not None:
            self._file.commit()
        elif self._held is not None and self._letters.target is not None:
            self._held.seek(0)
            append(iter(partial(self._held.read, 1 << 20), b""), self._letters.target)
            self._held.close()

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
        elif self._held is not None:
            self._held.close()


def _print_summary(
    programs: Sequence[Program], runs: Sequence[ProgramRun], names: Sequence[dict[str, str]], seconds: float
) -> None:
    answers: Counter[str] = sum((run.answers for run in runs), Counter())
    letters = sum(run.bad + run.undefined for run in runs)
    lines = count_lines(max((run.read for run in runs), default=0), answers, letters, seconds)
    lacking = [program.notes(run.never) for program, run in zip(programs, runs, strict=True)]
    click.echo("\n".join([*lines, *note_lines(lacking, names)]), err=True)
