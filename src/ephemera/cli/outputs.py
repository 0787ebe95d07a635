"""This module looks at where a run would write before it begins: never over what it reads, nor where it cannot.

What is found is told in a line and ends the command, and nothing has been touched by then.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn

import click

from ephemera.cli.files import WRONG_COMMAND
from ephemera.connect.atomic_files import layout, refusal
from ephemera.connect.overwriting import (
    STANDARD_INPUT,
    Kept,
    Target,
    clash_among,
    inputs_kept,
    is_local,
    is_read_with,
    is_same,
    path_of,
    program_kept,
)
from ephemera.connect.systems.address import is_address
from ephemera.connect.systems.fed_back import fed_back
from ephemera.connect.systems.registry import is_system
from ephemera.connect.written_places import Destination
from ephemera.program import Program

Writer = Literal["local", "stream", "batch", "live"]
"""Who writes: this process, one file, at the end or as it goes; Spark, in batch files or folders, live folders."""
_TABLE = "table:"


def check_outputs(
    output: str | None,
    dead_letter: str | None,
    checkpoint: str | None = None,
    *,
    programs: Sequence[tuple[Program, Path]],
    inputs: Sequence[str],
    writer: Writer,
) -> None:
    """Ends the command if answers or dead letters would go where they must not, or cannot."""
    try:
        Path.cwd()
    except OSError:
        _refuse("the current folder is not there any more; change to one that is")
    own = [kept for program, path in programs for kept in program_kept(path, program.catalogue)]
    reads = [*own, *inputs_kept(inputs)]
    if output is None:
        _check_standard_output(reads, is_live=writer in ("stream", "live"))
    given = [
        _target("--output", output, is_folder=writer == "live" or (writer == "batch" and _is_folder(output))),
        _target("--dead-letter", dead_letter, is_folder=writer == "live"),
        _target("--checkpoint", checkpoint, is_folder=True),
    ]
    for name in (None if output is not None and is_system(output) else output, dead_letter):
        if writer != "live" and name is not None and is_address(name):
            _refuse(f"`{name}` is no path of this machine, and only live runs on Spark write elsewhere; name a path")
    targets = [target for target in given if target is not None]
    clash = clash_among(targets, reads)
    if clash is not None:
        _refuse(clash)
    for target in targets:
        if writer == "live":
            _check_folder(target)
        else:
            _check_place(target)


def check_not_fed_back(places: Sequence[Destination], inputs: Sequence[str]) -> None:
    """Ends the command if it would read from systems what it writes there."""
    wrong = fed_back([place.location for place in places], inputs)
    if wrong is not None:
        _refuse(wrong)


def _target(option: str, name: str | None, *, is_folder: bool) -> Target | None:
    if name is None or name.startswith(_TABLE) or not is_local(name):
        return None
    return Target(option, path_of(name), is_folder)


def _is_folder(output: str | None) -> bool:
    return output is not None and layout(output) != "file"


# ---- what must stay as it is -----------------------------------------------------------------------------------


def _check_standard_output(reads: Sequence[Kept], *, is_live: bool) -> None:
    """Answers on standard output must not go into what is read, which would never end."""
    if sys.stdout is None:
        _refuse("standard output is closed, so there is no place for answers; name one with --output")
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # it is no file, as in tests
        return
    if not stat.S_ISREG(found.st_mode) or not (found.st_size or is_live):
        return  # in batch all is read before the first answer is written
    place = Path(os.path.realpath(f"/proc/self/fd/{sys.stdout.fileno()}"))
    for kept in reads:
        if kept.name != STANDARD_INPUT and (is_same(kept.place, place) or is_read_with({place}, kept)):
            _refuse(f"standard output goes into {kept.what} {kept.name}; name another file")


# ---- where nothing can be written ------------------------------------------------------------------------------


def _check_place(target: Target) -> None:
    if not target.is_folder and target.name.endswith("/"):
        _refuse(f"{target.option} {target.name} is the name of a folder, and one file would be written; name the file")
    why = refusal(target.path, layout(target.name) if target.is_folder else "file")
    if why is not None:
        _refuse(why)


def _check_folder(target: Target) -> None:
    """A folder that a live run goes on with: whose it is, is seen when it is opened."""
    if target.path.is_dir():
        if not os.access(target.path, os.W_OK | os.X_OK):
            _refuse(f"cannot write {target.name}: the folder is read-only for this user")
        return
    if target.path.exists():
        _refuse(f"a live run on Spark writes folders, and `{target.name}` is a file; name a new folder")
    why = refusal(target.path, "json")
    if why is not None:
        _refuse(why)


def _refuse(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)
