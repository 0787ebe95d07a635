"""This module joins a few new tuples row by row, where calling the columnar kernels would cost more than the work.

It gives exactly what the columnar joins of `join` give. Rules whose patterns have optional parts, or that test an
event again, are left to those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import is_moment
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, Matches
from ephemera.algebra.truth import Tester
from ephemera.base.tree import find
from ephemera.engine.operators.join_constants import JoinConstants
from ephemera.kernels.columns import column
from ephemera.kernels.history import FAR, History, Question, Run, search
from ephemera.kernels.keys import hash_columns
from ephemera.kernels.tail import Row, key_of, plain_key
from ephemera.physical.nodes import Leaf, Probe, RulePlan
from ephemera.syntax.nodes import Comparison
from ephemera.terms.compute import compare
from ephemera.terms.nodes import Expression, Number, Text, Var
from ephemera.terms.values import Value, merged

Check = Callable[[Mapping[str, Any]], bool]


class RowJoin:
    """The joins of one rule, row by row."""

    def __init__(
        self,
        plan: RulePlan,
        histories: Callable[[str], History],
        tester: Tester,
        parameters: JoinConstants | None = None,
    ) -> None:
        self._histories = histories
        self._starts = [_Start(first, plan, tester, parameters) for first in range(len(plan.leaves))]
        self.examined = 0

    @staticmethod
    def can(plan: RulePlan) -> bool:
        """Whether a rule may be joined row by row."""
        return all(leaf.variables == leaf.sure for leaf in plan.leaves) and not any(
            True
            for order in plan.orders
            for f in (*order.tests, *(f for probe in order.probes for f in probe.tests))
            for _ in find(f, Matches)
        )

    def new(self, tick: int, seen: int) -> list[Row] | None:
        """The tuples with something new in them; None if there is too much to look at row by row."""
        news: list[tuple[_Start, list[Row]]] = []
        for start in self._starts:
            rows = self._histories(start.leaf.source).few_since(seen)
            if rows is None:
                return None
            if rows:
                news.append((start, rows))
        found: list[Row] = []
        for start, rows in news:
            for row in rows:
                first = start.named(row)
                if start.passes(first):
                    found += self._joined(first, start.steps, start.first, tick, seen)
        return found

    def _joined(
        self, row: dict[str, Any], steps: Sequence[_Step], first: int, tick: int, seen: int
    ) -> Iterator[dict[str, Any]]:
        if not steps:
            yield row
            return
        step, rest = steps[0], steps[1:]
        for other in self._probed(row, step, tick if step.probe.leaf < first else seen):
            both = row | step.named(other)
            for name in step.probe.keys:
                both[name] = merged(row[name], both[name])
            if step.passes(both):
                yield from self._joined(both, rest, first, tick, seen)

    def _probed(self, row: Row, step: _Step, until: int) -> Iterator[Row]:
        least, most = step.range(row)
        if least > most:
            return
        history = self._histories(step.leaf.source)
        stamp = step.stamp
        values = key_of(row, step.probe.keys)
        tail = history.tail
        if tail is not None and (not step.probe.keys or not _has_null(values)):
            for number, other in tail.with_key(step.keys, values):
                self.examined += 1
                if number <= until and least <= other[stamp] <= most:
                    yield other
        stored = [run for run in history.stored if run.step <= until and run.latest[stamp] >= least]
        if stored:
            yield from self._stored(row, step, stored, least, most)

    def _stored(self, row: Row, step: _Step, runs: Sequence[Run], least: int, most: int) -> Iterator[Row]:
        if step.probe.keys and _has_null(key_of(row, step.probe.keys)):
            return
        columns = [column([row[k]]) for k in step.probe.keys]
        limits = (np.array([least], dtype=np.int64), np.array([most], dtype=np.int64))
        asked = Question(step.keys, hash_columns(columns, 1), step.stamp, *limits, tuple(columns))
        for run in runs:
            for _, others in search(run, asked):
                self.examined += len(others)
                yield from run.batch.take(others).rows()


def _has_null(values: Any) -> bool:
    return values == (0,) or (isinstance(values, tuple) and (0,) in values)


class _Named:
    """A leaf, the names of its columns in the rule, and what is tested once it is there."""

    def __init__(self, leaf: Leaf, checks: Sequence[Check], known: frozenset[str]) -> None:
        self.leaf = leaf
        self._names = leaf.names
        self._checks = checks
        self.known = known | leaf.variables

    def named(self, row: Row) -> dict[str, Any]:
        names = self._names
        return {names.get(name, name): value for name, value in row.items()}

    def passes(self, row: Mapping[str, Any]) -> bool:
        for check in self._checks:  # noqa: SIM110 - a generator costs more than most of them
            if not check(row):
                return False
        return True


class _Step(_Named):
    """How the next leaf is searched."""

    def __init__(self, probe: Probe, leaf: Leaf, checks: Sequence[Check], known: frozenset[str]) -> None:
        super().__init__(leaf, checks, known)
        own = {new: old for old, new in leaf.names.items()}
        self.probe = probe
        self.keys = tuple(own.get(k, k) for k in probe.keys)
        self.stamp = own.get(probe.stamp, probe.stamp)

    def range(self, row: Row) -> tuple[int, int]:
        least, most = -FAR, FAR
        for r in self.probe.ranges:
            known = row[r.known]
            if r.earliest is not None:
                least = max(least, known - r.earliest)
            if r.latest is not None:
                most = min(most, known + r.latest)
        return least, most


class _Start(_Named):
    """A leaf that is new, and how the others follow."""

    def __init__(self, first: int, plan: RulePlan, tester: Tester, parameters: JoinConstants | None) -> None:
        order = plan.orders[first]
        checks = [check(f, tester) for f in order.tests]
        super().__init__(plan.leaves[first], checks, frozenset())
        self.first = first
        self.steps: list[_Step] = []
        known, asked = self.known, parameters is None
        if parameters is not None and parameters.by <= known:
            checks.append(_has_constants(parameters))
            asked = True
        for probe in order.probes:
            more = [check(f, tester) for f in probe.tests]
            self.steps.append(_Step(probe, plan.leaves[probe.leaf], more, known))
            known = self.steps[-1].known
            if not asked and parameters is not None and parameters.by <= known:
                more.append(_has_constants(parameters))
                asked = True


def _has_constants(parameters: JoinConstants) -> Check:
    return lambda row: bool(parameters.members_of(row))


def check(f: Formula, tester: Tester) -> Check:
    """A formula as a function of a row: whether it is true."""
    match f:
        case Distance(later, earlier, limit, strict) if not is_moment(later) and not is_moment(earlier):
            most = limit - strict
            return lambda row: row[later] - row[earlier] <= most
        case Every(parts):
            checks = [check(p, tester) for p in parts]
            return lambda row: all(c(row) for c in checks)
        case Holds(Comparison(operator, left, right)) if _is_plain(left) and _is_plain(right):
            a, b = _value(left), _value(right)
            if operator == "=":
                return lambda row: _are_equal(a(row), b(row))
            return lambda row: compare(operator, a(row), b(row)) is True
        case _:
            return lambda row: tester.truth(f, row) is True


def _are_equal(a: Value, b: Value) -> bool:
    """Whether two values are known to be equal: null is equal to nothing."""
    return a is not None and b is not None and plain_key(a) == plain_key(b)


def _is_plain(e: Expression) -> bool:
    return isinstance(e, Var | Number | Text)


def _value(e: Expression) -> Callable[[Mapping[str, Any]], Any]:
    match e:
        case Var(name):
            return lambda row: row[name]
        case Number(value) | Text(value):
            return lambda _row: value
        case _:
            raise TypeError(f"{type(e).__name__} is not plain")
