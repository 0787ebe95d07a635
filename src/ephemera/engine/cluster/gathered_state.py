"""This module gathers the state of all shards of a program in one engine, which stands where they stand.

What a group of rules keeps is cut by a key: in each place there is a part, and together they are all of it. Several
groups may keep events of one query, each its own copies. They become one history: a tuple is there as often as in the
group that has it most often, since each group has every event once.

Which events are one is told by references, and each engine has its own. So here they are moved apart. Tuples of one
history are still told apart by them, and so are those of one rule's inputs if they come from the group that it ran in;
nothing else can be compared. `anchored` says which histories are those of one group; rules that compare what is not are
for others to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ephemera.algebra.attributes import is_occurrence, is_reference
from ephemera.algebra.nodes import Input, Point
from ephemera.algebra.scalar import SameEvent
from ephemera.base.errors import InternalError
from ephemera.base.tree import find
from ephemera.engine.change.moved_lanes import Immovable, Origin
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.engine import Engine, Part
from ephemera.engine.lane import Lane
from ephemera.kernels.columns import Batch, stack
from ephemera.kernels.event_columns import Events, distinct
from ephemera.kernels.history import FAR, History
from ephemera.kernels.keys import hash_columns, numbered, same
from ephemera.physical.lanes import CLOCK

Names = frozenset[str]
"""A lane by its sources."""


def compared_inputs(point: Point) -> list[str]:
    """The queries of a rule that asks whether two of its events are one; none if it does not."""
    if not any(True for _ in find(point.expression, SameEvent)):
        return []
    return list(dict.fromkeys(one.point for one in find(point.expression, Input)))


@dataclass(slots=True)
class _Counted:
    """What the engines of a lane have counted, all together."""

    bounds: set[int] = field(default_factory=set)
    references: int = 0
    derived: int = -1
    instances: int = 0
    tick: int = 0
    since: int = -FAR
    totals: list[int] = field(default_factory=lambda: [0, 0, 0])
    histories: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    rules: dict[str, tuple[int, int | None, int | None]] = field(default_factory=dict)
    pasts: dict[tuple[str, str], tuple[int, int, int]] = field(default_factory=dict)


@dataclass
class Gathering:
    """Engines of one program on their way into one."""

    spread: DistributedProgram
    standing: Progress
    group: int | None = None
    """Only this group, where one is gathered by itself; all of them else."""
    rows: dict[tuple[Names, str], dict[int, list[Batch]]] = field(default_factory=dict)
    """For each history of a lane what the groups have of it."""
    own: dict[tuple[Names, str, str], list[Batch]] = field(default_factory=dict)
    """The tuples of rules that wait, and the records of algebra expressions."""
    waiting: dict[Names, list[Events]] = field(default_factory=dict)
    judged: dict[str, tuple[list[Events], list[Events]]] = field(default_factory=dict)
    counted: dict[Names, _Counted] = field(default_factory=dict)

    def add(self, group: int, engine: Engine) -> None:
        """The engine of a group in one of its places."""
        for names, lane in engine.lanes.items():
            self._lane(group, names, lane)
            self.waiting.setdefault(names, []).extend(engine.waiting_parts[names])
        for label, one in engine.separations.items():
            waiting, good = self.judged.setdefault(label, ([], []))
            waiting.extend(one.waiting)
            good.extend(one.good())

    def _lane(self, group: int, names: Names, lane: Lane) -> None:
        counted = self.counted.setdefault(names, _Counted())
        origin = Origin(names, counted.references, counted.derived + 1)
        for name, history in lane.histories.items():
            parts = [origin.moved(run.batch) for run in history.checkpoint() if len(run.batch)]
            self.rows.setdefault((names, name), {}).setdefault(group, []).extend(parts)
            counted.histories[name] = _together(counted.histories.get(name), history)
        for name, rule in lane.rules.items():
            found = [origin.moved(run.batch) for run in rule.pending.checkpoint() if len(run.batch)]
            self.own.setdefault((names, "rule", name), []).extend(found)
            examined, _, exact = counted.rules.get(name, (0, None, None))
            exact = max((one for one in (exact, rule.exact_from) if one is not None), default=None)
            counted.rules[name] = examined + rule.examined, rule.since, exact
            for source, past in rule.pasts.items():
                kept = [origin.moved(run.batch) for run in past.checkpoint() if len(run.batch)]
                self.own.setdefault((names, f"past {source}", name), []).extend(kept)
                counted.pasts[name, source] = _together(counted.pasts.get((name, source)), past)
        for name, records in lane.records.items():
            kept = [run.batch for run in records.checkpoint() if len(run.batch)]
            self.own.setdefault((names, "records", name), []).extend(kept)
        told = lane.checkpoint()
        counted.bounds.add(lane.bound)
        moved = counted.references + told["references"]
        counted.instances = max(counted.instances, counted.references + told["instances"])
        counted.references = max(moved, counted.instances)
        counted.derived += told["derived_references"] + 1
        counted.tick, counted.since = max(counted.tick, lane.tick), max(counted.since, lane.since)
        counted.totals = [a + b for a, b in zip(counted.totals, told["totals"], strict=True)]

    # ---- one engine of them --------------------------------------------------------------------------------

    def whole(self) -> Engine:
        """The engine that has all of it."""
        spread, standing = self.spread, self.standing
        engine = Engine(spread.plan, spread.world, self._part())
        engine.sources.advance(standing.bounds)
        engine.sources.restore(standing.first, standing.last)
        engine.sources.limit(standing.first, standing.until)
        engine.outside = None
        chosen = anchors(spread)
        for names, lane in engine.lanes.items():
            engine.hold(names, distinct(self.waiting.get(names, ())))
            self._fill(names, lane, chosen)
            lane.bound = self._bound(engine, names)
            lane.settle()
            lane.expire()
        for label, one in engine.separations.items():
            waiting, good = self.judged.get(label, ((), ()))
            one.hold(distinct(waiting) if waiting else ())
            one.recall(good)
            source = engine.sources.source(label)
            awaited = frozenset((source,)) if source in spread.plan.lanes.every else spread.plan.lanes.every
            one.restore(engine.sources.bound(awaited))
        return engine

    def _bound(self, engine: Engine, names: Names) -> int:
        """Where a lane stands: where it stood in all places, or if it has been nowhere, where its sources are."""
        bounds = self.counted[names].bounds if names in self.counted else set()
        if len(bounds) > 1:
            raise InternalError("change", f"the places stand at different bounds: {sorted(bounds)}")
        if bounds:
            return next(iter(bounds))
        return engine.sources.bound(names) if names != CLOCK else engine.sources.fastest(self.spread.plan.lanes.every)

    def _part(self) -> Part | None:
        if self.group is None:
            return None
        own = self.spread.stages.groups[self.group]
        return Part(frozenset(own.rules), {}, judges=bool(own.judges), reserves=own.reserves)

    def _fill(self, names: Names, lane: Lane, chosen: Mapping[str, int | None]) -> None:
        counted = self.counted.get(names, _Counted())
        lane.tick = counted.tick
        lane.references, lane.derived_references = counted.references, counted.derived
        lane.released, lane.duplicates, lane.unused = counted.totals
        lane.since = counted.since
        if lane.detectors is not None:
            lane.detectors.count_on(counted.references)
        for name, history in lane.histories.items():
            batch = self._history(names, lane, name, chosen.get(name))
            if batch is not None and len(batch):
                history.restore(batch, min(1, lane.tick))
            history.count_on(*counted.histories.get(name, (0, 0, -FAR)))
        for name, rule in lane.rules.items():
            for batch in self.own.get((names, "rule", name), ()):
                rule.pending.restore(batch)
            for source in {leaf.source for leaf in rule.plan.inputs()}:
                if (name, source) in counted.pasts:
                    rule.pasts[source] = self._past(names, lane, name, source)
                    rule.pasts[source].count_on(*counted.pasts[name, source])
            examined, since, exact = counted.rules.get(name, (0, None, None))
            rule.count_on(lane.tick, examined, since, exact)
        for name, records in lane.records.items():
            for batch in self.own.get((names, "records", name), ()):
                records.restore(batch)

    def _past(self, names: Names, lane: Lane, rule: str, source: str) -> History:
        """What a rule has of the time before."""
        past = lane.empty_history(source)
        parts = self.own.get((names, f"past {source}", rule), [])
        if parts:
            past.restore(stack(parts) if source in lane.plan.queries else united(parts), min(1, lane.tick))
        return past

    def _history(self, names: Names, lane: Lane, name: str, first: int | None) -> Batch | None:
        by_group = self.rows.get((names, name), {})
        order = sorted(by_group, key=lambda group: (group != first, group))
        parts = [stack(by_group[group]) for group in order if by_group[group]]
        if name in lane.plan.timers or (parts and name not in lane.plan.queries and name in self.spread.plan.calendars):
            every = [batch for own in by_group.values() for batch in own]
            return united(every) if every else None
        whole = name in lane.plan.queries and lane.plan.queries[name].keeps_events
        return united(parts, whole=whole) if parts else None


def _together(known: tuple[int, int, int] | None, history: History) -> tuple[int, int, int]:
    """What was counted of a history in one place more."""
    collected, number, since = known if known is not None else (0, 0, -FAR)
    return collected + history.collected, max(number, history.next_number), max(since, history.since)


def anchors(spread: DistributedProgram) -> dict[str, int | None]:
    """For each query of rules that compare events the group that these run in; None if they run in several."""
    found: dict[str, int | None] = {}
    for rule, placed in spread.stages.placed.items():
        for query in compared_inputs(spread.plan.plan.points[rule]):
            found[query] = placed.group if found.get(query, placed.group) == placed.group else None
    return found


def gathered(
    spread: DistributedProgram, standing: Progress, engines: Iterable[tuple[int, Engine]], group: int | None = None
) -> Engine:
    """One engine with the state of those of all places, each with the number of its group; or of one group."""
    gathering = Gathering(spread, standing, group)
    for number, engine in engines:
        gathering.add(number, engine)
    return gathering.whole()


# ---- tuples of several groups ----------------------------------------------------------------------------------


def united(parts: Sequence[Batch], *, whole: bool = False) -> Batch:
    """The rows of several, of which each has an event at most once, though others may call it otherwise.

    What is alike but for references is there as often as in the part that has it most often, and of the first of
    these. If events are `whole`, those that lack them do not count, and must have nothing that others lack.
    """
    if len(parts) == 1:
        return parts[0]
    every = stack(parts)
    which = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    names = [name for name in every.columns if not is_reference(name) and not is_occurrence(name)]
    columns = [every.columns[name] for name in names]
    numbering, numbers = numbered(hash_columns(columns, len(every)))
    firsts = numbering.rows[numbers]
    if not all(bool(same(c, c.take(firsts)).all()) for c in columns):
        raise InternalError("change", "two different tuples have one hash")
    counts = np.zeros((len(parts), len(numbering)), dtype=np.int64)
    np.add.at(counts, (which, numbers), 1)
    if whole:
        has = np.array([any(is_occurrence(name) for name in part.columns) for part in parts])
        if not has.all():
            most = counts[has].max(axis=0, initial=0)
            if (counts[~has] > most).any():
                raise Immovable("some groups of rules keep whole events of a type, and others more of it, in part")
            counts[~has] = 0
    best = counts.argmax(axis=0)
    return every.take(which == best[numbers])
