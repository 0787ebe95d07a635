"""This module is the form of a segment: a file with pieces of state, and at its end a manifest of what they make up.

    piece, piece, …, manifest (JSON), length of the manifest, checksum of the manifest, magic

A piece is one Arrow stream and begins at a multiple of 8 bytes, so that its columns can be used where they lie in a
mapped file. The manifest is found from the end of the file, without reading the pieces. It lists the pieces of its own
file; for those of earlier batches it names the segments they are in, so its size hardly grows with the state. A
checksum goes with each such name, and with each piece: what is torn, or is not what it was, is noticed. And it says
whose it is: a segment of another batch, shard or query is refused, wherever it came from.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from ephemera.engine.state.durable_files import WAY_OUT, Broken, Files

FORMAT = 4
_MAGIC = b"EPHEMSEGMENT"
_FOOTER = struct.Struct("<QI12s")
_ALIGNED = 8
_TAIL = 1 << 14
"""So much is read at the end of a file at first; most manifests are smaller."""


class BrokenSegment(Broken):
    """A file that is no segment, or not the one that it should be."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose a segment is: the query by its name, its programs by their fingerprint, and the shard."""

    query: str = ""
    programs: str = ""
    level: int = 0
    place: int = 0
    places: int = 1

    def __str__(self) -> str:
        shard = f"shard {self.place} of {self.places} on level {self.level}"
        return f"{shard} of query {self.query or 'without a name'}, programs {self.programs or 'unknown'}"


NOBODY = Origin()


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of the table `name` of a state; they matter until the bound of that name reaches `until`."""

    name: str
    table: pa.Table
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a piece lies in its segment, and what is known of it."""

    name: str
    start: int
    length: int
    until: int | None
    rows: int
    fresh: bool
    """Whether its rows were new with the batch; otherwise they were merged from earlier segments."""
    check: int

    def is_alive(self, bounds: Mapping[str, int]) -> bool:
        return self.until is None or self.name not in bounds or self.until > bounds[self.name]


@dataclass(frozen=True)
class Manifest:
    """What makes up the state after a batch: the pieces of its own file, and those alive in other segments."""

    origin: Origin
    batch: int
    after: int | None
    """The batch from whose state this one went on."""
    words: Any
    bounds: Mapping[str, int]
    segments: tuple[tuple[int, int], ...]
    """The other segments: their batches, and the layouts they must have."""
    entries: tuple[Entry, ...]

    @cached_property
    def layout(self) -> int:
        """A checksum of the pieces; a batch that is done again has the same."""
        return zlib.crc32(_json([asdict(entry) for entry in self.entries]))

    def alive(self, bounds: Mapping[str, int]) -> list[Entry]:
        return [entry for entry in self.entries if entry.is_alive(bounds)]


def size(entries: Iterable[Entry]) -> int:
    """The bytes of some pieces."""
    return sum(entry.length for entry in entries)


# ---- writing -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Packing:
    """A segment being made."""

    chunks: list[bytes | pa.Buffer] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    length: int = 0

    def add(self, piece: Piece, *, fresh: bool) -> None:
        """Adds a piece; one without rows says nothing and is left out."""
        if not piece.table.num_rows:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, piece.table.schema) as writer:
            writer.write_table(piece.table)
        load = sink.getvalue()
        check = zlib.crc32(load)
        self.entries.append(Entry(piece.name, self.length, load.size, piece.until, piece.table.num_rows, fresh, check))
        self._append(load)
        self._append(bytes(-self.length % _ALIGNED))

    def close(self, manifest: Manifest) -> None:
        """Puts the manifest at the end."""
        text = _json({"format": FORMAT, **asdict(manifest)})
        self._append(text)
        self._append(_FOOTER.pack(len(text), zlib.crc32(text), _MAGIC))

    def _append(self, chunk: bytes | pa.Buffer) -> None:
        if len(chunk):
            self.chunks.append(chunk)
            self.length += len(chunk)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# ---- reading -----------------------------------------------------------------------------------------------


def read_manifest(files: Files, path: str, origin: Origin, batch: int) -> Manifest:
    """The manifest of the segment of a batch, if it is that; only the end of the file is read."""
    tail = files.read(path, -_TAIL)
    if len(tail) < _FOOTER.size:
        raise BrokenSegment(f"{path} is no segment: it has only {len(tail)} bytes; {WAY_OUT}")
    length, check, magic = _FOOTER.unpack(tail[len(tail) - _FOOTER.size :])
    if magic != _MAGIC:
        raise BrokenSegment(f"{path} is no segment, or is torn: it does not end as segments do; {WAY_OUT}")
    if length + _FOOTER.size > len(tail):
        tail = files.read(path, -(length + _FOOTER.size))
    begin = len(tail) - _FOOTER.size - length
    text = tail[max(begin, 0) : len(tail) - _FOOTER.size].to_pybytes()
    if begin < 0 or zlib.crc32(text) != check:
        raise BrokenSegment(f"{path} is torn: its manifest has another checksum than is written there; {WAY_OUT}")
    found = json.loads(text)
    form = found.pop("format")
    if form != FORMAT:
        raise BrokenSegment(
            f"{path} has format {form}, and this version of Ephemera reads format {FORMAT}; "
            "go on with the version that wrote it, or begin anew in another folder"
        )
    own = Origin(**found.pop("origin"))
    if (own, found["batch"]) != (origin, batch):
        raise BrokenSegment(
            f"{path} is of batch {found['batch']}, {own}; it should be of batch {batch}, {origin}; {WAY_OUT}"
        )
    segments = tuple((batch, layout) for batch, layout in found.pop("segments"))
    entries = tuple(Entry(**entry) for entry in found.pop("entries"))
    return Manifest(origin=own, **found, segments=segments, entries=entries)


def read_pieces(files: Files, path: str, entries: Iterable[Entry]) -> list[Piece]:
    """Some pieces of a segment, read at once; if the file is mapped, nothing is copied."""
    wanted = list(entries)
    if not wanted:
        return []
    begin = min(entry.start for entry in wanted)
    end = max(entry.start + entry.length for entry in wanted)
    buffer = files.read(path, begin, end - begin)
    found = []
    for entry in wanted:
        start = entry.start - begin
        load = buffer[start : start + entry.length]
        if len(load) != entry.length or zlib.crc32(load) != entry.check:
            raise BrokenSegment(
                f"{path} is damaged: its rows of `{entry.name}` do not have the checksum written there; {WAY_OUT}"
            )
        with pa.ipc.open_stream(load) as reader:
            found.append(Piece(entry.name, reader.read_all(), entry.until))
    return found
