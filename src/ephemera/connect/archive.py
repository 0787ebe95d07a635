"""This module reads the archive from which rules that are added to an engine get their past.

It is read from its beginning to its end, by columns, but only what is asked for is held: the events of some types that
end after some time. Their order means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, get_args

from ephemera.connect.file_source import Files
from ephemera.connect.found_files import found_files
from ephemera.connect.source import Source
from ephemera.connect.source_run import sources_of
from ephemera.connect.systems.registry import history_at, is_system, knowing
from ephemera.connect.time_order import Input
from ephemera.engine.change.archive import Found
from ephemera.engine.change.starts import LookBack
from ephemera.formats.decode import Decoder, Noticed
from ephemera.formats.decoded import span_of
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled


@dataclass(frozen=True, slots=True)
class SourceArchive:
    """Sources as an archive."""

    sources: Sequence[tuple[Source, str | None]]
    """Each with the type of its events, if they do not name theirs."""
    name: str
    lenient: bool = False

    def read(self, compiled: Compiled, after: Mapping[str | None, int]) -> Found:
        """The events of some types that end after some time."""
        noticed = Noticed(Keys(compiled.physical))
        parts: list[Events] = []
        bad: list[str] = []
        first: int | None = None
        for given, only in self.sources:
            source = knowing(given, compiled.plan.catalogue)
            own = Input(source, [Decoder(compiled, noticed, only)])
            try:
                while (read := own.read()) is not None:
                    (decoded,) = read
                    bad += [one.reason for one in decoded.bad_events]
                    span = span_of(decoded.parts)
                    if span is not None:
                        first = span[0] if first is None else min(first, span[0])
                    parts += [kept for part in decoded.parts if len(kept := _behind(part, after))]
            finally:
                own.close()
        noticed.check(compiled, lenient=self.lenient)
        return Found(parts, first, bad)


def _behind(part: Events, after: Mapping[str | None, int]) -> Events:
    """Those events that are asked for."""
    time = min(after.get(part.label, FAR), after.get(None, FAR))
    rows = part.batch[END] > time
    return part if rows.all() else part.take(rows)


def archive_of(given: Any, *, lenient: bool = False) -> SourceArchive:
    """An archive as people name it: a path, an address, sources, a table, or a list of events."""
    if isinstance(given, SourceArchive):
        return given
    if not isinstance(given, str | PathLike):
        sources = sources_of(given)
        return SourceArchive([(one, one.only) for one in sources], sources[0].name, lenient)
    name = fspath(given)
    if not is_system(name) and not found_files(name):
        ways = ", ".join(f'"{way}"' for way in get_args(LookBack))
        raise ValueError(f"look_back is {ways}, or an archive, and in `{name}` there are no files")
    source = history_at(name) if is_system(name) else Files(name)
    return SourceArchive([(source, source.only)], name, lenient)
