"""This module takes the expression of a rule apart: what is positive, what is accumulated, and the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Literal, TypeGuard

from ephemera.algebra.attributes import (
    begin,
    end,
    is_blank,
    is_constant,
    is_end,
    is_moment,
    is_variable,
    occurrence,
    reference,
)
from ephemera.algebra.detector import Detector
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
    Point,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.parts import left_of, member_head, positive_part, stored_stamps
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, computed_variables, every
from ephemera.algebra.schema import Schema, schema
from ephemera.analysis.detectors import detectors_of
from ephemera.analysis.flows import RATE, tests_of
from ephemera.analysis.join_estimates import Flow, JoinEstimates, JoinPart
from ephemera.analysis.nodes import Facts
from ephemera.base.errors import InternalError
from ephemera.base.tree import find
from ephemera.physical.constants import found_by
from ephemera.physical.join_order import in_the_end, needs, orders, sequences_of, split
from ephemera.physical.nodes import (
    AbsentRows,
    Branch,
    DetectionPlan,
    Leaf,
    Range,
    RulePlan,
    Step,
    Test,
    Wanted,
    WindowPlan,
    differ,
)
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.scope import pattern_bindings
from ephemera.syntax.nodes import Derive
from ephemera.terms.construct import direct_variables
from ephemera.terms.nodes import Aggregate, Bool, Construct, Name, Number, Text, Var
from ephemera.terms.nodes import Expression as Scalar


def rule_plan(  # noqa: PLR0913 - what is planned, and what is known of it
    point: Point,
    given: Rewritten,
    schemas: Mapping[str, Schema],
    flows: Mapping[str, Flow],
    read: Set[str | None] = frozenset(),
    *,
    sequences: Sequence[Sequence[int]] | None = None,
) -> RulePlan:
    """A rule as engines run it, by what comes to the points of the plan; `read` are the labels that rules ask for.

    For each leaf the others are searched in the best sequence, or in one that is given.
    """
    head = member_head(point)
    positive = positive_part(head.input)
    leaf_of = partial(leaf, point=point.name, given=given, schemas=schemas)
    facts = given.facts
    parts = _Parts(leaf_of, detectors_of(given.plan, point, facts.known, facts.cases.get(point.name, ()), schemas))
    parts.take(positive)
    leaves = tuple(parts.leaves)
    covers = _covered(point, leaves)
    ends = (*(stamp for leaf in leaves for stamp in leaf.stamps if is_end(stamp)), *(end(t.name) for t in parts.timers))
    tables = [pattern_bindings(t.pattern).bound for t in parts.tables]
    early, late = split(parts.tests, leaves, frozenset[str]().union(*tables))
    sure = frozenset[str]().union(*(leaf.sure for leaf in leaves))
    members = given.members(point.name)
    heads = {member.name: member_head(member) for member in members}
    alike = given.alike.get(point.name)
    timed = () if differ(parts.timers) else parts.timers  # what these make is known before constants are
    sides = frozenset(side(t.name) for t in timed for side in (begin, end)).union(*(leaf.stamps for leaf in leaves))
    constants, ranged, late = found_by(late, alike.names, sure, sides) if alike is not None else ({}, None, late)
    finding = [*constants.values(), *(ranged.needs if ranged is not None else ())]
    stamps = {side(name) for name in covers for side in (begin, end)}
    variables = frozenset[str]().union(*(leaf.variables for leaf in leaves), *tables, alike.names if alike else ())
    windows = _Windows(variables | stamps, leaf_of)
    attempts, having = windows.attempts(head.input, positive)
    # A timer may end too late for an answer; then it is said of what.
    named = {v for leaf in leaves for v in leaf.variables if is_variable(v) and not is_blank(v)} if parts.timers else ()
    final = in_the_end(
        head,
        sure=sure,
        covers=covers,
        ends=ends,
        timers=parts.timers,
        variables=windows.variables.union(*tables, finding, *(_constants(leaf) for leaf in leaves), named),
        conditions=[*late, *windows.conditions],
    )
    estimates = join_estimates(leaves, [test.condition for test in early], point.name, given.facts, flows)
    return RulePlan(
        point=point.name,
        leaves=leaves,
        detections=tuple(parts.detections),
        orders=orders(leaves, point.name, given.facts, early, final, sequences or sequences_of(estimates)),
        tests=late,
        timers=tuple(parts.timers),
        tables=tuple(parts.tables),
        ends=ends,
        attempts=_summarized(attempts, head),
        having=having,
        collects=frozenset(windows.collects),
        heads=heads,
        events=covers,
        constants=constants,
        ranged=ranged,
        gives_rows=not (parts.timers or parts.tables or attempts or given.plan.early)
        and not late
        and all(map(_only_shows, heads.values()))
        and read.isdisjoint([None, *(member.label for member in members)]),
    )


def join_estimates(
    leaves: Sequence[Leaf], conditions: Sequence[Formula], point: str, facts: Facts, flows: Mapping[str, Flow]
) -> JoinEstimates:
    """What is expected of the join of the leaves of a rule."""
    parts = [_part(leaf, flows.get(leaf.source)) for leaf in leaves]
    closures = [closure for _, closure in facts.cases.get(point, ())]
    return JoinEstimates(parts, closures, tests_of(conditions, parts))


def _part(leaf: Leaf, flow: Flow | None) -> JoinPart:
    """A leaf as it is joined; of calendars and algebra expressions nothing is known."""
    known = Flow(RATE, {}) if flow is None else flow
    distinct = {leaf.names.get(v, v): values for v, values in known.distinct.items()}
    return JoinPart(leaf.stamps, leaf.sure, Flow(known.rate, distinct))


def _constants(leaf: Leaf) -> frozenset[str]:
    """The variables that stand for constants of rules that are alike."""
    return frozenset(v for v in leaf.variables if is_constant(v))


def _covered(point: Point, leaves: Sequence[Leaf]) -> tuple[str, ...]:
    """What the occurrence time of a rule covers; a stored join covers all that it joins."""
    match point.expression:
        case Project(Merge(_, _, events)):
            return events
        case _:
            return tuple(leaf.name for leaf in leaves)


def _only_shows(head: Group | Imbed) -> bool:
    """Whether a head only shows variables and constants by position."""
    match head:
        case Imbed(_, Derive(_, arguments)):
            return all(isinstance(argument, Var | Number | Text | Bool) for argument in arguments)
        case _:
            return False


class _Windows:
    """Takes apart what is done with tuples of positive events, some variables and stamps of which are known."""

    def __init__(self, known: frozenset[str], leaf_of: Callable[[Expression], Leaf]) -> None:
        self._known = known
        self._leaf_of = leaf_of
        self.conditions: list[Formula] = []
        """All that is tested."""
        self.variables: set[str] = set()
        """All that is compared with what lies in windows and tables."""
        self.collects: set[str] = set()
        """The histories in which something has to be found."""

    def attempts(
        self, e: Expression, positive: Expression
    ) -> tuple[tuple[tuple[Branch, ...], ...], tuple[Formula, ...]]:
        """What is done, attempt by attempt, and what is tested then.

        Several attempts are a union: each goes on from the difference of what the last one began and ended with.
        """
        if e is positive:
            return (), ()
        whole, having = e, list[Formula]()
        while isinstance(whole, Select):
            having.insert(0, whole.condition)
            whole = whole.input
        if not isinstance(whole, Union):
            return ((self._branch(e, positive)[0],),), ()
        by_failures: dict[int, list[Branch]] = {}
        for one in whole.inputs:
            branch, failed = self._branch(one, positive)
            by_failures.setdefault(failed, []).append(branch)
        self.conditions += having
        return tuple(tuple(by_failures[number]) for number in sorted(by_failures)), tuple(having)

    def _branch(self, e: Expression, positive: Expression) -> tuple[Branch, int]:
        """What is done one after the other, and how many attempts have failed before."""
        above: list[Expression] = []
        failed = 0
        while e != positive:
            left = left_of(e)
            if left is None:
                raise InternalError("physical", f"{type(e).__name__} stands where nothing is accumulated")
            if isinstance(e, Difference):
                failed += 1
            else:
                above.append(e)
            e = left
        known = set(self._known)
        steps: list[Step] = []
        for node in reversed(above):
            steps.append(self._step(node, known))
            if isinstance(steps[-1], WindowPlan) and steps[-1].kind == "collection":
                leaf = steps[-1].leaf
                known |= {begin(leaf.name), end(leaf.name), *leaf.variables}
        return tuple(steps), failed

    def _step(self, e: Expression, known: Set[str]) -> Step:
        match e:
            case Select(_, condition, _):
                self.conditions.append(condition)
                return condition
            case AntiSemiJoin(_, Table() as table):
                self.variables |= pattern_bindings(table.pattern).bound
                return AbsentRows(table)
            case AntiSemiJoin(_, right, condition, _):
                return self._window("absence", right, condition, known)
            case SemiJoin(_, right, condition, _):
                return self._window("presence", right, condition, known)
            case Join(_, right, condition, _) | Cross(_, right, condition, _):
                return self._window("collection", right, condition, known)
            case _:
                raise InternalError("physical", f"{type(e).__name__} stands where nothing is accumulated")

    def _window(
        self,
        kind: Literal["absence", "presence", "collection"],
        right: Expression,
        condition: Formula,
        known: Set[str],
    ) -> WindowPlan:
        leaf = self._leaf_of(right)
        self.conditions.append(condition)
        self.variables |= leaf.variables
        self.collects |= {leaf.source} if kind != "absence" else set()
        ranges, tests = _ranges(leaf, condition, known)
        shared = leaf.variables & known
        is_exact = not tests and shared <= leaf.sure
        return WindowPlan(leaf, kind, tuple(sorted(shared & leaf.sure)), ranges, tests, is_exact)


def _ranges(leaf: Leaf, condition: Formula, known: Set[str]) -> tuple[tuple[Range, ...], tuple[Formula, ...]]:
    """Where a condition wants the end of what lies in a window, and what is left of it to be tested.

    A limit on an end, and a begin that is not before something, always narrow it. A begin that is not after something
    does so where events are points; where they are not, what is asked of a begin has to be tested, too.
    """

    def is_known(stamp: str) -> bool:
        return is_moment(stamp) or stamp in known

    opens, closes = begin(leaf.name), end(leaf.name)
    not_after = (opens, closes) if leaf.longest == 0 else (closes,)
    ranges: list[Range] = []
    tests: list[Formula] = []
    for part in condition.parts if isinstance(condition, Every) else (condition,):
        match part:
            case Distance(later, earlier, limit, strict) if later in not_after and is_known(earlier):
                ranges.append(Range(earlier, None, limit - strict))
            case Distance(later, earlier, limit, strict) if earlier in (opens, closes) and is_known(later):
                ranges.append(Range(later, limit - strict, None))
                tests += [] if leaf.longest == 0 or earlier == closes else [part]
            case _:
                tests.append(part)
    return tuple(ranges), (every(tests),) if tests else ()


def _summarized(attempts: tuple[tuple[Branch, ...], ...], head: Group | Imbed) -> tuple[tuple[Branch, ...], ...]:
    """The same, where a rule only counts, sums or asks for the extremes of what lies in one window."""
    match attempts:
        case (((WindowPlan(kind="collection") as window,),),) if window.is_exact or _has_one_condition(window):
            wanted = _wanted(head)
            return attempts if wanted is None else (((replace(window, kind="summary", wanted=wanted),),),)
        case _:
            return attempts


def _has_one_condition(window: WindowPlan) -> bool:
    """Whether data are compared once in a window; then it may still be summed up."""
    return len(window.tests) == 1 and isinstance(window.tests[0], Holds)


def _wanted(group: Group | Imbed) -> tuple[Wanted, ...] | None:
    """The summary that a head asks for, if that is all it asks of its collection."""
    if not isinstance(group, Group) or group.having or len(group.collections) != 1:
        return None
    head, binds = group.head, frozenset(group.collections[0].binds)
    if not isinstance(head, Derive) or binds & frozenset[str]().union(*(direct_variables(a) for a in head.arguments)):
        return None
    wanted: list[Wanted] = []
    for argument in head.arguments:
        match argument:
            case Aggregate("count", None, False, ()):
                continue
            case Aggregate("sum" | "avg" | "min" | "max" as function, value, False, ()) if _is_made_of(value, binds):
                wanted.append(Wanted.of(function, value))
            case Var() | Number() | Text() | Bool():
                continue
            case _:
                return None
    return tuple(dict.fromkeys(wanted))


def _is_made_of(e: Scalar | Construct | None, binds: frozenset[str]) -> TypeGuard[Scalar]:
    """Whether an expression is computed of what one collection binds, and of nothing else."""
    if e is None or isinstance(e, Construct):
        return False
    named = {v.name for v in find(e, Var)}
    return bool(named) and named <= binds and not any(True for _ in find(e, (Aggregate, Name)))


class _Parts:
    """What the positive part of a rule is made of."""

    def __init__(self, leaf_of: Callable[[Expression], Leaf], detectors: Mapping[str, Detector]) -> None:
        self._leaf_of = leaf_of
        self._detectors = detectors
        self.leaves: list[Leaf] = []
        self.detections: list[DetectionPlan] = []
        self.tests: list[Test] = []
        self.timers: list[RelativeTimer | Gap] = []
        self.tables: list[Table] = []

    def take(self, e: Expression) -> None:
        match e:
            case Select(inner, condition, _):
                self.take(inner)
                self.tests.append(Test(condition, needs(condition), computed_variables(condition)))
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
                    inputs = tuple(map(self._leaf_of, e.inputs))
                    self.detections.append(DetectionPlan(e, inputs, self._detectors.get(e.name)))
                self.leaves.append(self._leaf_of(e))


def leaf(e: Expression, point: str, given: Rewritten, schemas: Mapping[str, Schema]) -> Leaf:
    """An input of a rule; calendars and algebra expressions have a history for each rule."""
    inside = schema(e, schemas, given.plan.catalogue)
    variables = frozenset(a for a, v in inside.items() if v.kind == "data")
    sure = frozenset(a for a in variables if not inside[a].optional)
    match e:
        case Rename(Input(source), ((_, new), *_) as events, renamed):
            sides = ((side(old), side(own)) for old, own in events for side in (begin, end, reference, occurrence))
            names: dict[str, str] = {**dict(sides), **dict(renamed)}
            stored = stored_stamps(given.plan.points[source], dict(events))
            return Leaf(new, source, names, variables, sure, given.facts.longest(source), stored)
        case Calendar(name, _) | Detection(name):
            return Leaf(name, f"{point}/{name}", {}, variables, sure)
        case _:
            raise InternalError("physical", f"{type(e).__name__} is no input of a rule")
