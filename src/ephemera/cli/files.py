"""This module reads and writes the files of commands, and prints reports: what all commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from ephemera.base.diagnostic import Report, as_json, render
from ephemera.base.span import Source
from ephemera.syntax.parser import decode

WRONG_PROGRAM = 1
WRONG_COMMAND = 2
FAILED = 3

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "frame": "blue",
    "caret": "bold blue",
    "strong": "bold",
    "": "",
}


def read_program(path: Path) -> Source | Report:
    """A program's text; a file that is not there is a mistake on the command line."""
    try:
        if str(path) == "-":
            return decode(sys.stdin.buffer.read(), "<stdin>")
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        typer.echo(f"cannot read {path}: {error.strerror}", err=True)
        raise typer.Exit(WRONG_COMMAND) from None


def write_file(path: Path, text: str) -> None:
    """All of a file or nothing: it is written under another name first."""
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    except OSError as error:
        typer.echo(f"cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(FAILED) from None


def print_reports(reports: Sequence[Report], *, machine: bool = False) -> None:
    """Diagnostics for people on standard error, in colour on a terminal; for machines as JSON on standard output."""
    if machine:
        typer.echo(json.dumps([entry for found in reports for entry in as_json(found)], indent=2, ensure_ascii=False))
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for found in reports:
        console.print(Text.assemble(*((text, _STYLES[style]) for text, style in render(found))), end="")
