"""This module says whether a run would write over something that it reads, or that has another use.

Paths are compared by where they lead, through symbolic and hard links, and with the folders and patterns that are read.
The command line and Python look here before anything is written.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ephemera.connect.systems.address import is_address
from ephemera.rules.nodes import Catalogue

STANDARD_INPUT = "-"
_WILD = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a run reads, or has another use for."""

    what: str
    name: str
    """As it was given; a pattern of paths if it is an input."""
    place: Path


@dataclass(frozen=True, slots=True)
class Target:
    """Where a run would write."""

    option: str
    """What people gave it as."""
    name: str
    is_folder: bool

    @property
    def path(self) -> Path:
        return Path(self.name)

    def places(self) -> set[Path]:
        """Where it is, by its own name, and where links lead."""
        return {_own(self.path), _real(self.path)}


def inputs_kept(names: Iterable[str]) -> list[Kept]:
    """What is read, by name: files, folders and patterns; what is not of this machine is in nobody's way."""
    return [Kept("the input", name, Path(path_of(name))) for name in names if is_local(name)]


def program_kept(path: Path, catalogue: Catalogue) -> Iterator[Kept]:
    """A program and the tables that it declares, which lie beside it."""
    yield Kept("the program", str(path), path)
    for location, _ in catalogue.table_locations.values():
        if location is not None and is_local(location):
            yield Kept("a table of the program,", location, path.parent / location)


def is_local(name: str) -> bool:
    """Whether a name is that of something on this machine."""
    return not is_address(name) or name.lower().startswith("file:")


def path_of(name: str) -> str:
    """The path of what is on this machine."""
    return unquote(urlsplit(name).path) if name.lower().startswith("file:") else name


def clash_among(targets: Sequence[Target], reads: Sequence[Kept]) -> str | None:
    """The first clash of what is written with what is read, or with what else is written; None if there is none."""
    for number, target in enumerate(targets):
        others = [Kept(f"what {other.option} names,", other.name, other.path) for other in targets[:number]]
        found = _clash(target, [*reads, *others])
        if found is not None:
            return found
    return None


def _clash(target: Target, others: Sequence[Kept]) -> str | None:
    if _is_device(target.path):
        return None
    places = target.places()
    for kept in others:
        if kept.name == STANDARD_INPUT and kept.what == "the input":
            if _is_standard_input(target.path):
                return f"{target.option} {target.name} is what standard input reads; name another file"
        elif is_same(kept.place, target.path):
            return f"{target.option} {target.name} is {kept.what} {kept.name}; name another file"
        elif is_read_with(places, kept):
            return f"{target.option} {target.name} lies in {kept.what} {kept.name}; name a place outside"
        elif target.is_folder and places & set(_own(kept.place).parents) | places & set(_real(kept.place).parents):
            return f"{kept.what} {kept.name} lies in {target.option} {target.name}; name another folder"
    return None


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one.samefile(other)
    except OSError:
        return _real(one) == _real(other)


def is_read_with(places: set[Path], kept: Kept) -> bool:
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
