"""This module reads events from a table of Delta Lake: over history as it is now or was, or live, version by version.

Live, the rows that are there come first, then those of the files that each later version adds. A version that takes
rows away or changes them cannot be taken back from what was read, so that it ends the run, unless the address says that
such versions are passed over. Versions that only arrange rows anew, as `OPTIMIZE` does, add none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from ephemera.connect.source import ROWS
from ephemera.connect.systems.address import Address, NoAnswer, WrongAddress
from ephemera.connect.systems.delta_client import check_delta, loaded
from ephemera.connect.systems.delta_files import DataFile, Files, Version
from ephemera.connect.systems.live import Arrived
from ephemera.formats.decode import Rows

_OPTIONS = ("version", "start", "every", "changes")
_HOW = ("every", "changes")
PARTITION = "0"
"""A table is one."""


class Place(msgspec.Struct):
    """How far a table has been read."""

    table: str
    """The identity of the table."""
    version: int
    is_whole: bool = False
    """Whether all rows of the table at that version are given, and not only those that it adds."""
    file: int | None = None
    """The number of the file in the version; None if all of them have been given."""
    row: int = 0


@dataclass(frozen=True, slots=True)
class DeltaSource:
    """A table of Delta Lake.

    >>> from ephemera.connect.systems.address import address
    >>> DeltaSource(address("delta:shop/orders?version=3")).version
    3
    """

    address: Address
    only: str | None = None

    def __post_init__(self) -> None:
        check_delta(self.address)
        self.address.check_options(_OPTIONS)
        self.address.choice("start", ("earliest", "latest"), "earliest")
        self.address.choice("changes", ("refuse", "skip"), "refuse")
        self.every()
        given = self.address.options.get("version", "0")
        if not (given.isascii() and given.isdigit()):
            raise WrongAddress(f"`{self.address}`: `version` is the number of a version, and this is `{given}`")

    def every(self) -> float:
        """Seconds between two looks at the log."""
        return self.address.seconds("every", 1.0)

    @property
    def version(self) -> int | None:
        """The version that is read, or from which on; None for the last."""
        given = self.address.options.get("version")
        return None if given is None else int(given)

    @property
    def is_latest(self) -> bool:
        """Whether rows that are there when a live run begins are left out."""
        return self.address.options.get("start") == "latest"

    @property
    def skips(self) -> bool:
        """Whether versions that take rows away are passed over."""
        return self.address.options.get("changes") == "skip"

    @property
    def name(self) -> str:
        """The address by what is read; how may change between two runs that share a checkpoint."""
        return self.address.without(_HOW)

    def identity(self) -> str:
        """That of the table, wherever it lies."""
        return Files(self.address, loaded(self.address)).identity

    @property
    def can_reopen(self) -> bool:
        return True

    def table(self) -> pa.Table:
        """All rows that are there now, or were there at the version."""
        opened = self.open()
        found: list[pa.Table] = []
        while (rows := opened.read()) is not None:
            found.append(rows.table)
        return pa.concat_tables(found)

    def open(self, position: dict[str, Any] | None = None) -> _History:
        self.check_history()
        return _History(self, position)

    def check_history(self) -> None:
        """Raises if the address leaves out what is there."""
        if self.is_latest:
            raise WrongAddress(f"`{self.address}`: start=latest is for live runs; leave it out")

    def open_live(self, position: dict[str, Any] | None = None) -> OpenDelta:
        return OpenDelta(self, position)

    def check_version(self, number: int, version: Version) -> None:
        """Raises if a version takes rows away, unless such are passed over."""
        if version.takes_away and not self.skips:
            raise NoAnswer(
                f"`{self.address}`: version {number} of the table takes rows away or changes them "
                f"({version.operation}), and what came of them cannot be taken back; add changes=skip to pass over "
                "such versions, or begin anew with another checkpoint"
            )

    def other(self) -> NoAnswer:
        """What to say if there is another table than before."""
        return NoAnswer(
            f"`{self.address}`: this is not the table that was read before, but one that was made anew; "
            "begin anew with another checkpoint"
        )

    def gone(self, number: int) -> NoAnswer:
        """What to say if a version cannot be read any more."""
        return NoAnswer(
            f"`{self.address}`: version {number} is not in the log of the table any more, so that rows would "
            "be passed over; begin anew with another checkpoint"
        )


class _Reading:
    """The files of one version, which are given one after the other."""

    def __init__(self, files: Files, given: Sequence[DataFile], place: Place) -> None:
        self._files, self._given, self.place = files, given, place
        self._rows: Iterator[tuple[int, pa.Table]] | None = None

    def read(self) -> pa.Table | None:
        """The next rows; None if there are no more."""
        while self.place.file is not None:
            if self.place.file >= len(self._given):
                self.place.file, self.place.row = None, 0
                return None
            self._rows = self._rows or self._files.rows(self._given[self.place.file], self.place.row)
            found = next(self._rows, None)
            if found is not None:
                self.place.row = found[0]
                return found[1]
            self.place.file, self.place.row, self._rows = self.place.file + 1, 0, None
        return None

    def close(self) -> None:
        self._rows = None


class _History:
    """A table as it is now, or was."""

    def __init__(self, source: DeltaSource, position: dict[str, Any] | None) -> None:
        self._name = source.name
        stopped = None if position is None else msgspec.convert(position, Place)
        table = loaded(source.address, source.version if stopped is None else stopped.version)
        self._files = Files(source.address, table)
        place = stopped or Place(self._files.identity, table.version(), is_whole=True, file=0)
        self._reading = _Reading(self._files, self._files.present(), place)
        self._is_first = stopped is None

    def read(self) -> Rows | None:
        found = self._reading.read()
        if found is None and self._is_first:
            found = self._files.schema.empty_table()  # an empty table has columns, too
        self._is_first = False
        return None if found is None else Rows(found, self._name)

    @property
    def position(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self._reading.place)
        return found

    def close(self) -> None:
        self._reading.close()


class OpenDelta:
    """A table whose log is looked at again and again."""

    def __init__(self, source: DeltaSource, position: dict[str, Any] | None) -> None:
        self._source = source
        stopped = None if position is None else msgspec.convert(position, Place)
        last = loaded(source.address)
        self._last = last.version()
        """The last version when it was opened."""
        is_within = stopped is not None and stopped.is_whole and stopped.file is not None
        begin = source.version if stopped is None else stopped.version if is_within else None
        table = last if begin in (None, self._last) else loaded(source.address, begin)
        self._files = Files(source.address, table)
        place = stopped or Place(self._files.identity, table.version(), is_whole=True, file=0)
        if stopped is None and source.is_latest:
            place.file = None
        if place.table != self._files.identity or place.version > self._last:
            raise self._source.other()
        self._reading = self._resumed(place)
        self._waiting: Version | None = None
        self._next = 0.0
        self.behind = set() if place.file is None and place.version >= self._last else {PARTITION}

    def _resumed(self, place: Place) -> _Reading:
        """The rest of a version in which somebody stopped."""
        if place.file is None:
            return _Reading(self._files, (), place)
        if place.is_whole:
            return _Reading(self._files, self._files.present(), place)
        version = self._files.version(place.version)
        if version is None:
            raise self._source.gone(place.version)
        return _Reading(self._files, version.added, place)

    def poll(self, seconds: float) -> list[Arrived]:
        wait = self._next - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, seconds))
            return []
        found: list[pa.Table] = []
        while sum(len(table) for table in found) < ROWS:
            rows = self._reading.read()
            if rows is not None:
                found.append(rows)
            elif not self._turn(found):
                break
        place = self._reading.place
        if place.version > self._last or (place.version == self._last and place.file is None):
            self.behind.clear()
        if not found:
            return []
        return [Arrived(PARTITION, Rows(pa.concat_tables(found, promote_options="permissive"), self._source.name))]

    def _turn(self, found: Sequence[pa.Table]) -> bool:
        """Goes on to the next version; not if there is none, or if it fails and something can be given before."""
        number = self._reading.place.version + 1
        version = self._waiting or self._files.version(number)
        self._waiting = None
        if version is None:
            if number <= self._last:
                raise self._source.gone(number)
            self._next = time.monotonic() + self._source.every()
            return False
        if found and (version.takes_away or version.table is not None):
            self._waiting = version
            return False
        if version.table is not None:
            if version.table != self._reading.place.table:
                raise self._source.other()
            self._files.update()
        self._source.check_version(number, version)
        added = () if version.takes_away else version.added
        self._reading = _Reading(self._files, added, Place(self._reading.place.table, number, file=0))
        return True

    @property
    def position(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self._reading.place)
        return found

    def identity(self) -> str:
        """That of the table."""
        return self._reading.place.table

    def confirm(self) -> None:
        """The checkpoint has the place, and the table none of it."""

    def close(self) -> None:
        self._reading.close()
