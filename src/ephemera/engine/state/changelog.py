"""This module writes down what steps add to the state of an engine, and puts another engine into that state.

The rows of a state never change: they are added in one step, and dead from a bound on that is known when they come. So
what was added is all there is to write. An engine that stands where another stood catches up with it by what that has
written down since; one that has just been made, by all that is still alive. What is written has names by its meaning:

    prefix/sources of the lane/h/history    prefix/sources/p/rule    prefix/sources/w/arity/label

and of events that are judged by how close they come, those that wait for it, and the last good ones

    prefix/apart/w/arity/label    prefix/apart/g/arity/label
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
from ephemera.kernels.history import FAR

WAITING = "w"
"""Events that wait for the bound of a lane; its other tables are those of its operators."""
GOOD = "g"
"""The last good events of types that are judged by how close they come."""
APART = "@apart"
"""Where lanes have their sources, none of which is called so: its name would be quoted."""


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
        words = {**self._engine.checkpoint(), "lanes": {name: lane.checkpoint() for name, lane in self._lanes.items()}}
        judged = {label: one.bound for label, one in self._engine.separations.items()}
        return words | ({"apart": judged} if judged else {})

    def take(self) -> list[Piece]:
        """What has been added since this was last asked, and is still alive."""
        return [piece for name, batch in self._added() if (piece := self._piece(name, batch)) is not None]

    def whole(self) -> list[Piece]:
        """All that is alive, for a store that has nothing of it yet."""
        return [piece for name, batch in self._every() if (piece := self._piece(name, batch)) is not None]

    def _every(self) -> Iterator[tuple[str, Batch]]:
        for lane, tables in self._tables.items():
            for (kind, name), table in tables.items():
                batches = [run.batch for run in table.checkpoint() if len(run.batch)]
                if batches:
                    yield self._name(lane, kind, name), stack(batches)
            yield from self._events(lane, WAITING, self._engine.waiting_parts[self._sources[lane]])
        for separation in self._engine.separations.values():
            yield from self._events(APART, WAITING, separation.waiting)
            yield from self._events(APART, GOOD, separation.good())

    def _added(self) -> Iterator[tuple[str, Batch]]:
        waiting = self._engine.added()
        for lane, tables in self._tables.items():
            for (kind, name), table in tables.items():
                batch = table.added()
                if batch is not None:
                    yield self._name(lane, kind, name), batch
            yield from self._events(lane, WAITING, waiting.get(self._sources[lane], []))
        for separation in self._engine.separations.values():
            added = separation.added()
            yield from self._events(APART, WAITING, added.waiting)
            yield from self._events(APART, GOOD, added.good)

    def _events(self, lane: str, kind: str, parts: Iterable[Events]) -> Iterator[tuple[str, Batch]]:
        shapes: dict[tuple[str, int | None], list[Batch]] = {}
        for part in parts:
            shapes.setdefault((part.label, part.arity), []).append(part.batch)
        for (label, arity), batches in shapes.items():
            yield self._name(lane, kind, "" if arity is None else arity, label), stack(batches)

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
        lane, _, _, *label = self._parts(name)
        return self._engine.separations[label[0]].bound if lane == APART else self._lanes[lane].bound

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        """What is alive of several pieces of one name, as one."""
        return self._piece(name, stack([from_arrow(table) for table in tables]))

    def _parts(self, name: str) -> list[str]:
        return name.removeprefix(f"{self._prefix}/").split("/", 3)

    def _deaths(self, name: str, batch: Batch) -> Ints | None:
        """The bound from which on each row is dead; None if they live for ever."""
        lane, kind, which, *label = self._parts(name)
        if lane == APART:
            return self._engine.separations[label[0]].deaths(batch, is_good=kind == GOOD)
        if kind == WAITING:
            return np.asarray(batch[self._engine.released_by(label[0])])
        table = self._tables[lane].get((kind, which))
        return table.expiry(batch) if table is not None else np.full(len(batch), -FAR, dtype=np.int64)

    # ---- reading -------------------------------------------------------------------------------------------

    def recall(self, words: Mapping[str, Any], pieces: Iterable[Piece]) -> None:
        """Goes on from what was written down."""
        for name, lane in self._lanes.items():
            if not any(rule.pasts for rule in lane.rules.values()):
                lane.expect(words["lanes"][name])
                self._tables[name] = tables_of(lane)
        for piece in pieces:
            self._put(piece)
        self._engine.restore(words)
        for name, lane in self._lanes.items():
            lane.restore(words["lanes"][name])
            self._engine.release(self._sources[name], lane.bound)
            lane.expire()
        for label, separation in self._engine.separations.items():
            separation.restore(words.get("apart", {}).get(label, separation.bound))
        self._begin()

    def _put(self, piece: Piece) -> None:
        lane, kind, which, *rest = self._parts(piece.name)
        batch = from_arrow(piece.table)
        if kind in (WAITING, GOOD):
            events = Events(rest[0], batch, int(which) if which else None, self._engine.attributes(rest[0]))
            if lane != APART:
                self._engine.hold(self._sources[lane], [events])
            elif kind == WAITING:
                self._engine.separations[rest[0]].hold([events])
            else:
                self._engine.separations[rest[0]].recall([events])
        elif (kind, which) in self._tables[lane]:  # else it is a past that is of no use any more
            self._tables[lane][kind, which].restore(batch)
