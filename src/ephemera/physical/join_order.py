"""This module decides in which order a rule's events are joined, and by what each is searched.

From whichever event is new, the others follow in the order that is expected to look at the fewest candidates, by how
many come of each (`analysis/join_estimates`); of two there is but one order. Each is searched by the variables that it
shares with what is known, and by equations of which both sides can be computed; else by one that was solved
(`key_equations`); and within a range of time. The range of a stamp follows from all distances of the rule, not only
from the conditions that name it (the closure of its temporal distance graph). What keys and ranges see to is not tested
again. Joins carry only the columns that are still needed, where the head shows variables and constants: any other head
may have no value, and then says all that was bound. So does an answer whose timer ends too late to be one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Stamp, begin, end, event_of, is_reference, is_stamp, occurrence, reference
from ephemera.algebra.nodes import Gap, Group, Imbed, RelativeTimer
from ephemera.algebra.scalar import (
    Distance,
    Every,
    Formula,
    Holds,
    InsideCalendar,
    LimitedDistance,
    Matches,
    SameEvent,
    Some,
)
from ephemera.analysis.join_estimates import JoinEstimates
from ephemera.analysis.nodes import Facts
from ephemera.analysis.weights import Weight
from ephemera.base.tree import find, walk
from ephemera.physical.key_equations import equations
from ephemera.physical.nodes import KeyEquation, Leaf, Order, Probe, Range, Test
from ephemera.rules.scope import event_names, variable_names
from ephemera.syntax.nodes import Comparison, Derive
from ephemera.terms.nodes import Bool, Name, Number, Text, Var

SIDES = (begin, end, reference, occurrence)
MANY = 6
"""Of more leaves it is not asked what their ranges see to."""


def split(
    tests: Sequence[Test], leaves: Sequence[Leaf], tables: frozenset[str]
) -> tuple[tuple[Test, ...], tuple[Formula, ...]]:
    """What can be tested on events alone, and what cannot; `tables` are the variables of tables."""
    known = _attributes(leaves)
    is_early = [t.needs <= known and t.computes.isdisjoint(tables) for t in tests]
    early = tuple(t for t, now in zip(tests, is_early, strict=True) if now)
    return early, tuple(t.condition for t, now in zip(tests, is_early, strict=True) if not now)


def orders(  # noqa: PLR0913, PLR0917 - what is joined, and what is known of it
    leaves: Sequence[Leaf],
    point: str,
    facts: Facts,
    tests: Sequence[Test],
    final: frozenset[str] | None,
    sequences: Sequence[Sequence[int]],
) -> tuple[Order, ...]:
    """For each leaf how the others follow, in which sequence; `final` is what is needed in the end."""
    distances = _Distances(point, facts)
    return tuple(_from(first, sequences[first], leaves, distances, tests, final) for first in range(len(leaves)))


def sequences_of(estimates: JoinEstimates) -> tuple[tuple[int, ...], ...]:
    """For each leaf the sequence of the others that is expected to cost least."""
    count = len(estimates.parts)
    if count < 3:
        return tuple(tuple(k for k in range(count) if k != first) for first in range(count))
    return tuple(estimates.order(first).parts for first in range(count))


def _from(  # noqa: PLR0913, PLR0917 - which leaf, what follows, and what is known of them
    first: int,
    sequence: Sequence[int],
    leaves: Sequence[Leaf],
    distances: _Distances,
    tests: Sequence[Test],
    final: frozenset[str] | None,
) -> Order:
    known = [leaves[first]]
    left = [k for k in range(len(leaves)) if k != first]
    granted = _Granted(distances)
    granted.add_leaf(leaves[first])
    waiting = list(tests)
    at_first = _now(waiting, known, [leaves[k] for k in left], granted)
    probes: list[Probe] = []
    for k in sequence:
        best = _probe(k, leaves, left, known, distances, waiting)
        leaf = leaves[best.leaf]
        left.remove(best.leaf)
        if len(leaves) <= MANY:
            best = replace(best, ranges=granted.needed(best.ranges))
            granted.add_leaf(leaf)
            granted.add_ranges(best)
        granted.keys = _settled(best, leaves, left, known, waiting)
        known.append(leaf)
        probes.append(replace(best, tests=_now(waiting, known, [leaves[k] for k in left], granted)))
    kept = _along(probes, leaves, final)
    if final is not None:
        kept[0] = (kept[0] or frozenset()).union(*(columns_of(f) for f in at_first))
    carried = tuple(replace(probe, kept=names) for probe, names in zip(probes, kept[1:], strict=True))
    return Order(at_first, kept[0], carried)


def _attributes(leaves: Sequence[Leaf]) -> frozenset[str]:
    stamps = (side(leaf.name) for leaf in leaves for side in SIDES)
    return frozenset(stamps).union(*(leaf.variables | frozenset(leaf.stored) for leaf in leaves))


def _now(waiting: list[Test], known: Sequence[Leaf], left: Sequence[Leaf], granted: _Granted) -> tuple[Formula, ...]:
    """What can be tested now, without what is granted; it does not wait any more."""
    due = _due(waiting, known, left)
    waiting[:] = [test for test in waiting if test not in due]
    found: list[Formula] = []
    for test in due:
        f = test.condition
        parts = tuple(p for p in (f.parts if isinstance(f, Every) else (f,)) if not granted.implies(p))
        if parts:
            found.append(parts[0] if len(parts) == 1 else Every(parts))
    return tuple(found)


def _due(waiting: Sequence[Test], known: Sequence[Leaf], left: Sequence[Leaf]) -> list[Test]:
    """What can be tested once some leaves are known.

    What computes with a variable waits for all leaves that have it: where 1 and 1.0 meet, the sum is that of 1.
    """
    here = _attributes(known)
    to_come = frozenset[str]().union(*(leaf.variables for leaf in left))
    return [test for test in waiting if test.needs <= here and test.computes.isdisjoint(to_come)]


class _Granted:
    """What holds for tuples that were found: how far one stamp lies behind another at most, and what is a key."""

    def __init__(self, distances: _Distances) -> None:
        self._distances = distances
        self.keys: frozenset[str] = frozenset()
        """The conditions that the last search saw to by its keys, spelled out: 1 and 1.0 are equal, not the same."""
        self._stamps: list[str] = []
        self._most: dict[tuple[str, str], int] = {}

    def add_leaf(self, leaf: Leaf) -> None:
        self._stamps += leaf.stamps
        for opens, closes in zip(leaf.stamps[::2], leaf.stamps[1::2], strict=True):
            self._add(opens, closes, 0)
            if leaf.longest is not None:
                self._add(closes, opens, leaf.longest)
        for later in leaf.stored:
            for earlier in leaf.stored:
                most = self._distances.guaranteed(earlier, later)
                if later != earlier and most is not None:
                    self._add(later, earlier, most)

    def add_ranges(self, probe: Probe) -> None:
        for r in probe.ranges:
            if r.latest is not None:
                self._add(probe.stamp, r.known, r.latest)
            if r.earliest is not None:
                self._add(r.known, probe.stamp, r.earliest)
        for middle in self._stamps:
            for later in self._stamps:
                one = self.most(later, middle)
                if one is None:
                    continue
                for earlier in self._stamps:
                    other = self.most(middle, earlier)
                    if other is not None:
                        self._add(later, earlier, one + other)

    def _add(self, later: str, earlier: str, limit: int) -> None:
        before = self._most.get((later, earlier))
        self._most[later, earlier] = limit if before is None else min(before, limit)

    def most(self, later: str, earlier: str) -> int | None:
        return 0 if later == earlier else self._most.get((later, earlier))

    def implies(self, f: Formula) -> bool:
        """Whether a condition is a key, or a distance that holds anyway."""
        if not isinstance(f, Distance):
            return bool(self.keys) and repr(f) in self.keys
        most = self.most(f.later, f.earlier)
        return most is not None and most <= f.limit - f.strict

    def needed(self, ranges: Sequence[Range]) -> tuple[Range, ...]:
        """The ends of ranges that do not follow from those of other ranges."""
        after = {r.known: r.latest for r in ranges if r.latest is not None}
        before = {r.known: r.earliest for r in ranges if r.earliest is not None}
        for stamp in list(after):
            ways = ((limit, self.most(other, stamp)) for other, limit in after.items() if other != stamp)
            if any(way is not None and limit + way <= after[stamp] for limit, way in ways):
                del after[stamp]
        for stamp in list(before):
            ways = ((limit, self.most(stamp, other)) for other, limit in before.items() if other != stamp)
            if any(way is not None and limit + way <= before[stamp] for limit, way in ways):
                del before[stamp]
        found = (Range(r.known, before.get(r.known), after.get(r.known)) for r in ranges)
        return tuple(r for r in found if r.earliest is not None or r.latest is not None)


def _probe(  # noqa: PLR0913, PLR0917 - which leaf, what is known, and what is to come
    k: int,
    leaves: Sequence[Leaf],
    left: Sequence[int],
    known: Sequence[Leaf],
    distances: _Distances,
    waiting: Sequence[Test],
) -> Probe:
    leaf = leaves[k]
    keys = tuple(sorted(leaf.sure & frozenset[str]().union(*(other.sure for other in known))))
    stamps = [stamp for other in known for stamp in other.stamps]
    computed = tuple(one for one, _ in _equations(k, leaves, left, known, waiting))
    exact = tuple(one for one in computed if not one.is_solved)
    chosen = exact if keys or exact else computed[:1]
    sides = reversed(leaf.stamps)
    found = [Probe(k, keys, stamp, distances.ranges(stamp, stamps), equations=chosen) for stamp in sides]
    return max(found, key=lambda p: (_tightness(p), -_width(p)))


def _equations(
    k: int, leaves: Sequence[Leaf], left: Sequence[int], known: Sequence[Leaf], waiting: Sequence[Test]
) -> Iterator[tuple[KeyEquation, Formula]]:
    """The computed keys of a leaf that is searched next, with the conditions that they come from."""
    due = _due(waiting, [*known, leaves[k]], [leaves[other] for other in left if other != k])
    return equations((test.condition for test in due), leaves[k], known)


def _settled(
    probe: Probe, leaves: Sequence[Leaf], left: Sequence[int], known: Sequence[Leaf], waiting: Sequence[Test]
) -> frozenset[str]:
    """The conditions that hold for all that a search finds by its computed keys."""
    if not probe.equations:
        return frozenset()
    found = _equations(probe.leaf, leaves, left, known, waiting)
    return frozenset(repr(condition) for one, condition in found if not one.is_solved)


def _width(probe: Probe) -> int:
    """How long the range is at most, where it has two ends."""
    before = [r.earliest for r in probe.ranges if r.earliest is not None]
    after = [r.latest for r in probe.ranges if r.latest is not None]
    return min(before) + min(after) if before and after else 0


def _tightness(probe: Probe) -> int:
    """Whether the range has no, one or two ends."""
    return any(r.earliest is not None for r in probe.ranges) + any(r.latest is not None for r in probe.ranges)


class _Distances:
    """The distances that hold in all cases of a point."""

    def __init__(self, point: str, facts: Facts) -> None:
        self._closures = [closure for _, closure in facts.cases.get(point, ())]

    def ranges(self, stamp: str, known: Sequence[Stamp]) -> tuple[Range, ...]:
        """How a stamp lies to those that are known."""
        found = (Range(other, self._most(stamp, other), self._most(other, stamp)) for other in known)
        return tuple(r for r in found if r.earliest is not None or r.latest is not None)

    def guaranteed(self, start: str, stop: str) -> int | None:
        """How far one stamp may lie behind another in any tuple of an input, whatever the rule tests."""
        return _longest([closure.guaranteed(start, stop) for closure in self._closures])

    def _most(self, start: str, stop: str) -> int | None:
        """How far one stamp may lie behind another."""
        return _longest([closure.distance(start, stop) for closure in self._closures])


def _longest(distances: Sequence[Weight | None]) -> int | None:
    """The longest of some distances, in whole microseconds: one less if it is strict; None is any."""
    known = [d for d in distances if d is not None]
    if not known or len(known) < len(distances):
        return None
    longest = max(known)
    return longest.bound - longest.is_strict


# ---- what is needed ------------------------------------------------------------------------------------------


def needs(f: Formula) -> frozenset[str]:
    """The stamps, references and variables that a formula speaks of."""
    named: set[str] = set()
    for part in walk(f):
        match part:
            case Distance(later, earlier, _, _):
                named |= {s for s in (later, earlier) if is_stamp(s)}
            case LimitedDistance(later, earlier, limit, _):
                named |= {limit, *(s for s in (later, earlier) if is_stamp(s))}
            case SameEvent(left, right, _):
                named |= {begin(left), begin(right)}
            case Matches(event, _, known):
                named |= {reference(event), *known}
            case InsideCalendar(events, _):
                named |= {begin(e) for e in events}
            case Holds(condition):
                named |= {begin(n.name) for n in event_names(condition, frozenset())}
                named |= {n.name for n in variable_names(condition, frozenset())}
            case _:
                continue
    return frozenset(named)


def columns_of(f: Formula) -> frozenset[str]:
    """What a formula may look at; one that is not only about distances may look at all of an event."""
    named = needs(f)
    if all(isinstance(part, Distance | LimitedDistance | Every | Some) for part in walk(f)):
        return named
    events = {event_of(name) for name in named if is_stamp(name) or is_reference(name)}
    return named | {side(event) for event in events for side in SIDES}


def in_the_end(  # noqa: PLR0913
    head: Group | Imbed,
    *,
    sure: frozenset[str],
    covers: Iterable[str],
    ends: Iterable[str],
    timers: Iterable[RelativeTimer | Gap],
    variables: Iterable[str],
    conditions: Iterable[Formula],
) -> frozenset[str] | None:
    """What is needed when all positive events are joined; None is everything.

    `variables` and `conditions` are those of timers, tables, windows and absences.
    """
    if not isinstance(head, Imbed) or not isinstance(head.head, Derive):
        return None
    shown: set[str] = set()
    for argument in head.head.arguments:
        match argument:
            case Var(name) if name in sure or is_stamp(name):
                shown.add(name)
            case Number() | Text() | Bool():
                continue
            case _:
                return None
    shown |= {side(name) for name in covers for side in (begin, end)} | set(ends)
    for timer in timers:
        anchors = (timer.anchor,) if isinstance(timer, RelativeTimer) else (timer.first, timer.last)
        told = [n.name for n in find(timer.told, Name)] if isinstance(timer, RelativeTimer) and timer.told else []
        shown |= {side(name) for name in (*anchors, *told) for side in (begin, end)}
    return frozenset(shown).union(variables, *(columns_of(c) for c in conditions))


def _along(
    probes: Sequence[Probe], leaves: Sequence[Leaf], final: frozenset[str] | None
) -> list[frozenset[str] | None]:
    """What is needed after each probe, and first of all before them."""
    if final is None:
        return [None] * (len(probes) + 1)
    needed = final
    found: list[frozenset[str] | None] = []
    for probe in reversed(probes):
        kept = needed.union(*(columns_of(f) for f in probe.tests))
        found.append(kept)
        needed = kept | leaves[probe.leaf].variables | frozenset(r.known for r in probe.ranges)
        needed = needed.union(*(columns_of(Holds(Comparison("=", one.known, one.known))) for one in probe.equations))
    return [needed, *reversed(found)]
