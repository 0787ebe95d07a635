"""This module holds the command that evaluates programs: `run`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from enum import StrEnum
from heapq import merge
from pathlib import Path
from typing import Annotated, Any

import typer

from ephemera.base.diagnostic import Report, Severity
from ephemera.base.errors import EphemeraError
from ephemera.cli.files import (
    FAILED,
    WRONG_COMMAND,
    WRONG_PROGRAM,
    bad_letter,
    names_of,
    print_reports,
    read_program,
    read_text,
    undefined_letter,
    write_file,
    write_out,
)
from ephemera.cli.progress import shown_progress
from ephemera.cli.stream import Stream
from ephemera.engine.compiled import Reading
from ephemera.io.jsonl import decode_line
from ephemera.pipeline import Checked, Program, Run, check


class Engine(StrEnum):
    """What evaluates a program: the incremental engine in this process, or the definition of the language itself."""

    local = "local"
    oracle = "oracle"


class Mode(StrEnum):
    """Over a history that is there, or over events as they come."""

    batch = "batch"
    stream = "stream"


Programs = Annotated[list[Path], typer.Argument(metavar="PROGRAM…", help="Program files (.eq).", show_default=False)]
Inputs = Annotated[list[str] | None, typer.Option("--input", help="Events as JSON lines, or - for standard input.")]
Output = Annotated[Path | None, typer.Option("--output", help="Where answers go; standard output otherwise.")]
Chosen = Annotated[Engine, typer.Option("--engine", help="What evaluates the program.")]
Emitted = Annotated[list[str] | None, typer.Option("--emit", help="Only events of this name; may be given often.")]
AllowUnbounded = Annotated[
    bool,
    typer.Option(
        "--allow-unbounded",
        help="Accept programs that must keep some events forever.",
    ),
]
DeadLetters = Annotated[Path | None, typer.Option("--dead-letter", help="Where bad events go, with the reason.")]


def run_command(
    programs: Programs,
    inputs: Inputs = None,
    *,
    output: Output = None,
    engine: Chosen = Engine.local,
    emit: Emitted = None,
    dead_letter: DeadLetters = None,
    allow_unbounded: AllowUnbounded = False,
    mode: Annotated[Mode, typer.Option("--mode", help="All events at once, or answers as events come.")] = Mode.batch,
    follow: Annotated[bool, typer.Option("--follow", help="In stream mode: go on as the last file grows.")] = False,
    progress: Annotated[bool, typer.Option("--progress", help="Show progress even if this is no terminal.")] = False,
) -> None:
    """Evaluate programs over events; print what they derive, sorted by time."""
    if mode == Mode.stream:
        if engine != Engine.local:
            typer.echo("stream mode runs on the engine `local`", err=True)
            raise typer.Exit(WRONG_COMMAND)
        live = compile_all(programs, unbounded=None if allow_unbounded else "error")
        engines = [p.engine(tables=_tables(p, path.parent)) for p, path in zip(live, programs, strict=True)]
        Stream(engines, names_of(programs), output, dead_letter, emit or []).run(inputs or ["-"], follow=follow)
        return
    compiled = compile_all(programs, unbounded=None if allow_unbounded or engine == Engine.oracle else "warning")
    runs: list[Run] = []
    for program, path, reading in zip(compiled, programs, _read_all(compiled, inputs or ["-"]), strict=True):
        try:
            with shown_progress(path.name, wanted=progress) as tell:
                tables = _tables(program, path.parent)
                runs.append(program.run_read(reading, engine=engine.value, tables=tables, progress=tell))
        except EphemeraError as error:
            typer.echo(f"{path}: {error}", err=True)
            raise typer.Exit(FAILED) from None
    _write_answers(runs, output, emit)
    _write_dead_letters(runs, names_of(programs), dead_letter)


def compile_all(paths: Sequence[Path], *, unbounded: Severity | None = None) -> list[Program]:
    """The programs ready to run; prints what was found in any, and ends the command if one is wrong or missing."""
    sources = [read_program(path) for path in paths]
    found = [s if isinstance(s, Report) else check(s, unbounded=unbounded) for s in sources if s is not None]
    reports = [f if isinstance(f, Report) else f.report for f in found]
    print_reports(reports)
    if None in sources or any(report.failed for report in reports):
        raise typer.Exit(WRONG_COMMAND if None in sources else WRONG_PROGRAM)
    return [Program(f) for f in found if isinstance(f, Checked)]


def _read_all(programs: Sequence[Program], inputs: Iterable[str]) -> list[Reading]:
    """The events as each program reads them; every line is read and decoded once, and what it is told of each."""
    readings = [program.reading() for program in programs]
    for line in _lines(inputs):
        message = decode_line(line)
        for reading in readings:
            reading.add(message)
    return readings


def _lines(inputs: Iterable[str]) -> Iterator[bytes]:
    """The lines of all inputs as they are."""
    for name in inputs:
        try:
            with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
                yield from (line.rstrip(b"\n") for line in file if line.strip())
        except OSError as error:
            typer.echo(f"cannot read {name}: {error.strerror}", err=True)
            raise typer.Exit(WRONG_COMMAND) from None


def _tables(program: Program, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of the declared tables, from CSV files beside the program."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for label, (location, _) in program.catalogue.table_locations.items():
        if location is None:
            continue
        types = dict(program.catalogue.tables[label].attributes or ())
        text = read_text(folder / location)
        given = csv.DictReader(text.splitlines())
        rows[label] = [{name: _cell(row.get(name), kind) for name, kind in types.items()} for row in given]
    return rows


def _cell(cell: str | None, declared: str) -> Any:
    if cell is None or cell == "":
        return None
    if declared == "string":
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _write_answers(runs: list[Run], output: Path | None, emit: list[str] | None) -> None:
    merged = merge(*(run.output for run in runs), key=lambda line: line[0])
    answers = [answer for _, answer in merged if not emit or answer["event"] in emit]
    text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    if output is None:
        write_out(text)
    else:
        write_file(output, text)


def _write_dead_letters(runs: Sequence[Run], names: Sequence[dict[str, str]], output: Path | None) -> None:
    both = list(zip(runs, names, strict=True))
    letters: list[dict[str, Any]] = [bad_letter(b) | name for run, name in both for b in run.bad]
    letters += [undefined_letter(u) | name for run, name in both for u in run.undefined]
    if output is not None:
        write_file(output, "".join(json.dumps(letter, ensure_ascii=False, default=str) + "\n" for letter in letters))
    elif letters:
        typer.echo(f"{len(letters)} events could not be used, the first: {letters[0]['reason']}", err=True)
        typer.echo("`--dead-letter PATH` keeps them", err=True)
