"""This module holds the commands; each reads its files, sends them down the road and prints what came of it.

Exit codes: 0 done, 1 the program or the input is wrong, 2 the command line is wrong, 3 the command failed.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ephemera.analysis.unbounded import unbounded_in
from ephemera.base.diagnostic import Report
from ephemera.base.span import Source
from ephemera.cli.demo import demo_command
from ephemera.cli.files import (
    FAILED,
    WRONG_COMMAND,
    WRONG_PROGRAM,
    no_output,
    print_reports,
    read_program,
    tell,
    write_file,
    write_out,
)
from ephemera.cli.run import AllowUnbounded, compile_all, run_command
from ephemera.cli.signals import exit_code, heeded
from ephemera.cli.stories import stories_command
from ephemera.connect.atomic_files import CannotWrite, is_open_end
from ephemera.pipeline import check
from ephemera.syntax.format import format
from ephemera.syntax.parser import parse


class Commands(TyperGroup):
    """The commands, and what is said when one cannot go on with its output, or is told to end."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Reads the command line, and prints what it asks for itself."""
        with _told():
            return super().make_context(*given, **more)

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        with _told():
            return super().invoke(ctx)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except CannotWrite as error:
        tell(str(error))
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_OUTPUT:
            raise
        tell(str(no_output(error)))
    except KeyboardInterrupt:
        tell("stopped")
        raise typer.Exit(exit_code(is_live=False)) from None
    else:
        return
    raise typer.Exit(FAILED)


_NO_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""What may be wrong with a place that was open for writing."""

app = typer.Typer(
    cls=Commands,
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
    plan = "plan"
    relevance = "relevance"
    bounds = "bounds"
    physical = "physical"


class Points(StrEnum):
    """What a plan materializes."""

    rules = "rules"
    joins = "joins"


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
def check_command(
    programs: Programs, form: FormatOption = Format.text, allow_unbounded: AllowUnbounded = False
) -> None:
    """Check programs; print what is wrong with them, where, and what would help."""
    sources = [read_program(path) for path in programs]
    unbounded = unbounded_in("check", allowed=allow_unbounded)
    reports = [s if isinstance(s, Report) else check(s, unbounded=unbounded).report for s in sources if s is not None]
    print_reports(reports, machine=form == Format.json)
    _exit(missing=None in sources, wrong=any(found.failed for found in reports))


@app.command("fmt")
def fmt_command(
    programs: Programs,
    only_check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")] = False,
) -> None:
    """Write programs in their one layout; comments stay."""
    sources = [read_program(path) for path in programs]
    wrong = [_rewrite(path, s, only_check=only_check) for path, s in zip(programs, sources, strict=True) if s]
    _exit(missing=None in sources, wrong=any(wrong))


def _rewrite(path: Path, source: Source | Report, *, only_check: bool) -> bool:
    """Formats one program; whether it is wrong, or would change where it must not."""
    if isinstance(source, Report):
        print_reports([source])
        return True
    parsed = parse(source)
    if parsed.report.failed:
        print_reports([parsed.report])
        return True
    text = format(parsed.program, parsed.comments, source.text)
    if only_check:
        if text != source.text:
            typer.echo(f"{path} would change", err=True)
        return text != source.text
    if str(path) == "-" or is_open_end(path):  # a pipe is no file that could be rewritten
        write_out(text)
    elif text != source.text:
        write_file(path, text)
    return False


@app.command("explain")
def explain_command(
    program: OneProgram,
    stage: Annotated[Stage, typer.Option("--stage", help="Which stage of the compiler to show.")] = Stage.rules,
    points: Annotated[
        Points, typer.Option("--points", help="What is materialized: rules and event queries, or every join too.")
    ] = Points.rules,
    form: FormatOption = Format.text,
    allow_unbounded: AllowUnbounded = False,
) -> None:
    """Show what a stage of the compiler makes of a program; what would be kept forever is told on standard error."""
    shows_state = stage in (Stage.plan, Stage.relevance)
    explained = compile_all([program], unbounded_in("explain", allowed=allow_unbounded or not shows_state))[0]
    if form == Format.json:
        plain = explained.explain_json(stage.value, points=points.value)
        write_out(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
    else:
        write_out(explained.explain(stage.value, points=points.value) + "\n")


def _exit(*, missing: bool, wrong: bool) -> None:
    if missing or wrong:
        raise typer.Exit(WRONG_COMMAND if missing else WRONG_PROGRAM)


app.command("run")(run_command)
app.command("test")(stories_command)
app.command("demo")(demo_command)


def main() -> None:
    """The entry point of the `ephemera` command."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # help and messages hold signs that a terminal may not have
    with heeded():
        app()


def _open_standard_streams() -> None:
    """Has the numbers of standard streams that are closed lead nowhere, lest files that are opened get them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the first number that is free
