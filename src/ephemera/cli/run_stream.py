"""This module runs programs live from the command line: on Spark, between systems, or over files in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ephemera.cli.deliver import Delivery, ProgramMessenger, delivering
from ephemera.cli.files import WRONG_PROGRAM, print_reports
from ephemera.cli.inputs import LiveInput, live_inputs, past_inputs, past_sources
from ephemera.cli.live import LiveWanted, check_names, run_live
from ephemera.cli.outputs import check_not_fed_back, check_outputs
from ephemera.cli.progress import is_shown, note_lines
from ephemera.cli.run_checks import (
    RunsOn,
    check_places,
    check_stretches,
    declared_tables,
    is_one_file,
    refuse,
    systems_among,
    written_systems,
)
from ephemera.cli.spark import Wanted
from ephemera.cli.stream import Stream
from ephemera.cli.watched import Watching
from ephemera.connect.atomic_files import NotEmpty
from ephemera.connect.file_source import STANDARD_INPUT
from ephemera.connect.found_files import GZIP, is_packed
from ephemera.connect.live.past import Past
from ephemera.connect.systems.registry import is_system
from ephemera.connect.written_places import Destination, destinations
from ephemera.program import Program


def run_stream(
    live: Sequence[Program],
    paths: Sequence[Path],
    inputs: Sequence[str] | None,
    wanted: Wanted,
    asked: LiveWanted,
    *,
    outputs: Sequence[str],
    engine: RunsOn | None,
    follow: bool,
    allowed: bool,
    then: Sequence[str] = (),
) -> None:
    """A live run: on Spark if that reads the input, else in this process; with `then` the inputs are its past."""
    past = past_inputs(inputs, live, paths) if then else []
    given = live_inputs(then or inputs, live, paths)
    if not given and engine == RunsOn.spark:
        refuse("there is nothing to read: name a folder with --input, or declare STREAM … FROM")
    given = given or [LiveInput(STANDARD_INPUT)]
    places = destinations(outputs, [program.catalogue for program in live], [path.parent for path in paths])
    check_not_fed_back(places, [one.name for one in given])
    read = [one.name for one in (*past, *given)]
    systems = [*(one.name for one in given if is_system(one.name)), *systems_among(places)]
    if systems and engine != RunsOn.spark and wanted.master is None and all(is_system(one.name) for one in given):
        if follow:
            refuse(f"--follow is for files, and `{systems[0]}` is a system")
        files = past_sources(inputs, live, paths) if past else []
        watching = Watching(list(live), paths, asked, wanted, allowed=allowed, reads_declared=not (then or inputs))
        _run_between_systems(live, paths, (files, given), wanted, asked, watching, places=places, read=read)
        return
    on_spark = _is_on_spark(given, engine, follow=follow)
    if on_spark and asked.watch:
        refuse(
            "--watch is for live runs in this process; on Spark, stop the run, and change what it goes on with by "
            "`ephemera change CHECKPOINT PROGRAM`, or add `--engine local`"
        )
    if on_spark:
        check_places(places, RunsOn.spark)
        if not allowed:
            _refuse_what_has_no_bound_there(live)
        check_names(None if systems_among(places) else wanted.output, asked.dead_letters)
        for one in given:
            if is_system(one.name):
                check_stretches(one.name, one.only)
    else:
        _check_one_place(places, given[0].name)
        if wanted.output is not None and not is_one_file(wanted.output):
            refuse(f"the engine `local` writes one file of JSON lines, and `{wanted.output}` is none; name it .jsonl")
    check_outputs(
        wanted.output,
        asked.dead_letters,
        asked.checkpoint if on_spark else None,
        programs=list(zip(live, paths, strict=True)),
        inputs=read,
        writer="live" if on_spark else "stream",
    )
    tables = [
        declared_tables(program, path.parent, lenient=wanted.lenient) for program, path in zip(live, paths, strict=True)
    ]
    if on_spark:
        run_live(live, tables, given, wanted, asked, past=past, systems=written_systems(places))
        return
    if asked.first() is not None or wanted.master is not None:
        refuse(f"{asked.first() or '--master'} is for live runs on Spark, which read folders in which files arrive")
    files = past_sources(inputs, live, paths) if past else []
    with delivering([program._planned(wanted.emit, wanted.points) for program in live], wanted.delivery) as delivery:
        watching = Watching(list(live), paths, asked, wanted, allowed=allowed, reads_declared=not (then or inputs))
        _run_here(live, tables, (files, given), wanted, delivery, watching, follow=follow)


def _run_here(  # noqa: PLR0917 - all of the run
    live: Sequence[Program],
    tables: Sequence[dict[str, list[dict[str, Any]]]],
    inputs: tuple[Sequence[Past], Sequence[LiveInput]],
    wanted: Wanted,
    delivery: Delivery | None,
    watching: Watching,
    *,
    follow: bool,
) -> None:
    """A live run in this process, behind a past, which may be nothing."""
    files, given = inputs
    engines = [
        program._engine(
            wanted.emit,
            program._world(own, lenient=wanted.lenient),
            points=wanted.points,
            lenient=wanted.lenient,
            messenger=None if delivery is None else ProgramMessenger(delivery, number),
        )
        for number, (program, own) in enumerate(zip(live, tables, strict=True))
    ]
    target = None if wanted.output is None else Path(wanted.output)

    def noted() -> list[str]:
        lacking = [program.notes(own.never()) for program, own in zip(watching.programs, engines, strict=True)]
        return note_lines(lacking, wanted.names)

    shown = noted if is_shown(wanted=wanted.progress) else None
    try:
        stream = Stream(engines, wanted.names, target, wanted.dead_letter, shown, past=files, lenient=wanted.lenient)
    except NotEmpty as error:
        refuse(str(error))
    with watching.of(engines) as changed:
        stream.run([(one.name, one.readers(len(live))) for one in given], follow=follow, changed=changed)
    if wanted.strict and any(engine.warnings for engine in engines):
        raise click.exceptions.Exit(WRONG_PROGRAM)


def _run_between_systems(  # noqa: PLR0917 - all of the run
    live: Sequence[Program],
    paths: Sequence[Path],
    inputs: tuple[Sequence[Past], Sequence[LiveInput]],
    wanted: Wanted,
    asked: LiveWanted,
    watching: Watching,
    *,
    places: Sequence[Destination],
    read: Sequence[str],
) -> None:
    """A live run in this process that reads from systems, behind a past, which may be nothing."""
    from ephemera.cli.systems import run_systems

    files, given = inputs

    for place in places:
        if place.location is not None and not is_system(place.location) and not is_one_file(place.location):
            refuse(f"live, the engine `local` writes files of JSON lines, and `{place.location}` is none")
        check_outputs(
            place.location,
            asked.dead_letters,
            programs=list(zip(live, paths, strict=True)),
            inputs=read,
            writer="stream",
        )
    tables = [
        declared_tables(program, path.parent, lenient=wanted.lenient) for program, path in zip(live, paths, strict=True)
    ]
    run_systems(live, tables, given, wanted, asked, places=places, past=files, watching=watching)


def _check_one_place(places: Sequence[Destination], read: str) -> None:
    """Lines that are read here give lines in one place; whatever else is asked for would be left out."""
    named = next((place for place in places if place.location is not None), None)
    if named is None or named.location is None:
        return
    more = " with some of them" if named.names is not None else " among other places" if len(places) > 1 else ""
    if more or is_system(named.location):
        what = "standard input" if read == STANDARD_INPUT else f"`{read}`"
        refuse(
            f"live, the answers to what comes from {what} all go to standard output or to one file, and not to "
            f"`{named.location}`{more}: leave out `--mode stream` and add `--engine local`, which writes anywhere when "
            "the input has ended; or read a system, such as Kafka"
        )


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
        refuse(f"{what}; Spark reads folders in which files arrive, and sockets")
    if there and engine == RunsOn.local:
        refuse(f"`{there[0]}` is read by Spark: leave `--engine` out; the engine `local` reads files, and - for lines")
    if there and (here or follow):
        what = f"`{here[0]}` in this process" if here else "what --follow follows in this process"
        refuse(f"`{there[0]}` is read by Spark, and {what}; a run does one or the other")
    other = next((one for one in given if one.is_here and one.format != "json"), None)
    if other is not None:
        refuse(f"`{other.name}` holds no JSON lines; live, other formats are read from folders, on Spark")
    packed = next((name for name in here if is_packed(name)), None)
    if packed is not None:
        unpack = "gzip" if packed.lower().endswith(GZIP) else "zstd"
        refuse(f"`{packed}` is compressed; live, give its lines on standard input: `{unpack} -dc … | ephemera run …`")
    return not here
