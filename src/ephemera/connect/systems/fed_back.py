"""This module says whether a run would read its own answers: from the topic or the table to which it writes them.

Addresses are compared by the place that they name, whatever else they say: a server that both know, and the topic or
the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from ephemera.connect.systems.address import Address, WrongAddress, address, is_address
from ephemera.connect.systems.same_place import folder, servers


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
    if written.scheme != read.scheme:
        return False
    match written.scheme:
        case "kafka":
            return written.path == read.path and _meet(written, read)
        case "mqtt":
            return _fits(written.path.split("/"), read.path.split("/")) and _meet(written, read)
        case "postgresql":
            table = _table(read)
            return written.path == read.path and table is not None and table == _table(written) and _meet(written, read)
        case "delta":
            return folder(written) == folder(read)
        case _:
            return False


def _meet(one: Address, other: Address) -> bool:
    """Whether they have a server in common."""
    return not servers(one).isdisjoint(servers(other))


def _table(where: Address) -> str | None:
    name = where.options.get("table")
    return None if name is None else name.removeprefix("public.")


def _fits(topic: list[str], wanted: list[str]) -> bool:
    """Whether a filter of MQTT takes a topic."""
    if wanted[:1] == ["#"]:
        return True
    if not topic or not wanted:
        return topic == wanted
    return wanted[0] in ("+", topic[0]) and _fits(topic[1:], wanted[1:])
