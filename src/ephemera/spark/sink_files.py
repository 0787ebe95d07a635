"""This module holds what sinks ask of a file system, and that of this machine.

Whoever writes through these steps in order (write, sync, rename, sync of the folder) has either the whole file under
its name or nothing, whatever ends the process in between.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import pyarrow as pa


class Files(Protocol):
    """The operations of a file system that sinks use."""

    def make(self, folder: str) -> None: ...
    def names(self, folder: str) -> list[str]: ...
    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: bytes | pa.Buffer) -> None: ...
    def sync(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def sync_folder(self, folder: str) -> None: ...
    def remove(self, path: str) -> None: ...


class Posix:
    """The file system of this machine."""

    def make(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)

    def names(self, folder: str) -> list[str]:
        return sorted(entry.name for entry in Path(folder).iterdir())

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, data: bytes | pa.Buffer) -> None:
        with Path(path).open("wb") as file:
            file.write(data)

    def sync(self, path: str) -> None:
        with Path(path).open("rb") as file:
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        Path(old).replace(new)

    def sync_folder(self, folder: str) -> None:
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)
