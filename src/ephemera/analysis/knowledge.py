"""This module works out what is known about the stamps of each point's tuples, point by point along the plan.

A point's knowledge is the hull of its cases, guaranteed for those who use it (R§4.6). Recursive points begin with
nothing, and are described again until nothing changes; a distance that still grows after some rounds is unbounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ephemera.algebra.attributes import is_end, is_stamp
from ephemera.algebra.nodes import Base, Input, Plan, Point, Union
from ephemera.algebra.schema import schemas
from ephemera.analysis.cases import Case, Describer, Known
from ephemera.analysis.distances import Closure, Edge, close, contradiction, hull
from ephemera.analysis.weights import ZERO
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import describe
from ephemera.base.tree import find

ROUNDS = 4
"""How often a recursive point is described before what still grows is taken to grow forever."""

NARROWINGS = 2

_IN_A_TURN = ("join", "rule", "stream", "query")
"""The kinds of points in the order in which they need each other."""


@dataclass(slots=True)
class Described:
    """The points of a plan with their cases, each closed; contradictory ones are left out."""

    known: dict[str, Known | None] = field(default_factory=dict)
    cases: dict[str, list[tuple[Case, Closure]]] = field(default_factory=dict)
    describer: Describer | None = None
    contradictions: dict[str, tuple[Edge, ...]] = field(default_factory=dict)
    """For each point that holds nothing the distances that cannot be, if that is why."""


def describe_plan(plan: Plan) -> Described:
    """What is known about every point, and its cases."""
    return _Description(plan).run()


class _Description:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found = Described()
        events = plan.catalogue.events
        longest = {label: s.longest for label, s in events.items() if s.longest is not None}
        self._describer = self._found.describer = Describer(self._found.known, longest, plan.early)
        self._stamps = {name: tuple(a for a in schema if is_stamp(a)) for name, schema in schemas(plan).items()}
        self._outside: set[str] = set()
        """Streams of derived events that only come from outside: no rule ever derives one."""
        self._needs = {name: {i.point for i in find(p.expression, Input)} for name, p in plan.points.items()}

    def run(self) -> Described:
        cycles = {name: cycle for cycle in self._plan.cycles for name in cycle}
        for name, point in self._plan.points.items():
            if name in self._found.known:
                continue
            members = cycles.get(name, ())
            while True:
                if members:
                    self._iterate(members)
                else:
                    self._found.known[name] = self._describe(point)
                empty = {n for n in members or (name,) if self._is_empty_stream(n)}
                if not empty:
                    break
                self._outside |= empty
        return self._found

    def _is_empty_stream(self, name: str) -> bool:
        return self._plan.points[name].kind == "stream" and self._found.known[name] is None

    def _iterate(self, members: tuple[str, ...]) -> None:
        """A cycle: from nothing upwards, only what has changed again; what still grows is given up in the end.

        From there once more downwards: what holds for all tuples still does after another round (narrowing).
        """
        known = self._found.known
        known.update(dict.fromkeys(members))
        ordered = sorted(members, key=lambda name: (_IN_A_TURN.index(self._plan.points[name].kind), name))
        changed = set(members)
        turn = 0
        while changed:
            turn += 1
            before, changed = changed, set()
            for name in ordered:
                if turn > 1 and not self._needs[name] & (before | changed):
                    continue
                found = self._describe(self._plan.points[name])
                if turn > ROUNDS:
                    found = _widened(known[name], found)
                if not _same(known[name], found):
                    known[name] = found
                    changed.add(name)
        if turn > ROUNDS:
            for name in ordered * NARROWINGS:
                known[name] = self._describe(self._plan.points[name])

    def _describe(self, point: Point) -> Known | None:
        cases = self._cases(point)
        closed = [(c, closure) for c in cases if (closure := close(c.edges)) is not None]
        self._found.cases[point.name] = closed
        if not closed:
            cycles = (contradiction(case.edges) for case in cases)
            self._found.contradictions[point.name] = tuple(dict.fromkeys(e for cycle in cycles for e in cycle))
            return None
        stamps = self._stamps[point.name]
        edges = hull([closure for _, closure in closed], stamps)
        if point.kind == "stream" and not self._is_declared(point):
            # What comes from outside is held to the longest that rules derive, and may be shorter.
            edges = (*(e for e in edges if e.start == stamps[0]), Edge(stamps[1], stamps[0], ZERO))
        arrivals = tuple(s for s in stamps if is_end(s))
        if point.kind in ("stream", "query"):
            arrivals = tuple(dict.fromkeys(a for case, _ in closed for a in case.arrivals))
        return Known(tuple(_explained(e, point) for e in edges), stamps, arrivals)

    def _cases(self, point: Point) -> list[Case]:
        e = point.expression
        if isinstance(e, Union) and point.kind == "stream":
            return self._stream(e, point)
        return self._describer.cases(e)

    def _is_declared(self, point: Point) -> bool:
        return point.label is None or point.label in self._plan.catalogue.events

    def _stream(self, union: Union, point: Point) -> list[Case]:
        """Events from outside that rules derive, too, last as long as those do, unless they are declared."""
        with_base = self._is_declared(point) or point.name in self._outside
        inputs = [i for i in union.inputs if with_base or not isinstance(i, Base)]
        return [case for one in inputs for case in self._describer.cases(one)]


def _explained(edge: Edge, point: Point) -> Edge:
    """The edge with a reason that a reader of another rule understands."""
    if point.kind == "join" or not point.label or edge.weight.bound <= 0:
        return edge
    return edge._replace(because=f"{point.label} lasts at most {describe(edge.weight.bound)}")


def _same(a: Known | None, b: Known | None) -> bool:
    if a is None or b is None:
        return a is b
    return {e[:3] for e in a.edges} == {e[:3] for e in b.edges} and a.arrivals == b.arrivals


def _widened(before: Known | None, after: Known | None) -> Known | None:
    """What is known after another round, without the distances that have grown."""
    if before is None or after is None:
        return after
    old: Mapping[tuple[str, str], Edge] = {(e.start, e.end): e for e in before.edges}
    kept = [e for e in after.edges if (e.start, e.end) in old and e.weight <= old[e.start, e.end].weight]
    return Known(tuple(kept), after.stamps, after.arrivals)
