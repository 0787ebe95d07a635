"""This module holds the command that evaluates programs: `run`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any, NoReturn

import click

from ephemera.algebra.nodes import Points
from ephemera.analysis.unbounded import Use, unbounded_in
from ephemera.base.errors import EphemeraError
from ephemera.cli.files import (
    FAILED,
    WRONG_COMMAND,
    WRONG_PROGRAM,
    bad_letter,
    names_of,
    print_reports,
    undefined_letter,
    write_file,
    write_out,
)
from ephemera.cli.inputs import (
    Given,
    LiveInput,
    found_inputs,
    input_names,
    live_inputs,
    read_all,
    told_of,
)
from ephemera.cli.live import LiveWanted, check_names, run_live
from ephemera.cli.outputs import check_outputs
from ephemera.cli.programs import compile_all
from ephemera.cli.progress import (
    count_lines,
    is_shown,
    note_lines,
    shown_progress,
    tell_notes,
    tell_unused,
    tell_warnings,
)
from ephemera.cli.spark import Wanted, run_on_spark
from ephemera.cli.stream import Stream
from ephemera.connect.declared_tables import read_file
from ephemera.connect.file_source import STANDARD_INPUT
from ephemera.connect.found_files import GZIP, is_packed
from ephemera.engine.hosts.batch import Run
from ephemera.program import Program
from ephemera.rules.emitted import unknown_emitted


class RunsOn(StrEnum):
    """What a run is evaluated by: Spark, or one of the engines in this process."""

    spark = "spark"
    local = "local"
    oracle = "oracle"


class Mode(StrEnum):
    """Over a history that is there, or over events as they come."""

    batch = "batch"
    stream = "stream"


def run_command(
    programs: Sequence[Path],
    inputs: Sequence[str],
    *,
    output: str | None,
    engine: RunsOn | None,
    emit: Sequence[str],
    points: Points | None = None,
    dead_letter: str | None,
    allow_unbounded: bool,
    lenient: bool,
    strict: bool,
    mode: Mode,
    until: str | None,
    follow: bool,
    progress: bool,
    master: str | None,
    debug: bool,
    checkpoint: str | None,
    trigger: str | None,
    shards: int | None,
    metrics: str | None,
) -> None:
    """Evaluate programs over events; print what they derive, sorted by time, or live as soon as it is certain."""
    letters = None if dead_letter is None else Path(dead_letter)
    names = names_of(programs)
    wanted = Wanted(
        output, tuple(emit), letters, names, master, debug, progress, lenient, strict, _moment(until), points
    )
    asked = LiveWanted(checkpoint, trigger, shards, metrics, dead_letter)
    for name, what in ((output, "answers"), (dead_letter, "dead letters")):
        if name is not None and is_packed(name):
            _refuse(f"{what} are not packed; name `{name}` without its last ending")
    if mode == Mode.stream:
        if until is not None:
            _refuse("--until is for runs over a history; live, the clock goes on with the events")
        if engine == RunsOn.oracle:
            _refuse("stream mode runs on the engines `spark` and `local`")
        _run_stream(
            _compiled(programs, "live", wanted, allowed=allow_unbounded),
            programs,
            inputs,
            wanted,
            asked,
            engine=engine,
            follow=follow,
            allowed=allow_unbounded,
        )
        return
    if follow or asked.first() is not None:
        _refuse(f"{'--follow' if follow else asked.first()} is for live runs: `--mode stream`")
    on = engine or RunsOn.spark
    compiled = _compiled(programs, "oracle" if on == RunsOn.oracle else "batch", wanted, allowed=allow_unbounded)
    if on != RunsOn.spark and master is not None:
        _refuse("--master is for the engine `spark`")
    if on == RunsOn.oracle and output is not None and not is_one_file(output):
        _refuse(f"the engine `oracle` writes one file of JSON lines; `{output}` is for the engines `spark` and `local`")
    if on == RunsOn.local and output is not None and (output.endswith("/") or Path(output).is_dir()):
        _refuse(f"the engine `local` writes one file (.jsonl, .csv, .parquet); `{output}` is for the engine `spark`")
    _check_until(compiled, wanted)
    given = found_inputs(inputs, compiled, programs)
    check_outputs(
        output,
        dead_letter,
        programs=list(zip(compiled, programs, strict=True)),
        inputs=input_names(inputs, compiled, programs),
        writer="batch" if on == RunsOn.spark else "local",
    )
    tables = [
        declared_tables(program, path.parent, lenient=lenient) for program, path in zip(compiled, programs, strict=True)
    ]
    if on == RunsOn.spark:
        run_on_spark(compiled, tables, given, wanted)
        return
    if on == RunsOn.local:
        from ephemera.cli.local import run_here

        run_here(compiled, programs, tables, given, wanted)
        return
    _run_oracle(compiled, programs, tables, given, wanted)


def _moment(text: str | None) -> float | str | None:
    """A time as events write it: a number of units, or a text."""
    for kind in (int, float):
        try:
            return None if text is None else kind(text)
        except ValueError:
            continue
    return text


def _check_until(programs: Sequence[Program], wanted: Wanted) -> None:
    """Ends the command if there is no such time."""
    for program in programs:
        try:
            program._world(until=wanted.until)
        except (EphemeraError, ValueError, OverflowError) as error:
            _refuse(f"--until: {error}")


def _run_oracle(
    programs: Sequence[Program],
    paths: Sequence[Path],
    tables: Sequence[dict[str, list[dict[str, Any]]]],
    given: Sequence[Given],
    wanted: Wanted,
) -> None:
    began = time.monotonic()
    runs: list[Run] = []
    for program, path, own, reading in zip(
        programs, paths, tables, read_all(programs, given, wanted.emit, lenient=wanted.lenient), strict=True
    ):
        try:
            with shown_progress(path.name, wanted=wanted.progress) as tell:
                more: dict[str, Any] = {"tables": own, "until": wanted.until, "progress": tell}
                runs.append(program._run_read(reading, engine="oracle", **more))
        except EphemeraError as error:
            click.echo(f"{path}: {error}", err=True)
            raise click.exceptions.Exit(FAILED) from None
    letters = wanted.dead_letter
    write = partial(_write_answers, runs, None if wanted.output is None else Path(wanted.output))
    bury = partial(_write_dead_letters, runs, wanted.names, letters)
    for put in (bury, write) if letters is not None else (write, bury):  # answers last: a run that fails leaves none
        put()
    tell_notes(note for run in runs for note in run.said)
    if is_shown(wanted=wanted.progress):
        _print_summary(runs, wanted.names, time.monotonic() - began)
    tell_warnings((note for run in runs for note in run.warnings), strict=wanted.strict)


def _run_stream(
    live: Sequence[Program],
    paths: Sequence[Path],
    inputs: Sequence[str] | None,
    wanted: Wanted,
    asked: LiveWanted,
    *,
    engine: RunsOn | None,
    follow: bool,
    allowed: bool,
) -> None:
    """A live run: on Spark if that reads the input, else in this process."""
    given = live_inputs(inputs, live, paths)
    if not given and engine == RunsOn.spark:
        _refuse("there is nothing to read: name a folder with --input, or declare STREAM … FROM")
    given = given or [LiveInput(STANDARD_INPUT)]
    on_spark = _is_on_spark(given, engine, follow=follow)
    if on_spark:
        if not allowed:
            _refuse_what_has_no_bound_there(live)
        check_names(wanted.output, asked.dead_letters)
    elif wanted.output is not None and not is_one_file(wanted.output):
        _refuse(f"the engine `local` writes one file of JSON lines, and `{wanted.output}` is none; name it .jsonl")
    check_outputs(
        wanted.output,
        asked.dead_letters,
        asked.checkpoint if on_spark else None,
        programs=list(zip(live, paths, strict=True)),
        inputs=[one.name for one in given],
        writer="live" if on_spark else "stream",
    )
    tables = [
        declared_tables(program, path.parent, lenient=wanted.lenient) for program, path in zip(live, paths, strict=True)
    ]
    if on_spark:
        run_live(live, tables, given, wanted, asked)
        return
    if asked.first() is not None or wanted.master is not None:
        _refuse(f"{asked.first() or '--master'} is for live runs on Spark, which read folders in which files arrive")
    engines = [
        program._engine(
            wanted.emit, program._world(own, lenient=wanted.lenient), points=wanted.points, lenient=wanted.lenient
        )
        for program, own in zip(live, tables, strict=True)
    ]
    target = None if wanted.output is None else Path(wanted.output)

    def noted() -> list[str]:
        lacking = [program.notes(own.never()) for program, own in zip(live, engines, strict=True)]
        return note_lines(lacking, wanted.names)

    shown = noted if is_shown(wanted=wanted.progress) else None
    stream = Stream(engines, wanted.names, target, wanted.dead_letter, shown)
    stream.run([(one.name, one.readers(len(live))) for one in given], follow=follow)
    if wanted.strict and any(engine.warnings for engine in engines):
        raise click.exceptions.Exit(WRONG_PROGRAM)


def _refuse_what_has_no_bound_there(programs: Sequence[Program]) -> None:
    """Refuses programs that need no more than what they may keep only if events are used from their begin on."""
    reports = [program._unbounded(as_they_come=False) for program in programs]
    if any(report.diagnostics for report in reports):
        print_reports(reports)
        click.echo("live on Spark, events are used when they have ended, even if they arrive at their begin", err=True)
        raise click.exceptions.Exit(WRONG_PROGRAM)


def _is_on_spark(given: Sequence[LiveInput], engine: RunsOn | None, *, follow: bool) -> bool:
    """Whether a live run is one on Spark: unless told otherwise, if it reads folders, patterns or sockets."""
    here = [one.name for one in given if one.is_here]
    there = [one.name for one in given if not one.is_here]
    if engine == RunsOn.spark and (here or follow):
        what = f"`{here[0]}` is read by the engine `local`" if here else "--follow is for the engine `local`"
        _refuse(f"{what}; Spark reads folders in which files arrive, and sockets")
    if there and engine == RunsOn.local:
        _refuse(f"`{there[0]}` is read by Spark: leave `--engine` out; the engine `local` reads files, and - for lines")
    if there and (here or follow):
        what = f"`{here[0]}` in this process" if here else "what --follow follows in this process"
        _refuse(f"`{there[0]}` is read by Spark, and {what}; a run does one or the other")
    other = next((one for one in given if one.is_here and one.format != "json"), None)
    if other is not None:
        _refuse(f"`{other.name}` holds no JSON lines; live, other formats are read from folders, on Spark")
    packed = next((name for name in here if is_packed(name)), None)
    if packed is not None:
        unpack = "gzip" if packed.lower().endswith(GZIP) else "zstd"
        _refuse(f"`{packed}` is compressed; live, give its lines on standard input: `{unpack} -dc … | ephemera run …`")
    return not here


def is_one_file(output: str) -> bool:
    """Whether answers go to one file: what ends in nothing that says otherwise, too, unless it is a folder."""
    return not output.lower().endswith(("/", ".parquet", ".csv")) and not Path(output).is_dir()


def _refuse(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)


def _compiled(paths: Sequence[Path], use: Use, wanted: Wanted, *, allowed: bool) -> list[Program]:
    """The programs of a run, if they can give what is asked for."""
    programs = compile_all(paths, unbounded_in(use, allowed=allowed))
    wrong = unknown_emitted(wanted.emit, [program._rules.resolved for program in programs])
    if wrong is not None:
        _refuse(wrong)
    return programs


def declared_tables(program: Program, folder: Path, *, lenient: bool) -> dict[str, list[dict[str, Any]]]:
    """The rows of the declared tables, from CSV files beside the program."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for label, (location, _) in program.catalogue.table_locations.items():
        if location is None:
            continue
        with told_of(folder / location):
            schema = program.catalogue.tables[label]
            rows[label] = read_file(folder / location, schema, program.catalogue, lenient=lenient)
    return rows


def _write_answers(runs: list[Run], output: Path | None) -> None:
    merged = merge(*(run.output for run in runs), key=lambda line: line[0])
    text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for _, answer in merged)
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
        tell_unused(len(letters), letters[0])


def _print_summary(runs: Sequence[Run], names: Sequence[dict[str, str]], seconds: float) -> None:
    answers = Counter(answer["event"] for run in runs for _, answer in run.output)
    letters = sum(len(run.bad) + len(run.undefined) for run in runs)
    lines = count_lines(max((run.read for run in runs), default=0), answers, letters, seconds)
    lacking = [[note for note in run.notes if note not in (*run.said, *run.warnings)] for run in runs]
    click.echo("\n".join([*lines, *note_lines(lacking, names)]), err=True)
