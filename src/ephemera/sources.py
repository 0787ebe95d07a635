"""This module offers what events can be read from, as values; `docs/python.md` says which verb takes which."""

from ephemera.connect.file_source import Files
from ephemera.connect.live_source import Folder, Frame, Socket, SparkTable
from ephemera.connect.source import Memory, OpenSource, Source, Table
from ephemera.connect.systems.registry import history_at
from ephemera.formats.decode import Batch, Cells, Lines, Objects, Rows

__all__ = [
    "Batch",
    "Cells",
    "Files",
    "Folder",
    "Frame",
    "Lines",
    "Memory",
    "Objects",
    "OpenSource",
    "Rows",
    "Socket",
    "Source",
    "SparkTable",
    "Table",
    "at",
]


def at(address: str, only: str | None = None) -> Source:
    """What a system holds now, by its address: `kafka://…`, `postgresql://…`, `delta:…`, or what a plug-in knows.

    >>> from ephemera import sources
    >>> sources.at("kafka://127.0.0.1:9092/orders?start=latest").name
    'kafka://127.0.0.1:9092/orders'
    """
    return history_at(address, only)
