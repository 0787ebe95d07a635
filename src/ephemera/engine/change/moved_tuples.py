"""This module moves what waits: events for their bound, and tuples of kept rules for their timers and windows.

Tuples of rules that run as one are taken apart by rule, and put together as the rules run then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ephemera.algebra.attributes import (
    begin,
    end,
    is_constant,
    position,
    reference,
)
from ephemera.engine.change.compared import told
from ephemera.engine.change.kept_tuples import Convert, serves
from ephemera.engine.change.moved_histories import MovedHistories
from ephemera.engine.change.moved_lanes import Immovable, owners_of, renaming, stored_parts
from ephemera.engine.lane import Lane
from ephemera.engine.operators.join import RuleJoin
from ephemera.engine.operators.join_constants import MEMBER
from ephemera.kernels.columns import Batch, constant, stack
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR, History
from ephemera.physical.lanes import CLOCK
from ephemera.physical.nodes import RulePlan
from ephemera.physical.plan import PhysicalPlan


class MovedTuples(MovedHistories):
    """The waiting events and tuples of lanes that have moved."""

    def _begin(self, names: frozenset[str], lane: Lane) -> None:
        """What waits for the bound of a lane, and where its rules begin."""
        for source, origin in self.origins[names].items():
            if names in self.old.lanes and source:
                continue
            for part in self.old.waiting_parts[origin.lane]:
                own = self.new.sources.source(part.label)
                is_derived = part.label in self.now.catalogue.derived and own not in names
                if names in self.old.lanes or own == source or (is_derived and source == min(self.origins[names])):
                    shaped = self._reshaped(part)
                    if shaped is not None:
                        self.new.hold(names, [shaped])
        for rule in lane.rules.values():
            rule.seen = lane.tick
        lane.settled = 0
        for name, rule in lane.rules.items():
            if any(owner in self.start.warm for owner in self._owners(name)):
                rule.seen = 0

    def _reshaped(self, part: Events) -> Events | None:
        """Events that wait, with the attributes that their type has now; what removed rules derived is gone."""
        derivers = self.was.catalogue.derived.get(part.label, ())
        if derivers and self._is_changed(part.label):
            ahead = max(
                (lane.bound for lane in self.old.lanes.values() if any(self._derives(lane, n) for n in derivers)),
                default=-FAR,
            )
            rows = part.batch[END] > ahead
            if not rows.any():
                return None
            part = part if rows.all() else part.take(rows)
        names = self.now.catalogue.attributes(part.label)
        arity = part.arity
        if arity is not None and names is not None:
            arity = max(arity, len(names))
            lacking = [k for k in range(arity) if position(k) not in part.batch.columns]
            batch = part.batch
            if lacking:
                batch = Batch(dict(batch.columns), len(batch))
                batch = batch.with_columns({position(k): constant(None, len(batch)) for k in lacking})
            return Events(part.label, batch, arity, names, part.is_set)
        return part if names == part.names else Events(part.label, part.batch, part.arity, names, part.is_set)

    def _derives(self, lane: Lane, rule: int) -> bool:
        return any(
            self.was.plan.points[m].rule == rule
            for name in lane.rules
            for m in owners_of(self.was, name)
            if m in self.was.plan.points
        )

    def _is_changed(self, label: str) -> bool:
        """Whether other rules derive a label now."""
        kept = set(self.compared.kept.values())
        before = {p.name for p in self.compared.old.plan.points.values() if p.kind == "rule" and p.label == label}
        after = {p.name for p in self.compared.new.plan.points.values() if p.kind == "rule" and p.label == label}
        return not before <= kept or not after <= set(self.compared.kept)

    def _pending(self) -> dict[tuple[frozenset[str], str], Batch]:
        """For each rule of the new plan the tuples of kept rules that wait for their timers and windows."""
        found: dict[tuple[frozenset[str], str], Batch] = {}
        for names, lane in self.new.lanes.items():
            for name in lane.rules:
                parts = [
                    part for member in self._kept_members(name) for part in self._waiting(names, lane, name, member)
                ]
                if parts:
                    found[names, name] = stack(parts)
        return found

    def _waiting(self, names: frozenset[str], lane: Lane, name: str, member: str) -> Iterator[Batch]:
        """The tuples of one kept rule that wait, as the rule of the new plan has them."""
        theirs, ours = self.compared.before.names, self.compared.after.names
        runner = self.runs.get(self.compared.kept[member])
        if self.now.plan.points[name].kind == "join":  # a join of the old plan that stores the same, if there is one
            runner = next((own for own, known in theirs.rules.items() if known == ours.rules[name]), runner)
        at = names if names == CLOCK and CLOCK in self.old.lanes else self.standing.old_lane(member)
        old = self.old.lanes.get(at) if at is not None else None
        if runner is None or old is None:
            raise Immovable(f"{told(self.compared.new.plan, member)} was not run, since nobody asked for it")
        if at != names and old.bound != lane.bound:
            raise Immovable(self._elsewhere(member))
        rule = old.rules[runner]
        if rule.exact_from is not None and rule.exact_from > old.bound:
            now = lane.rules[name]
            now.exact_from = max(rule.exact_from, now.exact_from if now.exact_from is not None else rule.exact_from)
        if rule.since is not None and rule.since > -FAR:
            self._counted_since(names, name, member, rule)
        elif lane.rules[name].since is not None:
            raise Immovable(f"{told(self.compared.new.plan, member)} would run together with others that begin later")
        is_join = self.now.plan.points[name].kind == "join" or self.was.plan.points[runner].kind == "join"
        if (is_join or stored_parts(self.was, runner) or stored_parts(self.now, name)) and theirs.rules[
            runner
        ] != ours.rules[name]:
            raise Immovable(f"joins of {told(self.compared.new.plan, member)} would be stored otherwise")
        for run in rule.pending.checkpoint():
            batch = _of_member(run.batch, self.was, runner, self.compared.kept[member])
            if not len(batch):
                continue
            origin = next((o for o in self.origins[names].values() if o.lane == at), None)
            names_of = renaming(theirs.columns.get(runner, {}), ours.columns.get(name, {}))
            batch = batch.renamed(names_of)
            batch = origin.moved(batch) if origin is not None else batch
            yield self._for_group(lane.rules[name].plan, name, member, batch)

    def _counted_since(self, names: frozenset[str], name: str, member: str, old: RuleJoin) -> None:
        """A kept rule that once began later than others goes on so, with what it has of the time before."""
        rule = self.new.lanes[names].rules[name]
        if rule.since is None and len(self._owners(name)) == 1:
            for source in {leaf.source for leaf in rule.plan.inputs()} if old.pasts else ():
                rule.pasts[source] = self._past(names, name, member, old, source)
            rule.count_since(old.since)
        if rule.since != old.since:
            raise Immovable("rules that once began at different times would run together")

    def _past(self, names: frozenset[str], name: str, member: str, old: RuleJoin, source: str) -> History:
        """What a kept rule has of the time before it began, for one of its inputs."""
        at, lane = self.standing.old_lane(member), self.new.lanes[names]
        origin = next((o for o in self.origins[names].values() if o.lane == at), None)
        found = lane.empty_history(source)
        own, way = self._past_of(lane, name, member, old, source)
        for run in old.pasts[own].checkpoint():
            batch = way(run.batch)
            if len(batch):
                found.restore(origin.moved(batch) if origin is not None else batch, 1)
        return found

    def _past_of(self, lane: Lane, name: str, member: str, old: RuleJoin, source: str) -> tuple[str, Convert]:
        """What the old rule calls that, and how it becomes what the new one reads."""
        query, at = lane.plan.queries.get(source), self.standing.old_lane(member)
        if query is None:  # a timer of its own
            theirs, ours = self.compared.before.names, self.compared.after.names
            leaf = ours.histories[source].partition(".")[2]
            runner = self.runs[self.compared.kept[member]]
            before = next((o for o in old.pasts if theirs.histories[o] == f"{theirs.rules[runner]}.{leaf}"), None)
            if before is not None:
                names_of = renaming(theirs.columns.get(before, {}), ours.columns.get(source, {}))
                return before, lambda batch: batch.renamed(names_of)
        else:
            for one in (replace(k, tested=None) for k in self.kept.get(query.label, ()) if k.history in old.pasts):
                way = self._way(one, query.patterns, whole=query.keeps_events)
                if one.lane == at and way is not None and serves(one, self._asked(name, member, source)):
                    return one.history, way
        raise Immovable(f"the past of {told(self.compared.new.plan, member)} would have another form")

    def _for_group(self, plan: RulePlan, name: str, member: str, batch: Batch) -> Batch:
        """Tuples of a rule as those that it runs together with have them."""
        alike = self.now.rewritten.alike.get(name)
        columns = dict(batch.columns)
        if alike is not None:
            number = next(k for k, one in enumerate(alike.members) if one.name == member)
            for named, value in zip(alike.names, alike.rows[number], strict=True):
                columns[named] = constant(value, len(batch))
                column = plan.constants.get(named)
                if column is not None and column not in columns:
                    columns[column] = constant(value, len(batch))
            columns[MEMBER] = constant(number, len(batch))
        lacking = _wanted_columns(plan) - columns.keys()
        if lacking:
            raise Immovable(
                f"tuples of {told(self.compared.new.plan, member)} that wait lack {', '.join(sorted(lacking))}"
            )
        return Batch(columns, len(batch))

    def _unless_warm(self, rule: Any, name: str) -> None:
        """What a kept rule has found anew is what it has."""
        owners = self._owners(name)
        if owners and (name not in self.now.rewritten.alike or all(owner in self.compared.kept for owner in owners)):
            if not self.compared.kept.keys().isdisjoint(owners):
                rule.pending.expire(FAR)
            return
        kept = {k for k, m in enumerate(self.now.rewritten.members(name)) if m.name in self.compared.kept}
        for run in rule.pending.checkpoint():
            rows = ~np.isin(run.batch[MEMBER], sorted(kept))
            rule.pending.expire(FAR)
            rule.pending.restore(run.batch.take(rows))


def _of_member(batch: Batch, physical: PhysicalPlan, runner: str, member: str) -> Batch:
    """Of the tuples of rules that run as one those of one rule, without what tells them apart."""
    if runner not in physical.rewritten.alike:
        return batch
    members = physical.rewritten.members(runner)
    number = next(k for k, one in enumerate(members) if one.name == member)
    mine = batch.take(batch[MEMBER] == number)
    return Batch({n: c for n, c in mine.columns.items() if n != MEMBER and not is_constant(n)}, len(mine))


def _wanted_columns(plan: RulePlan) -> frozenset[str]:
    """The columns that tuples of a rule have when they wait, and that come from its events."""
    order = plan.orders[0] if plan.orders else None
    if order is None:
        return frozenset()
    kept = order.probes[-1].kept if order.probes else order.kept
    own = frozenset(
        n for leaf in plan.leaves for n in (*leaf.sure, begin(leaf.name), end(leaf.name), reference(leaf.name))
    )
    return own if kept is None else own & kept
