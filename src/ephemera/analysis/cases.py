"""This module evaluates expressions over temporal distances instead of tuples (abstract interpretation, R§5.1).

The result is a list of cases, of which every tuple satisfies at least one. A case holds what is known about the stamps
of a tuple, the inputs that it was made from, the stamps at which something arrives that it waits for, and what must be
absent. What is absent constrains nothing but itself: it is a case of its own, to be read within the case it stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import product
from typing import assert_never

from ephemera.algebra.attributes import EVENT, Stamp, begin, end, event_of, is_end, moved
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Base,
    Calendar,
    Composition,
    Cross,
    Detected,
    Detection,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Limit,
    Match,
    Merge,
    Never,
    Primitive,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.scalar import Distance, Every, Formula, SameEvent, Some
from ephemera.algebra.timers import offsets
from ephemera.analysis.distances import Closure, Edge, close
from ephemera.analysis.weights import ZERO, Weight, at_most, strict
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import describe
from ephemera.syntax.format import format_pattern

MOST_CASES = 64
"""More cases than these are not told apart: they become one that allows what any of them allows."""

MOST_ENDS = 16
"""For more pairs of a first and a last part than these it is not told which are first and last."""

PARTS = "its parts"
"""Why an interval that covers others is no longer than it is."""


@dataclass(frozen=True, slots=True)
class Use:
    """An input of a materialization point, under the name that the rule gives it."""

    point: str
    name: str
    stamps: tuple[Stamp, ...]
    arrivals: tuple[Stamp, ...]
    """The stamps at which its tuples arrive."""


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative; see the module."""

    edges: tuple[Edge, ...] = ()
    uses: tuple[Use, ...] = ()
    arrivals: tuple[Stamp, ...] = ()
    absent: tuple[Case, ...] = ()
    is_hull: bool = False
    """Whether it stands for more cases than could be told apart."""

    def with_edges(self, edges: Iterable[Edge]) -> Case:
        return replace(self, edges=(*self.edges, *edges))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about the tuples of a point: distances between its stamps, and the stamps at which they arrive."""

    edges: tuple[Edge, ...]
    stamps: tuple[Stamp, ...]
    arrivals: tuple[Stamp, ...]


Knowledge = Mapping[str, Known | None]
"""For each point what is known; None if it holds nothing at all."""


class Describer:
    """Evaluates the expressions of a plan over what is known about its points and base events."""

    def __init__(self, knowledge: Knowledge, longest: Mapping[str, int], early: Set[str] = frozenset()) -> None:
        self._knowledge = knowledge
        self._longest = longest
        """The longest that base events of a label last; those of other labels may last any time."""
        self._early = early
        """The labels of base events that arrive at their begin."""

    def cases(self, e: Expression) -> list[Case]:
        """All that may hold for a tuple of the expression."""
        match e:
            case Base(label):
                arrives = begin(EVENT) if label in self._early else end(EVENT)
                return [Case(self._base(label), arrivals=(arrives,))]
            case Rename(Input(point), events, _):
                return self._input(point, dict(events))
            case Input(point):
                return self._input(point, {})
            case Calendar(name):
                use = Use("timer:datetime", name, (begin(name), end(name)), (end(name),))
                return [Case(_lasting(e), (use,), use.arrivals)]
            case Table():
                return [Case()]
            case Select(inner, condition, because):
                return _limited(_joined(self.cases(inner), [Case()], condition, because))
            case Match(inner) | Project(inner) | Imbed(inner) | Group(inner) | Rename(inner):
                return self.cases(inner)
            case RelativeTimer(inner, name, kind, anchor, length, told):
                is_told = told is not None
                edges = _timer(name, kind, anchor, length, is_told=is_told) if isinstance(length, int) else ()
                return [_timed(case, name, (*edges, Edge(end(name), begin(name), ZERO))) for case in self.cases(inner)]
            case Gap(inner, name, first, last):
                edges = (*_moved(end(first), begin(name), 0), *_moved(begin(last), end(name), 0))
                return [c.with_edges((*edges, Edge(end(name), begin(name), ZERO))) for c in self.cases(inner)]
            case Merge(inner, name, events):
                return [_merged(case, name, events) for case in self.cases(inner)]
            case Join(left, right) | Cross(left, right) | SemiJoin(left, right):
                others = self.cases(right)
                found = _joined(self.cases(left), others, e.condition, e.because)
                return _limited([_until(case, e.condition, others) for case in found])
            case AntiSemiJoin(left, right, condition, because):
                others = self.cases(right)
                absent = _joined([Case()], others, condition, because)
                return [_until(replace(c, absent=(*c.absent, *absent)), condition, others) for c in self.cases(left)]
            case Difference(left, right):
                absent = self.cases(right)
                return [replace(c, absent=(*c.absent, *absent)) for c in self.cases(left)]
            case Union(inputs):
                return [case for one in inputs for case in self.cases(one)]
            case Detection(name, inputs, expression, _, _):
                found = self._instances(expression, inputs)
                return _limited([case for instance in found for case in _detected(instance, name)])
            case _:
                assert_never(e)

    def _base(self, label: str | None) -> tuple[Edge, ...]:
        edges = (Edge(end(EVENT), begin(EVENT), ZERO),)
        if label is None or label not in self._longest:
            return edges
        longest = self._longest[label]
        because = f"{label} lasts at most {describe(longest)}" if longest else f"{label} is a point"
        return (*edges, Edge(begin(EVENT), end(EVENT), at_most(longest, guaranteed=True), because))

    def _input(self, point: str, names: Mapping[str, str]) -> list[Case]:
        known = self._knowledge[point]
        if known is None:
            return []

        def own(stamp: Stamp) -> Stamp:
            event = event_of(stamp)
            return moved(stamp, names.get(event, event))

        stamps: Mapping[str, Stamp] = {s: own(s) for s in known.stamps}
        edges = tuple(Edge(stamps[i], stamps[j], w, because) for i, j, w, because in known.edges)
        events = dict.fromkeys(map(event_of, stamps.values()))
        use = Use(point, ",".join(events), tuple(map(own, known.stamps)), tuple(map(own, known.arrivals)))
        return [Case(edges, (use,), use.arrivals)]

    def instances(self, detection: Detection) -> list[Case]:
        """The cases of an algebra expression, whatever the rule asks of it."""
        found = self._instances(detection.expression, detection.inputs)
        return [case for instance in found for case in _detected(instance, detection.name)]

    # ---- the event detection algebra -----------------------------------------------------------------------

    def _instances(self, e: Detected, inputs: Sequence[Expression]) -> list[Case]:
        """The cases of an algebra expression: which primitives take part, and how they lie to each other."""
        match e:
            case Primitive(number, _):
                return self.cases(inputs[number])
            case Never():
                return []
            case Limit(operand, length):
                because = f"[{describe(length)}]"
                return [
                    c.with_edges(
                        Edge(begin(a), end(b), at_most(length), because) for a in _events(c) for b in _events(c)
                    )
                    for c in self._instances(operand, inputs)
                ]
            case Composition("|", left, right):
                return _limited(self._instances(left, inputs) + self._instances(right, inputs))
            case Composition("-", left, right):
                lefts, rights = self._instances(left, inputs), self._instances(right, inputs)
                if len(rights) > MOST_ENDS:
                    rights = _merged_cases(rights)
                return [replace(c, absent=(*c.absent, *(a for r in rights for a in _within(r, c)))) for c in lefts]
            case Composition(operator, left, right):
                found: list[Case] = []
                for a, b in product(self._instances(left, inputs), self._instances(right, inputs)):
                    both = _both(a, b)
                    if operator == ";":
                        both = both.with_edges(
                            Edge(begin(y), end(x), strict(0), ";") for x in _events(a) for y in _events(b)
                        )
                    found.append(both)
                return _limited(found)
            case _:
                assert_never(e)


def _events(case: Case) -> list[str]:
    return [use.name for use in case.uses]


def _within(absent: Case, outer: Case) -> list[Case]:
    """What is absent lies in what it is absent from: it begins with or after one of its parts, and ends so, too."""
    parts, inner = _events(outer), _events(absent)
    return [
        absent.with_edges(
            [
                *(Edge(begin(i), begin(first), at_most(0), "-") for i in inner),
                *(Edge(end(last), end(i), at_most(0), "-") for i in inner),
            ]
        )
        for first in parts
        for last in parts
    ]


def _detected(case: Case, name: str) -> list[Case]:
    """An instance covers its parts, and begins with one of them and ends with one.

    Of very many parts it is not told which.
    """
    parts = _events(case)
    covering = _merged(case, name, parts)
    closure = close(case.edges)
    if closure is None:
        return []
    firsts = [p for p in parts if not any(_is_before(begin(q), begin(p), closure) for q in parts)]
    lasts = [p for p in parts if not any(_is_before(end(p), end(q), closure) for q in parts)]
    if len(firsts) * len(lasts) > MOST_ENDS:
        return [covering]
    return [
        covering.with_edges((Edge(begin(name), begin(first), at_most(0)), Edge(end(last), end(name), at_most(0))))
        for first in firsts
        for last in lasts
    ]


def _is_before(stamp: str, other: str, closure: Closure) -> bool:
    """Whether a stamp surely lies before another."""
    distance = closure.distance(other, stamp)
    return distance is not None and (distance.bound < 0 or (distance.bound == 0 and distance.is_strict))


# ---- combining cases ---------------------------------------------------------------------------------------


def _both(a: Case, b: Case) -> Case:
    return Case(
        (*a.edges, *b.edges),
        (*a.uses, *b.uses),
        (*a.arrivals, *b.arrivals),
        (*a.absent, *b.absent),
        a.is_hull or b.is_hull,
    )


def _joined(left: Sequence[Case], right: Sequence[Case], condition: Formula, because: str) -> list[Case]:
    tests = alternatives(condition, because)
    return [_both(a, b).with_edges(test) for a in left for b in right for test in tests]


def _until(case: Case, condition: Formula, inner: Sequence[Case]) -> Case:
    """What lies in a window is decided when the window ends, even if its event was known before."""
    own = {stamp for other in inner for use in other.uses for stamp in use.stamps if is_end(stamp)}
    parts = condition.parts if isinstance(condition, Every) else (condition,)
    ends = [
        p.earlier
        for p in parts
        if isinstance(p, Distance) and p.later in own and is_end(p.earlier) and p.earlier not in own
    ]
    return replace(case, arrivals=tuple(dict.fromkeys((*case.arrivals, *ends))))


def alternatives(f: Formula, because: str = "") -> list[tuple[Edge, ...]]:
    """A formula as cases of distances; what it says about data says nothing about time."""
    match f:
        case Distance(later, earlier, limit, is_strict):
            weight = strict(limit) if is_strict else at_most(limit)
            return [(Edge(earlier, later, weight, because),)]
        case SameEvent(left, right, True):
            same = (*_moved(begin(left), begin(right), 0, because), *_moved(end(left), end(right), 0, because))
            return [tuple(edge._replace(weight=at_most(edge.weight.bound)) for edge in same)]
        case Every(parts):
            found: list[tuple[Edge, ...]] = [()]
            for part in parts:
                found = [(*one, *more) for one in found for more in alternatives(part, because)]
                if len(found) > MOST_CASES:
                    found = [_common(found)]
            return found
        case Some(parts):
            return list(dict.fromkeys(one for part in parts for one in alternatives(part, because)))
        case _:
            return [()]


def _common(found: Sequence[tuple[Edge, ...]]) -> tuple[Edge, ...]:
    """The edges that all alternatives have."""
    return tuple(edge for edge in found[0] if all(edge in other for other in found[1:]))


def _limited(cases: list[Case]) -> list[Case]:
    """The cases, or where there are too many, one for all those that have the same inputs."""
    if len(cases) <= MOST_CASES:
        return cases
    return _merged_cases(cases)


def _merged_cases(cases: list[Case]) -> list[Case]:
    """One case for all those that have the same inputs."""
    groups: dict[tuple[Use, ...], list[tuple[Case, Closure]]] = {}
    for case in cases:
        closure = close(case.edges)
        if closure is not None:
            groups.setdefault(case.uses, []).append((case, closure))
    return [_hull(members) for members in groups.values()]


def _hull(members: Sequence[tuple[Case, Closure]]) -> Case:
    first, closure = members[0]
    edges: list[Edge] = []
    for i, row in closure.table.items():
        for j in row:
            distances = [c.distance(i, j) for _, c in members]
            known = [d for d in distances if d is not None]
            if len(known) == len(distances):
                edges.append(Edge(i, j, max(known), "one of several cases"))
    absent = tuple(dict.fromkeys(a for case, _ in members for a in case.absent))
    arrivals = tuple(dict.fromkeys(a for case, _ in members for a in case.arrivals))
    return replace(first, edges=tuple(edges), arrivals=arrivals, absent=absent, is_hull=True)


# ---- timers and merges -------------------------------------------------------------------------------------


def _moved(stamp: str, other: str, by: int, because: str = "", least: int | None = None) -> tuple[Edge, Edge]:
    """`other` is `stamp` moved by so much, or by anything between that and another, guaranteed."""
    between = (by, by if least is None else least)
    return (
        Edge(stamp, other, at_most(max(between), guaranteed=True), because),
        Edge(other, stamp, at_most(-min(between), guaranteed=True), because),
    )


def _lasting(e: Calendar) -> tuple[Edge, Edge]:
    """From the begin of an absolute timer to its end."""
    because = "an absolute timer is a point"
    if e.longest:
        because = f"{e.name}: {format_pattern(e.pattern)}"
    return (
        Edge(begin(e.name), end(e.name), at_most(e.longest, guaranteed=True), because),
        Edge(end(e.name), begin(e.name), at_most(-e.shortest, guaranteed=True), because),
    )


def _timer(name: str, kind: str, anchor: str, length: int, *, is_told: bool) -> tuple[Edge, ...]:
    """How a timer lies to its anchor; one of which the length is told is at most so long."""
    because = f"{name}: {kind}({anchor}, {'at most ' if is_told else ''}{describe(length)})"
    (first, before), (last, after) = offsets(kind, anchor, length)
    least = 0 if is_told else 1
    return (
        *_moved(first, begin(name), before, because, least * before),
        *_moved(last, end(name), after, because, least * after),
    )


def _timed(case: Case, name: str, edges: Iterable[Edge]) -> Case:
    return replace(case.with_edges(edges), arrivals=(*case.arrivals, end(name)))


def _merged(case: Case, name: str, events: Sequence[str]) -> Case:
    """An interval that covers others: no longer than from any begin to any end (R§4.5)."""
    edges = [Edge(begin(e), begin(name), ZERO) for e in events]
    edges += [Edge(end(name), end(e), ZERO) for e in events]
    edges.append(Edge(end(name), begin(name), ZERO))
    closure = close(case.edges)
    if closure is None:
        return case.with_edges(edges)
    lengths = [closure.distance(begin(a), end(b)) for a in events for b in events]
    known = [w for w in lengths if w is not None]
    if len(known) == len(lengths):
        longest: Weight = max(known)
        edges.append(Edge(begin(name), end(name), longest, PARTS))
    return case.with_edges(edges)
