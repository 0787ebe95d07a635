"""This module holds the few things that are done with files that must outlive a crash, so that they can be injected.

`put` makes a file whole or not at all, and what is put is durable when it returns. How that is done depends on what is
below: with POSIX a file is written under another name, synced and renamed, and then its folder is synced; an object
store shows an object when its stream is closed, and keeps it.
"""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType

from ephemera.base.errors import EphemeraError

WRITE, SYNC, RENAME, FOLDER = "write", "sync", "rename", "folder sync"
"""The steps of `put`. A file system without renaming has only the first."""

TEMPORARY = ".tmp"
"""How the name of a file ends that is not whole yet."""

_SAME = {"s3a": "s3", "s3n": "s3"}
"""What Hadoop, and so Spark, calls otherwise than Arrow."""

Chunks = Sequence[bytes | pa.Buffer]
Mark = Callable[[str], None]


class WrongPlace(EphemeraError):
    """A path at which nothing can be kept."""


class Files(Protocol):
    """What a store does with files. Paths are those of the file system; folders are divided by `/`."""

    def read(self, path: str, start: int = 0, length: int | None = None) -> pa.Buffer:
        """A part of a file, mapped if possible; a negative start counts from the end."""
        ...

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        """Makes a file, or replaces it, at once and durably; `mark` is told of each step before it is done."""
        ...

    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; none if there is no folder."""
        ...

    def make(self, folder: str) -> None:
        """Makes a folder with those above it, durably; it may be there already."""
        ...


class Renaming(ABC):
    """File systems on which a file becomes visible by a rename, and durable by syncing it and its folder."""

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        # Two attempts at one file may be under way at once, so each has a name of its own, which readers pass over.
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}{TEMPORARY}"
        try:
            mark(WRITE)
            self.write(temporary, chunks)
            mark(SYNC)
            self.sync(temporary)
            mark(RENAME)
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        mark(FOLDER)
        self.sync_folder(folder)

    @abstractmethod
    def write(self, path: str, chunks: Chunks) -> None:
        """Writes a new file; it need not be durable yet."""

    @abstractmethod
    def sync(self, path: str) -> None:
        """Makes what a file holds durable, but not its name."""

    @abstractmethod
    def rename(self, old: str, new: str) -> None:
        """Gives a file another name, in place of the file that had it; nobody ever sees neither or half of one."""

    @abstractmethod
    def sync_folder(self, folder: str) -> None:
        """Makes the names in a folder durable."""

    @abstractmethod
    def remove(self, path: str) -> None: ...


class Posix(Renaming):
    """The files of this machine, or of a disk that it shares."""

    def read(self, path: str, start: int = 0, length: int | None = None) -> pa.Buffer:
        with pa.memory_map(path) as file:
            return _part(file, start, length)

    def write(self, path: str, chunks: Chunks) -> None:
        with Path(path).open("xb") as file:
            file.writelines(chunks)

    def sync(self, path: str) -> None:
        _sync(path, os.O_RDONLY)

    def rename(self, old: str, new: str) -> None:
        Path(old).replace(new)

    def sync_folder(self, folder: str) -> None:
        _sync(folder or "/", os.O_RDONLY | os.O_DIRECTORY)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
        except FileNotFoundError:
            return []

    def make(self, folder: str) -> None:
        path = Path(folder)
        missing = [place for place in path.parents if not place.exists()]
        for place in (*reversed(missing), path):
            place.mkdir(exist_ok=True)
            self.sync_folder(str(place.parent))


def _sync(path: str, flags: int) -> None:
    number = os.open(path, flags)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class ArrowFiles:
    """The files of what Arrow can open. They are durable, and usually first seen, when their stream is closed."""

    def __init__(self, system: FileSystem) -> None:
        self.system = system

    def read(self, path: str, start: int = 0, length: int | None = None) -> pa.Buffer:
        with self.system.open_input_file(path) as file:
            return _part(file, start, length)

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        mark(WRITE)
        with self.system.open_output_stream(path) as stream:
            for chunk in chunks:
                stream.write(chunk)

    def remove(self, path: str) -> None:
        try:
            self.system.delete_file(path)
        except FileNotFoundError:
            return

    def names(self, folder: str) -> list[str]:
        found = self.system.get_file_info(FileSelector(folder, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == FileType.File)

    def make(self, folder: str) -> None:
        self.system.create_dir(folder, recursive=True)


def _part(file: Any, start: int, length: int | None) -> pa.Buffer:
    size = file.size()
    begin = max(size + start, 0) if start < 0 else min(start, size)
    end = size if length is None else min(begin + length, size)
    file.seek(begin)
    return file.read_buffer(end - begin)


def files_of(path: str) -> tuple[Files, str]:
    """The files at a path or URI, and what the path is called among them.

    >>> files, path = files_of("file:/var/lib/shop")
    >>> type(files).__name__, path
    ('Posix', '/var/lib/shop')
    """
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme or len(scheme) < 2:
        return Posix(), str(Path(path).absolute())
    if scheme.lower() == "file":
        parts = urlsplit(path)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise WrongPlace(f"`{path}` is no file of this machine: write file:///folder, or the path alone")
        return Posix(), unquote(parts.path)
    try:
        system, place = FileSystem.from_uri(f"{_SAME.get(scheme.lower(), scheme)}:{rest}")
    except (pa.ArrowException, OSError, ImportError) as error:
        raise WrongPlace(
            f"nothing can be kept at `{path}`: Arrow does not open `{scheme}:` here ({error}). "
            "Give a path of this machine or of a shared disk, or a URI that pyarrow.fs opens, "
            "with file:, s3:, gs:, abfs: or hdfs:"
        ) from None
    return ArrowFiles(system), place
