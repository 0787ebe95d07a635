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
from rich.console import Console
from rich.text import Text

from ephemera import pipeline
from ephemera.base.diagnostic import Report, as_json, render
from ephemera.base.span import Source
from ephemera.pipeline import Program, check
from ephemera.syntax.format import format
from ephemera.syntax.parser import decode, parse

WRONG_PROGRAM = 1
WRONG_COMMAND = 2
FAILED = 3

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "frame": "blue",
    "caret": "bold blue",
    "strong": "bold",
    "": "",
}


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
    _print_reports(reports, form)
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
        source = _read(path)
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
            _write(path, text)
    _print_reports(reports, form)
    if reports or changed:
        raise typer.Exit(WRONG_PROGRAM)


@app.command("explain")
def explain_command(
    program: OneProgram,
    stage: Annotated[Stage, typer.Option("--stage", help="Which stage of the compiler to show.")] = Stage.rules,
    form: FormatOption = Format.text,
) -> None:
    """Show what a stage of the compiler makes of a program."""
    source = _read(program)
    if isinstance(source, Report):
        _print_reports([source], Format.text)
        raise typer.Exit(WRONG_PROGRAM)
    checked = check(source)
    if checked.report.diagnostics:
        _print_reports([checked.report], Format.text)
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
    source = _read(path)
    return source if isinstance(source, Report) else check(source).report


def _read(path: Path) -> Source | Report:
    """A program's text; a file that is not there is a mistake on the command line."""
    try:
        if str(path) == "-":
            return decode(sys.stdin.buffer.read(), "<stdin>")
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        typer.echo(f"cannot read {path}: {error.strerror}", err=True)
        raise typer.Exit(WRONG_COMMAND) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        typer.echo(f"cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(FAILED) from None


def _print_reports(reports: list[Report], form: Format) -> None:
    if form == Format.json:
        typer.echo(json.dumps([entry for found in reports for entry in as_json(found)], indent=2, ensure_ascii=False))
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for found in reports:
        console.print(Text.assemble(*((text, _STYLES[style]) for text, style in render(found))), end="")


def main() -> None:
    """The entry point of the `ephemera` command."""
    app()
