"""This module checks whole plans: that every attribute is there, and that nothing loses track of time.

A plan that breaks a rule is our own mistake, so it raises `InternalError` with the point and what is wrong. The rules
are those that make step-wise evaluation possible (thesis 13.2, 13.3): stamps come in pairs and are only dropped where
an interval that covers them stays; what is absent lies in a window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ephemera.algebra.attributes import TERM, begin, end, event_of, is_end, is_joined, is_moment, reference
from ephemera.algebra.nodes import (
    OPERATORS,
    AntiSemiJoin,
    Cross,
    Difference,
    Expression,
    Gap,
    Group,
    Input,
    Join,
    Match,
    Merge,
    Plan,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Union,
)
from ephemera.algebra.scalar import Distance, Formula, Holds, InsideCalendar, LimitedDistance, Matches, SameEvent
from ephemera.algebra.schema import Schema, joined, schema, schemas
from ephemera.base.errors import InternalError
from ephemera.base.tree import find, walk
from ephemera.rules.scope import event_names, variable_names


def check_plan(plan: Plan, parameters: Mapping[str, Collection[str]] | None = None) -> None:
    """Raises where a plan is not sound; tests may speak of the parameters of a point, which tuples are joined with."""
    _check_order(plan)
    known = schemas(plan)
    for name, point in plan.points.items():
        more = (parameters or {}).get(name, ())
        for node in walk(point.expression):
            if isinstance(node, OPERATORS):
                for wrong in _faults(node, lambda e: schema(e, known, plan.catalogue), more):
                    raise InternalError("algebra", f"in {name}: {type(node).__name__} {wrong}")


def _check_order(plan: Plan) -> None:
    """Every point stands behind those it uses, except in a cycle."""
    seen: set[str] = set()
    loops = {name: set(cycle) for cycle in plan.cycles for name in cycle}
    for name, point in plan.points.items():
        for used in find(point.expression, Input):
            if used.point not in plan.points:
                raise InternalError("algebra", f"{name} uses {used.point}, which is not there")
            if used.point not in seen and used.point not in loops.get(name, ()):
                raise InternalError("algebra", f"{name} uses {used.point}, which comes later")
        seen.add(name)


_Schema = Callable[[Expression], Schema]


def _faults(e: Expression, of: _Schema, more: Collection[str]) -> Iterator[str]:
    """What is wrong with one operator."""
    match e:
        case Match(inner, _, _):
            if TERM not in of(inner):
                yield "has no events to match"
        case Select(inner, condition, _):
            yield from missing(condition, of(inner), more)
        case Project(inner, attributes):
            yield from (f"keeps {a}, which is not there" for a in attributes if a not in of(inner))
        case Rename(inner, events, variables):
            inside = of(inner)
            yield from (f"renames {old}, which is not there" for old, _ in events if begin(old) not in inside)
            yield from (f"renames {old}, which is not there" for old, _ in variables if old not in inside)
        case RelativeTimer(inner, name, _, anchor, length):
            yield from _timer(of(inner), name, (anchor,))
            if isinstance(length, str) and length not in more:
                yield f"lasts {length}, which is not there"
        case Gap(inner, name, first, last):
            yield from _timer(of(inner), name, (first, last))
        case Merge(inner, _, events):
            yield from (f"covers {n}, which is not there" for n in events if begin(n) not in of(inner))
            kept = {end(n) for n in events}
            in_window = {d.later for d in find(inner, Distance) if d.limit <= 0 and d.earlier in kept}
            # A stored join covers its parts, whose own ends are there.
            lost = {a for a in of(inner) if is_end(a) and not is_joined(event_of(a))} - kept - in_window
            if not events or lost:
                yield f"would forget {', '.join(sorted(lost)) or 'when'}"
        case Group(inner, by, own, _, _, _):
            inside = of(inner)
            yield from (f"groups by {a}, which is not there" for a in by if a not in inside)
            yield from (f"tells bindings apart by {a}, which is not there" for a in own if a not in inside)
            if not any(map(is_end, by)):
                yield "forgets when"
        case Join(left, right) | Cross(left, right) | SemiJoin(left, right) | AntiSemiJoin(left, right):
            yield from _join_faults(e, of(left), of(right), more)
        case Union(inputs):
            kinds = [{a for a, v in of(one).items() if v.kind == "stamp" and not v.optional} for one in inputs]
            if not frozenset.intersection(*map(frozenset, kinds)):
                yield "mixes what has no stamps in common"
        case Difference(left, right):
            lacking = {a for a, v in of(left).items() if not v.optional} - of(right).keys()
            if lacking:
                yield f"compares by {', '.join(sorted(lacking))}, which the right lacks"
        case _:
            return


def _join_faults(
    e: Join | Cross | SemiJoin | AntiSemiJoin, left: Schema, right: Schema, more: Collection[str]
) -> Iterator[str]:
    shared = sorted(left.keys() & right.keys())
    if isinstance(e, Cross) and shared:
        yield f"multiplies what shares {', '.join(shared)}"
    yield from (f"joins by {a}, which is no data" for a in shared if left[a].kind != "data")
    yield from missing(e.condition, joined(left, right), more)
    if isinstance(e, AntiSemiJoin):
        ends = {a for a in right if is_end(a)}
        closed = {d.later for d in find(e.condition, Distance) if d.earlier in left}
        yield from (f"waits forever for {a}" for a in sorted(ends - closed))


def _timer(inside: Schema, name: str, anchors: tuple[str, ...]) -> Iterator[str]:
    yield from (f"is anchored to {a}, which is not there" for a in anchors if begin(a) not in inside)
    if begin(name) in inside:
        yield f"is called {name}, as something else is"


def missing(condition: Formula, inside: Schema, more: Collection[str]) -> Iterator[str]:
    """What a formula speaks of that is not there."""
    for part in walk(condition):
        match part:
            case Distance(later, earlier, _, _):
                wanted: list[str] = [s for s in (later, earlier) if not is_moment(s)]
            case LimitedDistance(later, earlier, limit, _):
                wanted = [*(s for s in (later, earlier) if not is_moment(s)), limit]
            case SameEvent(left, right, _):
                wanted = [reference(left), reference(right)]
            case Matches(event, _, _):
                wanted = [reference(event)]
            case InsideCalendar(events, _):
                wanted = [begin(n) for n in events]
            case Holds(test):
                wanted = [begin(n.name) for n in event_names(test, frozenset())]
                wanted += [v.name for v in variable_names(test, frozenset())]
            case _:
                continue
        yield from (f"tests {a}, which is not there" for a in wanted if a not in inside and a not in more)
