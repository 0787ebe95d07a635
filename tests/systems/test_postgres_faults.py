"""What a database says decides whether it is asked again: with pauses, until one deadline, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.adapt import AdaptersMap

from ephemera.connect.systems import postgres_client, postgres_sink, postgres_source
from ephemera.connect.systems.address import NoAnswer, address
from ephemera.connect.systems.postgres_client import connected, is_gone
from ephemera.connect.systems.postgres_sink import OpenPostgresTarget
from ephemera.connect.systems.postgres_source import OpenPostgres, PostgresSource

WHERE = address("postgresql://shop@127.0.0.1/shop?table=orders&order=n")
LOAD = b'{"event":"big","columns":[["id","string"]],"counts":true,"rows":[{"event":"big","time":1,"data":["a"]}]},'
FOR_GOOD = [
    (errors.DiskFull, "see to it that the database has room"),
    (errors.QueryCanceled, "`statement_timeout` is too short"),
    (errors.LockNotAvailable, "start again when nobody else holds the table"),
    (errors.StatementTooComplex, "no luck"),
    (errors.InsufficientPrivilege, "let the owner grant that"),
    (psycopg.DataError, "no luck"),  # what the client itself cannot write, which has no code
]


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1

    def monotonic(self) -> float:
        return self.now


class Database:
    """A database that fails, until it does not: each time a statement of its own choice is given, it says so."""

    def __init__(self, *, fails: Callable[[int], Exception | None], at: str) -> None:
        self._fails, self._at = fails, at
        self.attempts = 0
        self.made = 0
        self.committed: list[int] = []

    def connection(self, _where: object = None) -> Connection:
        self.made += 1
        return Connection(self)

    def hear(self, statement: object, values: Any) -> None:
        if self._at in str(statement):
            self.attempts += 1
            error = self._fails(self.attempts)
            if error is not None:
                raise error
        if "INSERT INTO ephemera_commits" in str(statement):
            self.committed.append(values[1])


class Connection:
    """As much of a connection, and of its cursors, as is used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.closed = False
        self.adapters = AdaptersMap(psycopg.adapters)
        self.description: list[Any] = []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield

    def cursor(self, _name: str = "") -> Connection:
        return Connection(self._database)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: object, values: Any = None) -> Connection:
        self._database.hear(statement, values)
        return self

    def executemany(self, statement: object, values: Any) -> None:
        self._database.hear(statement, values)

    def fetchone(self) -> None:
        return None

    def fetchall(self) -> list[tuple[str, str]]:
        return []

    def fetchmany(self, _count: int) -> list[Any]:
        return []

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the connector alone: other threads of the process have theirs."""
    made = Clock()
    for module in (postgres_client, postgres_source):
        monkeypatch.setattr(module, "time", made)
    return made


def fail(monkeypatch: pytest.MonkeyPatch, error: Callable[[int], Exception | None], at: str) -> Database:
    """A database in place of a real one, which fails at statements that hold a text."""
    database = Database(fails=error, at=at)
    for module in (postgres_client, postgres_sink, postgres_source):
        monkeypatch.setattr(module, "connected", database.connection)
    return database


@pytest.mark.parametrize(("error", "told"), FOR_GOOD)
def test_what_would_only_be_said_again_ends_a_commit(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, error: type[psycopg.Error], told: str
) -> None:
    database = fail(monkeypatch, lambda _: error("no luck"), "DO NOTHING")
    opened = OpenPostgresTarget(WHERE, "run")
    with pytest.raises(NoAnswer, match=told):
        opened.put(LOAD, 1)
    assert (database.attempts, database.made, clock.pauses) == (1, 1, 0)


def test_a_database_that_is_away_is_waited_for_with_pauses_until_one_deadline(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    database = fail(monkeypatch, lambda _: errors.AdminShutdown("it shuts down"), "DO NOTHING")
    opened = OpenPostgresTarget(WHERE, "run")
    with pytest.raises(NoAnswer, match="it shuts down"):
        opened.put(LOAD, 1)  # each time the connection comes back at once, and is lost again
    assert 600 <= clock.now < 610
    assert database.made == database.attempts == clock.pauses + 1


def test_a_connection_that_comes_back_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    lost = [errors.CannotConnectNow("it starts"), psycopg.OperationalError("server closed the connection")]
    database = fail(monkeypatch, lambda attempt: lost[attempt - 1] if attempt <= len(lost) else None, "DO NOTHING")
    opened = OpenPostgresTarget(WHERE, "run")
    opened.put(LOAD, 1)
    assert (database.committed, database.made, clock.pauses) == ([1], 3, 2)


def test_a_transaction_that_was_taken_back_for_another_is_done_again(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    first = errors.DeadlockDetected("deadlock detected")
    database = fail(monkeypatch, lambda attempt: first if attempt == 1 else None, "DO NOTHING")
    opened = OpenPostgresTarget(WHERE, "run")
    opened.put(LOAD, 1)
    assert (database.committed, database.made, clock.pauses) == ([1], 1, 1)


@pytest.mark.parametrize(("error", "told"), FOR_GOOD)
def test_what_would_only_be_said_again_ends_reading(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, error: type[psycopg.Error], told: str
) -> None:
    database = fail(monkeypatch, lambda _: error("no luck"), "SELECT *")
    opened = OpenPostgres(PostgresSource(WHERE), "n", None)
    with pytest.raises(NoAnswer, match=told):
        opened.poll(0.0)
    assert (database.attempts, clock.pauses) == (1, 0)


def test_a_table_that_cannot_be_read_for_a_while_is_asked_with_pauses_until_one_deadline(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    database = fail(monkeypatch, lambda _: errors.AdminShutdown("it shuts down"), "SELECT *")
    opened = OpenPostgres(PostgresSource(WHERE), "n", None)
    with pytest.raises(NoAnswer, match="it shuts down"):
        all(opened.poll(0.0) == [] for _ in range(10_000))
    assert 600 <= clock.now < 610
    assert database.attempts == clock.pauses + 1


def test_what_is_wrong_when_a_target_is_opened_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, lambda _: errors.InsufficientPrivilege("permission denied for schema public"), "CREATE TABLE")
    with pytest.raises(NoAnswer, match="permission denied for schema public; let the owner grant that"):
        OpenPostgresTarget(WHERE, "run")


def test_a_closed_connection_is_gone_whatever_was_said() -> None:
    connection: Any = Connection(Database(fails=lambda _: None, at="-"))
    assert not is_gone(connection, errors.UniqueViolation("twice"))
    connection.close()
    assert is_gone(connection, errors.UniqueViolation("twice"))


def test_a_network_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(psycopg, "connect", lambda **options: given.update(options))
    connected(WHERE)
    assert (given["keepalives"], given["tcp_user_timeout"]) == (1, 60_000)
    assert given["keepalives_idle"] + given["keepalives_interval"] * given["keepalives_count"] <= 60
