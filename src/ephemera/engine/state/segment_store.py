"""This module keeps the state of one shard of a live query as appended segments, one file for each batch.

`commit` writes what is new with a batch, and only that, into `<batch>.segment`; the file is the state after the batch
together with the earlier segments that it names. It is durable when `commit` returns. Two things keep this small:

- A piece whose bound has passed is dead, and a segment with no piece alive is forgotten.
- Segments are merged by size: eight of one tier become a part of the file that is being written anyway. What is larger
  than all tiers is never written again. So a byte is written at most once for each tier, and once before.

A batch that is done again, after a crash, overwrites its own file and no other: it goes on from the same state as
before. The host commits batch n-1 before n begins, so a recovery needs the state after n-1 or after n, and only what
neither needs is removed. A merge depends on nothing but the state and the batch, so that an attempt that was given up
and still writes its file does no harm: it writes the same pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import pyarrow as pa

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.state.durable_files import FOLDER, WAY_OUT, Broken, Files
from ephemera.engine.state.segments import (
    NOBODY,
    Entry,
    Manifest,
    Origin,
    Packing,
    Piece,
    read_manifest,
    read_pieces,
    size,
)

TIERS = (64 << 10, 512 << 10, 4 << 20)
"""The largest segment of each tier, in bytes; what is larger is not merged any more."""
FACTOR = 8
"""So many segments of one tier are merged."""
KEPT = 8
"""The files of so many last batches stay, for those who know an earlier state and need only what came after."""

_NAME = re.compile(r"\.?(0|[1-9][0-9]*)\.segment(\..*\.tmp)?")


class NoState(Broken):
    """A state that is not there, or cannot be gone on from."""


class Alive(Protocol):
    """What the owner of a state knows of what still matters."""

    def bound(self, name: str) -> int:
        """Pieces of a table that matter until then or earlier are dead."""
        ...

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        """What still matters of several pieces of a table, as one; None if nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class State:
    """What a batch left behind: all of it, or what was new with it."""

    batch: int
    words: Any
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit wrote and what there is after it, in bytes and segments."""

    fresh: int
    merged: int
    written: int
    segments: int
    alive: int


class Store:
    """The segments of one owner in one folder; `mark` is told of each step of a commit before it is done."""

    def __init__(  # noqa: PLR0913 - most of them named
        self,
        files: Files,
        folder: str,
        mark: Callable[[str], None] = lambda _: None,
        *,
        origin: Origin = NOBODY,
        tiers: Sequence[int] = TIERS,
        kept: int = KEPT,
    ) -> None:
        self.files = files
        self.folder = folder
        self.mark = mark
        self.origin = origin
        self.tiers = tiers
        self.kept = kept
        self._last: Manifest | None = None
        self._heads: dict[int, Manifest] = {}
        """The manifests of the segments that the last state is made of."""
        self._present: set[str] = set()
        """The files in the folder, as far as known."""

    def batches(self) -> list[int]:
        """The batches of which there are files; of earlier ones perhaps not all that their states need."""
        self._present = set(self.files.names(self.folder))
        return sorted(number for name in self._present if (number := _segment(name)) is not None)

    def is_at(self, batch: int) -> bool:
        """Whether the state that this store knows is that after a batch, and nobody has done that again since."""
        if self._last is None or self._last.batch != batch:
            return False
        try:
            return self._read(batch).layout == self._last.layout
        except FileNotFoundError:
            return False

    def latest(self, limit: int | None = None) -> int | None:
        """The last batch that there is, of those up to a limit; None if there is none."""
        return max((number for number in self.batches() if limit is None or number <= limit), default=None)

    # ---- reading -------------------------------------------------------------------------------------------

    def load(self, batch: int, wanted: Callable[[str], bool] = lambda _: True) -> State:
        """The state after a batch: all rows alive of the tables wanted, in no order, and perhaps some that are dead."""
        there = self.batches()
        try:
            last = self._open(batch)
            pieces: list[Piece] = []
            for head in self._heads.values():
                pieces += self._pieces(head, [one for one in head.alive(last.bounds) if wanted(one.name)])
        except FileNotFoundError as error:
            raise NoState(
                f"the state after batch {batch} is not in {self.folder}, or not all of it: {error}; "
                f"there are files of batches {', '.join(map(str, there)) or '(none)'}; {WAY_OUT}"
            ) from None
        return State(batch, last.words, pieces)

    def since(self, known: int, batch: int) -> list[State] | None:
        """What was new with each batch after a known one, in their order; None if a file of it is gone."""
        if self._last is not None and known == batch == self._last.batch:
            return []
        self.batches()
        heads: list[Manifest] = []
        number: int | None = batch
        try:
            while number is not None and number > known:
                heads.append(self._read(number))
                number = heads[-1].after
            if number != known:
                return None
            self._open(batch)
            return [State(head.batch, head.words, self._fresh(head)) for head in reversed(heads)]
        except FileNotFoundError:
            return None

    def _open(self, batch: int) -> Manifest:
        """Goes to the state after a batch; of the segments it is made of, only manifests not known yet are read."""
        last = self._read(batch)
        heads: dict[int, Manifest] = {}
        for number, layout in last.segments:
            head = self._heads.get(number)
            if head is None or head.layout != layout:
                head = self._read(number)
            if head.layout != layout:
                raise NoState(
                    f"{self._path(number)} is not the segment that batch {batch} went on from: "
                    f"batch {number} has been done again with other rows since, or the file is of another run; "
                    f"{WAY_OUT}"
                )
            heads[number] = head
        self._last, self._heads = last, {**heads, batch: last}
        return last

    def _read(self, batch: int) -> Manifest:
        return read_manifest(self.files, self._path(batch), self.origin, batch)

    def _pieces(self, head: Manifest, entries: Sequence[Entry]) -> list[Piece]:
        return read_pieces(self.files, self._path(head.batch), entries)

    def _fresh(self, head: Manifest) -> list[Piece]:
        return self._pieces(head, [entry for entry in head.entries if entry.fresh])

    def _path(self, batch: int) -> str:
        return f"{self.folder}/{batch}.segment"

    # ---- writing -------------------------------------------------------------------------------------------

    def commit(self, batch: int, words: Any, pieces: Sequence[Piece], alive: Alive) -> Committed:
        """Makes the state after a batch durable: that before it, and some pieces more.

        `words` is whatever JSON the caller wants to find again. It should be small, as it is written with each batch.
        """
        try:
            before, committed = self._commit(batch, words, pieces, alive)
        except FileNotFoundError as error:
            raise NoState(
                f"batch {batch} cannot be committed in {self.folder}: {error}; "
                "a later batch has been committed since, or somebody else has removed files there"
            ) from None
        self._remove({*before, *self._heads}, batch)
        return committed

    def _commit(
        self, batch: int, words: Any, pieces: Sequence[Piece], alive: Alive
    ) -> tuple[Collection[int], Committed]:
        """Writes the file; says which segments the state before it is made of, and what was written."""
        base = self._base(batch)
        heads = self._heads if base else {}
        bounds = _bounds(base, [*heads.values()], pieces, alive)
        old = [head for head in heads.values() if head.alive(bounds)]
        chosen = to_merge([_weight(head, bounds) for head in old], self.tiers)
        packing = Packing()
        for piece in self._merged([old[k] for k in chosen], bounds, alive):
            packing.add(piece, fresh=False)
        for piece in pieces:
            if piece.until is None or piece.until > bounds[piece.name]:
                packing.add(piece, fresh=True)
        others = [head for k, head in enumerate(old) if k not in chosen]
        manifest = Manifest(
            origin=self.origin,
            batch=batch,
            after=base.batch if base else None,
            words=words,
            bounds=bounds,
            segments=tuple((head.batch, head.layout) for head in others),
            entries=tuple(packing.entries),
        )
        packing.close(manifest)
        self._write(batch, packing)
        self._last, self._heads = manifest, {**{head.batch: head for head in others}, batch: manifest}
        fresh = size(entry for entry in manifest.entries if entry.fresh)
        return heads, Committed(
            fresh=fresh,
            merged=size(manifest.entries) - fresh,
            written=packing.length,
            segments=len(self._heads),
            alive=sum(size(head.alive(bounds)) for head in self._heads.values()),
        )

    def _base(self, batch: int) -> Manifest | None:
        """The state that a batch goes on from."""
        last = self._last
        if last is None:
            earlier = [number for number in self.batches() if number < batch]
            if earlier:
                raise NoState(
                    f"batch {batch} cannot begin a state in {self.folder}: there is one of batch {earlier[-1]}; "
                    "load it first, or take another folder"
                )
            self.files.make(self.folder)
            return None
        if batch > last.batch:
            return last
        if batch < last.batch:
            raise NoState(f"batch {batch} cannot go on from batch {last.batch}: load an earlier state first")
        if last.after is None:
            return None
        return self._open(last.after)

    def _merged(self, heads: Sequence[Manifest], bounds: dict[str, int], alive: Alive) -> list[Piece]:
        """What is alive in some segments, in one piece for each table."""
        parts: dict[str, list[pa.Table]] = {}
        for head in heads:
            for piece in self._pieces(head, head.alive(bounds)):
                parts.setdefault(piece.name, []).append(piece.table)
        found = (alive.merged(name, tables) for name, tables in parts.items())
        return [piece for piece in found if piece is not None]

    def _write(self, batch: int, packing: Packing) -> None:
        def told(step: str) -> None:
            self.mark(step if step == FOLDER else f"segment {step}")

        self.files.put(self._path(batch), packing.chunks, told)
        self._present.add(f"{batch}.segment")

    def _remove(self, needed: set[int], batch: int) -> None:
        """Removes what neither this state nor the one before it needs, and what attempts at earlier batches left.

        Files of this batch and of later ones are not touched: another attempt may just be writing them.
        """
        numbers = sorted(number for name in self._present if (number := _segment(name)) is not None)
        needed = needed.union([number for number in numbers if number <= batch][-self.kept :])
        for name in sorted(self._present):
            form = _NAME.fullmatch(name)
            if form and int(form[1]) < batch and (form[2] or int(form[1]) not in needed):
                self.mark("remove")
                self.files.remove(f"{self.folder}/{name}")
                self._present.discard(name)


def _segment(name: str) -> int | None:
    """The batch of a segment; None for other files."""
    form = _NAME.fullmatch(name)
    return int(form[1]) if form and not form[2] else None


def _bounds(base: Manifest | None, heads: Sequence[Manifest], pieces: Sequence[Piece], alive: Alive) -> dict[str, int]:
    """The bounds of all tables there are; they never fall."""
    names = dict.fromkeys([entry.name for head in heads for entry in head.entries] + [piece.name for piece in pieces])
    before = base.bounds if base else {}
    found = {name: alive.bound(name) for name in names}
    return {name: max(bound, before.get(name, bound)) for name, bound in found.items()}


# ---- merging -----------------------------------------------------------------------------------------------


def to_merge(weights: Sequence[int], tiers: Sequence[int] = TIERS) -> list[int]:
    """Which of some segments to merge now, given their sizes from the oldest to the newest.

    >>> to_merge([5_000_000, 100_000, *[1_000] * 8])
    [2, 3, 4, 5, 6, 7, 8, 9]
    >>> to_merge([100_000, *[1_000] * 7])
    []
    """
    found: list[list[int]] = [[] for _ in tiers]
    for k, weight in enumerate(weights):
        tier = bisect_left(tiers, weight)
        if tier < len(tiers):
            found[tier].append(k)
    return next((members for members in found if len(members) >= FACTOR), [])


def _weight(head: Manifest, bounds: dict[str, int]) -> int:
    """The size of a segment, by which it is merged: if less than half of it is alive, only that counts."""
    total, alive = size(head.entries), size(head.alive(bounds))
    return alive if 2 * alive < total else total
