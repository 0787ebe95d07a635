"""This module writes answers to tables of PostgreSQL, exactly once: each commit of a run is one transaction.

Each type of answers has a table of its name, with a column for each argument, of the type that the rules let expect,
and `begin` and `end`. With `?table=NAME` all types go into that one, with the columns of all. The key of a row is a
digest of the whole answer, so that an answer is there once, whoever found it and however often. The number of the
commit is kept in the table `ephemera_commits`, in the same transaction.

A column that is there with another type is refused, since the database would make values fit: 1.5 would be 2 in a
column of whole numbers. That is seen when answers are encoded, before they are in a checkpoint, and again when they are
put.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ephemera.connect.systems.address import Address, NoAnswer
from ephemera.connect.systems.named_answers import held_by
from ephemera.connect.systems.postgres_client import (
    check_database,
    connected,
    connected_again,
    deadline,
    is_gone,
    refused,
    told,
)
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.encode_typed_arrow import UnlikeType

if TYPE_CHECKING:
    import psycopg

_TYPES = {
    "int": "bigint",
    "float": "double precision",
    "string": "text",
    "bool": "boolean",
    "time": "timestamptz",
    "json": "jsonb",
}
_HOLDING = {
    "bigint": ("bigint", "numeric", "double precision"),
    "double precision": ("double precision",),
    "text": ("text", "character varying"),
    "boolean": ("boolean",),
    "timestamptz": ("timestamp with time zone",),
    "jsonb": ("jsonb", "json"),
}
"""For each type the columns that hold its values as they are; doubles only small whole numbers."""
_EXACT = 2**53
"""Up to here doubles hold whole numbers."""
_COMMITS = "ephemera_commits"
_NUL, _IN_PLACE_OF_NUL = "\0", "\ufffd"
"""The one character that no text of PostgreSQL holds, and what is written for it."""


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """Tables of PostgreSQL."""

    address: Address

    def __post_init__(self) -> None:
        check_database(self.address, table=False)
        self.address.check_options(("table",))

    @property
    def name(self) -> str:
        return str(self.address)

    def open_target(self, identity: str, position: Any = None) -> OpenPostgresTarget:
        del position  # the database knows the last commit
        return OpenPostgresTarget(self.address, identity)


class _Rows(msgspec.Struct):
    """Answers of one type: the columns behind begin and end, and the rows."""

    event: str
    columns: list[tuple[str, str]]
    counts: bool
    rows: list[Any]


class OpenPostgresTarget:
    """Tables that are being written."""

    position: Any = None

    def __init__(self, address: Address, identity: str) -> None:
        self._address = address
        self._identity = identity
        self._table = address.options.get("table")
        self._encoded: dict[str, dict[str, str]] = {}
        """For each table the columns of what was encoded."""
        self._known: dict[str, frozenset[str]] = {}
        """For tables that have the columns of some answers, which of these hold small whole numbers only."""
        self._connection = connected(address)
        try:
            with told(address):
                self._last = self._begun()
        except BaseException:
            self.close()
            raise

    def _begun(self) -> int:
        """The number of the last commit of this run."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            if not self._there(cursor, _COMMITS):  # who may not make tables may have been given one
                cursor.execute("SELECT pg_advisory_xact_lock(hashtext('ephemera'))")  # two may make tables at once
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {_COMMITS} (run text PRIMARY KEY, number bigint NOT NULL)")
            cursor.execute(f"SELECT number FROM {_COMMITS} WHERE run = %s", [self._identity])
            found = cursor.fetchone()
        return 0 if found is None else int(found[0])

    @property
    def last(self) -> int:
        """The number of the last commit of this run."""
        return self._last

    # ---- encoding ------------------------------------------------------------------------------------------

    def encode(self, answers: AnswerBatch) -> bytes:
        found: list[_Rows] = []
        for part, rule in zip(answers.parts, answers.rules, strict=True):
            if not len(part.events):
                continue
            lines = AnswerBatch(answers.form, (part,), (rule,)).lines().splitlines()
            columns = [(name, self._widened(answers, name, str(held))) for name, held in held_by(answers, part)]
            counts = answers.form.counting[part.program].stamps
            found.append(_Rows(part.events.label, columns, counts, [msgspec.json.decode(line) for line in lines]))
        for one in found:
            self._check(one)
        return msgspec.json.encode(found)[1:-1] + b"," if found else b""

    def _widened(self, answers: AnswerBatch, name: str, held: str) -> str:
        """What a column holds in a table that several programs share."""
        if self._table is None or held != "int":
            return held
        return "float" if any(one.columns.get(name) == "float" for one in answers.form.layouts) else held

    def _check(self, part: _Rows) -> None:
        """Raises if answers do not fit those before or the table that is there, before a checkpoint has them."""
        import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        name, columns = self._table or part.event, self._columns(part)
        before = self._encoded.setdefault(name, {})
        for column, kind in columns.items():
            if before.get(column, kind) != kind:
                raise UnlikeType(
                    f"`{self._address}`: answers give columns `{column}` of the types {before[column]} and {kind} for "
                    f"the table `{name}`; write them to several tables, by WRITE … TO in programs"
                )
        if columns.keys() <= before.keys():
            return
        before.update(columns)
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                self._small(name, columns, self._there(cursor, name))
        except psycopg.Error as error:
            if not is_gone(self._connection, error):  # else it is seen by `put`, which waits for the database
                raise refused(self._address, error) from None

    # ---- commits -------------------------------------------------------------------------------------------

    def put(self, load: bytes, number: int) -> None:
        import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        parts = msgspec.json.decode(b"[" + load[:-1] + b"]", type=list[_Rows])
        until = deadline()
        has_failed = False
        while number > self._last:
            try:
                if has_failed:  # the commit may have been done before the connection was lost
                    self._last = self._begun()
                    has_failed = False
                    continue
                with self._connection.transaction(), self._connection.cursor() as cursor:
                    for part in parts:
                        self._insert(cursor, part)
                    cursor.execute(
                        f"INSERT INTO {_COMMITS} VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET number = %s",
                        [self._identity, number, number],
                    )
                self._last = number
            except psycopg.Error as error:
                self._known.clear()  # a table that was made in the transaction is gone with it
                self._connection = connected_again(self._address, self._connection, error, until)
                has_failed = True

    def _insert(self, cursor: psycopg.Cursor[Any], part: _Rows) -> None:
        from psycopg import sql  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        name, columns = self._table or part.event, self._columns(part)
        known = repr((name, columns))
        if known not in self._known:
            self._known[known] = self._made(cursor, name, columns)
        self._check_small(part, self._known[known])
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (key) DO NOTHING").format(
            sql.Identifier(*self._path(name)),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(sql.SQL("%s::" + kind) for kind in columns.values()),
        )
        cursor.executemany(statement, [self._row(part, row) for row in part.rows])

    def _path(self, name: str) -> list[str]:
        """A table by its schema, if the address names one, and its own name."""
        return name.split(".") if self._table else [_text(name)]

    def _columns(self, part: _Rows) -> dict[str, str]:
        stamp = "double precision" if part.counts else "timestamptz"
        found = {"key": "text", "event": "text", "begin": stamp, "end": stamp}
        if any("recipient" in row for row in part.rows):
            found |= {"recipient": "text", "transport": "text"}
        if not part.columns:
            return found | {"data": "jsonb"}
        return found | {_own(name): _TYPES[held] for name, held in part.columns}

    # ---- tables --------------------------------------------------------------------------------------------

    def _there(self, cursor: psycopg.Cursor[Any], name: str) -> dict[str, str]:
        """The columns that a table has with their types; none if there is no such table."""
        path = ".".join('"' + part.replace('"', '""') + '"' for part in self._path(name))
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s::text) AND attnum > 0 AND NOT attisdropped",
            [path],
        )
        return dict(cursor.fetchall())

    def _made(self, cursor: psycopg.Cursor[Any], name: str, columns: Mapping[str, str]) -> frozenset[str]:
        """Makes what a table lacks; the columns in which there is only room for small whole numbers."""
        from psycopg import sql  # noqa: PLC0415 - only who uses PostgreSQL needs its client

        there = self._there(cursor, name)
        if not columns.keys() <= there.keys():
            table = sql.Identifier(*self._path(name))
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('ephemera'))")
            cursor.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} (key text PRIMARY KEY)").format(table))
            for column, kind in columns.items():
                add = sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} " + kind)
                cursor.execute(add.format(table, sql.Identifier(column)))
            there = self._there(cursor, name)
        return self._small(name, columns, there)

    def _small(self, name: str, columns: Mapping[str, str], there: Mapping[str, str]) -> frozenset[str]:
        """The columns that are doubles, for whole numbers; raises if one cannot hold its values as they are."""
        for column, kind in columns.items():
            if there.get(column, _HOLDING[kind][0]) not in _HOLDING[kind]:
                raise self._unfit(name, column, there[column], kind)
        return frozenset(c for c, kind in columns.items() if kind == "bigint" and there.get(c) == "double precision")

    def _check_small(self, part: _Rows, columns: Iterable[str]) -> None:
        """Raises if a column of doubles would have to round a whole number."""
        for column in columns:
            k = [_own(name) for name, _ in part.columns].index(column)
            if any(row["data"][k] is not None and abs(row["data"][k]) > _EXACT for row in part.rows):
                raise self._unfit(self._table or part.event, column, "double precision", "bigint")

    def _unfit(self, name: str, column: str, there: str, kind: str) -> NoAnswer:
        return NoAnswer(
            f"`{self._address}`: the table `{name}` has a column `{column}` of type {there}, and the answers need "
            f"{kind}; change the column, or rename the table so that a new one is made, and start again"
        )

    # ---- rows ----------------------------------------------------------------------------------------------

    @staticmethod
    def _row(part: _Rows, row: Mapping[str, Any]) -> list[Any]:
        time = row["time"]
        begin, end = time if isinstance(time, list) else (time, time)
        data = row.get("data", row.get("term"))
        canonical = msgspec.json.encode([row["event"], begin, end, data, row.get("recipient"), row.get("transport")])
        found = [hashlib.sha256(canonical).hexdigest(), _text(row["event"]), begin, end]
        if "recipient" in row:
            found += [_text(row["recipient"]), _text(row["transport"])]
        if not part.columns:
            return [*found, _json(data)]
        values = zip(part.columns, data, strict=True)
        return [*found, *(_cell(value, held) for (_, held), value in values)]

    def close(self) -> None:
        self._connection.close()


def _own(name: str) -> str:
    """The column of an argument, which may have the name of one that every table has."""
    return f"{name}_" if name in ("key", "event", "begin", "end", "recipient", "transport") else name


def _cell(value: Any, held: str) -> Any:
    if value is None:
        return None
    if held == "json":
        return _json(value)
    return _text(value) if isinstance(value, str) else value


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return msgspec.json.encode(_without_nul(value)).decode() if "\\u0000" in text else text


def _text(value: str) -> str:
    """A text as the database can hold it."""
    return value.replace(_NUL, _IN_PLACE_OF_NUL)


def _without_nul(value: Any) -> Any:
    """What JSON can hold, with all texts as the database can hold them."""
    match value:
        case str():
            return _text(value)
        case list():
            return [_without_nul(one) for one in value]
        case dict():
            return {_text(name): _without_nul(one) for name, one in value.items()}
        case _:
            return value
