"""This module keeps what a live run in one process needs to go on after a crash, one commit at a time.

A commit is a state of all engines, how far each source has been read, and the answers that came since the commit
before, as each target takes them. Its data, segments of state and answers, are one file; `commit.json` says what is
where, and takes the place of the one before in one step. So there is always one whole commit. Answers are put when
their commit is safe: whoever goes on puts those of the last commit again, which targets that know its number pass over.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ephemera.connect.systems.source_names import Known
from ephemera.engine.state.durable_files import WAY_OUT, Broken, files_of, seal, unseal
from ephemera.engine.state.snapshot import Snapshot

FORMAT = 2
KIND = "live commit"
COMMIT = "commit.json"
_DATA = ".data"


ToldProgram = Mapping[str, Any]
"""The path and text of a program, and which events it was asked for."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A moment of a run."""

    number: int
    engines: Sequence[Snapshot]
    """The state of each; of segments those that the commit before has not."""
    partitions: Sequence[Mapping[str, Any]]
    """For each engine how far it has come, partition by partition."""
    known: Sequence[Known]
    """The sources, and how far each has been read."""
    targets: Mapping[str, Any] = field(default_factory=dict)
    """For each target where the answers of this commit go."""
    answers: Mapping[str, bytes] = field(default_factory=dict)
    """For each target what it is to take."""
    programs: Sequence[ToldProgram] | None = None
    """What runs, so that it can be changed; checkpoints of earlier versions do not say."""


class Checkpoint:
    """A folder with the last commit of a run."""

    def __init__(self, folder: str) -> None:
        self._files, self._folder = files_of(folder)
        self._files.make(self._folder)
        self._where: dict[str, tuple[int, int, int, int]] = {}
        """For each segment the number of the commit in whose file it is, its begin, length and checksum."""
        stored = self._stored()
        self.identity: str = stored["identity"] if stored is not None else uuid.uuid4().hex[:16]
        self._last = stored

    def _stored(self) -> dict[str, Any] | None:
        path = f"{self._folder}/{COMMIT}"
        try:
            data = bytes(self._files.read(path))
        except FileNotFoundError:
            return None
        return unseal(data, KIND, FORMAT, path)

    def last(self) -> Commit | None:
        """The commit from which to go on, if there is one."""
        stored = self._last
        if stored is None:
            return None
        self._where = {name: (w[0], w[1], w[2], w[3]) for name, w in stored["segments"].items()}
        engines = [
            Snapshot(manifest, {name: self._segment(k, name) for name in Snapshot(manifest, {}).names})
            for k, manifest in enumerate(stored["engines"])
        ]
        answers = {name: self._read(*where) for name, where in stored["answers"].items()}
        known = [Known(key, at, **_described(stored, key)) for key, at in stored["positions"].items()]
        programs = stored.get("programs")
        return Commit(stored["number"], engines, stored["partitions"], known, stored["targets"], answers, programs)

    def _segment(self, engine: int, name: str) -> pa.Table:
        with pa.ipc.open_file(pa.py_buffer(self._read(*self._where[f"{engine}/{name}"]))) as reader:
            return reader.read_all()

    def _read(self, number: int, begin: int, length: int, check: int) -> bytes:
        path = f"{self._folder}/{number}{_DATA}"
        try:
            data = bytes(self._files.read(path, begin, length)) if length else b""
        except FileNotFoundError:
            raise Broken(f"the checkpoint lacks {path}; {WAY_OUT}") from None
        if zlib.crc32(data) != check:
            raise Broken(f"{path} is damaged: the commit has another checksum; {WAY_OUT}")
        return data

    def store(self, commit: Commit) -> None:
        """Makes a commit the last one; when this comes back it is safe."""
        needed = {f"{k}/{name}" for k, engine in enumerate(commit.engines) for name in engine.names}
        kept = {name: where for name, where in self._where.items() if name in needed}
        data = _Data(commit.number)
        kept |= _segments(commit.engines, data)
        answers = {name: data.add(load) for name, load in commit.answers.items()}
        self._put(data)
        stored = {
            "number": commit.number,
            "identity": self.identity,
            "engines": [dict(engine.manifest) for engine in commit.engines],
            "partitions": [dict(one) for one in commit.partitions],
            **({} if commit.programs is None else {"programs": [dict(one) for one in commit.programs]}),
            "positions": {one.key: one.position for one in commit.known},
            "sources": {one.key: {"name": one.name, "identity": one.identity} for one in commit.known},
            "targets": dict(commit.targets),
            "answers": answers,
            "segments": kept,
        }
        self._make_last(stored)

    def replace(
        self, engines: Sequence[Snapshot], partitions: Sequence[Mapping[str, Any]], programs: Sequence[ToldProgram]
    ) -> None:
        """Other programs go on from the last commit: its number, positions and answers stay, and so where these are."""
        if self._last is None:
            raise Broken(f"there is no commit in {self._folder}")
        # No commit has such a number, so what counts now stays whole until the new one does.
        data = _Data(min(0, *self._numbers()) - 1)
        stored = {
            **self._last,
            "engines": [dict(engine.manifest) for engine in engines],
            "partitions": [dict(one) for one in partitions],
            "programs": [dict(one) for one in programs],
            "segments": _segments(engines, data),
        }
        self._put(data)
        self._make_last(stored)

    def _put(self, data: _Data) -> None:
        if data.length:
            self._files.put(f"{self._folder}/{data.number}{_DATA}", data.chunks, _unmarked)

    def _make_last(self, stored: dict[str, Any]) -> None:
        """This counts from now on; files that nothing needs any more go."""
        self._files.put(f"{self._folder}/{COMMIT}", [seal(KIND, FORMAT, stored)], _unmarked)
        self._where, self._last = stored["segments"], stored
        used = {where[0] for where in (*stored["segments"].values(), *stored["answers"].values())}
        self._forget({*used, stored["number"]})

    def settle(self, targets: Mapping[str, Any]) -> None:
        """All answers have been put, and a run ends in good order: who goes on need not put the last ones again."""
        if self._last is None or not self._last["answers"]:
            return
        self._last = {**self._last, "answers": {}, "targets": dict(targets)}
        self._files.put(f"{self._folder}/{COMMIT}", [seal(KIND, FORMAT, self._last)], _unmarked)

    def _forget(self, used: set[int]) -> None:
        """Files of earlier commits that nothing needs any more go."""
        for number in self._numbers():
            if number not in used:
                self._files.remove(f"{self._folder}/{number}{_DATA}")

    def _numbers(self) -> Iterator[int]:
        for name in self._files.names(self._folder):
            if name.endswith(_DATA) and name.removesuffix(_DATA).removeprefix("-").isdigit():
                yield int(name.removesuffix(_DATA))


@dataclass(slots=True)
class _Data:
    """What is in a file of data."""

    number: int
    chunks: list[bytes | pa.Buffer] = field(default_factory=list)
    length: int = 0

    def add(self, load: bytes | pa.Buffer) -> tuple[int, int, int, int]:
        """Something more; says where it is."""
        begin, length = self.length, len(load)
        self.chunks.append(load)
        self.length += length
        return self.number, begin, length, zlib.crc32(load)


def _segments(engines: Sequence[Snapshot], data: _Data) -> dict[str, tuple[int, int, int, int]]:
    """Where the segments of engines are, which are added to a file."""
    tables = {f"{k}/{name}": table for k, engine in enumerate(engines) for name, table in engine.segments.items()}
    return {name: data.add(_packed(table)) for name, table in tables.items()}


def _described(stored: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What is known of a source; checkpoints of earlier versions only have its name."""
    found: dict[str, Any] = stored.get("sources", {}).get(key, {"name": key})
    return found


def _unmarked(_step: str) -> None:
    """Nobody watches the steps here."""


def _packed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
