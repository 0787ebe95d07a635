"""This module says what an address names, however it is spelt: which servers, and which folder.

One server has many names on its own machine, its port may be left out, and a table of files may be reached by links.
"""

from __future__ import annotations

import os

from ephemera.connect.systems.address import PORTS, Address
from ephemera.connect.systems.encryption import is_loopback


def has_servers(where: Address) -> bool:
    """Whether the place is on servers whose ports are known."""
    return where.scheme in PORTS


def servers(where: Address) -> frozenset[tuple[str, int]]:
    """The servers that an address names, each once.

    >>> from ephemera.connect.systems.address import address
    >>> sorted(servers(address("kafka://B,127.0.0.1:9093,[::1]:9093/orders")))
    [('b', 9092), ('localhost', 9093)]
    """
    return frozenset(("localhost" if is_loopback(host) else host.lower(), port) for host, port in where.endpoints)


def folder(where: Address) -> str:
    """The folder of a table of Delta Lake, or its place in a store."""
    return where.path.rstrip("/") if "://" in where.path else os.path.realpath(where.path)
