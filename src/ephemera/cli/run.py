"""This module holds the command that evaluates programs: `run`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import click

from ephemera.algebra.nodes import Points
from ephemera.analysis.unbounded import Use, unbounded_in
from ephemera.base.errors import EphemeraError
from ephemera.cli.deliver import DeliverWanted
from ephemera.cli.files import WRONG_PROGRAM, names_of
from ephemera.cli.inputs import found_inputs, input_names
from ephemera.cli.live import LiveWanted
from ephemera.cli.outputs import check_not_fed_back, check_outputs
from ephemera.cli.programs import compile_all
from ephemera.cli.run_checks import (
    RunsOn,
    check_places,
    check_read,
    declared_tables,
    is_one_file,
    refuse,
    written_systems,
)
from ephemera.cli.run_oracle import run_oracle
from ephemera.cli.spark import Wanted, run_on_spark
from ephemera.connect.found_files import is_packed
from ephemera.connect.systems.registry import is_system
from ephemera.connect.written_places import destinations
from ephemera.program import Program
from ephemera.rules.emitted import unknown_emitted
from ephemera.terms.user_functions import NoFunction, load_all


class Mode(StrEnum):
    """Over a history that is there, or over events as they come."""

    batch = "batch"
    stream = "stream"


def run_command(
    programs: Sequence[Path],
    inputs: Sequence[str],
    *,
    outputs: Sequence[str],
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
    then: Sequence[str] = (),
    progress: bool,
    master: str | None,
    debug: bool,
    checkpoint: str | None,
    trigger: str | None,
    shards: int | None,
    metrics: str | None,
    deliver: bool | None = None,
    deliver_only: Sequence[str] = (),
    outbox: str | None = None,
    allow_command: bool = False,
    watch: bool = False,
    look_back: str | None = None,
) -> None:
    """Evaluate programs over events; print what they derive, sorted by time, or live as soon as it is certain."""
    output = outputs[0] if outputs else None
    letters = None if dead_letter is None else Path(dead_letter)
    names = names_of(programs)
    delivery = DeliverWanted(
        deliver if deliver is not None else mode == Mode.stream or bool(deliver_only),
        deliver_only,
        outbox,
        allow_command,
    )
    wanted = Wanted(
        output, tuple(emit), letters, names, master, debug, progress, lenient, strict, _moment(until), points, delivery
    )
    if not delivery.is_wanted and (outbox is not None or deliver_only):
        refuse(f"{'--outbox' if outbox is not None else '--deliver-only'} is for messages that are sent: `--deliver`")
    asked = LiveWanted(checkpoint, trigger, shards, metrics, dead_letter, watch, look_back or "refuse")
    if look_back is not None and not watch:
        refuse("--look-back says how rules begin that are added while programs run: `--watch`")
    if watch and (mode != Mode.stream or Path("-") in programs):
        refuse(
            "--watch is for live runs: `--mode stream`"
            if mode != Mode.stream
            else "--watch is for program files, and standard input is none"
        )
    for name, what in (*((one, "answers") for one in outputs), (dead_letter, "dead letters")):
        if name is not None and not is_system(name) and is_packed(name):
            refuse(f"{what} are not packed; name `{name}` without its last ending")
    if mode == Mode.stream:
        if until is not None:
            refuse("--until is for runs over a history; live, the clock goes on with the events")
        if engine == RunsOn.oracle:
            refuse("stream mode runs on the engines `spark` and `local`")
        from ephemera.cli.run_stream import run_stream

        run_stream(
            _compiled(programs, "live", wanted, allowed=allow_unbounded),
            programs,
            inputs,
            wanted,
            asked,
            outputs=outputs,
            engine=engine,
            then=then,
            follow=follow,
            allowed=allow_unbounded,
        )
        return
    if follow or asked.first() is not None:
        refuse(f"{'--follow' if follow else asked.first()} is for live runs: `--mode stream`")
    on = engine or RunsOn.spark
    compiled = _compiled(programs, "oracle" if on == RunsOn.oracle else "batch", wanted, allowed=allow_unbounded)
    places = destinations(outputs, [program.catalogue for program in compiled], [path.parent for path in programs])
    check_places(places, on)
    if on != RunsOn.spark and master is not None:
        refuse("--master is for the engine `spark`")
    if on == RunsOn.oracle and delivery.is_wanted:
        refuse("the engine `oracle` delivers no messages: it is for looking things up")
    if on == RunsOn.oracle and output is not None and not is_system(output) and not is_one_file(output):
        refuse(f"the engine `oracle` writes one file of JSON lines; `{output}` is for the engines `spark` and `local`")
    for place in places if on == RunsOn.local else ():
        name = place.location
        if name is not None and not is_system(name) and (name.endswith("/") or Path(name).is_dir()):
            refuse(f"the engine `local` writes one file (.jsonl, .csv, .parquet); `{name}` is for the engine `spark`")
    _check_until(compiled, wanted)
    given = found_inputs(inputs, compiled, programs)
    check_read(given, on)
    check_not_fed_back(places, input_names(inputs, compiled, programs))
    for name in [place.location for place in places] if on == RunsOn.local else [output]:
        check_outputs(
            name,
            dead_letter,
            programs=list(zip(compiled, programs, strict=True)),
            inputs=input_names(inputs, compiled, programs),
            writer="batch" if on == RunsOn.spark else "local",
        )
    tables = [
        declared_tables(program, path.parent, lenient=lenient) for program, path in zip(compiled, programs, strict=True)
    ]
    if on == RunsOn.spark:
        run_on_spark(compiled, tables, given, wanted, systems=written_systems(places))
        return
    if on == RunsOn.local:
        from ephemera.cli.local import run_here

        run_here(compiled, programs, tables, given, wanted, places=places)
        return
    run_oracle(compiled, programs, tables, given, wanted)


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
            refuse(f"--until: {error}")


def _compiled(paths: Sequence[Path], use: Use, wanted: Wanted, *, allowed: bool) -> list[Program]:
    """The programs of a run, if they can give what is asked for."""
    programs = compile_all(paths, unbounded_in(use, allowed=allowed))
    wrong = unknown_emitted(wanted.emit, [program._rules.resolved for program in programs])
    if wrong is not None:
        refuse(wrong)
    try:
        for program in programs:
            load_all(program.catalogue.functions)
    except NoFunction as error:
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(WRONG_PROGRAM) from None
    return programs
