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
from ephemera.engine.state.segments import Piece
from ephemera.engine.state.stored_tables import lane_name, tables_of
from ephemera.kernels.columns import Batch, Ints, from_arrow, stack, to_arrow
from ephemera.kernels.event_columns import Events

WAITING = "w"
"""Events that wait for the bound of a lane; its other tables are those of its operators."""


class Changelog:
    """Writes down what an engine adds to its state, piece by piece, under names that begin alike."""

    def __init__(self, engine: Engine, prefix: str) -> None:
        self._engine = engine
        self._prefix = prefix
        self._sources = {lane_name(sources): sources for sources in engine.lanes}
        self._lanes = {name: engine.lanes[sources] for name, sources in self._sources.items()}
        self._tables = {name: tables_of(lane) for name, lane in self._lanes.items()}
        self._begin()

    def _begin(self) -> None:
        """What has been added until now is written down already."""
        for _ in self._added():
            continue

    # ---- writing -------------------------------------------------------------------------------------------

    def words(self) -> dict[str, Any]:
        """What the engine has counted."""
        return {**self._engine.checkpoint(), "lanes": {name: lane.checkpoint() for name, lane in self._lanes.items()}}

    def take(self) -> list[Piece]:
        """What has been added since this was last asked, and is still alive."""
        return [piece for name, batch in self._added() if (piece := self._piece(name, batch)) is not None]

    def _added(self) -> Iterator[tuple[str, Batch]]:
        waiting = self._engine.added()
        for lane, tables in self._tables.items():
            for (kind, name), table in tables.items():
                batch = table.added()
                if batch is not None:
                    yield self._name(lane, kind, name), batch
            shapes: dict[tuple[str, int | None], list[Batch]] = {}
            for part in waiting.get(self._sources[lane], []):
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
        return self._lanes[self._parts(name)[0]].bound

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        """What is alive of several pieces of one name, as one."""
        return self._piece(name, stack([from_arrow(table) for table in tables]))

    def _parts(self, name: str) -> list[str]:
        return name.removeprefix(f"{self._prefix}/").split("/", 3)

    def _deaths(self, name: str, batch: Batch) -> Ints | None:
        """The bound from which on each row is dead; None if they live for ever."""
        lane, kind, which, *label = self._parts(name)
        if kind == WAITING:
            return np.asarray(batch[self._engine.released_by(label[0])])
        return self._tables[lane][kind, which].expiry(batch)

    # ---- reading -------------------------------------------------------------------------------------------

    def recall(self, words: Mapping[str, Any], pieces: Iterable[Piece]) -> None:
        """Goes on from what was written down."""
        for piece in pieces:
            self._put(piece)
        self._engine.restore(words)
        for name, lane in self._lanes.items():
            lane.restore(words["lanes"][name])
            self._engine.release(self._sources[name], lane.bound)
            lane.expire()
        self._begin()

    def _put(self, piece: Piece) -> None:
        lane, kind, which, *rest = self._parts(piece.name)
        batch = from_arrow(piece.table)
        if kind == WAITING:
            events = Events(rest[0], batch, int(which) if which else None, self._engine.attributes(rest[0]))
            self._engine.hold(self._sources[lane], [events])
        else:
            self._tables[lane][kind, which].restore(batch)
