"""This module reads a table of Delta Lake in stretches: the whole of it at a version, then version by version.

A position is the last version that was read, under the identity of the table, so that one made anew is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ephemera.connect.systems.delta_client import loaded
from ephemera.connect.systems.delta_files import Files
from ephemera.connect.systems.delta_source import DeltaSource
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.stretches import Position, Reached, Stretch
from ephemera.formats.decode import Rows

_NOTHING = -1
"""Before all rows that are there."""


@dataclass(frozen=True, slots=True)
class DeltaStretches:
    """A table of Delta Lake."""

    source: DeltaSource

    def begin(self) -> Position:
        table = loaded(self.source.address, self.source.version)
        identity = Files(self.source.address, table).identity
        return {identity: table.version() if self.source.is_latest else _NOTHING}

    def reached(self, since: Position, most: int | None = None) -> Reached:
        del most  # versions are taken as a whole
        (first,) = since.values() or (_NOTHING,)
        table = loaded(self.source.address, self.source.version if first == _NOTHING else None)
        identity = Files(self.source.address, table).identity
        if since and identity not in since:
            raise self.source.other()
        return Reached({identity: table.version()})

    def between(self, first: Position, last: Position) -> list[Stretch]:
        ((identity, end),) = last.items()
        begin = int(first.get(identity, _NOTHING))
        if begin == _NOTHING:
            return [Stretch(identity, _NOTHING, end)]
        return [Stretch(identity, number, number + 1) for number in range(begin, int(end))]

    def history(self) -> list[Stretch]:
        self.source.check_history()
        return self.between({}, self.reached({}).position)

    def read(self, stretch: Stretch) -> Iterator[Arrived]:
        number = int(stretch.last)
        files = Files(self.source.address, loaded(self.source.address, number))
        if files.identity != stretch.partition:
            raise self.source.other()
        if stretch.first == _NOTHING:
            given = files.present()
        else:
            version = files.version(number)
            if version is None:
                raise self.source.gone(number)
            self.source.check_version(number, version)
            given = [] if version.takes_away else list(version.added)
        for file in given:
            for _, rows in files.rows(file):
                yield Arrived(stretch.partition, Rows(rows, self.source.name))
