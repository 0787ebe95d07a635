"""This module says whether a run would read its own answers: from the topic or the table to which it writes them.

Addresses are compared by the place that they name, whatever else they say: a server that both know, and the topic or
the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from ephemera.connect.systems.address import Address, WrongAddress, address, is_address
from ephemera.connect.systems.encryption import is_loopback

_PORTS = {"kafka": 9092, "postgresql": 5432, "mqtt": 1883}


def fed_back(written: Iterable[str | None], read: Iterable[str]) -> str | None:
    """What is wrong if answers would go to where events come from; None if they do not.

    >>> fed_back(["kafka://127.0.0.1/a?key=id"], ["kafka://localhost:9092/a?start=latest"])
    'answers would go to `kafka://127.0.0.1/a?key=id`, which the run reads, so it would read them; name another topic'
    >>> fed_back(["kafka://127.0.0.1/a"], ["kafka://127.0.0.1/b"])
    """
    for target, source in product(filter(None, written), list(read)):
        one, other = _address(target), _address(source)
        if one is not None and other is not None and _is_same(one, other):
            what = "topic" if one.scheme in ("kafka", "mqtt") else "table"
            return f"answers would go to `{target}`, which the run reads, so it would read them; name another {what}"
    return None


def _address(name: str) -> Address | None:
    if not is_address(name):
        return None
    try:
        return address(name)
    except WrongAddress:  # which is told where it is opened
        return None


def _is_same(written: Address, read: Address) -> bool:
    scheme = _scheme(written)
    if scheme != _scheme(read):
        return False
    match scheme:
        case "kafka":
            return written.path == read.path and _meet(written, read)
        case "mqtt":
            return _fits(written.path.split("/"), read.path.split("/")) and _meet(written, read)
        case "postgresql":
            table = _table(read)
            return written.path == read.path and table is not None and table == _table(written) and _meet(written, read)
        case "delta":
            return _folder(written) == _folder(read)
        case _:
            return False


def _scheme(where: Address) -> str:
    return "postgresql" if where.scheme == "postgres" else where.scheme


def _meet(one: Address, other: Address) -> bool:
    """Whether they have a server in common."""
    return not _servers(one).isdisjoint(_servers(other))


def _servers(where: Address) -> set[tuple[str, int]]:
    port = _PORTS[_scheme(where)]
    return {("localhost" if is_loopback(host) else host.lower(), own or port) for host, own in where.hosts}


def _table(where: Address) -> str | None:
    name = where.options.get("table")
    return None if name is None else name.removeprefix("public.")


def _folder(where: Address) -> str:
    return where.path if "://" in where.path else str(Path(where.path).resolve())


def _fits(topic: list[str], wanted: list[str]) -> bool:
    """Whether a filter of MQTT takes a topic."""
    if wanted[:1] == ["#"]:
        return True
    if not topic or not wanted:
        return topic == wanted
    return wanted[0] in ("+", topic[0]) and _fits(topic[1:], wanted[1:])
