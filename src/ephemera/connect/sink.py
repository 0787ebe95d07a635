"""This module says what a sink of answers is, and holds those that need no file: the console, a function, a list.

A sink is opened, takes batches as they become certain, and commits them. What was written and not committed counts for
nothing. Anything with these methods is one.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ephemera.formats.answers import AnswerBatch

_IN_MEMORY = 16 << 20
"""Bytes that wait in memory for the end of a run; what is more waits on disk."""


class OpenSink(Protocol):
    """A sink that has been opened."""

    def write(self, answers: AnswerBatch) -> None:
        """Takes some answers, none of which happens before those it has."""

    def commit(self) -> None:
        """All that was written counts."""

    def abort(self) -> None:
        """Nothing of it counts."""


@runtime_checkable
class Sink(Protocol):
    """Where answers go."""

    def open(self) -> OpenSink:
        """Begins to take answers."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A list of objects in this process.

    >>> from ephemera import sinks
    >>> sinks.Memory().answers
    []
    """

    answers: list[dict[str, Any]] = field(default_factory=list)

    def open(self) -> _OpenMemory:
        return _OpenMemory(self.answers.extend)


class Nowhere:
    """No place at all, for runs of which only the figures count."""

    def open(self) -> Nowhere:
        return self

    def write(self, batch: AnswerBatch) -> None:
        """Answers come, and go."""

    def commit(self) -> None:
        """There is nothing to be done."""

    def abort(self) -> None:
        """There is nothing to be undone."""


@dataclass(frozen=True, slots=True)
class Callback:
    """A function that is called with each answer, an object as JSON has it, when the run has succeeded.

    >>> from ephemera import sinks
    >>> sinks.Callback(print).function is print
    True
    """

    function: Callable[[dict[str, Any]], object]

    def open(self) -> _OpenMemory:
        def each(answers: list[dict[str, Any]]) -> None:
            for answer in answers:
                self.function(answer)

        return _OpenMemory(each)


class _OpenMemory:
    def __init__(self, take: Callable[[list[dict[str, Any]]], object]) -> None:
        self._take = take
        self._held: list[dict[str, Any]] = []

    def write(self, answers: AnswerBatch) -> None:
        self._held += answers.objects()

    def commit(self) -> None:
        self._take(self._held)

    def abort(self) -> None:
        self._held.clear()


@dataclass(frozen=True, slots=True)
class Console:
    """Standard output, a line of JSON for each answer, or whatever takes bytes.

    >>> from ephemera import sinks
    >>> sinks.Console()
    Console(write=None)
    """

    write: Callable[[bytes], object] | None = None

    def open(self) -> _OpenConsole:
        return _OpenConsole(self.write or sys.stdout.buffer.write)


class _OpenConsole:
    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._held = spooled()

    def write(self, answers: AnswerBatch) -> None:
        self._held.write(answers.lines())

    def commit(self) -> None:
        self._held.seek(0)
        shutil.copyfileobj(self._held, _Writing(self._write), 1 << 20)
        self._held.close()

    def abort(self) -> None:
        self._held.close()


@dataclass(frozen=True, slots=True)
class _Writing:
    """A function as a file to write to."""

    write: Callable[[bytes], object]


def spooled() -> tempfile.SpooledTemporaryFile[bytes]:
    """A nameless file for what waits until the end of a run, in memory as long as it is small."""
    return tempfile.SpooledTemporaryFile(_IN_MEMORY)
