"""This module runs a program to see whether it runs as expected: `explain --analyze`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ephemera.algebra.nodes import Points
from ephemera.analysis.unbounded import unbounded_in
from ephemera.cli.files import WRONG_COMMAND, write_out
from ephemera.cli.inputs import found_inputs, source_of
from ephemera.cli.local import told
from ephemera.cli.programs import compile_all
from ephemera.cli.run_checks import declared_tables
from ephemera.connect.source_run import analyze_sources
from ephemera.physical import explain_analysis
from ephemera.rules.emitted import unknown_emitted


def analyze_program(
    path: Path,
    points: Points | None,
    emit: Sequence[str],
    inputs: Sequence[str],
    *,
    is_asked: bool,
    machine: bool,
    allow_unbounded: bool,
) -> None:
    """Runs a program in this process, and prints what was seen beside what was expected."""
    if not is_asked:
        click.echo("--input is for `--analyze`, which runs the program", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    (program,) = compile_all([path], unbounded_in("batch", allowed=allow_unbounded))
    wrong = unknown_emitted(emit, [program._rules.resolved])
    if wrong is not None:
        click.echo(wrong, err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    world = program._world(declared_tables(program, path.parent, lenient=False))
    given = found_inputs(inputs, [program], [path])
    compiled = program._planned(emit, points).beside(world.calendars)
    with told([path]):
        plan, seen = analyze_sources(
            compiled, [source_of(one, [program]) for one in given], world, readers=[one.readers for one in given]
        )
    if machine:
        write_out(json.dumps(explain_analysis.as_json(plan, seen), indent=2, ensure_ascii=False) + "\n")
    else:
        write_out(explain_analysis.as_text(plan, seen) + "\n")
