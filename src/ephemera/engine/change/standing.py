"""This module says how an engine stands when its rules change: how far, and what of the time before is there."""

from __future__ import annotations

from ephemera.algebra.attributes import position
from ephemera.algebra.nodes import Point
from ephemera.engine.change.compared import Compared
from ephemera.engine.change.kept_tuples import KeptTuples, kept_by, unread
from ephemera.engine.change.needs import Standing
from ephemera.engine.engine import Engine
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import CLOCK
from ephemera.physical.plan import PhysicalPlan

MANY = 1 << 16
"""No pattern has so many places."""


def lanes_of(physical: PhysicalPlan) -> dict[str, frozenset[str]]:
    """For each rule that runs its lane; of two the one that answers."""
    found: dict[str, frozenset[str]] = {}
    for names, lane in physical.lanes.plans.items():
        for name in lane.uses:
            if physical.plan.points[name].kind == "rule":
                for member in physical.rewritten.members(name):
                    fused = physical.rewritten.fused.get(member.name)
                    found[fused.reader if fused is not None else member.name] = names
    return found


class EngineStanding(Standing):
    """How an engine stands for a change."""

    def __init__(self, both: Compared, engine: Engine) -> None:
        self.both = both
        self.engine = engine
        self._lanes = lanes_of(both.new.physical)
        self._were = lanes_of(both.old.physical)
        self._unread: dict[tuple[frozenset[str], str], bool] = {}
        self.kept = list(kept_by(both.old.physical, both.before))
        self._kept: dict[str | None, list[KeptTuples]] = {}
        for one in self.kept:
            self._kept.setdefault(one.label, []).append(one)
        self._begins: dict[frozenset[str], int] = {}

    def is_blank(self, rule: str) -> bool:
        names = self._names(rule)
        return self.bound_of(names) == -FAR == self.gap(names)

    def bound(self, rule: str) -> int:
        """Where a rule begins."""
        return self.bound_of(self._names(rule))

    def bound_of(self, names: frozenset[str]) -> int:
        """Where a lane begins: where it stood, or where the lane stood that its kept rules come from."""
        if names in self.engine.lanes:
            return self.engine.lanes[names].bound
        if names not in self._begins:
            sources = self.engine.sources
            reached = sources.bound(names) if names != CLOCK else sources.fastest(self.both.new.physical.lanes.every)
            rules = [rule for rule, at in self._lanes.items() if at == names]
            bounds = {self.engine.lanes[at].bound for rule in rules if (at := self.old_lane(rule)) is not None}
            self._begins[names] = min([*bounds, reached])
        return self._begins[names]

    def gap(self, names: frozenset[str]) -> int:
        """What ended by then is not known in a lane, though it may lie behind its bound: it was not kept there."""
        lanes, sources = self.engine.lanes, self.engine.sources
        if names in lanes:
            return lanes[names].since
        bound = self.bound_of(names)
        aligned = [at for at, lane in lanes.items() if lane.bound == bound and at != CLOCK]
        wanted = names or self.both.new.physical.lanes.every
        every = all(any(source in at for at in aligned) for source in wanted)
        has_come = any(one > -FAR for one in sources.bounds.values())
        own = -FAR if every or not has_come else max(sources.last, bound)
        return max([own, *(lanes[at].since for at in aligned if not wanted.isdisjoint(at))])

    def old_lane(self, rule: str) -> frozenset[str] | None:
        """The lane that a kept rule ran in; None if it is not kept, or was not run."""
        return self._were.get(self.both.kept.get(rule, ""))

    def gap_of(self, rule: str) -> int:
        """The same for the lane of a rule."""
        return self.gap(self._names(rule))

    def _names(self, rule: str) -> frozenset[str]:
        return self._lanes.get(rule, frozenset())

    def _origin(self, rule: str, label: str | None) -> list[frozenset[str]]:
        """The old lanes that a rule may take tuples of a type from."""
        names = self._names(rule)
        if names in self.engine.lanes:
            return [names]
        source = self.engine.sources.source(label or "")
        bound = self.bound(rule)
        return [at for at, lane in self.engine.lanes.items() if lane.bound == bound and source in at]

    def may_use(self, rule: str, kept: KeptTuples) -> bool:
        return kept.lane in self._origin(rule, kept.label) and not self._is_unread(kept)

    def _is_unread(self, kept: KeptTuples) -> bool:
        """Whether what is kept lacks an attribute that rules ask for now, and none did before."""
        key = kept.lane, kept.history
        if key not in self._unread:
            new = self.both.new.physical
            names = new.catalogue.attributes(kept.label or "") or ()
            asked = new.rewritten.columns
            needed = None if asked is None or kept.label is None else asked.get(kept.label)
            wanted = {k for k, name in enumerate(names) if needed is None or name in needed}
            history = self.engine.lanes[kept.lane].histories[kept.history]
            self._unread[key] = unread(kept, history.batches(), wanted if names else range(MANY))
        return self._unread[key]

    def ahead(self, rule: str, other: str) -> int | None:
        own, theirs = self.bound(rule), self.bound(other)
        return 0 if theirs <= own else None if own == -FAR else theirs - own

    def age(self, kept: KeptTuples) -> int | None:
        lane = self.engine.lanes[kept.lane]
        since = lane.histories[kept.history].since
        return None if since == -FAR else max(lane.bound - since, 0)

    def trouble(self, query: Point) -> str | None:
        label = query.label
        outside = self.engine.outside
        has_come = outside is None or label in outside or (label is None and bool(outside))
        return "some of it may have come from outside, which was not kept for this" if has_come else None

    def is_elsewhere(self, rule: str, label: str) -> bool:
        """Whether what is lost of a type is only not where it is needed: it came, but nothing there waited for it."""
        names = self._names(rule)
        return self.gap(names) > self.bound_of(names) or (
            names not in self.engine.lanes and not self._origin(rule, label)
        )

    def lost(self, rule: str, query: Point) -> str | None:
        label, names = query.label, self._names(rule)
        engine, old = self.engine, self.both.old.physical
        if label in self.both.new.physical.calendars:
            return None
        if names not in engine.lanes and not self._origin(rule, label):
            if all(bound == -FAR for bound in engine.sources.bounds.values()):
                return None
            return "what has come of it is not kept where it is needed now"
        if self.gap(names) > self.bound(rule):
            return "what has come of it was not kept where it is needed now"
        if label in self.both.new.physical.judged and label not in old.judged:
            outside = engine.outside
            if outside is None or label in outside:
                return "those that have come were not judged by how close they come"
        feeding = self.both.after.feeding(query)
        for kept in self._kept.get(label, ()):
            if kept.lane in self._origin(rule, label) and kept.feeding == feeding and self._is_unread(kept):
                return "not all that is asked of it now was read of those that have come"
        known, asked = old.catalogue.attributes(label or ""), self.both.new.physical.catalogue.attributes(label or "")
        wanted = self.both.new.physical.rewritten.columns
        for at in self._origin(rule, label):
            for part in engine.waiting_parts[at]:
                if part.label != label:
                    continue
                if (known is None) != (asked is None):
                    return "those that have come were read in another form"
                needed = None if wanted is None else wanted.get(part.label)
                columns = part.batch.columns
                for k, name in enumerate(known or ()):
                    lacks = part.arity is not None and position(k) not in columns
                    if lacks and (needed is None or name in needed):
                        return f"`{name}` was not read of those that have come"
        return None
