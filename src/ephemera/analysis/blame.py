"""This module says why something would be kept forever, and what would bound it: the shortest missing conditions.

An input is unbounded if from none of its stamps everything that arrives can be reached. A condition `{x, y} within …`
and a declared length each add edges; the fewest that make all arrivals reachable are what is missing. How long they
are is for the author to say, so only reachability matters here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ephemera.algebra.nodes import Plan
from ephemera.algebra.queries import EVENT
from ephemera.algebra.scalar import begin, end
from ephemera.analysis.nodes import Facts, Relevance
from ephemera.analysis.relevance import Context, contexts

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
    name: str


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
            inputs = (x for case, closure in facts.cases[relevance.point] for x in contexts(case, closure))
            context = next(x for x in inputs if x.use.name == relevance.name and _missing(x, ()))
            endless = dict(_endless(facts.of(relevance.point), plan, facts)) if len(found) < MOST_TRIED else {}
            cures = tuple(_cures(context, endless)) if len(found) < MOST_TRIED else ()
            found.append(Blame(relevance, _missing(context, ())[0].rpartition(".")[0], cures))
    return found


def _missing(context: Context, cures: Sequence[Cure]) -> list[str]:
    """The arrivals that may lie any time after the input, seen from its best stamp."""
    more = [edge for cure in cures for edge in _edges(cure)]
    return min((_unreachable(context, stamp, more) for stamp in context.use.stamps), key=len)


def _unreachable(context: Context, start: str, more: Iterable[tuple[str, str]]) -> list[str]:
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
    names = cure.events if isinstance(cure, Within) else (cure.name,)
    for a in names:
        for b in names:
            yield begin(a), end(b)


# ---- what would help ---------------------------------------------------------------------------------------


def _cures(context: Context, endless: Mapping[str, str]) -> Iterator[tuple[Cure, ...]]:
    """The fewest conditions that would do, the fewest declarations, and if neither helps alone, the fewest of both."""
    events = _nameable(context)
    own = context.use.name
    if len(events) > MOST_EVENTS:
        events = [own, *(e for e in events if e != own)][: MOST_EVENTS * 4]
    pairs = sorted(combinations(events, 2), key=lambda pair: (sum(map(_is_ours, pair)), own not in pair))
    conditions: list[Cure] = [Within((name,)) for name in events if not _is_ours(name)]
    conditions += [Within(pair) for pair in pairs if len(events) <= MOST_EVENTS or own in pair]
    lengths: list[Cure] = [Lasts(label, name) for name, label in endless.items()]
    found = [cure for kind in (conditions, lengths) if (cure := _fewest(context, kind)) is not None]
    if not found and (both := _fewest(context, [*conditions, *lengths])) is not None:
        found = [both]
    yield from found


def _fewest(context: Context, cures: Sequence[Cure]) -> tuple[Cure, ...] | None:
    """One that does alone, else those that reach most, one after the other."""
    chosen: tuple[Cure, ...] = ()
    missing = len(_missing(context, chosen))
    while missing and len(chosen) < MOST_CURES:
        left = [(len(_missing(context, (*chosen, cure))), k) for k, cure in enumerate(cures)]
        fewest, best = min(left, default=(missing, 0))
        if fewest >= missing:
            return None
        chosen, missing = (*chosen, cures[best]), fewest
    return None if missing else chosen


def _nameable(context: Context) -> list[str]:
    """The events of the case that a condition can speak of, or could if they had a name; those with one come first."""
    stamps = (*context.arrivals, *context.closure.table)
    names = dict.fromkeys(stamp.rpartition(".")[0] for stamp in stamps if not stamp.startswith("@"))
    hidden = {EVENT, context.use.name if context.negated and _is_ours(context.use.name) else EVENT}
    return sorted((n for n in names if "/" not in n and n not in hidden), key=_is_ours)


def _is_ours(name: str) -> bool:
    return name.startswith("$")


def _endless(inputs: Iterable[Relevance], plan: Plan, facts: Facts) -> Iterator[tuple[str, str]]:
    """The inputs that come from outside and may last any time, with their labels."""
    for relevance in inputs:
        point, known = plan.points.get(relevance.input), facts.known.get(relevance.input)
        if point is None or known is None or point.label is None or point.label in plan.catalogue.derived:
            continue
        if not any((e.start, e.end) == (begin(EVENT), end(EVENT)) for e in known.edges):
            yield relevance.name, point.label
