"""This module writes down what steps add to the state of an engine, and puts another engine into that state.

The rows of a state never change: they are added in one step, and dead from a bound on that is known when they come. So
what was added is all there is to write. An engine that stands where another stood catches up with it by what that has
written down since; one that has just been made, by all that is still alive. What is written has names by its meaning:

    prefix/sources of the lane/h/history    prefix/sources/p/rule    prefix/sources/w/arity/label
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.engine.state.counters import count_on, counted
from ephemera.engine.state.segments import Piece
from ephemera.engine.state.stored_names import StoredLane, lane_name
from ephemera.kernels.arrow import from_arrow, to_arrow
from ephemera.kernels.columns import Batch, Ints, stack
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR

HISTORY, PENDING, WAITING = "h", "p", "w"


class Changelog:
    """Writes down what an engine adds to its state, piece by piece, under names that begin alike."""

    def __init__(self, engine: Engine, prefix: str) -> None:
        self._engine = engine
        self._prefix = prefix
        self._sources = {lane_name(sources): sources for sources in engine.lanes}
        self._lanes = {name: StoredLane(engine.lanes[sources]) for name, sources in self._sources.items()}
        self._listen()

    def _listen(self) -> None:
        self._engine.start_journal()
        for lane in self._engine.lanes.values():
            for history in lane.histories.values():
                history.journal = []
            for rule in lane.rules.values():
                rule.pending.journal = []

    # ---- writing -------------------------------------------------------------------------------------------

    def words(self) -> dict[str, Any]:
        """What the engine has counted."""
        sources = self._engine.sources
        lanes = {name: counted(lane) for name, lane in self._lanes.items()}
        return {"bounds": sources.bounds, "first": sources.first, "given": self._engine.given, "lanes": lanes}

    def take(self) -> list[Piece]:
        """What has been added since this was last asked, and is still alive."""
        found = [piece for name, batch in self._added() if (piece := self._piece(name, batch)) is not None]
        self._listen()
        return found

    def _added(self) -> Iterator[tuple[str, Batch]]:
        for lane, stored in self._lanes.items():
            for name, own in stored.histories.items():
                history = stored.lane.histories[own]
                if history.journal:
                    yield self._name(lane, HISTORY, name), stored.written(name, stack(history.journal))
            for name, own in stored.rules.items():
                pending = stored.lane.rules[own].pending
                if pending.journal:
                    yield self._name(lane, PENDING, name), stored.written(name, stack(pending.journal))
            shapes: dict[tuple[str, int | None], list[Batch]] = {}
            for part in (self._engine.journal or {}).get(self._sources[lane], []):
                shapes.setdefault((part.label, part.arity), []).append(part.batch)
            for (label, arity), batches in shapes.items():
                yield self._name(lane, WAITING, "" if arity is None else arity, label), stack(batches)

    def _name(self, *parts: object) -> str:
        return "/".join([self._prefix, *map(str, parts)])

    def _piece(self, name: str, batch: Batch) -> Piece | None:
        """What is alive of some stored rows."""
        deaths = self._deaths(name, batch)
        if deaths is None:
            return Piece(name, to_arrow(batch), None)
        alive = deaths > self.bound(name)
        if not alive.any():
            return None
        living = batch if alive.all() else batch.take(alive)
        return Piece(name, to_arrow(living), int(deaths.max()))

    # ---- life and death ------------------------------------------------------------------------------------

    def bound(self, name: str) -> int:
        """How far the lane has come that some rows belong to."""
        return self._lanes[self._parts(name)[0]].lane.bound

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        """What is alive of several pieces of one name, as one."""
        return self._piece(name, stack([from_arrow(table) for table in tables]))

    def _parts(self, name: str) -> list[str]:
        return name.removeprefix(f"{self._prefix}/").split("/", 3)

    def _deaths(self, name: str, batch: Batch) -> Ints | None:
        """The bound from which on each row is dead; None if they live for ever."""
        lane, kind, which, *_ = self._parts(name)
        if kind == WAITING:
            return np.asarray(batch[END])
        stored = self._lanes[lane]
        rows = stored.read(which, batch)
        if kind == PENDING:
            return stored.lane.rules[stored.rules[which]].happens(rows)
        return _forgotten(stored.lane, stored.histories[which], rows)

    # ---- reading -------------------------------------------------------------------------------------------

    def recall(self, words: Mapping[str, Any], pieces: Iterable[Piece]) -> None:
        """Goes on from what was written down."""
        for lane in self._engine.lanes.values():
            for rule in lane.rules.values():
                rule.pending.journal = None
        for piece in pieces:
            self._put(piece)
        self._engine.sources.advance(words["bounds"])
        self._engine.sources.limit(words["first"], None)
        self._engine.count_on(words["given"] - self._engine.given)
        for name, stored in self._lanes.items():
            lane, names = stored.lane, self._sources[name]
            count_on(stored, words["lanes"][name])
            for rule in lane.rules.values():
                rule.pending.take(lane.bound)
            self._engine.release(names, lane.bound)
            lane.forget()
        self._listen()

    def _put(self, piece: Piece) -> None:
        lane, kind, which, *rest = self._parts(piece.name)
        stored, batch = self._lanes[lane], from_arrow(piece.table)
        match kind:
            case "h":
                stored.lane.histories[stored.histories[which]].recall(stored.read(which, batch), 0)
            case "p":
                stored.lane.rules[stored.rules[which]].wait_for(stored.read(which, batch))
            case _:
                arity = int(which) if which else None
                names = self._engine.attributes(rest[0])
                self._engine.hold(self._sources[lane], [Events(rest[0], batch, arity, names)])


def _forgotten(lane: Lane, history: str, batch: Batch) -> Ints | None:
    """The bound from which on no reader of a history asks for each of some rows."""
    needed = lane.needed(history)
    if needed is None or not all(needed):
        return None
    last = np.full(len(batch), -FAR, dtype=np.int64)
    for reader in needed:
        own = np.full(len(batch), FAR, dtype=np.int64)
        for stamp, time in reader:
            own = np.minimum(own, batch[stamp] + min(time, FAR))
        last = np.maximum(last, own)
    return last
