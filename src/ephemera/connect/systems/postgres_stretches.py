"""This module reads a table of PostgreSQL in stretches: live, the rows between two values of a column that only grows.

Over history a table is one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.postgres_source import PARTITION, PostgresSource
from ephemera.connect.systems.stretches import Position, Reached, Stretch

_NOTHING = ""
"""The place before the first row."""


@dataclass(frozen=True, slots=True)
class PostgresStretches:
    """A table of PostgreSQL."""

    source: PostgresSource

    def begin(self) -> Position:
        return {PARTITION: _NOTHING}

    def reached(self, since: Position, most: int | None = None) -> Reached:
        del most  # rows are few beside messages, and the next limit would have to be counted
        latest = self.source.latest()
        return Reached(since if latest is None else {PARTITION: latest})

    def between(self, first: Position, last: Position) -> list[Stretch]:
        same = first.get(PARTITION, _NOTHING) == last[PARTITION]
        return [] if same else [Stretch(PARTITION, first.get(PARTITION, _NOTHING), last[PARTITION])]

    def history(self) -> list[Stretch]:
        return [Stretch(PARTITION, _NOTHING, _NOTHING)]

    def read(self, stretch: Stretch) -> Iterator[Arrived]:
        if stretch.last == _NOTHING:
            opened = self.source.open()
            try:
                while (rows := opened.read()) is not None:
                    yield Arrived(PARTITION, rows)
            finally:
                opened.close()
            return
        first = None if stretch.first == _NOTHING else str(stretch.first)
        for rows in self.source.between(first, str(stretch.last)):
            yield Arrived(PARTITION, rows)
