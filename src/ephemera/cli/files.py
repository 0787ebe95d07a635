"""This module reads and writes the files of commands, and prints reports: what all commands share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from ephemera.base.diagnostic import Report
    from ephemera.base.span import Source
    from ephemera.connect.atomic_files import CannotWrite
    from ephemera.formats.json_events import BadEvent
    from ephemera.rules.outcome import DeadLetter

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


def read_program(path: Path) -> Source | Report | None:
    """A program's text, or what keeps it from being text; None if it cannot be read, which has then been said."""
    from ephemera.syntax.parser import decode

    try:
        if str(path) == "-":
            return decode(sys.stdin.buffer.read(), "<stdin>")
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        click.echo(f"cannot read {path}: {error.strerror}", err=True)
        return None


def read_text(path: Path) -> str:
    """All of a file that a command cannot do without."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        click.echo(f"cannot read {path}: {error}", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND) from None


def write_file(path: Path, text: str) -> None:
    """All of a file or nothing: it is written under another name first."""
    from ephemera.connect import atomic_files

    atomic_files.write_file([utf_8(text)], path)


def write_out(text: str) -> None:
    """Results on standard output: UTF-8 whatever the terminal speaks, since programs read them."""
    write_out_bytes(utf_8(text))


def write_out_bytes(data: bytes) -> None:
    """The same for what is UTF-8 already."""
    from ephemera.connect import atomic_files

    if sys.stdout is None:
        raise atomic_files.CannotWrite("cannot write standard output: it is closed")
    number = _number(sys.stdout)
    try:
        if number is None:
            click.echo(data, nl=False)
            return
        sys.stdout.flush()
        # Where PYTHONUNBUFFERED is set, a stream may write a part and be silent.
        atomic_files.write_all(number, data)
    except OSError as error:
        raise no_output(error) from None


def no_output(error: OSError) -> CannotWrite:
    """What to tell of standard output that takes no more; what is left for it is dropped."""
    from ephemera.connect.atomic_files import CannotWrite

    drop(sys.stdout)
    return CannotWrite(f"cannot write standard output: {error.strerror or error}")


def drop(stream: TextIO | None) -> None:
    """Lets what a stream still holds go nowhere, so that the end of the process does not stumble over it."""
    number = _number(stream)
    if number is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _number(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):  # it is no file, as in tests
        return None


def tell(message: str) -> None:
    """A line on standard error, if that takes one."""
    try:
        click.echo(message, err=True)
    except OSError:
        drop(sys.stderr)


def utf_8(text: str) -> bytes:
    """A text as bytes, whatever it holds."""
    # Half a character, which JSON can hold, becomes the escape that JSON writes for it.
    return text.encode("utf-8", "backslashreplace")


def print_reports(reports: Sequence[Report], *, machine: bool = False) -> None:
    """Diagnostics for people on standard error, in colour on a terminal; for machines as JSON on standard output."""
    if machine:
        from ephemera.base.diagnostic import as_json

        entries = [entry for found in reports for entry in as_json(found)]
        write_out(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        return
    for found in reports:
        if found.diagnostics and sys.stderr is not None:
            try:
                _show(found, sys.stderr)
            except OSError:  # nobody can be told, and that is no reason to end
                drop(sys.stderr)


def _show(found: Report, stream: TextIO) -> None:
    from ephemera.base.diagnostic import render, render_text

    if not (stream.isatty() or os.environ.get("FORCE_COLOR")):
        stream.write(render_text(found))
        stream.flush()
        return
    from rich.console import Console  # which takes a while to load, and knows what a terminal can show
    from rich.text import Text

    told = Text.assemble(*((text, _STYLES[style]) for text, style in render(found)))
    Console(stderr=True, highlight=False, soft_wrap=True).print(told, end="")


def names_of(programs: Sequence[Path]) -> list[dict[str, str]]:
    """What a dead letter says of the program that it comes from: nothing if there is only one."""
    return [{"program": str(path)} if len(programs) > 1 else {} for path in programs]


def bad_letter(bad: BadEvent) -> dict[str, Any]:
    """An input that is no event of the program, as it goes to the dead letters."""
    return {"reason": bad.reason, "event": bad.original}


def undefined_letter(letter: DeadLetter) -> dict[str, Any]:
    """A head that had no value, as it goes to the dead letters."""
    return letter.told()
