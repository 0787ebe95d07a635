"""This module estimates what it costs to join some parts in any order, from how many of each come (T§14.5, R§6.3).

When a tuple of one part is new, the others are searched one by one. A search finds as many candidates as come in the
range of time in which it looks, divided by how many values the keys have; what is tested then leaves a part of them.
Of two parts that follow each other only the earlier one is there already when the other is new. Costs are counted in
candidates, and in searches, of which each counts as one: they can be compared with each other, and with nothing else.

How many tuples a join has does not depend on the order in which it is made. So the best order for a new part follows
from the best orders for all sets of the others (dynamic programming), up to `EXHAUSTIVE` parts; beyond that each next
part is the one that leaves fewest tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ephemera.algebra.attributes import Stamp, is_end
from ephemera.analysis.distances import Closure
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import SECOND

EXHAUSTIVE = 8
"""So many parts are joined in the best order; of more, in a good one."""
DISTINCT = 100.0
"""How many values an attribute has of which nothing is known."""
HORIZON = 86_400.0
"""How many seconds something is kept that is kept for ever; a guess is needed to compare it with what is not."""
SEARCH = 1.0
"""What a search costs, in candidates."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Tuples that come: how many a second, and how many values their variables have, as far as that is known."""

    rate: float
    distinct: Mapping[str, float]

    def values(self, variable: str) -> float:
        """How many values a variable has."""
        return self.distinct.get(variable, DISTINCT)


@dataclass(frozen=True, slots=True)
class JoinPart:
    """What is joined: an event, or a stored join of several."""

    stamps: tuple[Stamp, ...]
    variables: frozenset[str]
    """Those by which it can meet others."""
    flow: Flow


@dataclass(frozen=True, slots=True)
class JoinTest:
    """A condition: what it needs, which part of the tuples it leaves, and whether it can be a computed key."""

    needs: frozenset[str]
    passing: float
    is_key: bool = False
    computes: frozenset[str] = frozenset()
    """The variables that it computes with; it waits for all parts that have them."""


@dataclass(frozen=True, slots=True)
class OrderEstimate:
    """How the others are searched when one part is new, and what is expected of that for each such tuple."""

    parts: tuple[int, ...]
    """In their order, without the new one."""
    candidates: tuple[float, ...]
    """How many pairs each search looks at."""
    rows: tuple[float, ...]
    """How many tuples there are behind each search."""
    cost: float


class JoinEstimates:
    """What is expected of the join of some parts."""

    def __init__(self, parts: Sequence[JoinPart], closures: Sequence[Closure], tests: Sequence[JoinTest]) -> None:
        self.parts = parts
        self.tests = tests
        self._all = (1 << len(parts)) - 1
        ends = [[s for s in part.stamps if is_end(s)] for part in parts]
        self._ranges = [[_ranges(own, other, closures) for other in ends] for own in ends]
        known = [frozenset(part.stamps) | part.variables for part in parts]
        self._tests = [
            (sum(1 << k for k, names in enumerate(known) if not names.isdisjoint(test.needs)), test) for test in tests
        ]
        self._keys = [[[v for v in part.variables if v in other.variables] for other in parts] for part in parts]
        self._rates: dict[int, float] = {}

    # ---- how much there is -------------------------------------------------------------------------------------

    def rate(self, parts: int | None = None) -> float:
        """How many tuples of the join of some parts come in a second; the parts are the bits of a number."""
        wanted = self._all if parts is None else parts
        if wanted not in self._rates:
            members = [k for k in range(len(self.parts)) if wanted >> k & 1]
            if len(members) == 1:
                self._rates[wanted] = self.parts[members[0]].flow.rate * self._passing(0, members[0])
            elif len(members) > EXHAUSTIVE:
                self._rates[wanted] = self._rate_in_order(members)
            else:
                pairs = ((k, wanted & ~(1 << k)) for k in members)
                self._rates[wanted] = min(
                    self.rate(rest) * self._candidates(k, rest) * self._passing(rest, k) for k, rest in pairs
                )
        return self._rates[wanted]

    def _rate_in_order(self, members: Sequence[int]) -> float:
        """The same for many parts, joined as they are written."""
        rows, known = self.rate(1 << members[0]), 1 << members[0]
        for k in members[1:]:
            rows *= self._candidates(k, known) * self._passing(known, k)
            known |= 1 << k
        return rows

    def flow(self) -> Flow:
        """What comes of the join of all parts; a variable has the values that all parts which have it can have."""
        distinct: dict[str, float] = {}
        for part in self.parts:
            for variable, values in part.flow.distinct.items():
                distinct[variable] = min(distinct.get(variable, values), values)
        return Flow(self.rate(), distinct)

    def width(self, k: int, known: int, first: int | None = None) -> float:
        """How many seconds the range is long in which a part is searched; only what came before `first`, if given."""
        best = HORIZON
        for place in range(len(self._ranges[k][k])):
            before = after = HORIZON
            for j in range(len(self.parts)):
                if known >> j & 1:
                    earliest, latest = self._ranges[k][j][place]
                    before = min(before, earliest)
                    after = min(after, min(latest, 0.0) if j == first else latest)
            best = min(best, max(before + after, 0.0))
        return best

    def _candidates(self, k: int, known: int, first: int | None = None) -> float:
        """How many tuples of a part a search finds by its keys, in its range of time."""
        part = self.parts[k]
        found = part.flow.rate * self._passing(0, k) * max(self.width(k, known, first), 1e-6)
        for v in self._shared(k, known):
            values = [p.flow.values(v) for j, p in enumerate(self.parts) if known >> j & 1 and v in p.variables]
            found /= max(part.flow.values(v), *values, 1.0)
        for mask, test in self._tests:
            if test.is_key and mask >> k & 1 and mask & known and not mask & ~(known | 1 << k):
                found *= test.passing
        return found

    def _shared(self, k: int, known: int) -> set[str]:
        return {v for j, names in enumerate(self._keys[k]) if known >> j & 1 for v in names}

    def _passing(self, known: int, k: int) -> float:
        """Which part of what a search finds passes the tests that can be made then; a key has been seen to."""
        passing = 1.0
        for mask, test in self._tests:
            if mask >> k & 1 and not mask & ~(known | 1 << k) and not (test.is_key and mask & known):
                passing *= test.passing
        return passing

    # ---- orders ------------------------------------------------------------------------------------------------

    def cost(self, *, exhaustive: bool = True) -> float:
        """What a second of joining costs, whichever part is new, each in its best order, or in a good one."""
        return sum(self.rate(1 << k) * self.order(k, exhaustive=exhaustive).cost for k in range(len(self.parts)))

    def order(self, first: int, *, exhaustive: bool = True) -> OrderEstimate:
        """The best order in which the others are searched when a part is new."""
        if exhaustive and len(self.parts) <= EXHAUSTIVE:
            return self.estimate(first, self._best(first))
        return self.estimate(first, self._greedy(first))

    def estimate(self, first: int, parts: Sequence[int]) -> OrderEstimate:
        """What is expected of an order, for each new tuple."""
        known, rows, cost = 1 << first, 1.0, 0.0
        candidates: list[float] = []
        left: list[float] = []
        for k in parts:
            found = rows * self._candidates(k, known, first)
            cost += rows * SEARCH + found
            rows = found * self._passing(known, k)
            candidates.append(found)
            left.append(rows)
            known |= 1 << k
        return OrderEstimate(tuple(parts), tuple(candidates), tuple(left), cost)

    def _greedy(self, first: int) -> list[int]:
        known, parts = 1 << first, list[int]()
        while known != self._all:
            open_parts = [k for k in range(len(self.parts)) if not known >> k & 1]
            best = min(open_parts, key=lambda k: (self._candidates(k, known, first), k))
            parts.append(best)
            known |= 1 << best
        return parts

    def _best(self, first: int) -> list[int]:
        """The order of least cost; of those that cost the same, the one that begins with what is written first."""
        best: dict[int, tuple[float, float, list[int]]] = {1 << first: (0.0, 1.0, [])}
        for known in sorted(range(1, self._all + 1), key=int.bit_count):
            if known not in best:
                continue
            cost, rows, parts = best[known]
            for k in range(len(self.parts)):
                if known >> k & 1:
                    continue
                found = rows * self._candidates(k, known, first)
                after = cost + rows * SEARCH + found
                grown = known | 1 << k
                if grown not in best or after < best[grown][0] * (1 - 1e-9):
                    best[grown] = (after, found * self._passing(known, k), [*parts, k])
        return best[self._all][2]


def _ranges(own: Sequence[str], others: Sequence[str], closures: Sequence[Closure]) -> list[tuple[float, float]]:
    """For each end of a part how many seconds before and after some end of another it may lie; the least of each."""
    return [
        (
            min((_most(stamp, other, closures) for other in others), default=HORIZON),
            min((_most(other, stamp, closures) for other in others), default=HORIZON),
        )
        for stamp in own
    ]


def _most(start: str, stop: str, closures: Iterable[Closure]) -> float:
    """How many seconds one stamp may lie behind another, in all cases."""
    weights = [closure.distance(start, stop) for closure in closures]
    known = [weight.bound / SECOND for weight in weights if weight is not None]
    return max(known) if known and len(known) == len(weights) else HORIZON
