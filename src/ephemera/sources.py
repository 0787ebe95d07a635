"""This module offers what events can be read from, as values; `docs/python.md` says which verb takes which."""

from ephemera.connect.file_source import Files
from ephemera.connect.live_source import Folder, Frame, Socket, SparkTable
from ephemera.connect.source import Memory, Source, Table

__all__ = ["Files", "Folder", "Frame", "Memory", "Socket", "Source", "SparkTable", "Table"]
