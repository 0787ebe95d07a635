"""This module looks at programs for commands: it checks them, explains them, and makes them ready to run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ephemera.algebra.nodes import Points
from ephemera.analysis.unbounded import unbounded_in
from ephemera.base.diagnostic import Report, Severity
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, print_reports, read_program, write_out
from ephemera.pipeline import Checked, Stage, check
from ephemera.program import Program
from ephemera.rules.emitted import unknown_emitted


def check_programs(paths: Sequence[Path], *, machine: bool, allow_unbounded: bool) -> None:
    """The command `check`: prints what is wrong with programs."""
    sources = [read_program(path) for path in paths]
    unbounded = unbounded_in("check", allowed=allow_unbounded)
    reports = [s if isinstance(s, Report) else check(s, unbounded=unbounded).report for s in sources if s is not None]
    print_reports(reports, machine=machine)
    _exit(missing=None in sources, reports=reports)


def explain_program(
    path: Path, stage: Stage, points: Points | None, emit: Sequence[str], *, machine: bool, allow_unbounded: bool
) -> None:
    """The command `explain`: prints what a stage makes of a program."""
    if emit and stage != "physical":
        click.echo("--emit is for `--stage physical`", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    shows_state = stage in ("plan", "relevance")
    explained = compile_all([path], unbounded_in("explain", allowed=allow_unbounded or not shows_state))[0]
    wrong = unknown_emitted(emit, [explained._rules.resolved])
    if wrong is not None:
        click.echo(wrong, err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    if machine:
        plain = explained.explain_json(stage, points=points, emit=emit)
        write_out(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
    else:
        write_out(explained.explain(stage, points=points, emit=emit) + "\n")


def compile_all(paths: Sequence[Path], unbounded: Severity | None = None) -> list[Program]:
    """The programs ready to run; prints what was found in any, and ends the command if one is wrong or missing."""
    sources = [read_program(path) for path in paths]
    found = [s if isinstance(s, Report) else check(s, unbounded=unbounded) for s in sources if s is not None]
    reports = [f if isinstance(f, Report) else f.report for f in found]
    print_reports(reports)
    _exit(missing=None in sources, reports=reports)
    return [Program(f) for f in found if isinstance(f, Checked)]


def recompiled(path: Path, unbounded: Severity | None = None, emit: Sequence[str] = ()) -> Program | None:
    """A program that has changed; prints what was found in it, and gives nothing if it is wrong or missing."""
    source = read_program(path)
    found = check(source, unbounded=unbounded) if source is not None and not isinstance(source, Report) else source
    if found is None:
        return None
    print_reports([found.report if isinstance(found, Checked) else found])
    if not isinstance(found, Checked) or found.report.failed:
        return None
    program = Program(found)
    wrong = unknown_emitted(emit, [program._rules.resolved])
    if wrong is not None:
        click.echo(wrong, err=True)
        return None
    return program


def _exit(*, missing: bool, reports: Sequence[Report]) -> None:
    if missing or any(found.failed for found in reports):
        raise click.exceptions.Exit(WRONG_COMMAND if missing else WRONG_PROGRAM)
