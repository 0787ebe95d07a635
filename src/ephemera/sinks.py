"""This module offers where answers can go, as values; `docs/python.md` says which verb takes which."""

from ephemera.connect.file_sink import File
from ephemera.connect.live_sink import Batches, Folder, Table
from ephemera.connect.sink import Callback, Console, Memory, OpenSink, Sink
from ephemera.formats.answers import AnswerBatch

__all__ = [
    "AnswerBatch",
    "Batches",
    "Callback",
    "Console",
    "File",
    "Folder",
    "Memory",
    "OpenSink",
    "Sink",
    "Table",
]
