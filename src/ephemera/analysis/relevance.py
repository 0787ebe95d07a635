"""This module derives temporal relevance: for each input of each point how long its tuples can matter (R§4, R§5.2).

The relevance time of a stamp is the longest of the shortest paths from it to a stamp at which something arrives that
the point waits for. A stamp covers another if its condition and what the input guarantees imply that of the other;
covered ones are left out of the minimal condition. Over several cases times and guarantees are the maxima.

That a tuple has arrived itself is over once it is stored. So it is stored while one of the others can still arrive, and
each of these can as long as all stamps of the tuple allow it (`partners`): where there is one other event, this is
exact, as shortest paths that meet at both ends always have a solution between them.

Some events matter at no time: what the point asks of all its inputs together, with how long these may last, leaves a
range for how long each of them lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Stamp, begin, end, event_of, is_end
from ephemera.algebra.nodes import Detection, Plan
from ephemera.algebra.parts import accumulates
from ephemera.analysis.cases import Case, Use
from ephemera.analysis.distances import Closure, Edge, close
from ephemera.analysis.knowledge import Described, describe_plan
from ephemera.analysis.nodes import ANY_LENGTH, Bound, Facts, Length, Relevance
from ephemera.analysis.weights import ZERO, Weight
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find, walk


def derive(plan: Plan) -> Facts:
    """The facts about a plan, as engines use them."""
    described = describe_plan(plan)
    found: list[Relevance] = []
    idle: list[tuple[str, str]] = []
    for name, point in plan.points.items():
        if point.kind in ("rule", "join"):
            cases = described.cases.get(name, [])
            waits = any(map(accumulates, walk(point.expression)))
            inputs = [
                x for case, closure in cases for x in contexts(_until_it_happens(case) if waits else case, closure)
            ]
            inputs += [x for d in find(point.expression, Detection) for x in _rivals(d, described, cases)]
            found += _conditions(name, inputs)
            relevant = {x.use.name for x in inputs}
            idle += [(name, n) for n in _absent(c for c, _ in cases) if n not in relevant]
    return Facts(
        known=described.known,
        cases=described.cases,
        relevance=tuple(found),
        never={
            name: described.contradictions.get(name, ())
            for name, point in plan.points.items()
            if point.kind == "rule" and described.known[name] is None
        },
        idle=tuple(idle),
        hulls=tuple(n for n, cases in described.cases.items() if any(c.is_hull for c, _ in cases)),
    )


# ---- contexts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """An input in one case: the distances that hold there, and the stamps at which something arrives."""

    use: Use
    closure: Closure
    arrivals: tuple[Stamp, ...]
    negated: bool


def contexts(
    case: Case, closure: Closure, outer: tuple[Stamp, ...] = (), *, negated: bool = False
) -> Iterator[Context]:
    """The inputs of a case, and of what must be absent in it, each with the distances of all around it."""
    arrivals = (*outer, *case.arrivals)
    for use in case.uses:
        yield Context(use, closure, arrivals, negated)
    for absent in case.absent:
        inside = close((*closure.edges, *absent.edges))
        if inside is not None:
            yield from contexts(absent, inside, arrivals, negated=True)


def _until_it_happens(case: Case) -> Case:
    """Windows are looked into when a tuple has happened, even if all its events were known before."""
    ends = (end(event_of(stamp)) for use in case.uses for stamp in use.arrivals if not is_end(stamp))
    return replace(case, arrivals=tuple(dict.fromkeys((*case.arrivals, *ends))))


MOST_PARTNERS = 4
"""Of more events than these that a tuple may wait for it is not told which it is."""
ANSWER = Stamp("$answer")


def _rivals(detection: Detection, described: Described, cases: Sequence[tuple[Case, Closure]]) -> Iterator[Context]:
    """The primitives of a restricted expression, whatever the rule asks of its instances.

    An instance that the rule rejects may still be the one that is picked instead of another. So its parts matter as
    long as those of any instance would: no longer than an instance that the rule accepts may last, since what begins
    later is picked, and until the answers that such an instance takes part in.
    """
    if not detection.restricted or not cases or described.describer is None:
        return
    begins, ends = begin(detection.name), end(detection.name)
    longest = _most([closure.distance(begins, ends) for _, closure in cases])
    limit = [] if longest is None else [Edge(begins, ends, longest)]
    waits = waiting_time(cases, ends)
    answer = [] if waits is None else [Edge(ends, ANSWER, waits)]
    for case in described.describer.instances(detection):
        rival = replace(case.with_edges((*limit, *answer)), arrivals=(*case.arrivals, ANSWER))
        closure = close(rival.edges)
        if closure is not None:
            yield from contexts(rival, closure)


def waiting_time(cases: Sequence[tuple[Case, Closure]], stamp: Stamp) -> Weight | None:
    """How long after a stamp something may arrive that a tuple waits for, in any of its cases; None is any time."""
    return _most([ZERO, *(closure.distance(stamp, a) for case, closure in cases for a in case.arrivals)])


def _most(weights: Sequence[Weight | None]) -> Weight | None:
    known = [w for w in weights if w is not None]
    return max(known) if len(known) == len(weights) else None


def _absent(cases: Iterable[Case]) -> list[str]:
    """The names of all inputs that are asked to be absent."""
    found: dict[str, None] = {}
    for case in cases:
        for absent in case.absent:
            found |= dict.fromkeys(use.name for use in absent.uses)
            found |= dict.fromkeys(_absent([absent]))
    return list(found)


# ---- conditions --------------------------------------------------------------------------------------------


def _conditions(point: str, inputs: Sequence[Context]) -> Iterator[Relevance]:
    by_use: dict[Use, list[Context]] = {}
    for context in inputs:
        by_use.setdefault(context.use, []).append(context)
    for use, found in by_use.items():
        bounds = tuple(_bound(stamp, found) for stamp in use.stamps)
        yield Relevance(
            point=point,
            input=use.point,
            name=use.name,
            negated=all(x.negated for x in found),
            keep_while=bounds,
            minimal=_minimal(bounds, found),
            partners=_partners(bounds, use, found),
            length=_length(use, found),
        )


def _partners(bounds: Sequence[Bound], use: Use, found: Sequence[Context]) -> tuple[tuple[Bound, ...], ...]:
    """How long each of the others may take; where these are many, how long any of them may."""
    chosen: list[tuple[Bound, ...]] = []
    for context in found:
        for arrival in dict.fromkeys(context.arrivals):
            if arrival in use.arrivals:
                continue
            distances = [Bound(stamp, context.closure.distance(stamp, arrival)) for stamp in use.stamps]
            one = _minimal(distances, [context])
            if not any(_allows(other, one) for other in chosen):
                chosen = [other for other in chosen if not _allows(one, other)] + [one]
                if len(chosen) > MOST_PARTNERS:
                    return (_minimal(bounds, found),)
    return tuple(chosen)


def _allows(some: Sequence[Bound], others: Sequence[Bound]) -> bool:
    """Whether the first bounds hold wherever the others do."""
    times = {bound.stamp: bound.time for bound in others}
    return all(
        (own := bound.time) is None or ((time := times.get(bound.stamp)) is not None and time[:2] <= own[:2])
        for bound in some
    )


def _length(use: Use, found: Sequence[Context]) -> Length:
    """How long an event may last if it is to matter, as far as that is not guaranteed anyway."""
    if len(use.stamps) != 2:
        return ANY_LENGTH
    begins, ends = use.stamps
    shortest, longest = (_asked(i, j, found) for i, j in ((ends, begins), (begins, ends)))
    return Length(0 if shortest is None else -shortest, longest)


def _asked(start: Stamp, stop: Stamp, found: Sequence[Context]) -> int | None:
    """How far one stamp may lie behind another, if that is less than what is guaranteed; None if it is not."""
    asked = _most([context.closure.distance(start, stop) for context in found])
    sure = _most([context.closure.guaranteed(start, stop) for context in found])
    if asked is None or (sure is not None and sure[:2] <= asked[:2]):
        return None
    return asked.bound - asked.is_strict


def _bound(stamp: Stamp, found: Sequence[Context]) -> Bound:
    """The relevance time of a stamp: how far what arrives last may lie behind it, in the case where that is most."""
    longest, where, goal = ZERO, found[0], stamp
    for context in found:
        for arrival in context.arrivals:
            distance = context.closure.distance(stamp, arrival)
            if distance is None:
                return Bound(stamp, None)
            # Of equal distances that to another event is the one to tell.
            is_other = arrival not in context.use.stamps and goal in where.use.stamps
            if distance[:2] > longest[:2] or (distance.says_the_same(longest) and is_other):
                longest, where, goal = distance, context, arrival
    return Bound(stamp, longest, tuple(where.closure.path(stamp, goal)))


def _minimal(bounds: Sequence[Bound], found: Sequence[Context]) -> tuple[Bound, ...]:
    """The bounds without those that another one covers (R§5.3)."""
    chosen: list[Bound] = []
    for bound in bounds:
        if bound.time is not None and not any(_covers(other, bound, found) for other in chosen):
            chosen = [other for other in chosen if not _covers(bound, other, found)] + [bound]
    return tuple(chosen)


def _covers(bound: Bound, other: Bound, found: Sequence[Context]) -> bool:
    """Whether one bound, with what the input guarantees, implies another."""
    if bound.time is None or other.time is None:
        return False
    distances: list[Weight] = []
    for context in found:
        distance = context.closure.guaranteed(other.stamp, bound.stamp)
        if distance is None:
            return False
        distances.append(distance)
    return max(distances).plus(bound.time).says_the_same(other.time)
