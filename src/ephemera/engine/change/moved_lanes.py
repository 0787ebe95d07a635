"""This module says where the lanes of an engine stand after a change, and which old lanes they go on from.

A lane that waits for the same sources as before stands where it stood. One that is new goes on from those that stand at
the same bound, each for its own sources; the references of events are then moved apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from ephemera.algebra.attributes import (
    is_reference,
)
from ephemera.algebra.state_names import stored_joins
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.change.compared import Compared, told
from ephemera.engine.change.kept_tuples import (
    KeptTuples,
)
from ephemera.engine.change.standing import EngineStanding
from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.kernels.columns import Batch, Column
from ephemera.kernels.event_columns import REFERENCE
from ephemera.physical.lanes import CLOCK
from ephemera.physical.nodes import HistoryUse
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.outcome import World


class Immovable(Exception):
    """State of a kept rule that a plan has in another form, in which it cannot be had."""


@dataclass(frozen=True, slots=True)
class Start:
    """How added rules start."""

    warm: frozenset[str]
    """The rules that are run once over what is kept."""
    since: Mapping[str, int]
    """The rules that only see what ends after some time."""
    exact_from: Mapping[str, int]
    """For rules that are not exact at once from when on they are."""


@dataclass(slots=True)
class Origin:
    """The old lane that a source's events are taken from, and how far its references are moved."""

    lane: frozenset[str]
    outside: int = 0
    derived: int = 0

    def moved(self, batch: Batch) -> Batch:
        """Rows with references that are not those of another lane."""
        if not self.outside and not self.derived:
            return batch
        columns: dict[str, Column] = {}
        for name, c in batch.columns.items():
            if c.kind == "int" and (name == REFERENCE or is_reference(name)):
                values = np.where(c.values >= 0, c.values + self.outside, c.values + self.derived)
                columns[name] = Column(values, "int")
        return batch.with_columns(columns)


@dataclass(slots=True)
class MovedLanes:
    """An attempt to move an engine into a plan, and where its lanes stand then."""

    standing: EngineStanding
    world: World
    start: Start
    compared: Compared = field(init=False)
    old: Engine = field(init=False)
    was: PhysicalPlan = field(init=False)
    now: PhysicalPlan = field(init=False)
    new: Engine = field(init=False)
    origins: dict[frozenset[str], dict[str, Origin]] = field(default_factory=dict)
    kept: dict[str | None, list[KeptTuples]] = field(default_factory=dict)
    filled: set[tuple[frozenset[str], str]] = field(default_factory=set)
    """The histories that have what was kept; the others are fresh."""
    runs: dict[str, str] = field(default_factory=dict)
    """For each rule of the old program the rule that it was run by."""

    def _sources(self) -> None:
        old, new = self.old.sources, self.new.sources
        new.bounds = {name: bound for name, bound in old.bounds.items() if name in new.names}
        new.restore(old.first, old.last)
        new.limit(old.first, old.ended)
        self.new.given, self.new.late_count = self.old.given, self.old.late_count
        self.new.late = list(self.old.late)
        self.new.awaited -= self.was.awaited - self.old.awaited
        self.new.outside = None if self.old.outside is None else set(self.old.outside)
        numbers = self._numbers()
        self.new.matched = {numbers[rule] for rule in self.old.matched if rule in numbers}
        for label, one in self.new.separations.items():
            before = self.old.separations.get(label)
            if before is not None:
                one.hold(before.waiting)
                one.recall(before.good())
                one.restore(before.bound)
                one.close = list(before.close)
            else:
                source = new.source(label)
                every = self.now.lanes.every
                one.restore(new.bound(frozenset((source,)) if source in every else every))

    def _numbers(self) -> dict[int, int]:
        """For each rule of the old program that is kept its number in the new one."""
        old, new = self.compared.old.plan.points, self.compared.new.plan.points
        pairs = ((old[was].rule, new[now].rule) for now, was in self.compared.kept.items())
        return {was: now for was, now in pairs if was is not None and now is not None}

    def _stand(self, names: frozenset[str], lane: Lane) -> None:
        """A lane stands where the old one did, or where its sources are."""
        lane.since = self.standing.gap(names)
        old = self.old.lanes.get(names)
        if old is not None:
            counted = old.checkpoint()
            lane.bound, lane.tick = old.bound, old.tick + 1
            lane.references, lane.derived_references = counted["references"], counted["derived_references"]
            lane.released, lane.duplicates, lane.unused = counted["totals"]
            if lane.detectors is not None:
                lane.detectors.count_on(counted["instances"])
            self.origins[names] = dict.fromkeys([*names, ""], Origin(names))
            self.origins[names][""] = Origin(names)
            return
        lane.bound = self.standing.bound_of(names)
        lane.tick = max([0, *(one.tick for one in self.old.lanes.values())]) + 1
        self.origins[names] = self._origins(names, lane)

    def _origins(self, names: frozenset[str], lane: Lane) -> dict[str, Origin]:
        """For each source of a lane that is new the old lane that stands where this one does, if there is one."""
        wanted = [m for name in lane.rules for m in self._kept_members(name)]
        first = next((at for m in wanted if (at := self.standing.old_lane(m)) is not None), None)
        aligned = [at for at, one in self.old.lanes.items() if one.bound == lane.bound and at != CLOCK]
        aligned.sort(key=lambda at: (at != first, -len(at & names)))
        found: dict[str, Origin] = {}
        chosen: dict[frozenset[str], Origin] = {}
        for source in names or self.now.lanes.every:
            at = next((at for at in aligned if source in at), None)
            if at is None:
                continue
            if at not in chosen:
                chosen[at] = Origin(at, lane.references, lane.derived_references + 1)
                counted = self.old.lanes[at].checkpoint()
                lane.references += counted["references"]
                lane.derived_references += counted["derived_references"] + 1
            found[source] = chosen[at]
        return found

    def _origin(self, names: frozenset[str], label: str | None) -> Origin | None:
        """Where a lane takes tuples of a type from."""
        origins = self.origins[names]
        source = self.new.sources.source(label) if label is not None else ""
        found = origins.get(source)
        if found is None and origins and (label is None or label in self.now.catalogue.derived or names == CLOCK):
            found = next(iter(origins.values()))
        return found

    def _kept_members(self, name: str) -> list[str]:
        """The rules that a rule of the new plan stands for, and that are kept."""
        return [m for m in self._owners(name) if m in self.compared.kept]

    def _owners(self, name: str) -> list[str]:
        """The rules of the program that a rule of the new plan runs for."""
        return owners_of(self.now, name)

    def _readers(self, lane: Lane, query: str) -> Iterator[tuple[str, HistoryUse]]:
        """The rules of a lane that read a query, with what they need of it."""
        for rule, uses in lane.plan.uses.items():
            for use in uses:
                if use.history == query:
                    yield rule, use

    def _elsewhere(self, rule: str) -> str:
        return (
            f"{told(self.compared.new.plan, rule)} is to wait for other sources than before, together with rules that "
            "derive the same, and these sources have not come equally far"
        )


def owners_of(physical: PhysicalPlan, name: str) -> list[str]:
    """The rules of the program that a rule of a plan runs for."""
    rewritten = physical.rewritten
    point = rewritten.plan.points.get(name)
    if point is not None and point.kind == "join":
        return [m for owner in stored_joins(rewritten.plan)[name] for m in owners_of(physical, owner)]
    found: list[str] = []
    for member in rewritten.members(name):
        fused = rewritten.fused.get(member.name)
        found += [fused.reader] if fused is not None else [member.name]
    return found


def stored_parts(physical: PhysicalPlan, name: str) -> bool:
    """Whether a rule reads a stored join."""
    return any(leaf.stored for leaf in physical.rules[name].inputs())


def renaming(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The columns of one plan as another calls them."""
    back = {stored: own for own, stored in ours.items()}
    return {own: back[stored] for own, stored in theirs.items() if stored in back}
