"""This module scatters the state of one engine over the places of a program, each tuple to where its key has its home.

It is the way back of `gathered_state`. Events that wait go where the router would have sent them. Tuples of a query go
to the home of the key by which the query is cut, and so do tuples of rules that wait; what no key is known of meets
nothing more, and is in one place. In every place in which a group may run it has an engine from then on, so that all of
them know from when on what is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ephemera.algebra.attributes import is_occurrence, is_reference, records_of
from ephemera.algebra.nodes import Calendar, Detection
from ephemera.base.tree import find
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.engine.operators.join_constants import MEMBER
from ephemera.engine.separation import places_of
from ephemera.kernels.columns import UNBOUND, Batch, Column, Hashes, Ints, column, stack
from ephemera.kernels.event_columns import Events
from ephemera.kernels.history import History
from ephemera.kernels.keys import hash_columns
from ephemera.physical.placement import WHOLE

Restore = Callable[[Engine, Batch], None]


@dataclass
class _Group:
    """One group, with its engines by place."""

    spread: DistributedProgram
    number: int
    whole: Engine
    engines: dict[int, Engine] = field(default_factory=dict)

    def made(self) -> dict[int, Engine]:
        """Its engines, which have all that is theirs."""
        group = self.spread.stages.groups[self.number]
        is_pinned = any(self.spread.stages.placed[rule].key is None for rule in group.rules)
        places = [self.spread.pinned(self.number)] if is_pinned else range(self.spread.places)
        self.engines = {place: self.spread.engine(self.number, place) for place in places}
        for engine in self.engines.values():
            sources = self.whole.sources
            engine.sources.advance(sources.bounds)
            engine.sources.restore(sources.first, sources.last)
            engine.sources.limit(sources.first, sources.ended)
        lanes = next(iter(self.engines.values())).lanes
        for names, lane in lanes.items():
            counted = self.whole.lanes[names].checkpoint()
            for engine in self.engines.values():
                engine.lanes[names].expect(counted)
            self._waiting(names)
            self._histories(names, lane)
            self._pasts(names, lane)
            self._own(names, lane)
            for engine in self.engines.values():
                engine.lanes[names].restore(counted)
                engine.lanes[names].expire()
        if group.judges:
            self._judged()
        return self.engines

    # ---- events --------------------------------------------------------------------------------------------

    def _waiting(self, names: frozenset[str]) -> None:
        for part in self.whole.waiting_parts[names]:
            rows, hashes = self.spread.keys(part, self.number)
            for home, some in self._by_home(self._home_of(hashes)):
                if home in self.engines:
                    self.engines[home].hold(names, [part.take(rows[some])])

    def _judged(self) -> None:
        for label, one in self.whole.separations.items():
            for home, part in self._told_apart(list(one.waiting), label):
                self.engines[home].separations[label].hold([part])
            for home, part in self._told_apart(one.good(), label):
                self.engines[home].separations[label].recall([part])
            for engine in self.engines.values():
                engine.separations[label].restore(one.bound)

    def _told_apart(self, parts: list[Events], label: str) -> Iterator[tuple[int, Events]]:
        for part in parts:
            hashes = places_of(part, self.spread.plan.judged[label])
            for home, rows in self._by_home(self._home_of(hashes)):
                yield home, part.take(rows)

    # ---- tuples --------------------------------------------------------------------------------------------

    def _histories(self, names: frozenset[str], lane: Lane) -> None:
        for name in lane.histories:

            def restore(engine: Engine, rows: Batch, name: str = name) -> None:
                engine.lanes[names].histories[name].restore(rows)

            self._kept(lane, name, self.whole.lanes[names].histories[name], restore)

    def _pasts(self, names: frozenset[str], lane: Lane) -> None:
        """What rules that began later have of the time before."""
        for name in lane.rules:
            for source, past in self.whole.lanes[names].rules[name].pasts.items():

                def restore(engine: Engine, rows: Batch, name: str = name, source: str = source) -> None:
                    engine.lanes[names].rules[name].pasts[source].restore(rows)

                self._kept(lane, source, past, restore)

    def _kept(self, lane: Lane, name: str, history: History, restore: Restore) -> None:
        """The tuples of a query, a timer or an algebra expression."""
        parts = [run.batch for run in history.checkpoint() if len(run.batch)]
        if not parts:
            return
        batch, keys = stack(parts), self._keys_of_own(lane)
        if name in lane.queries:
            if not lane.plan.queries[name].keeps_events:
                columns = {n: c for n, c in batch.columns.items() if not is_occurrence(n)}
                batch = Batch(columns, len(batch))
            self._give(batch, self.spread.stages.groups[self.number].cuts[name], restore)
        elif name in keys:
            self._give(batch, keys[name], restore, must=True)
        else:
            for engine in self.engines.values():
                restore(engine, batch)

    def _own(self, names: frozenset[str], lane: Lane) -> None:
        """What rules keep of tuples that wait, and for algebra expressions."""
        source, keys = self.whole.lanes[names], self._keys_of_own(lane)
        for name in lane.rules:
            for run in source.rules[name].pending.checkpoint():

                def wait(engine: Engine, rows: Batch, name: str = name) -> None:
                    engine.lanes[names].rules[name].pending.restore(rows)

                key = self.spread.stages.placed[name].key
                self._give(self._with_constant(run.batch, name, key), key, wait, only=list(run.batch.columns))
        for name in lane.records:
            for run in source.records[name].checkpoint():

                def record(engine: Engine, rows: Batch, name: str = name) -> None:
                    engine.lanes[names].records[name].restore(rows)

                self._give(run.batch, keys[name], record, must=True)

    def _keys_of_own(self, lane: Lane) -> dict[str, str | None]:
        """By which variable the instances and records of algebra expressions are cut; timers are everywhere."""
        found: dict[str, str | None] = {}
        for rule in lane.rules:
            key = self.spread.stages.placed[rule].key
            expression = self.spread.plan.plan.points[rule].expression
            for one in find(expression, Detection):
                found[f"{rule}/{one.name}"] = found[records_of(rule, one.name)] = key
            for timer in find(expression, Calendar):
                found.pop(f"{rule}/{timer.name}", None)
        return found

    def _with_constant(self, batch: Batch, rule: str, key: str | None) -> Batch:
        """Tuples of rules that run as one, with the constant of each by which they are cut."""
        alike = self.spread.plan.rewritten.alike.get(rule)
        if key is None or key in batch.columns or alike is None or key not in alike.names:
            return batch
        place = alike.names.index(key)
        values = [alike.rows[number][place] for number in batch[MEMBER].tolist()]
        return batch.with_columns({key: column(values)})

    def _give(
        self, batch: Batch, key: str | None, restore: Restore, *, must: bool = False, only: list[str] | None = None
    ) -> None:
        """Tuples to the homes of a key; `must` says that they are of no use elsewhere."""
        if not len(batch):
            return
        homes = self._homes(batch, key, must=must)
        batch = batch if only is None else Batch({name: batch.columns[name] for name in only}, len(batch))
        for home, rows in self._by_home(homes):
            if home in self.engines:
                restore(self.engines[home], batch.take(rows))

    def _homes(self, batch: Batch, key: str | None, *, must: bool) -> Ints:
        by: Column | None
        if key == WHOLE:
            by = next((c for name, c in batch.columns.items() if is_reference(name) and c.kind == "int"), None)
        else:
            by = None if key is None else batch.columns.get(key)
        if by is None:
            if must and key is not None:
                raise ChangeRefused(f"what is kept for an algebra expression is cut by `{key}`, which it does not say")
            return np.full(len(batch), self.spread.pinned(self.number), dtype=np.int64)
        if must and by.kind == "any" and any(value is UNBOUND for value in by.values):
            raise ChangeRefused("what is kept for an algebra expression is for values that have not come yet")
        return self._home_of(hash_columns([by], len(batch)))

    def _home_of(self, hashes: Hashes) -> Ints:
        return np.asarray(hashes % np.uint64(self.spread.places), dtype=np.int64)

    def _by_home(self, homes: Ints) -> Iterator[tuple[int, Ints]]:
        for home in np.unique(homes).tolist():
            yield int(home), np.flatnonzero(homes == home)


def scattered(spread: DistributedProgram, group: int, whole: Engine) -> dict[int, Engine]:
    """The engines of a group in all places, by place, with the state of an engine that has all of it."""
    return _Group(spread, group, whole).made()
