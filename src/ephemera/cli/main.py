"""This module holds the commands; each reads its files, sends them down the road and prints what came of it.

Exit codes: 0 done, 1 the program is wrong, 2 the command line is wrong, 3 the command failed.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ephemera import pipeline
from ephemera.base.diagnostic import Report
from ephemera.cli.files import WRONG_PROGRAM, print_reports, read_program, write_file
from ephemera.cli.run import run_command, stories_command
from ephemera.pipeline import Program, check
from ephemera.syntax.format import format
from ephemera.syntax.parser import parse

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How results are written."""

    text = "text"
    json = "json"


class Stage(StrEnum):
    """The stages of the compiler that can be shown."""

    syntax = "syntax"
    rules = "rules"


Programs = Annotated[
    list[Path],
    typer.Argument(metavar="PROGRAM…", help="Program files (.eq), or - for standard input.", show_default=False),
]
OneProgram = Annotated[
    Path, typer.Argument(metavar="PROGRAM", help="A program file (.eq), or - for standard input.", show_default=False)
]
FormatOption = Annotated[Format, typer.Option("--format", help="Text for people, JSON for machines.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ephemera {version('ephemera')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Finds complex events: situations that show only in several events over time, and in absences."""


@app.command("check")
def check_command(programs: Programs, form: FormatOption = Format.text) -> None:
    """Check programs; print what is wrong with them, where, and what would help."""
    reports = [_report(path) for path in programs]
    print_reports(reports, machine=form == Format.json)
    if any(found.failed for found in reports):
        raise typer.Exit(WRONG_PROGRAM)


@app.command("fmt")
def fmt_command(
    programs: Programs,
    only_check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")] = False,
    form: FormatOption = Format.text,
) -> None:
    """Write programs in their one layout; comments stay."""
    reports: list[Report] = []
    changed = 0
    for path in programs:
        source = read_program(path)
        if isinstance(source, Report):
            reports.append(source)
            continue
        parsed = parse(source)
        if parsed.report.failed:
            reports.append(parsed.report)
            continue
        text = format(parsed.program, parsed.comments, source.text)
        if only_check:
            if text != source.text:
                changed += 1
                typer.echo(f"{path} would change", err=True)
        elif str(path) == "-":
            sys.stdout.write(text)
        elif text != source.text:
            write_file(path, text)
    print_reports(reports, machine=form == Format.json)
    if reports or changed:
        raise typer.Exit(WRONG_PROGRAM)


@app.command("explain")
def explain_command(
    program: OneProgram,
    stage: Annotated[Stage, typer.Option("--stage", help="Which stage of the compiler to show.")] = Stage.rules,
    form: FormatOption = Format.text,
) -> None:
    """Show what a stage of the compiler makes of a program."""
    source = read_program(program)
    if isinstance(source, Report):
        print_reports([source])
        raise typer.Exit(WRONG_PROGRAM)
    checked = check(source)
    if checked.report.diagnostics:
        print_reports([checked.report])
    if checked.report.failed:
        raise typer.Exit(WRONG_PROGRAM)
    explained = Program(checked)
    if form == Format.json:
        typer.echo(json.dumps(explained.explain_json(_stage(stage)), indent=2, ensure_ascii=False))
    else:
        typer.echo(explained.explain(_stage(stage)))


def _stage(chosen: Stage) -> pipeline.Stage:
    return "syntax" if chosen == Stage.syntax else "rules"


def _report(path: Path) -> Report:
    source = read_program(path)
    return source if isinstance(source, Report) else check(source).report


app.command("run")(run_command)
app.command("test")(stories_command)


def main() -> None:
    """The entry point of the `ephemera` command."""
    app()
