"""This module moves the histories of an engine into those of a changed program, maybe made of other tuples.

The same query takes what it had. Another of the same type takes what it can use of all that is kept (`kept_tuples`).
What a kept rule needs has to be there as long as that rule needs it; else it is said, and another plan is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ephemera.algebra.attributes import (
    records_of,
)
from ephemera.algebra.nodes import Calendar, Detection
from ephemera.base.tree import find
from ephemera.engine.change.compared import told
from ephemera.engine.change.kept_tuples import (
    Convert,
    KeptTuples,
    converted,
    covers,
    longest_kept,
    serves,
    with_constants,
)
from ephemera.engine.change.moved_lanes import Immovable, MovedLanes, Origin, renaming
from ephemera.engine.lane import Lane
from ephemera.engine.operators.match import asked_for
from ephemera.kernels.columns import Batch, stack
from ephemera.kernels.event_columns import REFERENCE
from ephemera.kernels.history import FAR
from ephemera.physical.nodes import HistoryUse, Reader
from ephemera.terms.nodes import Bool, Number, Pattern, Text
from ephemera.terms.values import Value

_FOREVER = Reader(())
"""Who needs everything."""


class MovedHistories(MovedLanes):
    """The histories of lanes that have moved."""

    def _lane(self, names: frozenset[str], lane: Lane) -> None:
        """The histories of a lane."""
        for name, query in lane.plan.queries.items():
            self._fill(names, lane, name, query.label)
        stored = {told_by: own for own, told_by in self.compared.before.names.histories.items()}
        for name in lane.rules:
            self._own(names, lane, name, stored)

    def _own(self, names: frozenset[str], lane: Lane, rule: str, stored: Mapping[str, str]) -> None:
        """The histories of a rule's timers and algebra expressions, and the records of these."""
        expression = self.now.plan.points[rule].expression
        leaves = [one.name for one in find(expression, Calendar)]
        detected = [one.name for one in find(expression, Detection)]
        if not leaves and not detected:
            return
        kept, owners = self._kept_members(rule), self._owners(rule)
        if not kept:
            return
        at = self.standing.old_lane(kept[0])
        old = self.old.lanes.get(at) if at is not None else None
        runner = self.runs.get(self.compared.kept[kept[0]], "")
        if len(kept) < len(owners) or old is None or (at != names and lane.bound != old.bound):
            raise Immovable(f"what is kept for {told(self.compared.new.plan, kept[0])} would be kept elsewhere")
        theirs, ours = self.compared.before.names, self.compared.after.names
        for leaf in (*leaves, *detected):
            own = f"{rule}/{leaf}"
            before = _named(theirs, stored, ours.histories[own].partition(".")[2], runner)
            if before is None or before not in old.histories:
                raise Immovable(f"what is kept for {told(self.compared.new.plan, kept[0])} has another form")
            names_of = renaming(theirs.columns.get(before, {}), ours.columns.get(own, {}))
            for run in old.histories[before].checkpoint():
                lane.histories[own].restore(run.batch.renamed(names_of), min(max(run.step, 1), lane.tick))
            self.filled.add((names, own))
        for leaf in detected:
            own = records_of(rule, leaf)
            if own not in lane.records:
                continue
            before = _named(theirs, stored, ours.histories[own].partition(".")[2], runner)
            if before is None or before not in old.records:
                raise Immovable(f"what is kept for {told(self.compared.new.plan, kept[0])} has another form")
            names_of = renaming(theirs.columns.get(before, {}), ours.columns.get(own, {}))
            for run in old.records[before].checkpoint():
                lane.records[own].restore(run.batch.renamed(names_of))
        if detected and lane.detectors is not None:
            lane.detectors.count_on(max(lane.detectors.count, old.checkpoint()["instances"]))

    def _fill(self, names: frozenset[str], lane: Lane, name: str, label: str | None) -> None:
        """A history gets what was kept of it, maybe by other queries."""
        point = self.now.plan.points.get(name)
        after = self.compared.after
        feeding = after.outside(label or "") if point is None else after.feeding(point)
        if feeding is None:
            self._joined(names, lane, name)
            return
        readers = list(self._readers(lane, name))
        origin = self._origin(names, label)
        if origin is None:
            kept = [m for rule, _ in readers for m in self._kept_members(rule)]
            if kept:
                raise Immovable(self._elsewhere(kept[0]))
            return
        given = [k for k in self.kept.get(label, ()) if k.lane == origin.lane and k.feeding == feeding]
        whole = lane.plan.queries[name].keeps_events
        patterns = lane.plan.queries[name].patterns
        ways = [(k, way) for k in given if (way := self._way(k, patterns, whole=whole)) is not None]
        self._check_kept(names, readers, name, [k for k, _ in ways])
        stored = self.compared.after.names.histories[name]
        same = [pair for pair in ways if pair[0].patterns == patterns and pair[0].stored == stored]
        is_enough = same and not any(self._is_added(rule) for rule, _ in readers)
        ways = (same or ways) if is_enough else ways
        if not ways:
            return
        self._put(lane, name, origin, ways)
        self.filled.add((names, name))

    def _way(self, kept: KeptTuples, patterns: tuple[Pattern, ...], *, whole: bool) -> Convert | None:
        return converted(kept, patterns, whole=whole, catalogue=self.now.catalogue)

    def _is_added(self, rule: str) -> bool:
        return any(m not in self.compared.kept for m in self._owners(rule))

    def _check_kept(
        self,
        names: frozenset[str],
        readers: Sequence[tuple[str, HistoryUse]],
        query: str,
        ways: Sequence[KeptTuples],
    ) -> None:
        """Whether all that kept rules need of a query is there."""
        rewritten = self.now.rewritten
        for rule, use in readers:
            for member in self._kept_members(rule):
                if self.standing.old_lane(member) != names and names in self.old.lanes:
                    raise Immovable(self._elsewhere(member))
                asked = self._asked(rule, member, query)
                longest = rewritten.facts.longest(query) if query in rewritten.facts.known else None
                if not self._has(member, asked, use, ways, longest):
                    raise Immovable(
                        f"what {told(self.compared.new.plan, member)} needs of `{self.now.plan.points[query].label}` "
                        "is kept in another form"
                    )

    def _asked(self, rule: str, member: str, query: str) -> tuple[Pattern, ...]:
        """What one of the rules that a rule stands for asks of a query."""
        patterns = next(lane.queries[query].patterns for lane in self.now.lanes.plans.values() if query in lane.queries)
        rewritten = self.now.rewritten
        if query not in rewritten.queries:
            return patterns
        alike, names = rewritten.alike[rule], rewritten.queries[query][1]
        number = next(k for k, one in enumerate(alike.members) if one.name == member)
        row = dict(zip(alike.names, alike.rows[number], strict=True))
        values = {own: _node(row[named]) for own, named in names.items()}
        return tuple(with_constants(pattern, values) for pattern in patterns)

    def _has(
        self,
        member: str,
        asked: tuple[Pattern, ...],
        use: HistoryUse,
        ways: Sequence[KeptTuples],
        longest: int | None,
    ) -> bool:
        runner = self.runs.get(self.compared.kept[member], "")
        old = {one.history for lane in self.was.lanes.plans.values() for one in lane.uses.get(runner, ())}
        for kept in ways:
            mine = replace(kept, tested=None) if kept.history in old else kept
            if not serves(mine, asked):
                continue
            if kept.needed is None or all(covers(kept.needed, r, longest) for r in use.needed or [_FOREVER]):
                return True
        return False

    def _put(self, lane: Lane, name: str, origin: Origin, ways: Sequence[tuple[KeptTuples, Convert]]) -> None:
        history = lane.histories[name]
        if name not in self.now.plan.points:  # it is reserved, and may have been for a shorter time
            history.since = max(lane.bound - max(longest_kept(kept.needed) or 0 for kept, _ in ways), -FAR)
        old = self.old.lanes[origin.lane].histories
        asked = asked_for(self.now.rewritten, name)
        if len(ways) == 1:
            kept, way = ways[0]
            history.since = max(history.since, old[kept.history].since)
            for run in old[kept.history].checkpoint():
                batch = origin.moved(way(run.batch))
                batch = asked(batch) if asked is not None and len(batch) else batch
                if len(batch):
                    history.restore(batch, min(max(run.step, 1), lane.tick))
            return
        parts: list[Batch] = []
        for kept, way in ways:
            history.since = max(history.since, old[kept.history].since)
            found = [batch for run in old[kept.history].checkpoint() if len(batch := way(run.batch))]
            if found:
                parts.append(stack(found))
        if not parts:
            return
        batch = origin.moved(self._united(parts))
        batch = asked(batch) if asked is not None else batch
        if len(batch):
            history.restore(batch, 1)

    def _united(self, parts: Sequence[Batch]) -> Batch:
        """The tuples of several queries, of each event once."""
        batch = stack(parts)
        _, firsts = np.unique(batch[REFERENCE], return_index=True)
        return batch.take(np.sort(firsts))

    def _joined(self, names: frozenset[str], lane: Lane, name: str) -> None:
        """The tuples of a stored join, which is the same as before or new."""
        owners = {m for rule, _ in self._readers(lane, name) for m in self._owners(rule)}
        if owners.isdisjoint(self.compared.kept):
            return
        theirs, ours = self.compared.before.names, self.compared.after.names
        before = next((own for own, at in theirs.histories.items() if at == ours.histories[name]), None)
        old = self.old.lanes.get(names)
        if before is None or old is None or before not in old.histories or not owners <= set(self.compared.kept):
            raise Immovable(f"joins that {told(self.compared.new.plan, min(owners))} shares would be stored otherwise")
        names_of = renaming(theirs.columns.get(before, {}), ours.columns.get(name, {}))
        for run in old.histories[before].checkpoint():
            lane.histories[name].restore(run.batch.renamed(names_of), min(max(run.step, 1), lane.tick))
        lane.histories[name].since = old.histories[before].since
        self.filled.add((names, name))


def _named(theirs: Any, stored: Mapping[str, str], leaf: str, runner: str) -> str | None:
    """What the old plan calls the history of a leaf of a rule."""
    return stored.get(f"{theirs.rules.get(runner)}.{leaf}")


def _node(value: Value) -> Text | Number | Bool:
    if isinstance(value, bool):
        return Bool(value)
    return Text(value) if isinstance(value, str) else Number(value)  # type: ignore[arg-type]
