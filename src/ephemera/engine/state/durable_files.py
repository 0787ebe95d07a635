"""This module holds the few things that are done with files that must outlive a crash, so that they can be injected.

`put` makes a file whole or not at all, and what is put is durable when it returns. How that is done depends on what is
below: with POSIX a file is written under another name, synced and renamed, and then its folder is synced; an object
store shows an object when its stream is closed, and keeps it.

Small files that are read back one day are sealed: each says what it is, in which form, and a checksum. What is broken,
empty, of another kind, or in a form that this version does not know is refused in one line that names the file and a
way out.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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

WAY_OUT = "bring all of it back from a copy, or begin anew in another folder"

Chunks = Sequence[bytes | pa.Buffer]
Mark = Callable[[str], None]


class WrongPlace(EphemeraError):
    """A path at which nothing can be kept."""


class Broken(EphemeraError):
    """Something that was stored and cannot be gone on from: a file is damaged, missing, or another one's."""


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


# ---- sealed files ------------------------------------------------------------------------------------------


def seal(kind: str, form: int, content: Mapping[str, Any]) -> bytes:
    """The bytes of a file."""
    told = {"kind": kind, "format": form, "checksum": _check(kind, form, content), "content": content}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass")


def unseal(data: bytes, kind: str, form: int, path: str, way_out: str = WAY_OUT) -> dict[str, Any]:
    """What a file holds, if it is what it should be.

    >>> unseal(seal("progress", 1, {"batch": 3}), "progress", 1, "progress/3.json")
    {'batch': 3}
    """
    if not data:
        raise Broken(f"{path} is empty, and should hold a {kind}; {way_out}")
    try:
        told = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError:
        raise Broken(f"{path} is damaged: it is no {kind} that can be read; {way_out}") from None
    if not isinstance(told, dict) or not isinstance(told.get("format"), int):
        raise Broken(f"{path} is no {kind} of Ephemera; {way_out}")
    if told["format"] != form:
        raise Broken(
            f"{path} has format {told['format']}, and this version of Ephemera reads format {form}; "
            f"go on with the version that wrote it, or begin anew in another folder"
        )
    content = told.get("content")
    if not isinstance(content, dict) or told.get("checksum") != _check(str(told.get("kind")), form, content):
        raise Broken(f"{path} is damaged: it does not have the checksum that is written there; {way_out}")
    if told["kind"] != kind:
        raise Broken(f"{path} is a {told['kind']}, and should be a {kind}; {way_out}")
    return content


def _check(kind: str, form: int, content: Mapping[str, Any]) -> int:
    text = json.dumps([kind, form, content], ensure_ascii=False, sort_keys=True)
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
