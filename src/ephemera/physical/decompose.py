"""This module takes the expression of a rule apart: what is positive, what is accumulated, and the head."""

from __future__ import annotations

from collections.abc import Mapping

from ephemera.algebra.attributes import begin, end, is_constant, occurrence, reference
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Calendar,
    Cross,
    Detection,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Merge,
    Plan,
    Point,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.scalar import TRUE, Formula
from ephemera.algebra.schema import Schema, schema
from ephemera.analysis.nodes import Facts
from ephemera.base.errors import InternalError
from ephemera.physical.join_order import orders, split
from ephemera.physical.live_columns import in_the_end
from ephemera.physical.needs import needs
from ephemera.physical.nodes import Leaf, RulePlan, Test
from ephemera.physical.shared_constants import found_by
from ephemera.rewrite.nodes import Rewritten
from ephemera.rules.scope import pattern_bindings


def rule_plan(point: Point, given: Rewritten, schemas: Mapping[str, Schema]) -> RulePlan:
    """A rule as engines run it."""
    plan, facts = given.plan, given.facts
    if not isinstance(point.expression, Project) or not isinstance(point.expression.input, Merge):
        raise InternalError("physical", f"{point.name} is no rule")
    merge = point.expression.input
    head = member_head(point)
    positive = positive_part(head.input)
    parts = _Parts(point.name, plan, facts, schemas)
    parts.take(positive)
    leaves = tuple(parts.leaves)
    ends = (*(end(leaf.name) for leaf in leaves), *(end(t.name) for t in parts.timers))
    early, late = split(parts.tests, leaves)
    sure = frozenset[str]().union(*(leaf.sure for leaf in leaves))
    alike = given.alike.get(point.name)
    constants, late = found_by(late, alike.names, sure) if alike is not None else ({}, late)
    above = _Above(positive)
    above.take(head.input)
    windows = {right: leaf(right, point.name, plan, schemas, facts) for right in above.leaves}
    rights = [window.variables for window in windows.values()]
    tables = [pattern_bindings(t.pattern).bound for t in (*parts.tables, *above.tables)]
    final = in_the_end(
        head,
        sure=sure,
        covers=merge.events,
        ends=ends,
        timers=parts.timers,
        variables=frozenset[str]().union(*rights, *tables, constants.values(), *(_constants(leaf) for leaf in leaves)),
        conditions=[*late, *above.conditions],
    )
    return RulePlan(
        point=point.name,
        leaves=leaves,
        detections=tuple(parts.detections),
        orders=orders(leaves, point.name, facts, early, final),
        tests=late,
        timers=tuple(parts.timers),
        tables=tuple(parts.tables),
        ends=ends,
        positive=positive,
        accumulated=head.input,
        head=head,
        events=merge.events,
        windows=windows,
        constants=constants,
    )


def _constants(leaf: Leaf) -> frozenset[str]:
    """The variables that stand for constants of rules that are alike."""
    return frozenset(v for v in leaf.variables if is_constant(v))


def member_head(point: Point) -> Group | Imbed:
    """The head of a rule."""
    match point.expression:
        case Project(Merge(Group() | Imbed() as head)):
            return head
        case _:
            raise InternalError("physical", f"{point.name} has no head")


def accumulates(e: Expression) -> bool:
    """Whether an operator gathers or forbids what lies in a window."""
    match e:
        case Join() | Cross() | SemiJoin():
            return e.condition != TRUE
        case AntiSemiJoin() | Union() | Difference():
            return True
        case _:
            return False


def positive_part(e: Expression) -> Expression:
    """The part below all that accumulates."""
    while any(accumulates(node) for node in _spine(e)):
        e = _left(e)
    return e


def _spine(e: Expression) -> list[Expression]:
    """An expression and those to its left."""
    found = [e]
    while (left := _left_or_none(found[-1])) is not None:
        found.append(left)
    return found


def _left_or_none(e: Expression) -> Expression | None:
    match e:
        case Join(left) | Cross(left) | SemiJoin(left) | AntiSemiJoin(left) | Difference(left):
            return left
        case Union((first, *_)):
            return first
        case Select(inner) | RelativeTimer(inner) | Gap(inner):
            return inner
        case _:
            return None


def _left(e: Expression) -> Expression:
    left = _left_or_none(e)
    if left is None:
        raise InternalError("physical", "a window without an event")
    return left


class _Above:
    """What is done with tuples of positive events: the conditions, and the inputs and tables that are looked into."""

    def __init__(self, positive: Expression) -> None:
        self._positive = positive
        self.conditions: list[Formula] = []
        self.leaves: list[Expression] = []
        self.tables: list[Table] = []

    def take(self, e: Expression) -> None:
        if e == self._positive:
            return
        match e:
            case Select(inner, condition, _):
                self.conditions.append(condition)
                self.take(inner)
            case Join(left, right, condition, _) | Cross(left, right, condition, _):
                self._look_into(left, right, condition)
            case SemiJoin(left, right, condition, _) | AntiSemiJoin(left, right, condition, _):
                self._look_into(left, right, condition)
            case Union(inputs):
                for one in inputs:
                    self.take(one)
            case Difference(left, right):
                self.take(left)
                self.take(right)
            case _:
                raise InternalError("physical", f"{type(e).__name__} stands where nothing is accumulated")

    def _look_into(self, left: Expression, right: Expression, condition: Formula) -> None:
        self.take(left)
        self.conditions.append(condition)
        if isinstance(right, Table):
            self.tables.append(right)
        else:
            self.leaves.append(right)


class _Parts:
    """What the positive part of a rule is made of."""

    def __init__(self, point: str, plan: Plan, facts: Facts, schemas: Mapping[str, Schema]) -> None:
        self._point = point
        self._plan = plan
        self._facts = facts
        self._schemas = schemas
        self.leaves: list[Leaf] = []
        self.detections: list[Detection] = []
        self.tests: list[Test] = []
        self.timers: list[RelativeTimer | Gap] = []
        self.tables: list[Table] = []

    def take(self, e: Expression) -> None:
        match e:
            case Select(inner, condition, _):
                self.take(inner)
                self.tests.append(Test(condition, needs(condition)))
            case RelativeTimer(inner) | Gap(inner):
                self.take(inner)
                self.timers.append(e)
            case Join(left, right) | Cross(left, right):
                self.take(left)
                self.take(right)
            case Table():
                self.tables.append(e)
            case _:
                if isinstance(e, Detection):
                    self.detections.append(e)
                self.leaves.append(leaf(e, self._point, self._plan, self._schemas, self._facts))


def leaf(e: Expression, point: str, plan: Plan, schemas: Mapping[str, Schema], facts: Facts | None = None) -> Leaf:
    """An input of a rule; calendars and algebra expressions have a history for each rule."""
    inside = schema(e, schemas, plan.catalogue)
    variables = frozenset(a for a, v in inside.items() if v.kind == "data")
    sure = frozenset(a for a in variables if not inside[a].optional)
    match e:
        case Rename(Input(source), ((old, new),), renamed):
            sides = ((side(old), side(new)) for side in (begin, end, reference, occurrence))
            longest = facts.longest(source) if facts is not None else None
            return Leaf(new, source, {**dict(sides), **dict(renamed)}, variables, sure, longest)
        case Calendar(name, _) | Detection(name):
            return Leaf(name, f"{point}/{name}", {}, variables, sure)
        case _:
            raise InternalError("physical", f"{type(e).__name__} is no input of a rule")
