"""This module says what a source of events is, and holds those that are in memory: lists and tables.

A source is opened, gives batches until there are no more, and says how far it is. What it gives is decoded elsewhere:
a source knows nothing of programs. Anything with these methods is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from ephemera.engine.hosts.tables import to_arrow
from ephemera.formats.decode import Batch, Objects, Rows
from ephemera.formats.reading import Given

ROWS = 131_072
"""Rows that are taken at a time."""


class OpenSource(Protocol):
    """A source that has been opened."""

    def read(self) -> Batch | None:
        """The next batch; None if there is no more."""

    @property
    def position(self) -> Any:
        """How far it is: what `open` takes to go on from there."""

    def close(self) -> None:
        """Nobody reads any more."""


@runtime_checkable
class Source(Protocol):
    """Where events come from."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def only(self) -> str | None:
        """The type of all events that do not name theirs."""

    @property
    def can_reopen(self) -> bool:
        """Whether what was read can be read again."""

    def open(self, position: Any = None) -> OpenSource:
        """Begins to read, at the beginning or where another stopped."""


def check_only(only: object, who: str) -> None:
    """Raises what is wrong with the type of all events of a source, if that is no name at all."""
    if only is not None and not isinstance(only, str):
        raise TypeError(f"`only` of {who} is the name of one type, and this is a {type(only).__name__}")


@dataclass(frozen=True, slots=True)
class Memory:
    """Events that are there one by one: objects, or lines of JSON.

    >>> from ephemera import sources
    >>> sources.Memory([{"event": "order", "time": 1, "data": ["a"]}]).open().read()
    Objects(events=[{'event': 'order', 'time': 1, 'data': ['a']}], places=None)
    """

    events: Iterable[Given]
    only: str | None = None
    name: str = "the list"

    @property
    def can_reopen(self) -> bool:
        """A list can be read again, and what gives each event once cannot."""
        return isinstance(self.events, Sequence)

    def open(self, position: int | None = None) -> _OpenMemory:
        return _OpenMemory(self.events, position or 0)


class _OpenMemory:
    def __init__(self, events: Iterable[Given], position: int) -> None:
        self._events = islice(events, position, None)
        self.position = position

    def read(self) -> Objects | None:
        found = list(islice(self._events, ROWS))
        self.position += len(found)
        return Objects(found) if found else None

    def close(self) -> None:
        self._events = islice((), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table or frame: of Arrow, pandas, Polars or DuckDB.

    >>> import pyarrow
    >>> from ephemera import sources
    >>> sources.Table(pyarrow.table({"time": [1, 2]}), only="order").open().read().table.num_rows
    2
    """

    given: Any
    only: str | None = None
    name: str = "the table"

    @property
    def can_reopen(self) -> bool:
        return True

    def open(self, position: int | None = None) -> _OpenTable:
        return _OpenTable(to_arrow(self.given), self.name, position or 0)


class _OpenTable:
    def __init__(self, table: Any, name: str, position: int) -> None:
        self._table = table
        self._name = name
        self.position = position

    def read(self) -> Rows | None:
        found = self._table.slice(self.position, ROWS)
        self.position += len(found)
        return Rows(found, self._name) if len(found) else None

    def close(self) -> None:
        self._table = self._table.slice(0, 0)
