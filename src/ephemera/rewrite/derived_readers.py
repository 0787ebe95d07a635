"""This module says who reads what a rule derives, and what each reader asks of it.

What a reader asks of the values of an event is a formula over their positions, `@0` being the first: the constants of
its pattern, and those conditions that speak of no other event and hold in every answer of the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ephemera.algebra.attributes import position
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Cross,
    Detection,
    Expression,
    Gap,
    Imbed,
    Input,
    Join,
    Match,
    Plan,
    Point,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
)
from ephemera.algebra.parts import accumulates, member_head, positive_part
from ephemera.algebra.scalar import Every, Formula, Holds, Negation, Some, every
from ephemera.algebra.schema import Schema, schema
from ephemera.base.tree import find, rebuild, walk
from ephemera.syntax.nodes import Comparison, Derive, IsNull
from ephemera.terms.nodes import Anonymous, Argument, Atom, Bool, NamedAtom, Null, Number, Pattern, Text, Var
from ephemera.terms.nodes import Expression as Scalar

Constant = Number | Text | Bool


@dataclass(frozen=True, slots=True)
class Use:
    """One place in which a rule reads a query."""

    rule: Point
    query: Point
    leaf: Rename
    is_positive: bool
    """Whether it is one of the events that make up the answer."""
    conditions: tuple[Formula, ...]
    """What surely holds for it, as the rule says it."""


def shown(point: Point, plan: Plan, known: Mapping[str, Schema]) -> tuple[Var | Constant, ...] | None:
    """The arguments of a rule that surely has no dead letters; None if it may have some.

    Its head only shows constants, and variables that have their values from positive events, by position; and it has no
    timer, which could end too late for an answer.
    """
    head = member_head(point)
    if not isinstance(head, Imbed) or not isinstance(head.head, Derive) or next(find(head, RelativeTimer), None):
        return None
    inside = schema(positive_part(head.input), known, plan.catalogue)
    plain: list[Var | Constant] = []
    for argument in head.head.arguments:
        match argument:
            case Var(name) if name in inside and not inside[name].optional:
                plain.append(argument)
            case Number() | Text() | Bool():
                plain.append(argument)
            case _:
                return None
    return tuple(plain)


class Readers:
    """Who reads whom in a plan, by names, found out once; rules that are gone from it since then do not count."""

    def __init__(self, plan: Plan) -> None:
        self._streams: dict[str, list[str]] = {}
        self._queries: dict[str, list[str]] = {}
        self._rules: dict[str, list[str]] = {}
        for point in plan.points.values():
            self.add(point)

    def add(self, point: Point, beside: str | None = None) -> None:
        """One point more; a rule that stands `beside` another feeds the same streams."""
        where = {"stream": self._streams, "query": self._queries}.get(point.kind, self._rules)
        for read in dict.fromkeys(i.point for i in find(point.expression, Input)):
            where.setdefault(read, []).append(point.name)
        if beside is not None:
            self._streams[point.name] = self._streams.get(beside, [])

    def streams(self, rule: str) -> list[str]:
        """The streams to which a rule gives what it derives."""
        return self._streams.get(rule, [])

    def rules(self, query: str, plan: Plan) -> list[Point]:
        """The rules of a plan, and joins of them, that read a query."""
        return [plan.points[name] for name in self._rules.get(query, ()) if name in plan.points]

    def uses(self, plan: Plan, rule: str) -> list[Use] | None:
        """All places in which rules read what a rule derives; None if somebody reads it in another way."""
        streams = self.streams(rule)
        if any(self.rules(stream, plan) for stream in streams):
            return None
        queries = {name: plan.points[name] for stream in streams for name in self._queries.get(stream, ())}
        found: list[Use] = []
        for name in dict.fromkeys(point.name for query in queries for point in self.rules(query, plan)):
            point = plan.points[name]
            own = list(_uses(point, queries)) if point.kind == "rule" else []
            read = {
                e for e in find(point.expression, Rename) if isinstance(e.input, Input) and e.input.point in queries
            }
            if {use.leaf for use in own} != read:
                return None
            found += own
        return found


def _uses(rule: Point, queries: Mapping[str, Point]) -> Iterator[Use]:
    """Where a rule reads queries, and the conditions that hold wherever what it reads counts."""
    body = member_head(rule).input
    positive = positive_part(body)
    conditions = tuple(_positive_conditions(positive))
    detected = {leaf for one in find(positive, Detection) for leaf in one.inputs}
    found = {
        leaf: (False, ()) if leaf in detected else (True, conditions)  # instances are chosen before they are tested
        for leaf in find(positive, Rename)
    }
    for node in walk(body):
        match node:
            case Join(_, Rename() as leaf) | Cross(_, Rename() as leaf) if accumulates(node):
                found.setdefault(leaf, (False, conjuncts(node.condition)))
            case SemiJoin(_, Rename() as leaf) | AntiSemiJoin(_, Rename() as leaf):
                found.setdefault(leaf, (False, conjuncts(node.condition)))
            case _:
                continue
    for leaf, (is_positive, holding) in found.items():
        if isinstance(leaf.input, Input) and leaf.input.point in queries:
            yield Use(rule, queries[leaf.input.point], leaf, is_positive, holding)


def _positive_conditions(e: Expression) -> Iterator[Formula]:
    stack = [e]
    while stack:
        match stack.pop():
            case Select(inner, condition, _):
                yield from conjuncts(condition)
                stack.append(inner)
            case Join(left, right, condition) | Cross(left, right, condition):
                yield from conjuncts(condition)
                stack += [left, right]
            case RelativeTimer(inner) | Gap(inner):
                stack.append(inner)
            case _:
                continue


def conjuncts(f: Formula) -> tuple[Formula, ...]:
    """What has to hold, one by one."""
    return f.parts if isinstance(f, Every) else (f,)


# ---- what a reader asks for ----------------------------------------------------------------------------------


def asked_of(use: Use, plan: Plan) -> Formula | None:
    """What a use asks of the values of an event; None if that is nothing, or cannot be said by positions."""
    matches = list(find(use.query.expression, Match))
    arguments = by_position(matches[0].pattern, plan) if len(matches) == 1 else None
    if arguments is None:
        return None
    names: dict[str, str] = dict(use.leaf.variables)
    places = {names[a.name]: k for k, a in arguments.items() if isinstance(a, Var) and a.name in names}
    asked: list[Formula] = [
        Holds(Comparison("=", Var(position(k)), a)) for k, a in arguments.items() if isinstance(a, Constant)
    ]
    for condition in use.conditions:
        speaks_of = {v.name for v in find(condition, Var)}
        if speaks_of and speaks_of <= places.keys() and is_plain(condition):
            asked.append(_renamed(condition, {name: Var(position(places[name])) for name in speaks_of}))
    return every(asked) if asked else None


def by_position(pattern: Pattern, plan: Plan) -> dict[int, Argument] | None:
    """The arguments of a pattern by their places, without those that are free; None if it has no such."""
    match pattern:
        case Atom(_, arguments):
            return {k: a for k, a in enumerate(arguments) if not isinstance(a, Anonymous)}
        case NamedAtom(label, fields):
            names = plan.catalogue.attributes(str(label)) or ()
            if not all(field.name in names for field in fields):
                return None
            return {names.index(f.name): f.argument for f in fields if not isinstance(f.argument, Anonymous)}
        case _:
            return None


def of_head(asked: Formula, arguments: Sequence[Var | Constant]) -> Formula:
    """What is asked of the values of an event, of what the head of a rule shows."""
    return _renamed(asked, {position(k): argument for k, argument in enumerate(arguments)})


def is_plain(f: Formula) -> bool:
    """Whether a formula only compares variables and constants."""
    match f:
        case Holds(Comparison(_, left, right)):
            return isinstance(left, Var | Constant | Null) and isinstance(right, Var | Constant | Null)
        case Holds(IsNull(operand)):
            return isinstance(operand, Var)
        case Negation(inner):
            return is_plain(inner)
        case Every(parts) | Some(parts):
            return all(map(is_plain, parts))
        case _:
            return False


def _renamed(f: Formula, names: Mapping[str, Scalar]) -> Formula:
    return rebuild(f, lambda node: names.get(node.name, node) if isinstance(node, Var) else node)


def with_positive(point: Point, condition: Formula, because: str) -> Point:
    """A rule that tests a condition on its positive events before all that it accumulates."""
    positive = positive_part(member_head(point).input)
    tested = Select(positive, condition, because)
    return replace(point, expression=rebuild(point.expression, lambda node: tested if node == positive else node))
