"""This module says what a live run reads, and for which programs: each source once, however these spell its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ephemera.connect.systems.live import LiveSource
from ephemera.connect.systems.source_names import check_alike, source_key


@dataclass(frozen=True, slots=True)
class Read:
    """A source, and which programs read it, by their numbers, as which type if its events do not name theirs."""

    source: LiveSource
    readers: Mapping[int, str | None] | None = None


def read_once(reads: Sequence[Read], count: int) -> dict[str, Read]:
    """Each source once, by its key, for all of so many programs that read it, however these spell it."""
    found: dict[str, Read] = {}
    for read in reads:
        key = source_key(read.source)
        if key not in found:
            found[key] = read
            continue
        check_alike(found[key].source, read.source)
        readers = _readers(found[key], count)
        for number, only in _readers(read, count).items():
            readers[number] = only if readers.get(number, only) == only else None
        found[key] = Read(found[key].source, readers)
    return found


def _readers(read: Read, count: int) -> dict[int, str | None]:
    return dict.fromkeys(range(count), read.source.only) if read.readers is None else dict(read.readers)
