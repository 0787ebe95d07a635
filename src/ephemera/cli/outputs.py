"""This module looks at where a run would write before it begins: never over what it reads, nor where it cannot.

What is found is told in a line and ends the command, and nothing has been touched by then.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NoReturn
from urllib.parse import unquote, urlsplit

import click

from ephemera.cli.files import WRONG_COMMAND
from ephemera.cli.inputs import STANDARD_INPUT
from ephemera.connect.atomic_files import layout, refusal
from ephemera.program import Program

Writer = Literal["local", "stream", "batch", "live"]
"""Who writes: this process, one file, at the end or as it goes; Spark, in batch files or folders, live folders."""
_WILD = re.compile(r"[*?\[{]")
_TABLE = "table:"


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a run reads, or has another use for."""

    what: str
    name: str
    """As it was given; a pattern of paths if it is an input."""
    place: Path


@dataclass(frozen=True, slots=True)
class _Target:
    option: str
    name: str
    is_folder: bool

    @property
    def path(self) -> Path:
        return Path(self.name)

    def places(self) -> set[Path]:
        """Where it is, by its own name, and where links lead."""
        return {_own(self.path), Path(os.path.realpath(self.path))}


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
    reads = [*_programs(programs), *(Kept("the input", name, Path(name)) for name in inputs if _is_local(name))]
    if output is None:
        _check_standard_output(reads, is_live=writer in ("stream", "live"))
    given = [
        _target("--output", output, is_folder=writer == "live" or (writer == "batch" and _is_folder(output))),
        _target("--dead-letter", dead_letter, is_folder=writer == "live"),
        _target("--checkpoint", checkpoint, is_folder=True),
    ]
    for name in (output, dead_letter):
        if writer != "live" and name is not None and "://" in name:
            _refuse(f"`{name}` is no path of this machine, and only live runs on Spark write elsewhere; name a path")
    targets = [target for target in given if target is not None]
    for number, target in enumerate(targets):
        others = [Kept(f"what {other.option} names,", other.name, other.path) for other in targets[:number]]
        _check_clash(target, [*reads, *others])
        if writer == "live":
            _check_folder(target)
        else:
            _check_place(target)


def _target(option: str, name: str | None, *, is_folder: bool) -> _Target | None:
    if name is None or name.startswith(_TABLE) or not _is_local(name):
        return None
    return _Target(option, _path_of(name), is_folder)


def _is_folder(output: str | None) -> bool:
    return output is not None and layout(output) != "file"


def _is_local(name: str) -> bool:
    return "://" not in name or name.lower().startswith("file:")


def _path_of(name: str) -> str:
    return unquote(urlsplit(name).path) if name.lower().startswith("file:") else name


def _programs(programs: Sequence[tuple[Program, Path]]) -> Iterator[Kept]:
    for program, path in programs:
        yield Kept("the program", str(path), path)
        for location, _ in program.catalogue.table_locations.values():
            if location is not None:
                yield Kept("a table of the program,", location, path.parent / location)


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
        if kept.name != STANDARD_INPUT and (_is_same(kept.place, place) or _is_read_with({place}, kept)):
            _refuse(f"standard output goes into {kept.what} {kept.name}; name another file")


def _check_clash(target: _Target, others: Sequence[Kept]) -> None:
    if _is_device(target.path):
        return
    places = target.places()
    for kept in others:
        if kept.name == STANDARD_INPUT and kept.what == "the input":
            if _is_standard_input(target.path):
                _refuse(f"{target.option} {target.name} is what standard input reads; name another file")
        elif _is_same(kept.place, target.path):
            _refuse(f"{target.option} {target.name} is {kept.what} {kept.name}; name another file")
        elif _is_read_with(places, kept):
            _refuse(f"{target.option} {target.name} lies in {kept.what} {kept.name}; name a place outside")
        elif target.is_folder and places & set(_own(kept.place).parents) | places & set(_real(kept.place).parents):
            _refuse(f"{kept.what} {kept.name} lies in {target.option} {target.name}; name another folder")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return _real(one) == _real(other)


def _is_read_with(places: set[Path], kept: Kept) -> bool:
    """Whether something lies in a folder, or fits a pattern, so that it would be read with the rest."""
    if kept.place.is_dir():
        return any(_real(kept.place) in place.parents for place in places)
    if kept.what != "the input" or _WILD.search(kept.name) is None or kept.place.exists():
        return kept.what != "the input" and any(_real(kept.place) in place.parents for place in places)
    return any(
        _fits(part, pattern) for place in places for part in (place, *place.parents) for pattern in _patterns(kept)
    )


def _patterns(kept: Kept) -> Iterator[tuple[str, ...]]:
    """A pattern by its parts, beginning with where links lead; alternatives in braces one by one."""
    for name in _alternatives(str(kept.place)):
        parts = Path(name).parts
        fixed = next((n for n, part in enumerate(parts) if _WILD.search(part)), len(parts))
        yield (*Path(os.path.realpath(Path(*parts[:fixed]))).parts, *parts[fixed:])


def _alternatives(pattern: str) -> list[str]:
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    ways = found[1].split(",")
    return [one for way in ways for one in _alternatives(pattern[: found.start()] + way + pattern[found.end() :])]


def _fits(place: Path, pattern: Sequence[str]) -> bool:
    return _parts_fit(place.parts, pattern)


def _parts_fit(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _parts_fit(parts, pattern[1:]) or (bool(parts) and _parts_fit(parts[1:], pattern))
    if not parts or (parts[0].startswith((".", "_")) and pattern[0][0] != parts[0][0]):
        return False  # hidden names have to be named
    return fnmatchcase(parts[0], pattern[0]) and _parts_fit(parts[1:], pattern[1:])


def _is_device(path: Path) -> bool:
    """Whether it is a device, such as /dev/null, of which any number may be the same."""
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


def _is_standard_input(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), path.stat())
    except (OSError, ValueError, AttributeError):  # it is closed, or no file, as in tests
        return False


def _own(path: Path) -> Path:
    """A path by its own name, in the folder that links lead to."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else _real(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


# ---- where nothing can be written ------------------------------------------------------------------------------


def _check_place(target: _Target) -> None:
    if not target.is_folder and target.name.endswith("/"):
        _refuse(f"{target.option} {target.name} is the name of a folder, and one file would be written; name the file")
    why = refusal(target.path, layout(target.name) if target.is_folder else "file")
    if why is not None:
        _refuse(why)


def _check_folder(target: _Target) -> None:
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
