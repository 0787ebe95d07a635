"""This module joins a few new tuples row by row, where calling the columnar kernels would cost more than the work.

It gives exactly what the columnar joins of `join` give. Rules whose patterns have optional parts, or that test an
event again, are left to those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ephemera.algebra.attributes import is_moment
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, Matches
from ephemera.algebra.truth import Tester
from ephemera.base.tree import find, walk
from ephemera.engine.operators.join_constants import JoinConstants
from ephemera.engine.operators.probe_keys import ProbeKeys
from ephemera.kernels.history import FAR, History
from ephemera.kernels.tail import Row, key_of_values, plain_key
from ephemera.physical.nodes import Leaf, RulePlan
from ephemera.syntax.nodes import Comparison
from ephemera.terms.compute import arithmetic, compare
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Binary, ComparisonOperator, Expression, Negative, Number, Text, Var
from ephemera.terms.values import Value, merged

Check = Callable[[Mapping[str, Any]], bool]
Of = Callable[[Mapping[str, Any]], Any]
"""A value of a row."""


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
        """Whether a rule may be joined row by row: what an algebra expression finds alone has all that is asked for."""
        is_detected = len(plan.leaves) == len(plan.detections) == 1
        return (is_detected or all(leaf.variables == leaf.sure for leaf in plan.leaves)) and not any(
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
        values = step.values(row)
        if not step.is_solved and None in values:  # null equals nothing
            return
        tail = history.tail
        if tail is not None:
            for number, other in tail.with_key(step.tail_keys, key_of_values(values)):
                self.examined += 1
                if number <= until and least <= other[stamp] <= most:
                    yield other
        stored = [run for run in history.stored if run.step <= until and run.latest[stamp] >= least]
        if stored:
            asked = step.asked_by(values, least, most)
            for run in stored:
                for _, others in asked.search(run):
                    self.examined += len(others)
                    yield from run.batch.take(others).rows()


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

    def __init__(self, keys: ProbeKeys, checks: Sequence[Check], known: frozenset[str]) -> None:
        super().__init__(keys.leaf, checks, known)
        self.probe = keys.probe
        self.stamp = keys.stamp
        self.is_solved = keys.is_solved
        self.tail_keys = () if keys.is_solved else keys.keys
        """A solved equation says nothing of doubles, so the newest rows are looked at one by one."""
        self.asked_by = keys.asked_by
        names = keys.probe.keys
        self.values = keys.values if keys.probe.equations else lambda row: [row[k] for k in names]

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
            self.steps.append(_Step(ProbeKeys(probe, plan.leaves[probe.leaf], tester.scope), more, known))
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
            a, b = _value(left, 1), _value(right, 1)
            if operator == "=":
                return lambda row: _are_equal(a(row), b(row))
            return lambda row: compare(operator, a(row), b(row)) is True
        case Holds(Comparison(operator, left, right)) if _is_arithmetic(left) and _is_arithmetic(right):
            unit = tester.scope({}).unit
            return _compared(operator, _value(left, unit), _value(right, unit))
        case _:
            return lambda row: tester.truth(f, row) is True


def _compared(operator: ComparisonOperator, a: Of, b: Of) -> Check:
    def holds(row: Mapping[str, Any]) -> bool:
        try:
            return compare(operator, a(row), b(row)) is True
        except Undefined:
            return False

    return holds


def _are_equal(a: Value, b: Value) -> bool:
    """Whether two values are known to be equal: null is equal to nothing."""
    return a is not None and b is not None and plain_key(a) == plain_key(b)


def _is_plain(e: Expression) -> bool:
    return isinstance(e, Var | Number | Text)


def _is_arithmetic(e: Expression) -> bool:
    """Whether an expression only joins variables, numbers and texts by operators."""
    return all(isinstance(part, Var | Number | Text | Negative | Binary) for part in walk(e))


def _value(e: Expression, unit: int) -> Of:
    match e:
        case Var(name):
            return lambda row: row[name]
        case Number(value) | Text(value):
            return lambda _row: value
        case Negative(operand):
            only = _value(operand, unit)
            return lambda row: arithmetic("-", 0, only(row), unit)
        case Binary(operator, left, right):
            a, b = _value(left, unit), _value(right, unit)
            return lambda row: arithmetic(operator, a(row), b(row), unit)
        case _:
            raise TypeError(f"{type(e).__name__} is not plain")
