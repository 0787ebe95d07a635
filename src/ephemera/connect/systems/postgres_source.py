"""This module reads events from a table of PostgreSQL: over history in the order of time, or live as rows are added.

Live, the table is asked again and again for rows whose `order` column is above the last that was seen: a column that
only grows, such as a serial number or the time of the insert. Rows that become visible behind one that was read, as by
a transaction that takes long, are not seen; let the column be set where rows are committed, or read the table's changes
by Kafka. Rows that have nothing in that column are nowhere in its order, and are not read live.

What a look at the table finds is read in portions, each of which ends where the column has another value: so all rows
of a value are behind a place, or none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ephemera.connect.source import ROWS
from ephemera.connect.systems.address import Address, WrongAddress
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.postgres_client import (
    check_database,
    connected,
    connected_again,
    deadline,
    psycopg_error,
    told,
)
from ephemera.connect.systems.postgres_values import table_of, without_limits
from ephemera.formats.decode import Rows

if TYPE_CHECKING:
    import psycopg

_OPTIONS = ("table", "order", "every")
PARTITION = "0"
"""A table is one."""


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table of PostgreSQL."""

    address: Address
    only: str | None = None
    columns: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        check_database(self.address, table=True)
        self.address.check_options(_OPTIONS)
        self.every()

    def every(self) -> float:
        """Seconds between two looks at the table."""
        return self.address.seconds("every", 1.0)

    @property
    def order(self) -> str | None:
        """The column by which rows are read."""
        return self.address.options.get("order")

    @property
    def name(self) -> str:
        """The address by what is read; how often may change between two runs that share a checkpoint."""
        return self.address.without(("every",))

    @property
    def can_reopen(self) -> bool:
        return True

    def table(self) -> pa.Table:
        """All rows that are there now."""
        opened = self.open()
        try:
            return opened.rest()
        finally:
            opened.close()

    def open(self, position: int | None = None) -> _History:
        return _History(self, position or 0)

    def open_live(self, position: Any = None) -> OpenPostgres:
        return OpenPostgres(self, self.growing(), position)

    def growing(self) -> str:
        """The column along which the table is read live."""
        if self.order is None:
            raise WrongAddress(
                f"`{self.address}`: live, the table is read along a column that only grows; name it by order=COLUMN"
            )
        return self.order

    def latest(self) -> str | None:
        """The last value of that column, as text; None if there are no rows."""
        from psycopg import sql  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        asked = sql.SQL("SELECT max({})::text FROM {}").format(sql.Identifier(self.growing()), _name(self))
        with told(self.address), connected(self.address) as connection:
            row = connection.cursor().execute(asked).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def between(self, first: str | None, last: str) -> Iterator[Rows]:
        """The rows behind one value of that column and up to another."""
        asked = _selected(self, self.growing(), above=first is not None, up_to=True)
        limits = [last] if first is None else [first, last]
        with told(self.address), _reading(self.address) as connection, connection.cursor("ephemera") as cursor:
            cursor.execute(asked, limits)
            while rows := cursor.fetchmany(ROWS):
                yield Rows(table_of(rows, [column.name for column in cursor.description or ()]), self.name)


def _reading(address: Address) -> psycopg.Connection[Any]:
    """A connection that gives all that a table may hold."""
    connection = connected(address)
    without_limits(connection)
    return connection


def _name(source: PostgresSource) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    return sql.Identifier(*source.address.options["table"].split("."))


def _selected(
    source: PostgresSource, order: str | None, *, above: bool = False, up_to: bool = False, live: bool = False
) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    found = sql.SQL("SELECT * FROM {}").format(_name(source))
    if order is None:
        return found
    column = sql.Identifier(order)
    limits = [sql.SQL(" {} > %s").format(column)] if above else []
    limits += [sql.SQL(" {} <= %s").format(column)] if up_to else []
    if live and not limits:
        limits = [sql.SQL(" {} IS NOT NULL").format(column)]
    where = sql.SQL(" WHERE") + sql.SQL(" AND").join(limits) if limits else sql.SQL("")
    return found + where + sql.SQL(" ORDER BY {}").format(column)


class _History:
    """A table as it is now."""

    def __init__(self, source: PostgresSource, position: int) -> None:
        self._source = source
        self._connection = _reading(source.address)
        self.position = position
        self._cursor = self._connection.cursor("ephemera")
        try:
            with told(source.address):
                self._cursor.execute(_selected(source, source.order))
                if position:
                    self._cursor.scroll(position)
        except BaseException:
            self.close()
            raise

    def read(self) -> Rows | None:
        with told(self._source.address):
            rows = self._cursor.fetchmany(ROWS)
        if not rows and self.position:
            return None
        names = [column.name for column in self._cursor.description or ()]
        is_first = self.position == 0
        self.position += len(rows)
        if not rows and is_first:
            self.position = -1  # an empty table has columns, too, and is over then
        return Rows(table_of(rows, names), self._source.name)

    def rest(self) -> pa.Table:
        """All rows that are left, at once: what kinds of values a column has is known of all of them then."""
        with told(self._source.address):
            rows = self._cursor.fetchall()
        return table_of(rows, [column.name for column in self._cursor.description or ()])

    def close(self) -> None:
        with suppress(psycopg_error()):  # as when the statement itself was wrong
            self._cursor.close()
        self._connection.close()


class OpenPostgres:
    """A table that is asked again and again."""

    def __init__(self, source: PostgresSource, order: str, position: Any) -> None:
        self._source, self._order = source, order
        self._connection = _reading(source.address)
        self.position: Any = position
        """The last value of the column by which it is read, as text; None before the first."""
        self.behind = {PARTITION}
        self._next = 0.0
        self._until: float | None = None
        """Until when the database may be away; None while it is there."""
        self._cursor: psycopg.ServerCursor[Any] | None = None
        """What a look at the table still has to give."""
        self._held: list[Sequence[Any]] = []
        """The last rows that it gave, of a value that may go on."""

    def poll(self, seconds: float) -> list[Arrived]:
        import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        wait = self._next - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, seconds))
            return []
        try:
            rows, names = self._portion()
        except psycopg.Error as error:
            self._let_go()  # what was held is behind the position still
            self._until = self._until or deadline()
            self._connection = connected_again(self._source.address, self._connection, error, self._until)
            without_limits(self._connection)
            return []
        self._until = None
        if self._cursor is None:
            self._next = time.monotonic() + self._source.every()
            self.behind.clear()
        if not rows:
            return []
        self.position = str(rows[-1][self._place(names)])
        return [Arrived(PARTITION, Rows(table_of(rows, names), self._source.name))]

    def _portion(self) -> tuple[list[Sequence[Any]], list[str]]:
        """Rows of the look at the table, of values that are over, and the names of its columns."""
        if self._cursor is None:
            self._connection.rollback()  # of a look that failed
            above = self.position is not None
            self._cursor = self._connection.cursor("ephemera")
            asked = _selected(self._source, self._order, above=above, live=True)
            self._cursor.execute(asked, [self.position] if above else None)
        came = self._cursor.fetchmany(ROWS)
        names = [column.name for column in self._cursor.description or ()]
        rows = [*self._held, *came]
        if len(came) < ROWS:
            self._cursor.close()
            self._connection.rollback()
            self._cursor, self._held = None, []
            return rows, names
        place = self._place(names)
        whole, last = len(rows), rows[-1][place]
        while whole and (rows[whole - 1][place] == last or str(rows[whole - 1][place]) == str(last)):  # as NaN is
            whole -= 1
        self._held = rows[whole:]
        return rows[:whole], names

    def _place(self, names: Sequence[str]) -> int:
        """Which column is that along which the table is read."""
        if self._order not in names:
            raise WrongAddress(f"`{self._source.address}`: the table has no column `{self._order}`")
        return names.index(self._order)

    def _let_go(self) -> None:
        with suppress(psycopg_error()):
            if self._cursor is not None:
                self._cursor.close()
        self._cursor, self._held = None, []

    def confirm(self) -> None:
        """The checkpoint has the place, and the database none of it."""

    def close(self) -> None:
        self._let_go()
        self._connection.close()
