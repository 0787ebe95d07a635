"""This module is a disk that loses power: what was not synced is torn, and names that were not synced may be old."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


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
        return {name: self.read(f"{folder}/{name}") for name in self.names(folder) if name[0] not in "._"}

    def make(self, folder: str) -> None:
        """Folders are there when they are named."""

    def names(self, folder: str) -> list[str]:
        return sorted(path.removeprefix(f"{folder}/") for path in self._now if path.startswith(f"{folder}/"))

    def read(self, path: str) -> bytes:
        return self._now[path].data

    def write(self, path: str, data: bytes | pa.Buffer) -> None:
        self._step()
        self._now[path] = _Content(bytes(data))

    def sync(self, path: str) -> None:
        self._step()
        self._now[path].is_synced = True

    def rename(self, old: str, new: str) -> None:
        self._step()
        self._now[new] = self._now.pop(old)

    def sync_folder(self, folder: str) -> None:
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
