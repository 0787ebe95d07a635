"""This module sorts events by when they end, in a limited memory: what does not fit waits on disk.

What was taken in is written out whenever it grows too large, sorted, in chunks of some rows of all kinds of events. In
the end all such files are read side by side, a chunk or two of each at a time. Events that all fit never see a disk.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ephemera.base.errors import EphemeraError
from ephemera.kernels.columns import from_arrow, stack, to_arrow
from ephemera.kernels.event_columns import END, Events, size_of
from ephemera.kernels.history import FAR
from ephemera.terms.atoms import Names

MEMORY = 96 << 20
"""Bytes of events that are held before they are written out, unless told otherwise."""
_ROWS = 32_768
"""Rows of a chunk, about."""


class CannotSort(EphemeraError):
    """There is no room for what has to be sorted."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What events have in common that are sorted together: whose they are, and their shape."""

    program: int
    label: str
    arity: int | None
    names: Names


_Chunk = list[tuple[_Kind, Events]]
"""Events of several kinds, each sorted."""


class ExternalSort:
    """Takes events in any order, and gives them in slices of time."""

    def __init__(self, folder: Path, programs: int = 1, memory: int = MEMORY) -> None:
        self._folder = folder
        self._programs = programs
        self._memory = memory
        self._held: dict[_Kind, list[Events]] = {}
        self._size = 0
        self._files: list[Path] = []

    def add(self, parts: Sequence[Sequence[Events]]) -> None:
        """Some events, as each program reads them."""
        for program, own in enumerate(parts):
            for part in own:
                self._held.setdefault(_Kind(program, part.label, part.arity, part.names), []).append(part)
                self._size += size_of(part)
        if self._size > self._memory:
            self._write()

    def _write(self) -> None:
        path = self._folder / f"{len(self._files)}.sorted"
        try:
            with path.open("wb") as file:
                for chunk in _chunks(self._held, _ROWS):
                    pickle.dump([(kind, _packed(part)) for kind, part in chunk], file)
        except OSError as error:
            raise CannotSort(
                f"cannot sort the events in {self._folder.parent}: {error.strerror or error}; the input is not in the "
                "order of time, and has to be sorted on disk: set TMPDIR to a folder with room for it"
            ) from None
        self._files.append(path)
        self._held, self._size = {}, 0

    def slices(self, size: int) -> Iterator[tuple[int, list[list[Events]]]]:
        """The events in the order of their ends, about so many at a time.

        With them comes a time before which no event ends that has not been given.
        """
        cursors = [_Cursor(_stored(path)) for path in self._files]
        if self._held:
            cursors.append(_Cursor(_chunks(self._held, size)))
        first = -FAR
        while cursors := [cursor for cursor in cursors if cursor.fill()]:
            last = min((cursor.last for cursor in cursors if cursor.has_more), default=FAR)
            found: list[list[Events]] = [[] for _ in range(self._programs)]
            for cursor in cursors:
                for kind, part in cursor.take(last):
                    found[kind.program].append(part)
            yield first, found
            first = last


@dataclass(slots=True)
class _Cursor:
    """Where one sorted run of chunks is being read."""

    rest: Iterator[_Chunk]
    held: _Chunk = field(default_factory=list)
    has_more: bool = True
    _next: _Chunk | None = None

    def fill(self) -> bool:
        """Sees to it that there are events, if any are left; and that not all of them end together, if more come."""
        while self.has_more and (not self.held or self._first() == self.last):
            chunk = self._next if self._next is not None else next(self.rest, None)
            self._next = next(self.rest, None)
            self.has_more = self._next is not None
            self.held += chunk or []
        return bool(self.held)

    def _first(self) -> int:
        return min(int(part.batch[END][0]) for _, part in self.held)

    @property
    def last(self) -> int:
        """Up to when all events are here, but not those that end just then."""
        return max(int(part.batch[END][-1]) for _, part in self.held)

    def take(self, last: int) -> _Chunk:
        """The events that end before a time, which are then gone; with no such time, all."""
        taken: _Chunk = []
        kept: _Chunk = []
        for kind, part in self.held:
            cut = len(part) if last == FAR else int(np.searchsorted(part.batch[END], last))
            taken += [(kind, _cut(part, 0, cut))] if cut else []
            kept += [(kind, _cut(part, cut, len(part)))] if cut < len(part) else []
        self.held = kept
        return taken


def _chunks(held: Mapping[_Kind, Sequence[Events]], size: int) -> Iterator[_Chunk]:
    """Events in the order of their ends, about so many at a time."""
    ordered = [(kind, _sorted(parts)) for kind, parts in held.items()]
    ends = np.sort(np.concatenate([part.batch[END] for _, part in ordered]))
    cuts = [*np.unique(ends[size::size]).tolist(), FAR]
    starts = [0] * len(ordered)
    for cut in cuts:
        chunk: _Chunk = []
        for k, (kind, part) in enumerate(ordered):
            stop = len(part) if cut == FAR else int(np.searchsorted(part.batch[END], cut))
            if stop > starts[k]:
                chunk.append((kind, _cut(part, starts[k], stop)))
                starts[k] = stop
        if chunk:
            yield chunk


def _sorted(parts: Sequence[Events]) -> Events:
    one = parts[0]
    batch = stack([part.batch for part in parts])
    ends = batch[END]
    if not (ends[1:] >= ends[:-1]).all():
        batch = batch.take(np.argsort(ends, kind="stable"))
    return Events(one.label, batch, one.arity, one.names)


def _cut(events: Events, start: int, stop: int) -> Events:
    return Events(events.label, events.batch.cut(start, stop), events.arity, events.names)


def _packed(events: Events) -> bytes:
    table = to_arrow(events.batch)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _stored(path: Path) -> Iterator[_Chunk]:
    with path.open("rb") as file:
        while True:
            try:
                chunk: list[tuple[_Kind, bytes]] = pickle.load(file)
            except EOFError:
                return
            yield [(kind, _unpacked(kind, data)) for kind, data in chunk]


def _unpacked(kind: _Kind, data: bytes) -> Events:
    return Events(kind.label, from_arrow(pa.ipc.open_stream(data).read_all()), kind.arity, kind.names)
