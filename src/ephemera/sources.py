"""This module offers what events can be read from, as values; `docs/python.md` says which verb takes which."""

from ephemera.connect.file_source import Files
from ephemera.connect.live_source import Folder, Frame, Socket, SparkTable
from ephemera.connect.source import Memory, OpenSource, Source, Table
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
]
