"""This module holds the command that evaluates programs: `run`."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from enum import StrEnum
from heapq import merge
from pathlib import Path
from typing import Annotated, Any, NoReturn

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
from ephemera.cli.inputs import STANDARD_INPUT, found_inputs, live_inputs, read_all
from ephemera.cli.live import LiveWanted, run_live
from ephemera.cli.progress import shown_progress
from ephemera.cli.spark import Wanted, run_on_spark
from ephemera.cli.stream import Stream
from ephemera.engine.cells import read_cell
from ephemera.pipeline import Checked, Program, Run, check


class Engine(StrEnum):
    """What evaluates a program: the incremental engine in this process, or the definition of the language itself."""

    local = "local"
    oracle = "oracle"


class RunsOn(StrEnum):
    """What a run is evaluated by: Spark, or one of the engines in this process."""

    spark = "spark"
    local = "local"
    oracle = "oracle"


class Mode(StrEnum):
    """Over a history that is there, or over events as they come."""

    batch = "batch"
    stream = "stream"


Programs = Annotated[list[Path], typer.Argument(metavar="PROGRAM…", help="Program files (.eq).", show_default=False)]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="Events: a file of JSON lines, Parquet (.parquet), CSV (.csv) or XML messages (.xml), a folder or a "
        "glob of these, or - for standard input; may be given often. Otherwise what the programs declare, or that.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="Where answers go: a file (.jsonl), sorted by time, or on Spark a folder, of Parquet (.parquet), of CSV "
        "(.csv), or of JSON lines. Standard output otherwise.",
    ),
]
Chosen = Annotated[
    RunsOn | None,
    typer.Option("--engine", help="What evaluates the programs: spark in batch mode unless told otherwise."),
]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Spark's master, such as local[4] or spark://host:7077; all local cores otherwise."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show what Spark logs, and where in its code a failure was.")]
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
    engine: Chosen = None,
    emit: Emitted = None,
    dead_letter: DeadLetters = None,
    allow_unbounded: AllowUnbounded = False,
    mode: Annotated[Mode, typer.Option("--mode", help="All events at once, or answers as events come.")] = Mode.batch,
    follow: Annotated[bool, typer.Option("--follow", help="In stream mode: go on as the last file grows.")] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Show progress and a summary even if this is no terminal.")
    ] = False,
    master: Master = None,
    debug: Debug = False,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="Live on Spark: where the state is kept, for another start.")
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option("--trigger", help='Live on Spark: how often, such as "1 second"; `once` takes what is there.'),
    ] = None,
    shards: Annotated[
        int | None, typer.Option("--shards", min=1, help="Live on Spark: into how many parts the state is cut.")
    ] = None,
    metrics: Annotated[
        int | None, typer.Option("--metrics", help="Live on Spark: the port at which Prometheus finds metrics.")
    ] = None,
) -> None:
    """Evaluate programs over events; print what they derive, sorted by time."""
    if mode == Mode.stream and _is_on_spark(engine, inputs, follow=follow):
        live_ones = compile_all(programs, unbounded=None if allow_unbounded else "error")
        own_tables = [_tables(program, path.parent) for program, path in zip(live_ones, programs, strict=True)]
        wanted = Wanted(output, tuple(emit or ()), dead_letter, names_of(programs), master, debug, progress)
        asked = LiveWanted(checkpoint, trigger, shards, metrics)
        run_live(live_ones, own_tables, live_inputs(inputs, live_ones, programs), wanted, asked)
        return
    if mode == Mode.stream:
        _refuse_stream(engine, output)
        live = compile_all(programs, unbounded=None if allow_unbounded else "error")
        engines = [p.engine(tables=_tables(p, path.parent)) for p, path in zip(live, programs, strict=True)]
        target = None if output is None else Path(output)
        Stream(engines, names_of(programs), target, dead_letter, emit or []).run(inputs or ["-"], follow=follow)
        return
    on = engine or RunsOn.spark
    compiled = compile_all(programs, unbounded=None if allow_unbounded or on == RunsOn.oracle else "warning")
    given = found_inputs(inputs, compiled, programs)
    tables = [_tables(program, path.parent) for program, path in zip(compiled, programs, strict=True)]
    if on == RunsOn.spark:
        wanted = Wanted(output, tuple(emit or ()), dead_letter, names_of(programs), master, debug, progress)
        run_on_spark(compiled, tables, given, wanted)
        return
    if master is not None:
        _refuse("--master is for the engine `spark`")
    if output is not None and not is_one_file(output):
        _refuse(f"the engine `{on.value}` writes one file of JSON lines; `{output}` is for the engine `spark`")
    runs: list[Run] = []
    for program, path, own, reading in zip(compiled, programs, tables, read_all(compiled, given), strict=True):
        try:
            with shown_progress(path.name, wanted=progress) as tell:
                runs.append(program.run_read(reading, engine=on.value, tables=own, progress=tell))
        except EphemeraError as error:
            typer.echo(f"{path}: {error}", err=True)
            raise typer.Exit(FAILED) from None
    _write_answers(runs, None if output is None else Path(output), emit)
    _write_dead_letters(runs, names_of(programs), dead_letter)


def _is_on_spark(engine: RunsOn | None, inputs: Sequence[str] | None, *, follow: bool) -> bool:
    """Whether a live run is one of Spark: unless told otherwise, if it reads what Spark can read."""
    own = [name for name in inputs or () if name == STANDARD_INPUT]
    if engine == RunsOn.spark and (own or follow):
        _refuse("Spark reads folders in which files arrive, and sockets; `--engine local` reads standard input")
    is_file = [name for name in inputs or () if Path(name).is_file()]
    if engine == RunsOn.spark and is_file:
        _refuse(f"`{is_file[0]}` is a file; a live run on Spark reads the folder in which files arrive")
    return engine == RunsOn.spark or (engine is None and bool(inputs) and not own and not is_file and not follow)


def _refuse_stream(engine: RunsOn | None, output: str | None) -> None:
    if engine == RunsOn.oracle:
        _refuse("stream mode runs on the engines `spark` and `local`")
    if output is not None and not is_one_file(output):
        _refuse(f"stream mode writes one file of JSON lines, and `{output}` is none; name it .jsonl")


def is_one_file(output: str) -> bool:
    """Whether answers go to one file: what ends in nothing that says otherwise, too, unless it is a folder."""
    return not output.endswith(("/", ".parquet", ".csv")) and not Path(output).is_dir()


def _refuse(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(WRONG_COMMAND)


def compile_all(paths: Sequence[Path], *, unbounded: Severity | None = None) -> list[Program]:
    """The programs ready to run; prints what was found in any, and ends the command if one is wrong or missing."""
    sources = [read_program(path) for path in paths]
    found = [s if isinstance(s, Report) else check(s, unbounded=unbounded) for s in sources if s is not None]
    reports = [f if isinstance(f, Report) else f.report for f in found]
    print_reports(reports)
    if None in sources or any(report.failed for report in reports):
        raise typer.Exit(WRONG_COMMAND if None in sources else WRONG_PROGRAM)
    return [Program(f) for f in found if isinstance(f, Checked)]


def _tables(program: Program, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of the declared tables, from CSV files beside the program."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for label, (location, _) in program.catalogue.table_locations.items():
        if location is None:
            continue
        types = dict(program.catalogue.tables[label].attributes or ())
        text = read_text(folder / location)
        given = csv.DictReader(text.splitlines())
        rows[label] = [{name: read_cell(row.get(name), kind) for name, kind in types.items()} for row in given]
    return rows


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
