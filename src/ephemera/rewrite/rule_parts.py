"""This module takes the positive part of a rule apart, and makes stored joins of some of its parts.

A ⋈ B ⋈ C = (A ⋈ B) ⋈ C. The join of A and B becomes a point of its own, and what is left of the rule reads it in their
place. The point has all stamps and named variables of its events, and the conditions that speak of these alone. What
the whole rule implies about their distances is asked of it, too: without `{o, d} within 2d` between an order and its
delivery, orders would be kept for ever where they wait for shipments only.

It holds for rules that make an answer of each tuple. Where answers are made of many tuples, or events are told apart
or tested again, it matters which event it was, and that does not travel; so rules that group, and those that compare or
match events, stay whole. So do rules of a cycle, rules that stand for several, and all rules of a program that asks for
events of any type, since it would be given the stored joins. Since equal tuples of a join may become one, a rule that
calls what tells `1` and `1.0` apart, as what writes numbers into texts does, stays whole as well. And nothing is stored
that would be kept for ever: a join of all with all is larger than what it is made of.

Which parts are stored is decided elsewhere: by `split_joins` for the sake of keys, by `share_joins` where several rules
have the same join, and by `store_joins` where that is expected to cost less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import EVENT, Stamp, Variable, begin, end, is_blank, joined
from ephemera.algebra.check import missing
from ephemera.algebra.nodes import (
    Cross,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Match,
    Merge,
    Plan,
    Point,
    Project,
    RelativeTimer,
    Rename,
    Select,
    Table,
)
from ephemera.algebra.parts import positive_part, stored_stamps
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.scalar import Distance, Formula, Matches, SameEvent, computed_variables
from ephemera.algebra.schema import Schema, schema, schemas
from ephemera.algebra.schema import joined as both
from ephemera.analysis.cases import alternatives
from ephemera.analysis.distances import Closure, Edge, close
from ephemera.analysis.flows import tests_of
from ephemera.analysis.join_estimates import Flow, JoinEstimates, JoinPart
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.weights import ZERO, Weight
from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find, rebuild
from ephemera.rewrite.optimize import Rewritten
from ephemera.syntax.nodes import Derive
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import Atom, Call, Label, Var

BUILD = 2.0
"""What it costs to store a tuple of a join, in candidates."""


@dataclass(frozen=True, slots=True)
class Part:
    """An input of what is joined: an event, or a stored join of several."""

    source: str
    """The query that it is read from."""
    expression: Rename
    events: tuple[str, ...]
    schema: Schema

    @property
    def values(self) -> frozenset[str]:
        """The variables by which it can meet others."""
        return frozenset(a for a, v in self.schema.items() if v.kind == "data" and not is_blank(a))


def open_rules(given: Rewritten) -> dict[str, RuleParts]:
    """The rules of which parts may be stored; none if somebody asks for events of any type."""
    plan = given.plan
    if any(point.kind == "query" and point.label is None for point in plan.points.values()):
        return {}
    known = schemas(plan)
    whole = {name for cycle in plan.cycles for name in cycle} | given.alike.keys() | given.replaced
    rules = (RuleParts(p, given, known) for name, p in plan.points.items() if p.kind == "rule" and name not in whole)
    return {rule.name: rule for rule in rules if rule.is_open}


def changed(given: Rewritten, made: Mapping[str, Mapping[str, Point]]) -> Rewritten:
    """The plan with some rules as they are now, and with what was stored before each of them, where it is bounded.

    Of rules that read something which would be kept for ever nothing is changed, nor of those that share it with them.
    """
    left = dict(made)
    while left:
        points: dict[str, Point] = {}
        for name, point in given.plan.points.items():
            points |= left.get(name, {name: point})
        plan = replace(given.plan, points=points)
        facts = derive(plan)
        stored = {name for own in left.values() for name in own}
        endless = {r.point for r in facts.relevance if not r.is_bounded} & stored
        if not endless:
            return replace(given, plan=plan, facts=_with(given.facts, facts, stored))
        left = {rule: own for rule, own in left.items() if endless.isdisjoint(_behind(rule, plan))}
        made_now = {name for own in left.values() for name in own}
        left = {rule: own for rule, own in left.items() if _behind(rule, plan) & stored <= made_now}
    return given


def _behind(rule: str, plan: Plan) -> set[str]:
    """A rule and the stored joins that it reads, maybe through others of them."""
    found: set[str] = set()
    waiting = [rule]
    while waiting:
        name = waiting.pop()
        if name not in found and (name == rule or plan.points[name].kind in ("join", "query")):
            found.add(name)
            waiting += [read.point for read in find(plan.points[name].expression, Input)]
    return found


def _with(before: Facts, after: Facts, changed: set[str]) -> Facts:
    """The facts about all points, anew about those that have changed; rules that stand for several have theirs."""
    return replace(
        before,
        known={**before.known, **{name: after.known[name] for name in changed}},
        cases={**before.cases, **{name: after.cases[name] for name in changed if name in after.cases}},
        relevance=tuple(
            [r for r in before.relevance if r.point not in changed] + [r for r in after.relevance if r.point in changed]
        ),
    )


class RuleParts:
    """A rule taken apart, and the points that it becomes."""

    def __init__(self, point: Point, given: Rewritten, known: Mapping[str, Schema]) -> None:
        self.name = point.name
        self._point = point
        self._plan = given.plan
        self._facts = given.facts
        self._flows = dict(given.flows)
        self._known = dict(known)
        self._made: dict[str, Point] = {}
        self.parts: list[Part] = []
        self._tests: list[Select] = []
        self._then: list[RelativeTimer | Gap | Table] = []
        """Timers and tables, which come when all is joined."""
        self._positive: Expression | None = None
        match point.expression:
            case Project(Merge(Imbed(body))):
                self._positive = positive_part(body)
        self.is_open = self._positive is not None and self._is_simple() and self._take(self._positive)
        """Whether it could be taken apart."""

    @property
    def stored(self) -> bool:
        """Whether it reads a stored join."""
        return any(len(part.events) > 1 for part in self.parts)

    def points(self) -> dict[str, Point]:
        """The stored joins, the queries that read them, and what is left of the rule."""
        rest, positive = self._rest(), self._positive
        match self._point.expression:
            case Project(Merge(Imbed(body) as head) as merge) as whole:
                left = rebuild(body, lambda node: rest if node == positive else node)
                expression = replace(whole, input=replace(merge, input=replace(head, input=left)))
                return {**self._made, self.name: replace(self._point, expression=expression)}
            case _:
                raise InternalError("rewrite", f"{self.name} has no head")

    # ---- what there is -------------------------------------------------------------------------------------

    def _is_simple(self) -> bool:
        """Whether it does not matter which events these were, but only what they say; see the module."""
        expression = self._point.expression
        if any(True for _ in find(expression, (Group, Matches, SameEvent))):
            return False
        if any(timer.told is not None for timer in find(expression, RelativeTimer)):
            return False
        called = {call.function for call in find(expression, Call)}
        return all(name not in FUNCTIONS or FUNCTIONS[name].is_same for name in called) and called.isdisjoint(
            self._plan.catalogue.functions
        )

    def _take(self, e: Expression) -> bool:
        """Takes the positive part apart; whether that could be done."""
        match e:
            case Select(inner):
                self._tests.append(e)
                return self._take(inner)
            case RelativeTimer(inner) | Gap(inner):
                self._then.append(e)
                return self._take(inner)
            case Join(left, Table() as table) | Cross(left, Table() as table):
                self._then.append(table)
                return self._take(left)
            case Join(left, right) | Cross(left, right):
                return self._take(left) and self._take(right)
            case Rename(Input(source), ((_, name),)):
                if stored_stamps(self._plan.points[source]):
                    return False  # it reads a stored join already
                part = Part(source, e, (name,), self._schema(e))
                self.parts.append(part)
                return not any(v.optional for v in part.schema.values())
            case _:
                return False

    def _schema(self, e: Expression) -> Schema:
        return schema(e, self._known, self._plan.catalogue)

    def inputs_of_windows(self) -> list[frozenset[str]]:
        """For each input that is absent or collected the variables by which it can be cut."""
        below = {id(use) for use in find(self._positive, Rename)}
        windows = (use for use in find(self._point.expression, Rename) if id(use) not in below)
        found = (self._schema(use) for use in windows if isinstance(use.input, Input))
        return [frozenset(a for a, v in one.items() if v.kind == "data" and not v.optional) for one in found]

    # ---- what joins cost -----------------------------------------------------------------------------------

    def estimates(self) -> JoinEstimates:
        """What is expected of the join of the parts that there are now."""
        parts = [self.join_part(part) for part in self.parts]
        return JoinEstimates(parts, self.closures, tests_of((test.condition for test in self._tests), parts))

    @property
    def closures(self) -> list[Closure]:
        """The distances of the whole rule, in all cases."""
        return [closure for _, closure in self._facts.cases.get(self.name, ())]

    def join_part(self, part: Part) -> JoinPart:
        """A part as it is joined, with what comes of it."""
        flow = self._flows[part.source]
        names: dict[str, str] = dict(part.expression.variables)
        distinct = {names.get(v, v): values for v, values in flow.distinct.items()}
        stamps = tuple(side(event) for event in part.events for side in (begin, end))
        return JoinPart(stamps, part.values, Flow(flow.rate, distinct))

    # ---- what can be shared --------------------------------------------------------------------------------

    def shape(self, parts: Sequence[Part]) -> tuple[object, Renaming]:
        """What the join of some parts is, modulo names and what is tested of its data, and what its names stand for."""
        events = {name: f"e{k}" for k, name in enumerate((e for part in parts for e in part.events), 1)}
        variables: dict[str, str] = {}
        sources: list[tuple[str, tuple[tuple[str, str, bool], ...]]] = []
        for part in parts:
            renamed = part.expression.variables
            own = [(v, variables.setdefault(n, f"v{len(variables)}"), is_blank(n)) for v, n in renamed]
            sources.append((part.source, tuple(own)))
        stamps = [side(event) for event in events for side in (begin, end)]
        distances = tuple(self._weight(i, j) for i in stamps for j in stamps if i != j)
        return (tuple(sources), distances), Renaming(events, variables)

    def tests_of(self, parts: Sequence[Part], names: Renaming) -> dict[Formula, Select]:
        """What can be tested where some parts are joined, by other names."""
        inside = self._schema(self._cross(parts))
        return {names.of(t.condition): t for t in self._tests if self._is_about(t, inside, parts)}

    # ---- storing -------------------------------------------------------------------------------------------

    def store(self, parts: Sequence[Part], tests: Sequence[Select] | None = None, name: str | None = None) -> str:
        """Makes a point of the join of some parts, and one for those who read it; the name of the latter.

        It has all tests that can be made there, or only some.
        """
        events = tuple(event for part in parts for event in part.events)
        expression = self._cross(parts)
        inside = self._schema(expression)
        can = [test for test in self._tests if self._is_about(test, inside, parts)]
        own = can if tests is None else [test for test in can if test in tests]
        for test in reversed(own):
            expression = Select(expression, test.condition, test.because)
        for distance in self._implied(events, own):
            expression = Select(expression, distance, "the rule as a whole")
        label = name or f"{self.name}[{','.join(events)}]"
        stored = Imbed(expression, Derive(Label(label), tuple(map(Var, self.columns(parts)))))
        flow = self._flow_of(parts, own)
        columns = self.columns(parts)
        self._add(Point(label, "join", stored, self._point.rule, self._point.normal, label), flow)
        query = f"[{','.join(events)}] of {self.name}"
        pattern = Atom(Label(label), tuple(map(Var, columns)))
        self._add(Point(query, "query", Match(Input(label), EVENT, pattern), label=label), flow)
        self._read(query, parts, own, Renaming({}, {}))
        return query

    def columns(self, parts: Sequence[Part]) -> tuple[str, ...]:
        """What is stored of the join of some parts: the stamps of all events, and the variables that have names."""
        stamps = (side(event) for part in parts for event in part.events for side in (begin, end))
        return (*stamps, *sorted(frozenset[str]().union(*(part.values for part in parts))))

    def share(
        self, owner: RuleParts, query: str, parts: Sequence[Part], own: Sequence[Select], names: Renaming
    ) -> None:
        """Reads what another rule has stored in place of some parts; `names` are what this rule calls what that has."""
        self._known[query], self._flows[query] = owner._known[query], owner._flows[query]
        self._read(query, parts, own, names)

    def _read(self, query: str, parts: Sequence[Part], own: Sequence[Select], names: Renaming) -> None:
        events = tuple(event for part in parts for event in part.events)
        self._tests = [test for test in self._tests if test not in own]
        called = (
            tuple(names.events.items()),
            tuple((Variable(old), Variable(new)) for old, new in names.variables.items()),
        )
        use = Rename(Input(query), ((EVENT, joined(events)), *called[0]), called[1])
        at = min(self.parts.index(part) for part in parts)
        self.parts = [part for part in self.parts if part not in parts]
        self.parts.insert(at, Part(query, use, events, self._schema(use)))

    def give_away(self, other: RuleParts) -> None:
        """Another rule, which comes before this one, has what was stored of it from now on."""
        other._made, self._made = {**self._made, **other._made}, {}

    def _flow_of(self, parts: Sequence[Part], own: Sequence[Select]) -> Flow:
        """What comes of the join of some parts, with some tests."""
        several = [self.join_part(part) for part in parts]
        return JoinEstimates(several, self.closures, tests_of((test.condition for test in own), several)).flow()

    def _is_about(self, test: Select, inside: Schema, parts: Sequence[Part]) -> bool:
        """Whether a condition can be tested where some parts are joined.

        What computes with a variable waits for all that have it: where 1 and 1.0 meet, the sum is that of 1.
        """
        others = [part.schema for part in self.parts if part not in parts]
        others += [self._schema(table) for table in self._then if isinstance(table, Table)]
        to_come = frozenset[str]().union(*others)
        return not any(missing(test.condition, inside, ())) and computed_variables(test.condition).isdisjoint(to_come)

    def _add(self, point: Point, flow: Flow) -> None:
        self._made[point.name] = point
        self._known[point.name] = self._schema(point.expression)
        self._flows[point.name] = flow

    def _cross(self, parts: Sequence[Part]) -> Expression:
        """The parts joined, those that share variables as far as that goes."""
        first, *left = parts
        whole: Expression = first.expression
        known = first.schema
        while left:
            part = next((p for p in left if p.values & known.keys()), left[0])
            left.remove(part)
            whole = (Join if part.schema.keys() & known.keys() else Cross)(whole, part.expression)
            known = both(known, part.schema)
        return whole

    def _implied(self, events: Sequence[str], own: Sequence[Select]) -> Iterator[Distance]:
        """What holds for the stamps of some events in every answer of the whole rule, and not by some tests anyway."""
        stamps = [(begin(event), end(event)) for event in events]
        edges = [Edge(closes, opens, ZERO) for opens, closes in stamps]
        for test in own:
            ways = alternatives(test.condition)
            edges += ways[0] if len(ways) == 1 else ()
        pairs = [(one, other) for one in stamps for other in stamps if one != other]
        for earlier, later in ((i, j) for one, other in pairs for i in one for j in other):
            most = self._weight(earlier, later)
            if most is None:
                continue
            closure = close(edges)
            known = closure.distance(earlier, later) if closure is not None else None
            if known is None or (most.bound, not most.is_strict) < (known.bound, not known.is_strict):
                edges.append(Edge(earlier, later, most))
                yield Distance(later, earlier, most.bound, most.is_strict)

    def _weight(self, earlier: Stamp, later: Stamp) -> Weight | None:
        """How far one stamp may lie behind another in any answer of the whole rule; None is any distance."""
        found = [closure.distance(earlier, later) for closure in self.closures]
        weights = [weight for weight in found if weight is not None]
        return max(weights) if weights and len(weights) == len(found) else None

    def _rest(self) -> Expression:
        """The positive part of what is left of the rule."""
        rest = self._cross(self.parts)
        for then in reversed(self._then):
            if isinstance(then, Table):
                shared = self._schema(rest).keys() & self._schema(then).keys()
                rest = (Join if shared else Cross)(rest, then)
            else:
                rest = replace(then, input=rest)
        for test in reversed(self._tests):
            rest = Select(rest, test.condition, test.because)
        return rest
