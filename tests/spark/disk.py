"""This module is a disk that loses power: what was not synced is torn, and names that were not synced may be old."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ephemera.engine.state.durable_files import TEMPORARY, Chunks, Mark


class Crash(Exception):
    """The power is gone."""


@dataclass(slots=True)
class _Content:
    data: bytes
    is_synced: bool = False


class Disk:
    """A file system in memory; `left` operations go well, and the next one does not happen."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.done = 0
        self._now: dict[str, _Content] = {}
        self._kept: dict[str, _Content] = {}

    def crash(self, *, names_are_old: bool) -> None:
        """Power is back: contents that were not synced are cut, names are those of now or of the last sync."""
        found = self._kept if names_are_old else self._now
        cut = {
            p: _Content(c.data if c.is_synced else c.data[: len(c.data) // 2], is_synced=True) for p, c in found.items()
        }
        self._now, self._kept, self.left = dict(cut), dict(cut), None

    def contents(self, folder: str) -> dict[str, bytes]:
        """The files of a folder that everyone sees."""
        return {name: bytes(self.read(f"{folder}/{name}")) for name in self.names(folder) if name[0] not in "._"}

    def make(self, folder: str) -> None:
        """Folders are there when they are named."""

    def names(self, folder: str) -> list[str]:
        return sorted(path.removeprefix(f"{folder}/") for path in self._now if path.startswith(f"{folder}/"))

    def read(self, path: str, start: int = 0, length: int | None = None) -> pa.Buffer:
        data = self._now[path].data[start:]
        return pa.py_buffer(data if length is None else data[:length])

    def put(self, path: str, chunks: Chunks, mark: Mark) -> None:
        folder, _, name = path.rpartition("/")
        hidden = f"{folder}/.{name}.{self.done}{TEMPORARY}"
        mark("write")
        self._step()
        self._now[hidden] = _Content(b"".join(bytes(chunk) for chunk in chunks))
        mark("sync")
        self._step()
        self._now[hidden].is_synced = True
        mark("rename")
        self._step()
        self._now[path] = self._now.pop(hidden)
        mark("folder sync")
        self._step()
        elsewhere = {p: c for p, c in self._kept.items() if not p.startswith(f"{folder}/")}
        self._kept = elsewhere | {p: c for p, c in self._now.items() if p.startswith(f"{folder}/")}

    def remove(self, path: str) -> None:
        self._step()
        self._now.pop(path, None)

    def _step(self) -> None:
        if self.left is not None:
            if not self.left:
                raise Crash
            self.left -= 1
        self.done += 1
