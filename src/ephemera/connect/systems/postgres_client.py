"""This module connects to PostgreSQL by an address, with the password of PGPASSWORD, which is never in a text.

A database may be away in mid-run for a while: whoever needs it tries again, with pauses, until one deadline. That is
for connections that are lost, and for transactions of which the database says that they should be tried again. Whatever
else it says (a full disk, a statement that took too long, …) would only be said again, and ends the run: the checkpoint
has what was not written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ephemera.base.installed import need
from ephemera.connect.systems.address import Address, NoAnswer, WrongAddress

if TYPE_CHECKING:
    import psycopg

WITH_POSTGRES = "pip install 'ephemera-cep[postgres]'"
PATIENCE = 10
_LONGEST = 600.0
"""Seconds for which a database may be away in mid-run."""
_PAUSE = 0.5
_WATCHED: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""A network that is gone without a word is noticed after a minute, where the system would wait for hours."""
_WAYS_OUT = {
    "42501": "let the owner grant that (GRANT USAGE, CREATE ON SCHEMA …), or make the tables and "
    "GRANT SELECT, INSERT, UPDATE ON them",
    "53": "see to it that the database has room, and start again",
    "55P03": "start again when nobody else holds the table",
    "57014": "somebody cancelled it, or `statement_timeout` is too short; see to that, and start again",
}
"""By the code of what went wrong, or the class of that, what to do."""
_FROM_ENVIRONMENT = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "channel_binding": "PGCHANNELBINDING",
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "options": "PGOPTIONS",
}
"""What people know from other clients as options of addresses, by the variables that the client reads."""
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")


def check_database(address: Address, *, table: bool) -> None:
    """Raises what is missing, or wrong with the address."""
    need("psycopg", f"`{address.scheme}://`", WITH_POSTGRES)
    if not address.hosts or not address.path or "/" in address.path:
        raise WrongAddress(f"`{address}` names no database; write such as postgresql://me@127.0.0.1/shop?table=orders")
    ours = next((_FROM_ENVIRONMENT[one] for one in address.options if one in _FROM_ENVIRONMENT), None)
    if ours is not None:
        raise WrongAddress(f"`{address}`: what the client itself is told stands in the environment; set {ours} instead")
    name = address.options.get("table")
    if name is None and table:
        raise WrongAddress(f"`{address}` names no table; add ?table=NAME")
    if name is not None and _TABLE.fullmatch(name) is None:
        raise WrongAddress(f"`{address}`: `{name}` is no name of a table")


def connected(address: Address) -> psycopg.Connection[Any]:
    """A connection; raises `NoAnswer` if there is none to be had."""
    import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    hosts = ",".join(host.strip("[]") for host, _ in address.hosts)
    ports = ",".join(str(port) for _, port in address.endpoints)
    try:
        return psycopg.connect(
            host=hosts, port=ports, user=address.user, dbname=address.path, connect_timeout=PATIENCE, **_WATCHED
        )
    except psycopg.Error as error:
        raise NoAnswer(f"PostgreSQL at {address.servers}: {str(error).strip().splitlines()[-1]}") from None


def deadline() -> float:
    """Until when a database may be away from now on."""
    return time.monotonic() + _LONGEST


def connected_again(
    address: Address, connection: psycopg.Connection[Any], error: Exception, until: float
) -> psycopg.Connection[Any]:
    """A connection for another attempt, after a pause; raises what was said if there is no sense in one."""
    lost = is_gone(connection, error)
    if not (lost or _should_be_repeated(error)) or time.monotonic() > until:
        raise refused(address, error) from None
    time.sleep(_PAUSE)
    if not lost:
        return connection
    connection.close()
    while True:
        try:
            return connected(address)
        except NoAnswer:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def is_gone(connection: psycopg.Connection[Any], error: Exception) -> bool:
    """Whether an error means that the connection is lost, so that another one may do better."""
    import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    if connection.closed:
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False  # such as a value that the client cannot write, which has no code either
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _should_be_repeated(error: Exception) -> bool:
    """Whether the database has taken a transaction back for the sake of another one."""
    return (getattr(error, "sqlstate", None) or "").startswith("40")


def refused(address: Address, error: Exception) -> NoAnswer:
    """What the database said, as people read it, with a way out if there is a special one."""
    said = str(error).strip().splitlines()
    code = getattr(error, "sqlstate", None) or ""
    way_out = _WAYS_OUT.get(code, _WAYS_OUT.get(code[:2]))
    told = said[0] if said else type(error).__name__
    return NoAnswer(f"PostgreSQL at {address.servers}: {told}{f'; {way_out}' if way_out is not None else ''}")


@contextmanager
def told(address: Address) -> Iterator[None]:
    """What the database refuses is told in a line, whoever asked."""
    import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    try:
        yield
    except psycopg.Error as error:
        raise refused(address, error) from None


def psycopg_error() -> type[Exception]:
    """What the client raises, whatever is wrong."""
    import psycopg  # noqa: PLC0415 - only who uses PostgreSQL needs its client

    return psycopg.Error
