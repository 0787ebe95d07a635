"""This module runs the engines of one level in one place, batch after batch, with their state in a store.

A shard comes to the state after one batch, takes the events of the next and the bounds that hold after it, and commits.
It may be any process that does so: one that has the state of an earlier batch reads only what was added since.

A large batch of one group in one place may be cut along time. Then other places do the earlier slices of it, each from
the state that the group has at home, and at home the last slice is done, of which the state is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.cluster.admission import turned_away
from ephemera.engine.cluster.live_slices import BatchSlice, slice_of_batch
from ephemera.engine.cluster.message import EngineStats, EventsFor, Shipment, run_groups
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.run_stats import peak_memory
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.driver import missed
from ephemera.engine.engine import Engine
from ephemera.engine.state.changelog import Changelog
from ephemera.engine.state.segment_store import Committed, State, Store
from ephemera.engine.state.segments import Piece
from ephemera.engine.stats import held_by
from ephemera.engine.time.event_time import Watermarks
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR


@dataclass(frozen=True, slots=True)
class Running:
    """An engine at work, and what writes down its state."""

    engine: Engine
    changelog: Changelog


@dataclass(frozen=True, slots=True)
class Done:
    """What an engine did in a batch."""

    engine: Engine
    cpu: float
    """Seconds of a processor."""


class Shard:
    """The engines of one level in one place."""

    def __init__(
        self,
        spreads: Mapping[int, DistributedProgram],
        level: int,
        place: int,
        store: Store,
        beside: Callable[[int], Store] | None = None,
    ) -> None:
        """`beside` opens the stores of other places of the level, of whose batches this may do slices."""
        self._spreads = spreads
        self._level = level
        self._place = place
        self._store = store
        self._beside = beside
        self._running: dict[tuple[int, int], Running] = {}
        self.done: dict[tuple[int, int, int], Done] = {}
        """What was done in the batch at hand, by program, group and home."""
        self.batch: int | None = None
        """The batch after which the state is that of the engines; None before the first."""
        self._has_loaded = False
        """Whether it read its whole state for the batch at hand, as if it had known nothing."""

    @property
    def engines(self) -> list[Engine]:
        """The engines that have had something to do."""
        return [one.engine for one in self._running.values()]

    # ---- state ---------------------------------------------------------------------------------------------

    def come_to(self, batch: int | None) -> None:
        """Gets to the state after a batch: from where it stands, if that is on the way."""
        self._has_loaded = False
        if batch is None:
            self._running, self.batch = {}, None
            return
        if self.batch == batch and self._store.is_at(batch):
            return
        missing = self._store.since(self.batch, batch) if self.batch is not None and self.batch < batch else None
        if missing is None:
            self._running, self._has_loaded = {}, True
            missing = [self._store.load(batch)]
        for state in missing:
            self._recall(state)
        self.batch = batch

    def _recall(self, state: State) -> None:
        pieces: dict[str, list[Piece]] = {}
        for piece in state.pieces:
            pieces.setdefault(_prefix(piece.name), []).append(piece)
        for key, words in state.words["engines"].items():
            self._engine(*self._of_key(key)).changelog.recall(words, pieces.get(key, ()))

    def commit(self, batch: int) -> Committed:
        """Writes down what was added since the state that it came to."""
        pieces = [piece for one in self._running.values() for piece in one.changelog.take()]
        words = {self._key(*which): one.changelog.words() for which, one in self._running.items()}
        written = self._store.commit(batch, {"engines": words}, pieces, self)
        self.batch = batch
        return written

    def found(self, batch: int, own: Mapping[tuple[int, int], Engine]) -> Committed:
        """Begins with engines that stand somewhere already, by program and group, and writes all of their state."""
        self._running = {at: Running(engine, Changelog(engine, self._key(*at))) for at, engine in own.items()}
        pieces = [piece for one in self._running.values() for piece in one.changelog.whole()]
        words = {self._key(*at): one.changelog.words() for at, one in self._running.items()}
        written = self._store.commit(batch, {"engines": words}, pieces, self)
        self.batch = batch
        return written

    def bound(self, name: str) -> int:
        """How far that has come which some rows belong to."""
        return self._changelog_of(name).bound(name)

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        """What is alive of several pieces of one name, as one."""
        return self._changelog_of(name).merged(name, tables)

    def _changelog_of(self, name: str) -> Changelog:
        return self._running[self._of_key(_prefix(name))].changelog

    def _key(self, program: int, group: int) -> str:
        """What the engine of a group is called where its state is stored."""
        return _key(self._spreads[program], group)

    def _of_key(self, key: str) -> tuple[int, int]:
        program, name = key.split("/")
        return int(program), self._spreads[int(program)].group_names.index(name)

    def _engine(self, program: int, group: int) -> Running:
        if (program, group) not in self._running:
            engine = self._spreads[program].engine(group, self._place)
            self._running[program, group] = Running(engine, Changelog(engine, self._key(program, group)))
        return self._running[program, group]

    # ---- steps ---------------------------------------------------------------------------------------------

    def step(
        self,
        given: Iterable[Shipment],
        standings: Mapping[int, Progress],
        visited: Mapping[int, Mapping[tuple[int, int], int]] = MappingProxyType({}),
    ) -> Iterator[Shipment]:
        """What comes of the shipments of a batch, ordered by program, group and time, and of how far time has come.

        Whatever is not for the engines of this level passes through. What is visited, of each program, is cut along
        time: then others do slices of what is at home here, or this of theirs.
        """
        self.done = {}
        moved = {
            (number, group, self._place)
            for number, standing in standings.items()
            for group in self._groups(number)
            if self._has_moved(number, group, standing)
        }
        yield from run_groups(
            given,
            lambda program, group: group in self._groups(program),
            lambda program, group, home, own: self._measured(
                self._spreads[program].for_batch(visited.get(program, {})), group, home, own, standings[program]
            ),
            moved,
        )

    def _groups(self, program: int) -> list[int]:
        groups = self._spreads[program].stages.groups
        return [number for number, group in enumerate(groups) if group.level == self._level]

    def _has_moved(self, program: int, group: int, standing: Progress) -> bool:
        """Whether an engine has anything to do without an event: it has some state, or may answer by the clock."""
        running = self._running.get((program, group))
        if running is None:
            spread = self._spreads[program]
            return spread.needs_no_events(group) and self._place == spread.pinned(group)
        sources = running.engine.sources
        has_moved = any(sources.bounds.get(name) != b for name, b in standing.bounds.items())
        # A change of rules may leave a lane behind its sources, as what had waited for others no longer does.
        is_behind = any(lane.bound < sources.bound(names) for names, lane in running.engine.lanes.items() if names)
        return has_moved or is_behind or sources.first != standing.first

    def _measured(
        self, spread: DistributedProgram, group: int, home: int, own: Iterable[EventsFor], standing: Progress
    ) -> Iterator[Shipment]:
        began = time.thread_time()
        share = None
        if (group, home) in spread.visited:
            own = list(own)
            share = slice_of_batch(spread, group, home, self._place, own, standing)
        if home == self._place:
            engine = self._engine(spread.number, group).engine
            yield from self._run(spread, group, own, standing, share)
        elif share is not None:
            engine = self._visitor(spread, group, home)
            yield from self._visit(spread, engine, own, standing, share)
        else:
            return
        self.done[spread.number, group, home] = Done(engine, time.thread_time() - began)

    def _run(
        self,
        spread: DistributedProgram,
        group: int,
        own: Iterable[EventsFor],
        standing: Progress,
        share: BatchSlice | None,
    ) -> Iterator[Shipment]:
        engine = self._engine(spread.number, group).engine
        before = engine.sources.copy()
        engine.sources.limit(standing.first, standing.until)
        if group == spread.clock_group and self._place == spread.pinned(group):
            yield from self._missed(spread, before, standing)
        if share is None:
            yield from spread.drive(engine, self._level, self._place, own, standing.bounds)
        else:
            reached = max((lane.bound for lane in engine.lanes.values()), default=-FAR)
            yield from share.drive(spread, engine, self._level, self._place, own, reached)
        yield from spread.close(engine, as_numbers=not standing.texts)
        for late in of_events(engine.take_late(), engine.attributes):
            yield from turned_away(spread, late, as_numbers=not standing.texts)

    def _visitor(self, spread: DistributedProgram, group: int, home: int) -> Engine:
        """An engine in the state that a group has at home."""
        stored = None
        if self.batch is not None and self._beside is not None:
            stored = stored_engine(spread, group, home, self._beside(home), self.batch)
        return stored or spread.engine(group, home)

    def _visit(
        self,
        spread: DistributedProgram,
        engine: Engine,
        own: Iterable[EventsFor],
        standing: Progress,
        share: BatchSlice,
    ) -> Iterator[Shipment]:
        """What happens in a slice of a batch; its state is for nobody, since that of the last slice has all of it."""
        engine.sources.limit(standing.first, standing.until)
        engine.matched.clear()
        yield from share.drive(spread, engine, self._level, self._place, own)

    def _missed(self, spread: DistributedProgram, before: Watermarks, standing: Progress) -> Iterator[Shipment]:
        """What all groups were not asked for before, and are now that the input begins earlier."""
        found = missed(spread.plan, spread.world, before, standing.first)
        if found is not None:
            yield from spread.given(found[0], self._level, self._place)
            yield from spread.letters(found[1], self._place)

    def told(self, written: Committed) -> Iterator[Shipment]:
        """What the engines hold, for whoever watches; one word for each program."""
        programs: dict[int, list[dict[str, Any]]] = {}
        for (program, group), one in self._running.items():
            done = self.done.get((program, group, self._place))
            own = {"home": self._place, "cpu": done.cpu if done is not None else 0.0}
            programs.setdefault(program, []).append({"group": group, **own, **_held(one.engine)})
        for (program, group, home), done in self.done.items():
            if home != self._place:
                seen = {"matched": sorted(done.engine.matched), "histories": {}, "waiting": 0, "pending": 0}
                programs.setdefault(program, []).append({"group": group, "home": home, "cpu": done.cpu, **seen})
        for number, (program, engines) in enumerate(programs.items()):
            state = {**asdict(written), "loads": int(self._has_loaded)} if not number else None
            told = {"level": self._level, "engines": engines, "state": state, "peak_mb": peak_memory()}
            yield EngineStats(program, self._place, told)


def stored_engine(spread: DistributedProgram, group: int, place: int, store: Store, batch: int) -> Engine | None:
    """The engine of a group in a place, in its state after a batch; None if it has none."""
    key = _key(spread, group)
    state = store.load(batch, lambda name: _prefix(name) == key)
    words = state.words["engines"].get(key)
    if words is None:
        return None
    engine = spread.engine(group, place)
    Changelog(engine, key).recall(words, state.pieces)
    return engine


def _key(spread: DistributedProgram, group: int) -> str:
    return f"{spread.number}/{spread.group_names[group]}"


def _prefix(name: str) -> str:
    program, group, _ = name.split("/", 2)
    return f"{program}/{group}"


def _held(engine: Engine) -> dict[str, Any]:
    """How much an engine holds."""
    return {
        **asdict(held_by(engine)),
        "given": engine.given,
        "matched": sorted(engine.matched),
    }
