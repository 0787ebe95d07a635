"""This module unfolds a point's cases down to events from outside, and places these as far apart as the rules allow.

Every input that rules derive is replaced by one of the ways to derive it. Where an interval covers several, one part
is chosen to begin it and one to end it, so that the minimum and the maximum become equalities and the whole is one
system of differences. Its shortest paths from a stamp are the placement in which all else comes as late as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ephemera.algebra.attributes import begin, end
from ephemera.algebra.nodes import Base, Detection, Expression, Input, Match, Merge, Plan, Point, Union
from ephemera.analysis.cases import Case, Use
from ephemera.analysis.distances import Edge, whole_distances
from ephemera.analysis.knowledge import describe_plan
from ephemera.analysis.weights import ZERO, at_most
from ephemera.base.tree import find
from ephemera.terms.nodes import (
    Anonymous,
    AnyEvent,
    Atom,
    Bool,
    Element,
    Name,
    NamedAtom,
    Null,
    Number,
    Pattern,
    Text,
    Var,
)
from ephemera.terms.values import Term, Value

DEEPEST = 3
"""How many rules may stand above each other in a scenario."""

Times = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An event from outside: the name of its stamps, and what it must match."""

    name: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Layout:
    """Events from outside, and how they must lie to each other for a body to hold."""

    edges: tuple[Edge, ...]
    wanted: tuple[Wanted, ...]

    def and_(self, others: Sequence[Layout]) -> Layout:
        every = (self, *others)
        return Layout(tuple(e for one in every for e in one.edges), tuple(w for one in every for w in one.wanted))


@dataclass(frozen=True, slots=True)
class Context:
    """A case with an input that it uses or forbids; then what is forbidden is part of the case."""

    case: Case
    use: Use


class Unfolding:
    """The ways in which events from outside make the tuples of a plan's points."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cases = describe_plan(plan).cases

    def contexts(self, point: str, name: str) -> list[Context]:
        """The cases in which a point uses the input that it calls by this name."""
        cases = [case for case, _ in self._cases.get(point, ())]
        return [Context(case, use) for case in _with_absent(cases) for use in case.uses if use.name == name]

    def layouts(self, point: str, case: Case) -> Iterator[Layout]:
        """All ways to make what a case of a point consists of; what its answers cover makes no difference."""
        return self._unfolded(self._plan.points[point], case, "", "$", DEEPEST)

    def _unfolded(self, point: Point, case: Case, prefix: str, whole: str, depth: int) -> Iterator[Layout]:
        def own(stamp: str) -> str:
            event, _, side = stamp.rpartition(".")
            return stamp if not event else f"{whole}.{side}" if event == "$" else f"{prefix}{stamp}"

        inputs = [list(self._made(use, prefix, depth)) for use in case.uses]
        covers = [(name, parts) for name, parts in _covers(point, case) if prefix or name != "$"]
        for chosen in product(*(product(parts, parts) for _, parts in covers)):
            edges = list(case.edges)
            for (name, _), (first, last) in zip(covers, chosen, strict=True):
                edges += (Edge(begin(name), begin(first), ZERO), Edge(end(last), end(name), ZERO))
            renamed = Layout(tuple(Edge(own(i), own(j), w) for i, j, w, _ in edges), ())
            for parts in product(*inputs):
                yield renamed.and_(parts)

    def _made(self, use: Use, prefix: str, depth: int) -> Iterator[Layout]:
        """The ways to make a tuple of an input."""
        point = self._plan.points.get(use.point)
        if point is None:
            return
        if point.kind == "join":
            yield from self._derived(point, prefix, "$", depth)
            return
        for match in find(point.expression, Match):
            for source in self._sources(match.input):
                if isinstance(source, Base):
                    yield Layout((), (Wanted(f"{prefix}{use.name}", match.pattern),))
                elif depth:
                    name = f"{prefix}{use.name}"
                    yield from self._derived(self._plan.points[source.point], f"{name}>", name, depth - 1)

    def _derived(self, point: Point, prefix: str, whole: str, depth: int) -> Iterator[Layout]:
        for case, _ in self._cases.get(point.name, ()):
            yield from self._unfolded(point, case, prefix, whole, depth)

    def _sources(self, stream: Expression) -> Sequence[Base | Input]:
        """Where the events of a stream come from; what rules do derive is given from outside only if it is declared."""
        if not isinstance(stream, Input):
            return [stream] if isinstance(stream, Base) else []
        point = self._plan.points[stream.point]
        inputs = point.expression.inputs if isinstance(point.expression, Union) else ()
        derived = [i for i in inputs if isinstance(i, Input) and self._cases.get(i.point)]
        given = [i for i in inputs if isinstance(i, Base)]
        return [*given, *derived] if point.label in self._plan.catalogue.events else derived or given


def _with_absent(cases: Sequence[Case]) -> Iterator[Case]:
    """The cases, and each together with something that it forbids."""
    for case in cases:
        yield case
        for absent in case.absent:
            uses = tuple(dict.fromkeys((*case.uses, *absent.uses)))
            arrivals = (*case.arrivals, *absent.arrivals)
            yield from _with_absent([Case((*case.edges, *absent.edges), uses, arrivals, absent.absent)])


def _covers(point: Point, case: Case) -> list[tuple[str, list[str]]]:
    """The intervals that cover others, each with its parts."""
    found = [(merge.name, list(merge.events)) for merge in find(point.expression, Merge)]
    for detection in find(point.expression, Detection):
        parts = [use.name for use in case.uses if use.name.startswith(f"{detection.name}/")]
        found.append((detection.name, parts))
    return found


# ---- placements --------------------------------------------------------------------------------------------


def placements(layout: Layout, start: str, goal: str, own: str) -> Iterator[Times]:
    """Times for all stamps with the goal as late after the start as it can be, and the others late or early.

    First `own` alone is early, so that the tuple is there before the goal, then nothing, then all are.
    """
    edges = _complete(layout, start)
    latest = whole_distances(edges, start)
    if latest is None or goal not in latest:
        return
    edges += _fixed(start, goal, latest[goal])
    from_own = whole_distances(edges, own)
    if from_own is not None and from_own[start] > -latest[own]:
        early = whole_distances([*edges, *_fixed(start, own, -from_own[start])], start)
        if early is not None:
            yield early
    yield latest
    to_goal = whole_distances([Edge(j, i, w) for i, j, w, _ in edges], goal)
    if to_goal is not None and not any(stamp.startswith("@") for stamp in to_goal):
        yield {stamp: latest[goal] - to_goal.get(stamp, 0) for stamp in latest}


def _complete(layout: Layout, start: str) -> list[Edge]:
    """The edges, with all stamps of events from outside somewhere around the start, each begin before its end."""
    far = at_most(1 + sum(abs(e.weight.bound) for e in layout.edges))
    edges = list(layout.edges)
    for w in layout.wanted:
        for stamp in (begin(w.name), end(w.name)):
            edges += (Edge(start, stamp, far), Edge(stamp, start, far))
        edges.append(Edge(end(w.name), begin(w.name), ZERO))
    return edges


def _fixed(start: str, stamp: str, distance: int) -> list[Edge]:
    return [Edge(start, stamp, at_most(distance)), Edge(stamp, start, at_most(-distance))]


# ---- data --------------------------------------------------------------------------------------------------


def term_for(pattern: Pattern, values: Iterator[int], plan: Plan) -> Term:
    """What matches a pattern with these values for its variables."""
    match pattern:
        case Atom(label, arguments):
            made = [_value(a, values) for a in arguments]
            names = plan.catalogue.attributes(str(label))
            if names is None:
                return Term(str(label), tuple(made))
            fields = tuple(Term(n, (v,)) for n, v in zip(names, made, strict=True) if v is not None)
            return Term(str(label), fields, ordered=False)
        case NamedAtom(label, given):
            return Term(str(label), tuple(Term(f.name, (_value(f.argument, values),)) for f in given), ordered=False)
        case AnyEvent(label):
            return Term(str(label))
        case Element(label, ordered, _, children) if not isinstance(label, Var):
            inside = (term_for(c, values, plan) if isinstance(c, Element) else _value(c, values) for c in children)
            return Term(str(label), tuple(inside), ordered=ordered)
        case _:
            raise TypeError(f"no data is made up for {pattern}")


def _value(argument: object, values: Iterator[int]) -> Value:
    match argument:
        case Var() | Name() | Anonymous():
            return next(values)
        case Text(given) | Number(given) | Bool(given):
            return given
        case Null():
            return None
        case _:
            raise TypeError(f"no value is made up for {argument}")
