"""This module says why something would be kept forever, and what would bound it: the shortest missing conditions.

An input is unbounded if from none of its stamps everything that arrives can be reached. A condition `{x, y} within …`
and a declared length each add edges; the fewest that make all arrivals reachable are what is missing. How long they
are is for the author to say, so only reachability matters here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from ephemera.algebra.attributes import EVENT, Stamp, begin, end, event_of, expression_of, is_stamp, is_unnamed
from ephemera.algebra.nodes import AntiSemiJoin, Cross, Expression, Join, Plan, Rename, SemiJoin
from ephemera.algebra.scalar import TRUE
from ephemera.analysis.nodes import Facts, Relevance
from ephemera.analysis.relevance import Context, contexts
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find

MOST_TRIED = 40
"""For how many inputs of a program a cure is looked for; a program with more has a cause that the first ones show."""
MOST_CURES = 4
"""More conditions than these are no help."""
MOST_EVENTS = 12
"""In a rule of more events only conditions on the input itself are tried."""


@dataclass(frozen=True, slots=True)
class Within:
    """Add `{x, y} within …` (or `{x} within …`)."""

    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lasts:
    """Declare how long events of a type last."""

    label: str
    names: tuple[str, ...]
    """What the rule calls the inputs of that type."""


Cure = Within | Lasts


@dataclass(frozen=True, slots=True)
class Blame:
    """An input that is kept forever: the event that may come any time later (itself, if it may last any time)."""

    relevance: Relevance
    late: str
    cures: tuple[tuple[Cure, ...], ...]
    """Sets of conditions and declarations, each of which would do."""


def blame(plan: Plan, facts: Facts) -> list[Blame]:
    """Everything that is kept forever."""
    found: list[Blame] = []
    for relevance in facts.relevance:
        if not relevance.is_bounded:
            every = (x for case, closure in facts.cases[relevance.point] for x in contexts(case, closure))
            inputs = [x for x in every if x.use.name == relevance.name and _missing([x], ())]
            if not inputs:  # only as the rival of another instance
                found.append(Blame(relevance, relevance.name, ()))
                continue
            point = plan.points[relevance.point]
            cures: tuple[tuple[Cure, ...], ...] = ()
            if len(found) < MOST_TRIED:
                endless = dict(_endless(facts.of(relevance.point), plan, facts))
                cures = tuple(_cures(inputs, endless, _accumulated(point.expression)))
            found.append(Blame(relevance, event_of(_missing(inputs[:1], ())[0]), cures))
    return found


def _accumulated(e: Expression) -> frozenset[str]:
    """The events of windows, of which conditions outside cannot speak."""
    joins: list[Join | Cross | SemiJoin | AntiSemiJoin] = [*find(e, Join), *find(e, Cross)]
    joins += [*find(e, SemiJoin), *find(e, AntiSemiJoin)]
    rights = [j.right for j in joins if j.condition != TRUE]
    return frozenset(new for right in rights for use in find(right, Rename) for _, new in use.events)


def _missing(inputs: Sequence[Context], cures: Sequence[Cure]) -> list[Stamp]:
    """The arrivals that may lie any time after the input in some case, seen from its best stamp."""
    more = [edge for cure in cures for edge in _edges(cure)]
    return [
        arrival
        for context in inputs
        for arrival in min((_unreachable(context, stamp, more) for stamp in context.use.stamps), key=len)
    ]


def _unreachable(context: Context, start: str, more: Iterable[tuple[str, str]]) -> list[Stamp]:
    """The arrivals that lie any time after a stamp."""
    steps: dict[str, list[str]] = {}
    for i, j in more:
        steps.setdefault(i, []).append(j)
    reached = {start, *context.closure.table.get(start, {})}
    waiting = list(reached)
    while waiting:
        for other in steps.get(waiting.pop(), ()):
            new = {other, *context.closure.table.get(other, {})} - reached
            reached |= new
            waiting += new
    return [a for a in context.arrivals if a not in reached]


def _edges(cure: Cure) -> Iterator[tuple[str, str]]:
    if isinstance(cure, Lasts):
        yield from ((begin(name), end(name)) for name in cure.names)
    else:
        yield from ((begin(a), end(b)) for a in cure.events for b in cure.events)


# ---- what would help ---------------------------------------------------------------------------------------


def _cures(inputs: Sequence[Context], endless: Mapping[str, str], hidden: frozenset[str]) -> Iterator[tuple[Cure, ...]]:
    """The fewest conditions that would do, the fewest declarations, and if neither helps alone, the fewest of both."""
    own = inputs[0].use.name
    events = [name for name in _nameable(inputs) if name not in hidden]
    few = events if len(events) <= MOST_EVENTS else [own, *(e for e in events if e != own)][: MOST_EVENTS * 4]
    pairs = sorted(combinations(few, 2), key=lambda pair: (sum(map(_is_ours, pair)), own not in pair))
    conditions: list[Cure] = [Within((name,)) for name in events if not _is_ours(name)]
    conditions += [Within(pair) for pair in pairs if len(events) <= MOST_EVENTS or own in pair]
    conditions += [Within(tuple(events))] if len(events) > 2 else []
    labels: dict[str, list[str]] = {}
    for name, label in endless.items():
        labels.setdefault(label, []).append(name)
    lengths: list[Cure] = [Lasts(label, tuple(names)) for label, names in labels.items()]
    found = [cure for kind in (conditions, lengths) if (cure := _fewest(inputs, kind)) is not None]
    if not found and (both := _fewest(inputs, [*conditions, *lengths])) is not None:
        found = [both]
    yield from found


def _fewest(inputs: Sequence[Context], cures: Sequence[Cure]) -> tuple[Cure, ...] | None:
    """One that does alone, else those that reach most, one after the other."""
    chosen: tuple[Cure, ...] = ()
    missing = len(_missing(inputs, chosen))
    while missing and len(chosen) < MOST_CURES:
        left = [(len(_missing(inputs, (*chosen, cure))), k) for k, cure in enumerate(cures)]
        fewest, best = min(left, default=(missing, 0))
        if fewest >= missing:
            return None
        chosen, missing = (*chosen, cures[best]), fewest
    return None if missing else chosen


def _nameable(inputs: Sequence[Context]) -> list[str]:
    """The events of the cases that a condition can speak of, or could if they had a name; those with one come first."""
    stamps = dict.fromkeys(s for context in inputs for s in (*context.arrivals, *context.closure.table))
    names = dict.fromkeys(event_of(stamp) for stamp in stamps if is_stamp(stamp))
    return sorted((n for n in names if n and expression_of(n) is None and n != EVENT), key=_is_ours)


def _is_ours(name: str) -> bool:
    return is_unnamed(name)


def _endless(inputs: Iterable[Relevance], plan: Plan, facts: Facts) -> Iterator[tuple[str, str]]:
    """The inputs that come from outside and may last any time, with their labels."""
    for relevance in inputs:
        point, known = plan.points.get(relevance.input), facts.known.get(relevance.input)
        if point is None or known is None or point.label is None or point.label in plan.catalogue.derived:
            continue
        if not any((e.start, e.end) == (begin(EVENT), end(EVENT)) for e in known.edges):
            yield relevance.name, point.label
