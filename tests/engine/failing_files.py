"""This module is a file system in memory that can crash: what was not durable by then may be gone, torn, or there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ephemera.engine.state.durable_files import Chunks, Renaming


class Crash(BaseException):
    """The machine stopped. No program catches that, so it is no `Exception`."""


@dataclass(slots=True)
class Content:
    """What a file holds; names may come and go."""

    data: bytes
    synced: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A name in a folder that was given or taken; with `content` None it was taken."""

    path: str
    content: Content | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a crash leaves of what was not durable: which changes of names, and how much of a file."""

    name: str
    keeps: Callable[[int, Change], bool]
    part: Callable[[bytes], bytes]


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


OUTCOMES = (
    Outcome("all kept", lambda _, __: True, lambda data: data),
    Outcome("all lost", lambda _, __: False, lambda _: b""),
    Outcome("names kept, contents torn", lambda _, __: True, _half),
    Outcome("names kept, contents empty", lambda _, __: True, lambda _: b""),
    Outcome("only removals kept", lambda _, change: change.content is None, _half),
    Outcome("only new names kept", lambda _, change: change.content is not None, _half),
    Outcome("every other name kept", lambda k, _: k % 2 == 0, _half),
)


class FailingFiles(Renaming):
    """Files in memory. The operation with the number `crash_at` does not happen, or only half: it raises `Crash`."""

    def __init__(self) -> None:
        self.visible: dict[str, Content] = {}
        self.durable: dict[str, Content] = {}
        self.pending: list[Change] = []
        self.folders: set[str] = set()
        self.durable_folders: set[str] = set()
        self.crash_at: int | None = None
        self.operations: list[str] = []
        self.written = 0

    def _next(self, operation: str) -> None:
        if self.crash_at is not None and len(self.operations) >= self.crash_at:
            raise Crash(operation)
        self.operations.append(operation)

    def _change(self, path: str, content: Content | None) -> None:
        self.pending.append(Change(path, content))
        if content is None:
            del self.visible[path]
        else:
            self.visible[path] = content

    # ---- what a store calls --------------------------------------------------------------------------------

    def read(self, path: str, start: int = 0, length: int | None = None) -> pa.Buffer:
        self._next(f"read {path}")
        if path not in self.visible:
            raise FileNotFoundError(path)
        data = self.visible[path].data
        begin = max(len(data) + start, 0) if start < 0 else start
        return pa.py_buffer(data[begin : None if length is None else begin + length])

    def write(self, path: str, chunks: Chunks) -> None:
        data = b"".join(bytes(chunk) for chunk in chunks)
        assert path not in self.visible
        assert path.rpartition("/")[0] in self.folders
        try:
            self._next(f"write {path}")
        except Crash:
            self._change(path, Content(_half(data)))
            raise
        self._change(path, Content(data))
        self.written += len(data)

    def sync(self, path: str) -> None:
        self._next(f"sync {path}")
        self.visible[path].synced = True

    def rename(self, old: str, new: str) -> None:
        self._next(f"rename {old} to {new}")
        if old not in self.visible:
            raise FileNotFoundError(old)
        self._change(new, self.visible[old])
        self._change(old, None)

    def sync_folder(self, folder: str) -> None:
        self._next(f"sync folder {folder}")
        self.durable_folders |= {path for path in self.folders if path.rpartition("/")[0] == folder}
        inside = [change for change in self.pending if change.path.rpartition("/")[0] == folder]
        self.pending = [change for change in self.pending if change not in inside]
        _apply(self.durable, iter(inside))

    def remove(self, path: str) -> None:
        self._next(f"remove {path}")
        if path in self.visible:
            self._change(path, None)

    def names(self, folder: str) -> list[str]:
        self._next(f"names {folder}")
        return sorted(path.rpartition("/")[2] for path in self.visible if path.rpartition("/")[0] == folder)

    def make(self, folder: str) -> None:
        self._next(f"make {folder}")
        self.folders.add(folder)
        self.sync_folder(folder.rpartition("/")[0])

    # ---- what a test calls ---------------------------------------------------------------------------------

    def after_crash(self, outcome: Outcome) -> FailingFiles:
        """What is there when the machine runs again."""
        found = FailingFiles()
        kept = (change for k, change in enumerate(self.pending) if outcome.keeps(k, change))
        names = dict(self.durable)
        _apply(names, kept)
        everything = outcome.name == "all kept"
        found.folders = set(self.folders if everything else self.durable_folders)
        found.durable_folders = set(found.folders)
        for path, content in names.items():
            if path.rpartition("/")[0] in found.folders:
                data = content.data if content.synced else outcome.part(content.data)
                found.visible[path] = Content(data, synced=True)
        found.durable = dict(found.visible)
        return found


def _apply(names: dict[str, Content], changes: Iterator[Change]) -> None:
    for change in changes:
        if change.content is None:
            names.pop(change.path, None)
        else:
            names[change.path] = change.content
