"""This module moves the state of an engine into one that runs a changed program, by what the state means.

A kept rule goes on as if nothing had happened: what waits for its timers and windows moves with it, and so does what it
needs of its inputs, whatever rules it runs together with. The old engine is only looked at. Where something of a kept
rule has another form in the new plan, and cannot be had in it, that is said; then another plan is tried.
"""

from __future__ import annotations

from ephemera.engine.change.compared import ChangeRefused, told
from ephemera.engine.change.kept_tuples import (
    kept_by,
)
from ephemera.engine.change.moved_lanes import Immovable
from ephemera.engine.change.moved_tuples import MovedTuples
from ephemera.engine.change.warm_up import WarmUp
from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import CLOCK
from ephemera.physical.plan import PhysicalPlan


class Move(MovedTuples):
    """One attempt to move an engine into a plan."""

    def made(self) -> Engine:
        """The new engine, standing where the old one stands."""
        self.compared, self.old = self.standing.both, self.standing.engine
        self.was, self.now = self.compared.old.physical, self.compared.new.physical
        self._check_shapes()
        self.new = Engine(self.now, self.world)
        for one in kept_by(self.was, self.compared.before):
            self.kept.setdefault(one.label, []).append(one)
        for name in self.was.rules:
            for member in self.was.rewritten.members(name):
                self.runs[member.name] = name
        self._sources()
        runs = [h.next_number for lane in self.old.lanes.values() for h in lane.histories.values()]
        for names, lane in self.new.lanes.items():
            self._stand(names, lane)
            for history in lane.histories.values():  # no two runs of one name are ever called the same
                history.next_number = max(runs, default=0)
        for names, lane in self.new.lanes.items():
            self._lane(names, lane)
        for names, lane in self.new.lanes.items():
            self._begin(names, lane)
        fresh = {(at, name) for at, lane in self.new.lanes.items() for name in lane.histories} - self.filled
        pending = self._pending()
        WarmUp(self.new, self.now, self.start.warm, fresh).run()
        for names, lane in self.new.lanes.items():
            for name, rule in lane.rules.items():
                self._unless_warm(rule, name)
                if (names, name) in pending:
                    rule.pending.restore(pending[names, name])
        for names, lane in self.new.lanes.items():
            self._settle(names, lane)
        return self.new

    def _check_shapes(self) -> None:
        """Rules that derive only what their readers ask for, or stand beside others, must do so as before."""
        before, after = _shapes(self.was), _shapes(self.now)
        for name, old in self.compared.kept.items():
            if before.get(old) != after.get(name):
                raise Immovable(
                    f"{told(self.compared.new.plan, name)} derived only what was asked for of it, and is now asked for "
                    "something else"
                )
        if CLOCK in self.was.lanes.plans or CLOCK in self.now.lanes.plans:
            bounds = {lane.bound for lane in self.old.lanes.values()}
            if len(bounds) > 1:
                raise Immovable("some rules answer by the clock ahead of slower sources; change when all stand alike")

    def _settle(self, names: frozenset[str], lane: Lane) -> None:
        """All is seen, and what is dead goes; what is not exact yet is remembered."""
        for name, join in lane.rules.items():
            join.seen = lane.tick
            exact = [self.start.exact_from[o] for o in self._owners(name) if o in self.start.exact_from]
            if exact:
                join.exact_from = max(exact)
            times = {self.start.since[o] for o in self._owners(name) if o in self.start.since}
            others = [o for o in self._owners(name) if o not in self.start.since]
            if times and (others or len(times) > 1):
                raise Immovable("rules that begin at different times would run together")
            if times:
                if any(leaf.stored for leaf in join.plan.inputs()) or self.now.plan.points[name].kind == "join":
                    raise Immovable("a rule that begins later would store joins")
                if any(one.detector is None for one in join.plan.detections):
                    raise ChangeRefused(
                        f"{told(self.compared.new.plan, self._owners(name)[0])} has an expression of the event algebra "
                        "that needs all that is kept: it cannot begin later than others"
                    )
                join.count_since(min(times))
        late: dict[str | None, int] = {}
        for rule, time in self.start.exact_from.items():
            label = self.compared.new.plan.points[rule].label
            late[label] = max(time, late.get(label, -FAR))
        for name, query in lane.plan.queries.items():
            if query.label in late:
                lane.histories[name].since = max(lane.histories[name].since, late[query.label])
            elif any(self._is_late(rule) for rule, _ in self._readers(lane, name)) or (
                (names, name) not in self.filled and lane.bound > -FAR and not self._derived_exactly(query.label)
            ):
                lane.histories[name].since = max(lane.histories[name].since, lane.bound)
        if lane.since > lane.bound:
            for history in lane.histories.values():
                history.since = max(history.since, lane.since)
        lane.settle()

    def _derived_exactly(self, label: str | None) -> bool:
        rules = [p for p in self.compared.new.plan.points.values() if p.kind == "rule" and p.label == label]
        return bool(rules) and all(p.name in self.start.warm for p in rules)

    def _is_late(self, rule: str) -> bool:
        return any(owner in self.start.exact_from or owner in self.start.since for owner in self._owners(rule))


def _shapes(physical: PhysicalPlan) -> dict[str, object]:
    """For each rule that derives less than is written what it derives."""
    rewritten = physical.rewritten
    fused = {one.deriving.name: f"beside {one.reader}" for one in rewritten.fused.values()}
    return {**rewritten.pushed, **fused, **dict.fromkeys((point.name for point in rewritten.useless), "nothing")}
