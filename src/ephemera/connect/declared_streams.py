"""This module says where programs read: the places that their streams declare, or those that a run names.

Each stream reads its own files. Where a stream carries one type, and no other stream of its program names the same
place, what stands there is of that type and need not say so. A program reads what it declares, alone or beside others;
one that declares no place reads what the others declare. A place that a run names is read by all programs, and by those
that declare it as they declare it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


def declared_places(catalogues: Sequence[Catalogue], folders: Sequence[Path] | None = None) -> list[Place]:
    """The places that programs declare, each once for those that read it alike; paths are relative to the folders.

    >>> import ephemera
    >>> cards = ephemera.compile('EVENT txn(card: string); STREAM s FROM "a.csv" CARRIES txn; p(c) <- t: txn(c);')
    >>> declared_places([cards.catalogue])
    [Place(location='a.csv', programs=frozenset({0}), format=None, only='txn')]
    """
    where = [None] * len(catalogues) if folders is None else folders
    own = [_places(catalogue, folder) for catalogue, folder in zip(catalogues, where, strict=True)]
    every = dict.fromkeys(place for places in own for place in places)
    readers = {place: frozenset(n for n, places in enumerate(own) if place in (places or every)) for place in every}
    return [Place(location, readers[location, form, only], form, only) for location, form, only in every]


def given_places(
    names: Sequence[str], catalogues: Sequence[Catalogue], folders: Sequence[Path] | None = None
) -> list[Place]:
    """The places that a run names, each as programs declare it, if they do."""
    declared = declared_places(catalogues, folders)
    found: list[Place] = []
    for name in dict.fromkeys(names):
        left = frozenset(range(len(catalogues)))
        for place in declared:
            if place.programs & left and _is_same(name, place.location):
                found.append(Place(name, place.programs & left, place.format, place.only))
                left -= place.programs
        if left:
            found.append(Place(name, left))
    return found


def _places(catalogue: Catalogue, folder: Path | None) -> list[tuple[str, str | None, str | None]]:
    """The places of one program: where they are, their format and the one type that they hold, if it is one."""
    found: dict[str, list[Source]] = {}
    for source in catalogue.sources:
        where = source.location
        if where is not None:
            found.setdefault(where if folder is None or "://" in where else str(folder / where), []).append(source)
    places: list[tuple[str, str | None, str | None]] = []
    for location, sources in found.items():
        forms: list[str | None] = list(dict.fromkeys(source.format for source in sources if source.format is not None))
        only = sources[0].only if len(sources) == 1 else None
        places += [(location, form, only) for form in forms or [None]]
    return places


def _is_same(name: str, location: str) -> bool:
    """Whether a run names the place that a stream declares."""
    if "://" in name or "://" in location:
        return name == location
    return Path(name).absolute() == Path(location).absolute()
