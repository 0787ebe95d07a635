"""This module evaluates one rule step by step: what is new of its events, joined with what is stored of the others.

A tuple of positive events happens when the last of them, or of the timers on them, ends. Until the bound has passed
that time it is pending. Then all that can lie in its windows is known: collections are gathered, absences tested, and
the head is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ephemera.algebra.attributes import begin, end, event_of, hidden, is_stamp
from ephemera.algebra.nodes import Gap, RelativeTimer, Table
from ephemera.algebra.scalar import Formula
from ephemera.algebra.timers import offsets
from ephemera.base.time import LATEST
from ephemera.engine.operators.join_constants import JoinConstants
from ephemera.engine.operators.join_rows import RowJoin
from ephemera.engine.operators.probe_keys import Asked, ProbeKeys
from ephemera.engine.operators.window import Looked, Pending, in_window, look, summarized
from ephemera.engine.operators.window_values import look_beyond
from ephemera.kernels.columns import Batch, Column, Ints, Mask, ints, stack
from ephemera.kernels.computed import ScopeOf
from ephemera.kernels.filter import Filter
from ephemera.kernels.history import FAR, History
from ephemera.kernels.keys import joins, paired
from ephemera.kernels.lengths import lengths
from ephemera.kernels.since import Since
from ephemera.kernels.tail import Row, of_rows
from ephemera.physical.join_order import columns_of
from ephemera.physical.nodes import AbsentRows, Branch, Leaf, RulePlan, WindowPlan, differ

ROW = hidden("row")
"""The column that tells the tuples of a step apart."""
PLACE = hidden("place")
"""The same within a window that is looked into, or among pairs that are tested."""
MANY = 1 << 10
"""Of so many pairs first only the columns are made that are tested."""

Histories = Callable[[str], History]
Rows = Callable[[Table], Batch]


class RuleJoin:
    """The state of a rule, and how it goes on."""

    def __init__(
        self,
        plan: RulePlan,
        histories: Histories,
        rows: Rows,
        tests: Filter,
        parameters: JoinConstants | None = None,
    ) -> None:
        self._parameters = parameters
        self._every = histories
        self._histories = histories
        self._rows = rows
        self._filter = tests
        self._few: RowJoin | None = None
        self._looked_at = 0
        self.since: int | None = None
        """If only what ends after some time counts: that time."""
        self.exact_from: int | None = None
        """If it lacks something, from when on that matters to nothing that it gives; None if it lacks nothing."""
        self.pasts: dict[str, History] = {}
        """What counts of the time before, if something does: for each of its inputs, from an archive."""
        self.reorder(plan)
        self.pending = Pending(plan.ends)
        self.seen = 0
        """The last tick of which everything was used."""
        self._again: list[Batch] | None = None
        """What has happened in this step, where a collection may still grow."""

    def reorder(self, plan: RulePlan) -> None:
        """Searches in the orders of another plan of the same rule from now on."""
        self._looked_at = self.examined
        self.plan = plan
        scope = self._filter.tester.scope
        self._keys = [[ProbeKeys(p, plan.leaves[p.leaf], scope) for p in order.probes] for order in plan.orders]
        can = RowJoin.can(plan) and self.since is None
        self._few = RowJoin(plan, self._histories, self._filter.tester, self._parameters) if can else None

    @property
    def examined(self) -> int:
        """How many pairs of tuples were looked at."""
        return self._looked_at + (self._few.examined if self._few is not None else 0)

    @property
    def counts(self) -> list[int | None]:
        """The last tick of which all was used, how many pairs were looked at, from when on something counts, or all."""
        more = [self.since] if self.exact_from is None else [self.since, self.exact_from]
        return [self.seen, self.examined, *(more if more != [None] else [])]

    def count_on(self, seen: int, examined: int, since: int | None = None, exact_from: int | None = None) -> None:
        """Counts on from there."""
        self.seen, self.exact_from = seen, exact_from
        self._looked_at += examined - self.examined
        self.count_since(since)

    def count_since(self, since: int | None) -> None:
        """Only what ends after that counts, or everything; what arrives at its begin has to begin after it."""
        if since == self.since:
            return
        self.since = since
        if since is None:
            self.pasts = {}
        self._histories = self._every
        if since is not None:
            views: dict[str, History] = {}
            for leaf in self.plan.inputs():
                history = self._every(leaf.source)
                views[leaf.source] = Since.of(history, history.stamps[-1], since, self.pasts.get(leaf.source))
            self._histories = lambda name: views[name] if name in views else self._every(name)
        self.reorder(self.plan)

    def mark(self) -> Callable[[], None]:
        """Keeps in mind how far it is; what it returns goes back to that."""
        seen, pending = self.seen, self.pending.mark()

        def go_back() -> None:
            self.seen, self._again = seen, None if self._again is None else []
            pending()

        return go_back

    def take_turns(self, *, grows: bool) -> None:
        """A step begins in which rules take turns; what it collects may grow meanwhile."""
        self._again = [] if grows else None

    def step(self, tick: int, bound: int) -> Batch | list[Row] | None:
        """The tuples that happen by the bound and were not given before, with all that they collect.

        A few of them may come as rows, if nothing has to be collected or waited for.
        """
        new = self._joined(tick)
        has_grown = self._again and any(
            run.step > self.seen for name in self.plan.collects for run in self._histories(name).flush()
        )
        self.seen = tick
        if isinstance(new, list):
            return new
        due = self.pending.take(bound)
        if new is not None:
            happens = self.pending.expiry(new)
            ready = happens <= bound
            if ready.all():
                due.append(new)
            else:
                self.pending.add(new.take(~ready), happens[~ready])
                due.append(new.take(ready))
        if self._again is not None:
            self._again += due
            due = list(self._again) if has_grown else due
        if not any(map(len, due)):
            return None
        batch = stack(due)
        return self._accumulated(batch) if self.plan.attempts else batch

    def _joined(self, tick: int) -> Batch | list[Row] | None:
        """The tuples with something new in them."""
        rows = self._few.new(tick, self.seen) if self._few is not None else None
        if rows is not None:
            if not rows or self.plan.gives_rows:
                return rows or None
            return self._timed(of_rows(rows))
        found = [part for first in range(len(self.plan.leaves)) for part in self._new(first, tick)]
        return self._timed(stack(found)) if found else None

    # ---- positive events -----------------------------------------------------------------------------------

    def _new(self, first: int, tick: int) -> list[Batch]:
        """The joins in which this leaf is new: the ones before it may be, too, the ones behind it are not."""
        leaf = self.plan.leaves[first]
        runs = [r.batch for r in self._histories(leaf.source).flush() if r.step > self.seen]
        if not runs:
            return []
        order = self.plan.orders[first]
        parts = [self._tested(_of_leaf(stack(runs), leaf, order.kept), order.tests)]
        known = self._parameters is None
        for keys in (None, *self._keys[first]):
            if keys is not None:
                parts = self._probed(stack(parts), keys, tick if keys.probe.leaf < first else self.seen)
            if not any(map(len, parts)):
                return []
            if not known and self._parameters is not None and self._parameters.by <= parts[0].columns.keys():
                parts, known = [self._parameters.may(stack(parts))], True
        return [part for part in parts if len(part)]

    def _probed(self, batch: Batch, keys: ProbeKeys, until: int) -> list[Batch]:
        if not len(batch):
            return []
        probe = keys.probe
        return self._searched(batch, keys.leaf, keys.asked(batch), until, probe.tests, probe.kept)

    def _searched(  # noqa: PLR0913, PLR0917
        self,
        batch: Batch,
        leaf: Leaf,
        asked: Asked,
        until: int,
        tests: Sequence[Formula],
        kept: frozenset[str] | None = None,
        settled: frozenset[str] = frozenset(),
    ) -> list[Batch]:
        """The pairs of a tuple and one of the leaf that agree on the variables they share, and pass some tests."""
        found: list[Batch] = []
        told = {leaf.names.get(k, k) for k in asked.names}
        for run in self._histories(leaf.source).flush():
            if run.step > until:
                continue
            other: Batch | None = None
            for pair in asked.search(run):
                self._looked_at += len(pair[0])
                if other is None:
                    other = _of_leaf(run.batch, leaf, None)
                rows, others = _agreeing(batch, pair[0], other, pair[1], told)
                if tests and len(rows) > MANY:
                    rows, others = self._passing(batch, rows, other, others, tests, settled)
                    pairs = paired(batch, rows, other, others, kept, settled)
                else:
                    pairs = self._tested(paired(batch, rows, other, others, kept, settled), tests)
                if len(pairs):
                    found.append(pairs)
        return found

    def _passing(  # noqa: PLR0913, PLR0917
        self, batch: Batch, rows: Ints, other: Batch, others: Ints, tests: Sequence[Formula], settled: frozenset[str]
    ) -> tuple[Ints, Ints]:
        """Of many pairs those that pass some tests; only what is tested is looked at."""
        named = frozenset[str]().union(*map(columns_of, tests))
        named |= {side(event_of(n)) for n in named if is_stamp(n) for side in (begin, end)}
        pairs = paired(batch, rows, other, others, named, settled)
        left = self._tested(pairs.with_columns({PLACE: ints(np.arange(len(pairs)))}), tests)[PLACE]
        return rows[left], others[left]

    def _tested(self, batch: Batch, tests: Sequence[Formula]) -> Batch:
        for test in tests:
            if len(batch):
                batch = self._filter.keep(test, batch)
        return batch

    def _timed(self, batch: Batch) -> Batch:
        """The tuples with their timers and rows of tables, and what can only be tested then."""
        parameters = self._parameters
        if parameters is not None and differ(self.plan.timers):
            batch, parameters = parameters.joined(batch), None
        for one in self.plan.then:
            match one:
                case Table():
                    batch = self._with_table(batch, one)
                case _:
                    batch = _with_timer(batch, one, self._filter.tester.scope)
        if parameters is not None:
            batch = parameters.joined(batch)
        return self._tested(batch, self.plan.tests)

    def _with_table(self, batch: Batch, table: Table) -> Batch:
        rows, others, found = self._table_pairs(batch, table)
        return paired(batch, rows, found, others)

    def _table_pairs(self, batch: Batch, table: Table) -> tuple[Ints, Ints, Batch]:
        found = self._rows(table)
        rows = np.repeat(np.arange(len(batch)), len(found))
        others = np.tile(np.arange(len(found)), len(batch))
        agree: Mask = np.ones(len(rows), dtype=np.bool_)
        for name in found.columns:
            if name in batch.columns:
                agree &= joins(batch.columns[name].take(rows), found.columns[name].take(others))
        return rows[agree], others[agree], found

    # ---- collections and absences --------------------------------------------------------------------------

    def _accumulated(self, batch: Batch) -> Batch:
        """The tuples with what their windows hold; those that one attempt leaves nothing of go on to the next."""
        outer = frozenset(batch.columns)
        left = batch.with_columns({ROW: ints(np.arange(len(batch)))})
        results: list[Batch] = []
        for branches in self.plan.attempts:
            if results:
                left = left.take(~np.isin(left[ROW], np.concatenate([done[ROW] for done in results])))
            results += [self._through(branch, left, outer) for branch in branches]
        return self._tested(stack(results), self.plan.having)

    def _through(self, branch: Branch, batch: Batch, outer: frozenset[str]) -> Batch:
        """What is left of some tuples; what positive events and tables bind is tested by windows, and left as it is."""
        for step in branch:
            if not len(batch):
                break
            match step:
                case WindowPlan():
                    batch = self._window(step, batch, outer)
                case AbsentRows(table):
                    batch = batch.take(~_among(self._table_pairs(batch, table)[0], len(batch)))
                case _:
                    batch = self._filter.keep(step, batch)
        return batch

    def _window(self, window: WindowPlan, batch: Batch, outer: frozenset[str]) -> Batch:
        """The tuples with what is in their windows, or those in whose windows something is, or nothing."""
        looked: Looked | None = None
        if window.kind != "collection":
            history, tester = self._histories(window.leaf.source), self._filter.tester
            looked = look(window, history, batch, tester.scope({}))
            looked = looked or look_beyond(window, history, batch, outer, tester)
        if window.kind in ("collection", "summary"):
            return self._unfolded(window, batch, outer) if looked is None else summarized(batch, looked)
        if looked is None:
            placed = batch.with_columns({PLACE: ints(np.arange(len(batch)))})
            is_there = _among(self._unfolded(window, placed, outer)[PLACE], len(batch))
        else:
            is_there = looked.counts > 0
        return batch.take(is_there if window.kind == "presence" else ~is_there)

    def _unfolded(self, window: WindowPlan, batch: Batch, outer: frozenset[str]) -> Batch:
        """Each tuple with each of what lies in its window."""
        asked = Asked((in_window(batch, window),))
        found = self._searched(batch, window.leaf, asked, FAR, window.tests, settled=outer)
        return stack(found) if found else batch.take(np.empty(0, dtype=np.int64))


def _among(rows: Ints, count: int) -> Mask:
    """Which of so many rows are among some."""
    mask: Mask = np.zeros(count, dtype=np.bool_)
    mask[rows] = True
    return mask


def _of_leaf(batch: Batch, leaf: Leaf, kept: frozenset[str] | None) -> Batch:
    """Tuples of a leaf under the rule's names; where events are points, both stamps are one column."""
    columns: dict[str, Column] = {}
    for own, c in batch.columns.items():
        name = leaf.names.get(own, own)
        if kept is None or name in kept:
            columns[name] = c
    if leaf.longest == 0:
        opens, closes = begin(leaf.name), end(leaf.name)
        if opens in columns and closes in columns:
            columns[opens] = columns[closes]
    return Batch(columns, len(batch))


def _agreeing(batch: Batch, rows: Ints, other: Batch, others: Ints, told: set[str]) -> tuple[Ints, Ints]:
    """The pairs that agree on the variables they share; on the keys they agree already."""
    for name, c in other.columns.items():
        if name in batch.columns and name not in told:
            agree = joins(batch.columns[name].take(rows), c.take(others))
            if not agree.all():
                rows, others = rows[agree], others[agree]
    return rows, others


def _with_timer(batch: Batch, timer: RelativeTimer | Gap, scope_of: ScopeOf) -> Batch:
    if isinstance(timer, Gap):
        opens, closes = batch[end(timer.first)], batch[begin(timer.last)]
    else:
        length = batch[timer.length] if isinstance(timer.length, str) else np.full(1, timer.length, dtype=np.int64)
        if timer.told is not None and isinstance(timer.length, int):
            length, has_length = lengths(timer.told, batch, scope_of, timer.length)
            if not has_length.all():
                batch, length = batch.take(has_length), length[has_length]
        (first, forward), (last, onward) = offsets(timer.kind, timer.anchor, 1)
        opens, closes = _limited(batch[first] + forward * length), _limited(batch[last] + onward * length)
    timed = batch.with_columns({begin(timer.name): ints(opens), end(timer.name): ints(closes)})
    occurs = opens <= closes
    return timed if occurs.all() else timed.take(occurs)


def _limited(stamps: Ints) -> Ints:
    """Stamps no further than just beyond the last time, so that timers on timers stay within 64 bits."""
    if len(stamps) and (stamps.max() > LATEST or stamps.min() < -LATEST):
        return np.clip(stamps, -LATEST - 1, LATEST + 1)
    return stamps
