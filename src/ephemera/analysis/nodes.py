"""This module defines what the analysis produces: facts about a plan, which stand in tables beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ephemera.algebra.attributes import Stamp, is_end
from ephemera.algebra.nodes import Plan
from ephemera.analysis.cases import Case, Known
from ephemera.analysis.detectors import Detectors, all_detectors, longest
from ephemera.analysis.distances import Closure, Edge
from ephemera.analysis.weights import Weight
from ephemera.base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """How long a tuple is relevant, counted from one of its stamps; no weight is forever."""

    stamp: Stamp
    time: Weight | None
    path: tuple[Edge, ...] = ()
    """The distances that add up to it."""

    @property
    def operator(self) -> str:
        return ">" if self.time is not None and self.time.is_strict else ">="


@dataclass(frozen=True, slots=True)
class Length:
    """A range for how long an event lasts, in whole microseconds; None is any time."""

    least: int = 0
    most: int | None = None

    def covers(self, other: Length) -> bool:
        """Whether all that the other lets pass passes here, too.

        >>> Length(1, 9).covers(Length(2, 9)), Length(1, 9).covers(Length(2))
        (True, False)
        """
        return self.least <= other.least and (self.most is None or (other.most is not None and other.most <= self.most))


ANY_LENGTH = Length()


@dataclass(frozen=True, slots=True)
class Relevance:
    """The temporal relevance condition of an input of a point: a tuple is relevant while all bounds hold."""

    point: str
    input: str
    """The point that the tuples come from."""
    name: str
    """What the rule calls it; names that begin with a dollar sign are ours."""
    negated: bool
    keep_while: tuple[Bound, ...]
    minimal: tuple[Bound, ...]
    """Those that no other implies, finite ones only; none if tuples are kept forever."""
    partners: tuple[tuple[Bound, ...], ...] = ()
    """For each that may still arrive behind it how long that may take; a tuple is stored while this holds for one.

    It says the same more exactly, for what has arrived: its own arrival is over. Empty bounds are forever.
    """
    length: Length = ANY_LENGTH
    """How long an event has to last to matter at all, where that is more than what all of them do."""

    @property
    def is_bounded(self) -> bool:
        return bool(self.minimal)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known about a plan before it runs."""

    known: Mapping[str, Known | None]
    """For each point what holds for all its tuples; None if it never has any."""
    cases: Mapping[str, Sequence[tuple[Case, Closure]]]
    """For each point the alternatives of its tuples with all distances; contradictory ones are left out."""
    relevance: tuple[Relevance, ...]
    never: Mapping[str, tuple[Edge, ...]]
    """The rules' points that never hold anything, with the distances that contradict each other, if that is why."""
    idle: tuple[tuple[str, str], ...]
    """Points with inputs that are asked to be absent, and always are: (point, name)."""
    hulls: tuple[str, ...]
    """Points with more cases than are told apart."""

    def longest(self, point: str) -> int | None:
        """How long the events of a point last at most; None is any time."""
        return longest(self.known[point])

    def detectors(self, plan: Plan) -> Detectors:
        """The detectors of the algebra expressions of all rules."""
        return all_detectors(plan, self.known, self.cases)

    def look_back(self, point: str) -> int | None:
        """How long before the end of an answer the events may begin that it depends on; None is any time.

        All that an answer depends on lies within its occurrence time: positive events and timers make it up, and what
        is collected or absent lies in a window that is one of them. So this is how long an answer may last. A tuple of
        a stored join lasts from the first begin of its events to the last end.
        """
        length = self.longest(point)
        if length is not None:
            return length
        lengths = [self._covered(case, closure) for case, closure in self.cases.get(point, ())]
        known = [length for length in lengths if length is not None]
        return max(known) if known and len(known) == len(lengths) else None

    def _covered(self, case: Case, closure: Closure) -> int | None:
        """How long the interval may be that covers all inputs of a case."""
        stamps = [stamp for use in case.uses for stamp in use.stamps]
        pairs = ((one, other) for one in stamps if not is_end(one) for other in stamps if is_end(other))
        weights = [closure.distance(one, other) for one, other in pairs]
        known = [weight.bound - weight.is_strict for weight in weights if weight is not None]
        return max(known) if known and len(known) == len(weights) else None

    @property
    def reach(self) -> int:
        """No absolute timer matters longer than this: all relevance times of all rules, one after the other."""
        points = {r.point: 0 for r in self.relevance}
        for r in self.relevance:
            points[r.point] = max([points[r.point], *(b.time.bound for b in r.keep_while if b.time is not None)])
        return sum(points.values())

    def of(self, point: str) -> list[Relevance]:
        """The conditions of one point's inputs."""
        return [r for r in self.relevance if r.point == point]
