"""This module writes the answers of a live run to a file of JSON lines, exactly once, or to standard output.

A checkpoint knows how long the file was before its commit. Who goes on cuts it there, and writes the commit again. Of a
file that it does not know nothing is cut: one that holds something is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ephemera.connect.atomic_files import CannotWrite, NotEmpty
from ephemera.formats.answers import AnswerBatch


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A file of JSON lines."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def open_target(self, identity: str, position: int | None = None) -> OpenFileTarget:
        del identity
        return OpenFileTarget(self.path, position)


class OpenFileTarget:
    """A file that grows."""

    def __init__(self, path: Path, position: int | None) -> None:
        self._path = path
        self.position = position or 0
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                self._cut(is_known=position is not None)
            except BaseException:
                self.close()
                raise
        except OSError as error:
            raise CannotWrite(f"cannot write {path}: {error.strerror or error}") from None

    def _cut(self, *, is_known: bool) -> None:
        """Takes back what was written behind the position; raises if the file is not as the checkpoint knows it."""
        size = os.fstat(self._file).st_size
        if size and not is_known:
            raise NotEmpty(self._path)
        if size < self.position:
            raise CannotWrite(f"cannot go on with {self._path}: it is shorter than when the run was stopped")
        os.ftruncate(self._file, self.position)
        os.lseek(self._file, self.position, os.SEEK_SET)

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        del number
        try:
            rest = memoryview(load)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            raise CannotWrite(f"cannot write {self._path}: {error.strerror or error}") from None
        self.position += len(load)

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A function that takes lines, at least once: standard output, or whatever takes bytes."""

    function: Callable[[bytes], object]
    name: str = "standard output"

    def open_target(self, identity: str, position: Any = None) -> _OpenFunction:
        del identity, position
        return _OpenFunction(self.function)


@dataclass(frozen=True, slots=True)
class _OpenFunction:
    function: Callable[[bytes], object]
    position: Any = None

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        del number
        self.function(load)

    def close(self) -> None:
        """It is not ours."""
