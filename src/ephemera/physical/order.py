"""This module decides in which order a rule's events are joined, and by what each is searched.

From whichever event is new, the next is one that shares variables with what is known, else one that lies within a
range of time, else the next in the body. The range of a stamp follows from all distances of the rule, not only from
the conditions that name it (the closure of its temporal distance graph).
"""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.algebra.scalar import begin, end
from ephemera.analysis.nodes import Facts
from ephemera.physical.nodes import Leaf, Probe, Range


def orders(leaves: Sequence[Leaf], point: str, facts: Facts) -> tuple[tuple[Probe, ...], ...]:
    """For each leaf how the others follow."""
    return tuple(_from(first, leaves, point, facts) for first in range(len(leaves)))


def _from(first: int, leaves: Sequence[Leaf], point: str, facts: Facts) -> tuple[Probe, ...]:
    known = [leaves[first]]
    left = [k for k in range(len(leaves)) if k != first]
    probes: list[Probe] = []
    while left:
        candidates = [_probe(k, leaves[k], known, _Distances(point, facts)) for k in left]
        best = max(candidates, key=lambda p: (bool(p.keys), _tightness(p), -_width(p), -p.leaf))
        probes.append(best)
        known.append(leaves[best.leaf])
        left.remove(best.leaf)
    return tuple(probes)


def _probe(k: int, leaf: Leaf, known: Sequence[Leaf], distances: _Distances) -> Probe:
    keys = tuple(sorted(leaf.sure & frozenset[str]().union(*(other.sure for other in known))))
    stamps = [stamp for other in known for stamp in (begin(other.name), end(other.name))]
    found = [Probe(k, keys, stamp, distances.ranges(stamp, stamps)) for stamp in (end(leaf.name), begin(leaf.name))]
    return max(found, key=_tightness)


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

    def ranges(self, stamp: str, known: Sequence[str]) -> tuple[Range, ...]:
        """How a stamp lies to those that are known."""
        found = (Range(other, self._most(stamp, other), self._most(other, stamp)) for other in known)
        return tuple(r for r in found if r.earliest is not None or r.latest is not None)

    def _most(self, start: str, stop: str) -> int | None:
        """How far one stamp may lie behind another, in whole microseconds: one less if it is strict."""
        distances = [closure.distance(start, stop) for closure in self._closures]
        known = [d for d in distances if d is not None]
        if not known or len(known) < len(distances):
            return None
        longest = max(known)
        return longest.bound - longest.is_strict
