"""This module holds what sinks ask of a file system, and that of this machine.

`put` makes a file whole or not at all, and what is put is durable when it returns. Until then it has a hidden name, so
that nobody who reads the folder meets a part of a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa

TEMPORARY = ".tmp"
"""How the name of a file ends that is not whole yet."""

Chunks = Sequence[bytes | pa.Buffer]
Mark = Callable[[str], None]


class Files(Protocol):
    """What sinks do with files."""

    def read(self, path: str) -> pa.Buffer:
        """All of a file."""
        ...

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        """Makes a file, or replaces it, at once and durably; `mark` is told of each step before it is done."""
        ...

    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if there is no folder."""
        ...

    def make(self, folder: str) -> None:
        """Makes a folder with those above it; it may be there already."""
        ...


class Posix:
    """The files of this machine, or of a disk that it shares."""

    def read(self, path: str) -> pa.Buffer:
        return pa.py_buffer(Path(path).read_bytes())

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        folder, _, name = path.rpartition("/")
        hidden = Path(folder) / f".{name}.{uuid4().hex}{TEMPORARY}"
        try:
            mark("write")
            with hidden.open("xb") as file:
                file.writelines(chunks)
                mark("sync")
                file.flush()
                os.fsync(file.fileno())
            mark("rename")
            hidden.replace(path)
        except OSError:
            hidden.unlink(missing_ok=True)
            raise
        mark("folder sync")
        opened = os.open(folder or "/", os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(folder))
        except FileNotFoundError:
            return []

    def make(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)


def files_of(path: str) -> tuple[Files, str]:
    """The files at a path, and what it is called among them."""
    return Posix(), str(Path(path).absolute())
