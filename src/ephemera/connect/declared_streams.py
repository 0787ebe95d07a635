"""This module says where programs read: the places that their streams declare, or those that a run names.

Each stream reads its own files. Where a stream carries one type, and no other stream of its program names the same
files, what stands there is of that type and need not say so. Two streams may name the same files by different words, a
folder or a pattern and a file in it: then each of these is read once, apart from the others. A program reads what it
declares, alone or beside others; one that declares no place reads what the others declare. A place that a run names is
read by all programs, and by those that declare it, alone or in a folder or a pattern, as they declare it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ephemera.connect.found_files import found_files
from ephemera.connect.overwriting import STANDARD_INPUT, Kept, is_read_with
from ephemera.connect.systems.address import beside, is_address
from ephemera.rules.nodes import Catalogue, Source


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is read, and by which programs, by their numbers."""

    location: str
    programs: frozenset[int]
    format: str | None = None
    """As it is declared."""
    only: str | None = None
    """The type of all that names none, if one stream reads it that carries one."""


def declared_places(
    catalogues: Sequence[Catalogue], folders: Sequence[Path] | None = None, *, apart: bool = False
) -> list[Place]:
    """The places that programs declare, each once for those that read it alike; paths are relative to the folders.

    Where places are to be `apart`, those that share files are given file by file.

    >>> import ephemera
    >>> cards = ephemera.compile('EVENT txn(card: string); STREAM s FROM "a.csv" CARRIES txn; p(c) <- t: txn(c);')
    >>> declared_places([cards.catalogue])
    [Place(location='a.csv', programs=frozenset({0}), format=None, only='txn')]
    """
    where = [None] * len(catalogues) if folders is None else folders
    own = [_places(catalogue, folder, apart=apart) for catalogue, folder in zip(catalogues, where, strict=True)]
    every = dict.fromkeys(place for places in own for place in places)
    readers = {place: frozenset(n for n, places in enumerate(own) if place in (places or every)) for place in every}
    return [Place(location, readers[location, form, only], form, only) for location, form, only in every]


def given_places(
    names: Sequence[str], catalogues: Sequence[Catalogue], folders: Sequence[Path] | None = None, *, apart: bool = False
) -> list[Place]:
    """The places that a run names, each as programs declare it, if they do; file by file where they are `apart`."""
    declared = declared_places(catalogues, folders, apart=apart)
    held = {place.location: _real_files(place.location) for place in declared}
    found: list[Place] = []
    for name in dict.fromkeys(names):
        is_declared = any(_is_same(name, place.location) for place in declared)
        files = found_files(name) if apart and not is_declared and _is_here(name) else None
        is_part = any(os.path.realpath(file) in own for file in files or () for own in held.values())
        for one in files if files is not None and is_part else [name]:
            left = frozenset(range(len(catalogues)))
            for place in declared:
                names_it = _is_same(one, place.location) or os.path.realpath(one) in held[place.location]
                if place.programs & left and names_it:
                    found.append(Place(one, place.programs & left, place.format, place.only))
                    left -= place.programs
            if left:
                found.append(Place(one, left))
    return found


def overlap(places: Sequence[Place]) -> str | None:
    """What to tell where programs would read files twice, by two places that hold different types; None if none would.

    Live, more files may come at any time, so that they cannot be told apart by looking.
    """
    for one, other in combinations(places, 2):
        if not one.programs & other.programs or one.only == other.only or one.location == other.location:
            continue
        if not (_is_here(one.location) and _is_here(other.location)):
            continue
        lies = any(
            is_read_with({Path(os.path.realpath(a))}, Kept("the input", b, Path(b)))
            for a, b in ((one.location, other.location), (other.location, one.location))
        )
        if lies or _real_files(one.location) & _real_files(other.location):
            return (
                f"`{one.location}` and `{other.location}` hold the same files, which would be read as different types; "
                "name places that share none, or one place for both, in which each row says what it is"
            )
    return None


def _is_here(name: str) -> bool:
    """Whether it is a place in this machine's files."""
    return not is_address(name) and name != STANDARD_INPUT


def _real_files(location: str) -> frozenset[str]:
    """The files of a place, by where links lead."""
    return frozenset(map(os.path.realpath, found_files(location) or ())) if _is_here(location) else frozenset()


def _apart(found: Mapping[str, list[Source]]) -> dict[str, list[Source]]:
    """The same with places that share files given file by file, each of these with all streams that name it."""
    files = {location: (found_files(location) or []) if _is_here(location) else [] for location in found}
    owners: dict[str, list[str]] = {}
    for location, own in files.items():
        for file in own:
            owners.setdefault(os.path.realpath(file), []).append(location)
    shared = {real for real, locations in owners.items() if len(locations) > 1}
    places: dict[str, list[Source]] = {}
    seen: set[str] = set()
    for location, sources in found.items():
        if not any(os.path.realpath(file) in shared for file in files[location]):
            places[location] = sources
            continue
        for file in files[location]:
            real = os.path.realpath(file)
            if real not in seen:
                places[file] = [source for other in owners[real] for source in found[other]]
            seen.add(real)
    return places


def _places(catalogue: Catalogue, folder: Path | None, *, apart: bool) -> list[tuple[str, str | None, str | None]]:
    """The places of one program: where they are, their format and the one type that they hold, if it is one."""
    found: dict[str, list[Source]] = {}
    for source in catalogue.sources:
        where = source.location
        if where is not None:
            found.setdefault(beside(where, folder), []).append(source)
    if apart:
        found = _apart(found)
    places: list[tuple[str, str | None, str | None]] = []
    for location, sources in found.items():
        forms: list[str | None] = list(dict.fromkeys(source.format for source in sources if source.format is not None))
        only = sources[0].only if len(sources) == 1 else None
        places += [(location, form, only) for form in forms or [None]]
    return places


def _is_same(name: str, location: str) -> bool:
    """Whether a run names the place that a stream declares."""
    if is_address(name) or is_address(location):
        return name == location
    return Path(name).absolute() == Path(location).absolute()
