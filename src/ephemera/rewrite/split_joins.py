"""This module splits rules that join on different keys into stored joins, so that each can run in all partitions.

A ⋈ B ⋈ C = (A ⋈ B) ⋈ C. Where no variable stands in all inputs of a rule, but A and B share one, and what they make
shares one with C, the join of A and B becomes a point of its own, with an exchange behind it. What is left of the rule
reads it in their place. The point has all stamps and named variables of its events, and the conditions that speak of
these alone. What the whole rule implies about their distances is asked of it, too: without `{o, d} within 2d` between
an order and its delivery, orders would be kept for ever where they wait for shipments only.

It holds for rules that make an answer of each tuple. Where answers are made of many tuples, or events are told apart
or tested again, it matters which event it was, and that does not travel; so rules that group, and those that compare or
match events, stay whole. So do rules of a cycle, rules that stand for several, and all rules of a program that asks for
events of any type, since it would be given the stored joins. Since equal tuples of a join may become one, a rule that
writes numbers into texts stays whole as well: `1` and `1.0` are equal, and their texts are not. And nothing is split
that would be kept for ever: a join of all with all is larger than what it is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import EVENT, Stamp, begin, end, is_blank, is_stamp, joined
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
from ephemera.algebra.parts import positive_part
from ephemera.algebra.scalar import Distance, Matches, SameEvent, computed_variables
from ephemera.algebra.schema import Schema, schema, schemas
from ephemera.algebra.schema import joined as both
from ephemera.analysis.cases import alternatives
from ephemera.analysis.distances import Edge, close
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.weights import ZERO
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find, rebuild
from ephemera.rewrite.optimize import Rewritten
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Atom, Call, Label, Var


def split_joins(given: Rewritten) -> Rewritten:
    """The plan with stored joins for all rules that need them to be cut by keys."""
    plan = given.plan
    if any(point.kind == "query" and point.label is None for point in plan.points.values()):
        return given
    known = schemas(plan)
    whole = {name for cycle in plan.cycles for name in cycle} | given.alike.keys() | given.replaced
    rules = [p for name, p in plan.points.items() if p.kind == "rule" and name not in whole]
    split = {p.name: made for p in rules if (made := _Split(p, plan, given.facts, known).points())}
    if not split:
        return given
    after, facts = _changed(given, split)
    endless = {r.point for r in facts.relevance if not r.is_bounded}
    bounded = {name: made for name, made in split.items() if endless.isdisjoint(made)}
    if len(bounded) < len(split):
        after, facts = _changed(given, bounded)
    return replace(given, plan=after, facts=facts) if bounded else given


def _changed(given: Rewritten, split: Mapping[str, Mapping[str, Point]]) -> tuple[Plan, Facts]:
    """The plan with some rules split, and the facts about it."""
    points: dict[str, Point] = {}
    for name, point in given.plan.points.items():
        points |= split.get(name, {name: point})
    plan = replace(given.plan, points=points)
    return plan, _with(given.facts, derive(plan), {name for made in split.values() for name in made})


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


@dataclass(frozen=True, slots=True)
class _Part:
    """An input of what is joined: an event, or a stored join of several."""

    expression: Expression
    events: tuple[str, ...]
    schema: Schema

    @property
    def values(self) -> frozenset[str]:
        """The variables by which it can meet others."""
        return frozenset(a for a, v in self.schema.items() if v.kind == "data" and not is_blank(a))


class _Split:
    """The points that a rule becomes; none if it stays as it is."""

    def __init__(self, point: Point, plan: Plan, facts: Facts, known: Mapping[str, Schema]) -> None:
        self._point = point
        self._plan = plan
        self._facts = facts
        self._known = dict(known)
        self._made: dict[str, Point] = {}
        self._parts: list[_Part] = []
        self._tests: list[Select] = []
        self._then: list[RelativeTimer | Gap | Table] = []
        """Timers and tables, which come when all is joined."""

    def points(self) -> dict[str, Point]:
        match self._point.expression:
            case Project(Merge(Imbed(body) as head) as merge) as whole:
                positive = positive_part(body)
            case _:
                return {}
        if not self._is_simple() or not self._take(positive) or not self._joined(self._inputs_of_windows(positive)):
            return {}
        rest = self._rest()
        changed = rebuild(body, lambda node: rest if node == positive else node)
        expression = replace(whole, input=replace(merge, input=replace(head, input=changed)))
        return {**self._made, self._point.name: replace(self._point, expression=expression)}

    # ---- what there is -------------------------------------------------------------------------------------

    def _is_simple(self) -> bool:
        """Whether it does not matter which events these were, but only what they say; see the module."""
        expression = self._point.expression
        if any(True for _ in find(expression, (Group, Matches, SameEvent))):
            return False
        return not any(call.function == "concat" for call in find(expression, Call))

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
            case Rename(Input(), ((_, name),)):
                part = _Part(e, (name,), self._schema(e))
                self._parts.append(part)
                return not any(v.optional for v in part.schema.values())
            case _:
                return False

    def _schema(self, e: Expression) -> Schema:
        return schema(e, self._known, self._plan.catalogue)

    def _inputs_of_windows(self, positive: Expression) -> list[frozenset[str]]:
        """For each input that is absent or collected the variables by which it can be cut."""
        below = {id(use) for use in find(positive, Rename)}
        windows = (use for use in find(self._point.expression, Rename) if id(use) not in below)
        found = (self._schema(use) for use in windows if isinstance(use.input, Input))
        return [frozenset(a for a, v in one.items() if v.kind == "data" and not v.optional) for one in found]

    # ---- joining -------------------------------------------------------------------------------------------

    def _joined(self, windows: Sequence[frozenset[str]]) -> bool:
        """Joins what shares a variable until one stands in all that is left; whether that is so, and was not before."""
        while not frozenset.intersection(*(part.values for part in self._parts), *windows):
            shared = self._most_shared()
            if shared is None:
                return False
            self._store([part for part in self._parts if shared in part.values])
        return bool(self._made)

    def _most_shared(self) -> str | None:
        """The variable that most parts share; of several the first in the order of the body."""
        counts = Counter(name for part in self._parts for name in sorted(part.values))
        shared = [name for name, count in counts.items() if count > 1]
        return max(shared, key=counts.__getitem__, default=None)

    def _store(self, parts: Sequence[_Part]) -> None:
        """Makes a point of the join of some parts, and one for those who read it."""
        events = tuple(event for part in parts for event in part.events)
        expression = self._cross(parts)
        inside = self._schema(expression)
        own = [test for test in self._tests if self._is_about(test, inside, parts)]
        self._tests = [test for test in self._tests if test not in own]
        for test in reversed(own):
            expression = Select(expression, test.condition, test.because)
        for distance in self._implied(events, own):
            expression = Select(expression, distance, "the rule as a whole")
        name = f"{self._point.name}[{','.join(events)}]"
        stamps = [side(event) for event in events for side in (begin, end)]
        named = sorted(a for a, v in inside.items() if v.kind == "data" and not is_blank(a))
        columns = tuple(Var(column) for column in (*stamps, *named))
        stored = Imbed(expression, Derive(Label(name), columns))
        rule, normal = self._point.rule, self._point.normal
        self._add(Point(name, "join", stored, rule, normal, name))
        query = f"[{','.join(events)}] of {self._point.name}"
        self._add(Point(query, "query", Match(Input(name), EVENT, Atom(Label(name), columns)), label=name))
        use = Rename(Input(query), ((EVENT, joined(events)),), ())
        at = min(self._parts.index(part) for part in parts)
        self._parts = [part for part in self._parts if part not in parts]
        self._parts.insert(at, _Part(use, events, self._schema(use)))

    def _is_about(self, test: Select, inside: Schema, parts: Sequence[_Part]) -> bool:
        """Whether a condition can be tested where some parts are joined.

        What computes with a variable waits for all that have it: where 1 and 1.0 meet, the sum is that of 1.
        """
        others = [part.schema for part in self._parts if part not in parts]
        others += [self._schema(table) for table in self._then if isinstance(table, Table)]
        to_come = frozenset[str]().union(*others)
        return not any(missing(test.condition, inside, ())) and computed_variables(test.condition).isdisjoint(to_come)

    def _add(self, point: Point) -> None:
        self._made[point.name] = point
        self._known[point.name] = self._schema(point.expression)

    def _cross(self, parts: Sequence[_Part]) -> Expression:
        """The parts joined, those that share variables as far as that goes."""
        first, *left = parts
        whole, known = first.expression, first.schema
        while left:
            part = next((p for p in left if p.values & known.keys()), left[0])
            left.remove(part)
            whole = (Join if part.schema.keys() & known.keys() else Cross)(whole, part.expression)
            known = both(known, part.schema)
        return whole

    def _implied(self, events: Sequence[str], own: Sequence[Select]) -> Iterator[Distance]:
        """What holds for the stamps of some events in every answer of the whole rule, and not by some tests anyway."""
        cases = [closure for _, closure in self._facts.cases.get(self._point.name, ())]
        stamps = [(begin(event), end(event)) for event in events]
        edges = [Edge(closes, opens, ZERO) for opens, closes in stamps]
        for test in own:
            ways = alternatives(test.condition)
            edges += ways[0] if len(ways) == 1 else ()
        pairs = [(one, other) for one in stamps for other in stamps if one != other]
        for earlier, later in ((i, j) for one, other in pairs for i in one for j in other):
            found = [closure.distance(earlier, later) for closure in cases]
            weights = [weight for weight in found if weight is not None]
            if not weights or len(weights) < len(found):
                continue
            most = max(weights)
            closure = close(edges)
            known = closure.distance(earlier, later) if closure is not None else None
            if known is None or (most.bound, not most.is_strict) < (known.bound, not known.is_strict):
                edges.append(Edge(earlier, later, most))
                yield Distance(later, earlier, most.bound, most.is_strict)

    def _rest(self) -> Expression:
        """The positive part of what is left of the rule."""
        rest = self._cross(self._parts)
        for then in reversed(self._then):
            if isinstance(then, Table):
                shared = self._schema(rest).keys() & self._schema(then).keys()
                rest = (Join if shared else Cross)(rest, then)
            else:
                rest = replace(then, input=rest)
        for test in reversed(self._tests):
            rest = Select(rest, test.condition, test.because)
        return rest


def stored_stamps(point: Point) -> tuple[Stamp, ...]:
    """The stamps that the tuples of a query have besides those of its event: the query reads a stored join."""
    patterns = [match.pattern for match in find(point.expression, Match)]
    match patterns:
        case [Atom(_, arguments)]:
            return tuple(a.name for a in arguments if isinstance(a, Var) and is_stamp(a.name))
        case _:
            return ()
