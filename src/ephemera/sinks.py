"""This module offers where answers can go, as values; `docs/python.md` says which verb takes which."""

from ephemera.connect.file_sink import File
from ephemera.connect.live_sink import Batches, Folder, Table
from ephemera.connect.several_sinks import ToSystem
from ephemera.connect.sink import Callback, Console, Memory, OpenSink, Sink
from ephemera.connect.systems.registry import target_at
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
    "at",
]


def at(address: str) -> ToSystem:
    """A system that takes answers in commits: such as `kafka://…`, `postgresql://…` or `delta:…`.

    Those of a run over history are one commit, those of a live query on Spark one for each batch.

    >>> from ephemera import sinks
    >>> sinks.at("http://127.0.0.1:8080/answers").target.name
    'http://127.0.0.1:8080/answers'
    """
    return ToSystem(target_at(address))
