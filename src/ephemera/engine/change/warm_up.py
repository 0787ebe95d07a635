"""This module runs added rules once over what is kept of the time before a change, without answers.

What they would have derived by then goes into the histories that read it, and what waits for a timer or window stays.
Rules that only derive anew what others read are run with them; of rules that run as one only those that are wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.engine.operators.head import is_message
from ephemera.engine.operators.join_constants import MEMBER
from ephemera.engine.operators.step_events import StepEvents, Used
from ephemera.engine.time.event_time import Clock
from ephemera.kernels.columns import Batch
from ephemera.kernels.event_columns import END, Events, of_events
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import CLOCK
from ephemera.physical.plan import PhysicalPlan


class WarmUp:
    """One pass over all lanes of an engine that stands at a change; those that wait for the fewest sources first."""

    def __init__(
        self, engine: Engine, plan: PhysicalPlan, warm: Collection[str], fresh: Collection[tuple[frozenset[str], str]]
    ) -> None:
        """`warm` are the rules that are run, and `fresh` the histories that have nothing of what is derived yet."""
        self._engine = engine
        self._plan = plan
        self._warm = warm
        self._fresh = fresh
        self._here: set[str] = set()
        """Those of the lane that is run."""
        self._told: dict[frozenset[str], list[Events]] = {}

    def run(self) -> None:
        """All lanes, one after the other."""
        for names, lane in self._engine.lanes.items():
            told = self._told.get(names, [])
            by_then = [part.take(part.batch[END] <= lane.bound) for part in told]
            later = [part.take(part.batch[END] > lane.bound) for part in told]
            self._engine.hold(names, [part for part in later if len(part)])
            self._here = {name for at, name in self._fresh if at == names}
            derived = self._lane(lane, [part for part in by_then if len(part)])
            for name, parts in derived.items():
                if name in self._warm and not is_message(lane.builders[name].head):
                    self._tell(names, parts)
            lane.take_dead_letters()

    def _tell(self, names: frozenset[str], parts: Sequence[Events]) -> None:
        """What a rule derived is told to the lanes that go on from it."""
        for others in self._engine.lanes:
            if others > names and names != CLOCK:
                self._told.setdefault(others, []).extend(parts)

    def _lane(self, lane: Lane, released: Sequence[Events]) -> dict[str, list[Events]]:
        derived: dict[str, list[Events]] = {}
        wanted = {name for name in lane.rules if any(m.name in self._warm for m in self._plan.rewritten.members(name))}
        if lane.bound == -FAR or not (wanted or released):
            return derived
        pool = StepEvents(lane.references, lane.derived_references)
        lane.used = Used(lane.references, pool.add(released, derived=False))
        self._tell_the_time(lane, pool)
        for members, is_cycle in lane.plan.schedule:
            if is_cycle and not wanted.isdisjoint(members):
                lane.take_turns(members, pool, lane.bound, derived)
                continue
            for name in members:
                lane.tick += 1
                query = lane.queries.get(name)
                if query is not None and name in self._here:
                    label = lane.plan.queries[name].label
                    if label not in self._plan.calendars:
                        query.step(pool.unread(name, label), lane.tick)
                elif name in wanted:
                    self._rule(lane, name, pool, derived)
        lane.references, lane.derived_references = pool.next_reference, pool.next_derived
        return derived

    def _rule(self, lane: Lane, name: str, pool: StepEvents, derived: dict[str, list[Events]]) -> None:
        rule = lane.rules[name]
        if rule.plan.detections:
            return
        found = rule.step(lane.tick, lane.bound)
        if isinstance(found, Batch):
            for member, batch in lane.by_member(name, found):
                if member in self._warm:
                    events = lane.builders[member].step(batch)
                    derived.setdefault(member, []).extend(events)
                    if events and not is_message(lane.builders[member].head):
                        pool.add(events)
        members = self._plan.rewritten.members(name)
        if len(members) > 1 and len(rule.pending):
            (run,) = rule.pending.checkpoint()
            wanted = np.array([member.name in self._warm for member in members])
            mask = wanted[run.batch[MEMBER]]
            rule.pending.expire(FAR)
            rule.pending.restore(run.batch.take(mask))

    def _tell_the_time(self, lane: Lane, pool: StepEvents) -> None:
        """The events of absolute timers and calendars, as far back as a rule may need them."""
        clock: Clock = self._engine.clock
        first = self._engine.sources.first
        after = min(lane.bound, lane.bound if first is None else first) - self._plan.reach - 1
        for name, timer in zip(lane.plan.timers, lane.timers, strict=True):
            if name in self._here:
                timer.step(clock.timers(timer.pattern, after, lane.bound), lane.tick)
        asked: Mapping[str, str] = {
            name: label
            for name, query in lane.plan.queries.items()
            if name in self._here and (label := query.label) is not None and label in self._plan.calendars
        }
        if not asked:
            return
        days = StepEvents(0, pool.next_derived)
        told = [day for label in sorted(set(asked.values())) for day in clock.days(label, after, lane.bound)]
        days.add(of_events(told, self._plan.catalogue.attributes))
        pool.next_derived = days.next_derived
        for name, label in asked.items():
            lane.queries[name].step(days.unread(name, label), lane.tick)
