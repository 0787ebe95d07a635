"""This module solves systems of difference constraints: temporal distance graphs and their shortest paths.

A stamp is a name like `o.e`; a fixed moment is the stamp `@` with its microseconds. An edge from i to j of weight w
says j − i ≤ w (or <). Conjunctions close by all-pairs shortest paths (Floyd and Warshall); a cycle that is negative,
or zero and strict, is a contradiction. Time is in whole microseconds, so `<` leaves one microsecond less, and a cycle
that is negative when this is counted is a contradiction, too. A disjunction is closed case by case, and its hull is
the edgewise maximum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from ephemera.algebra.attributes import is_moment, microseconds
from ephemera.analysis.weights import ZERO, Weight, at_most
from ephemera.base.lazy_dataclass import dataclass


class Edge(NamedTuple):
    """`end` lies at most `weight` after `start`; `because` names the condition that says so."""

    start: str
    end: str
    weight: Weight
    because: str = ""


@dataclass(frozen=True, slots=True)
class Closure:
    """All shortest paths of a system without contradiction."""

    table: Mapping[str, Mapping[str, Weight]]
    sure: Mapping[str, Mapping[str, Weight]] = field(default_factory=dict, compare=False, repr=False)
    """The same over guaranteed edges alone."""
    edges: tuple[Edge, ...] = field(default=(), compare=False, repr=False)
    """What it was closed from, to tell the reasons."""

    def distance(self, start: str, end: str) -> Weight | None:
        """How far `end` may lie after `start`; None is any distance."""
        if start == end:
            return ZERO
        return self.table.get(start, {}).get(end)

    def guaranteed(self, start: str, end: str) -> Weight | None:
        """How far `end` may lie after `start` in any tuple of the inputs, whatever the query tests."""
        return ZERO if start == end else self.sure.get(start, {}).get(end)

    def path(self, start: str, end: str) -> list[Edge]:
        """The edges that make the distance, as few as possible; none if any distance is possible."""
        whole = self.distance(start, end)
        if whole is None or start == end:
            return []
        out: dict[str, list[Edge]] = {}
        for edge in self.edges:
            out.setdefault(edge.start, []).append(edge)
        came: dict[str, Edge] = {}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for edge in out.get(here, ()):
                before, after = self.distance(start, here), self.distance(start, edge.end)
                if before is None or after is None or edge.end in came or edge.end == start:
                    continue
                if before.plus(edge.weight).says_the_same(after):
                    came[edge.end] = edge
                    waiting.append(edge.end)
        steps: list[Edge] = []
        while end != start:
            steps.append(came[end])
            end = came[end].start
        return steps[::-1]


def close(edges: Iterable[Edge]) -> Closure | None:
    """All shortest paths; None if the constraints contradict each other."""
    given = _with_moments(tuple(edges))
    table = _shortest(given)
    for stamp, row in table.items():
        own = row.pop(stamp, ZERO)
        if own.bound < 0 or (own.bound == 0 and own.is_strict):
            return None
    if not _has_whole_solution(given):
        return None
    sure = _shortest([e for e in given if not e.weight.doubtful])
    marked = {i: {j: _marked(w, sure.get(i, {}).get(j)) for j, w in row.items()} for i, row in table.items()}
    return Closure(marked, sure, tuple(given))


def _marked(weight: Weight, sure: Weight | None) -> Weight:
    """The weight, guaranteed if guaranteed edges alone say the same."""
    return weight._replace(doubtful=sure is None or not sure.says_the_same(weight))


_Table = dict[str, dict[str, Weight]]


def _shortest(edges: Sequence[Edge]) -> _Table:
    """All shortest paths by bound and strictness (Floyd and Warshall).

    A weight becomes one number, its bound in steps of more than there are edges on a path, less one if it is strict:
    so numbers add and compare as weights do, and a path is strict if it has any strict edge.
    """
    stamps = list(dict.fromkeys(s for e in edges for s in (e.start, e.end)))
    if len(stamps) > MOST_STAMPS:
        return _direct(edges)
    step = len(stamps) + 1
    places = {stamp: k for k, stamp in enumerate(stamps)}
    rows: _Rows = [{} for _ in stamps]
    for start, end, weight, _ in edges:
        row, j, number = rows[places[start]], places[end], weight.bound * step - weight.is_strict
        row[j] = min(row.get(j, number), number)
    is_small = all(abs(e.weight.bound) * step * step < _INFINITE >> 2 for e in edges)
    rows = shortest_in_arrays(rows) if is_small and len(stamps) > FEW_STAMPS else shortest_in_rows(rows)
    found: _Table = {}
    for stamp, row in zip(stamps, rows, strict=True):
        found[stamp] = own = {}
        for j in sorted(row):
            bound = -(-row[j] // step)
            own[stamps[j]] = Weight(bound, bound * step == row[j], True)
    return found


_Rows = list[dict[int, int]]
"""For each stamp, by its place, the number of each other one that is at a limited distance."""
_INFINITE = 1 << 61
FEW_STAMPS = 24
"""So many are closed as fast row by row, and numpy need not be loaded."""
MOST_STAMPS = 800
"""Of more stamps than these only what is said directly is known: a rule of hundreds of events must not take minutes."""


def shortest_in_rows(rows: _Rows) -> _Rows:
    """All shortest paths, one by one; the rows become those. Numbers may have any size."""
    for k, through in enumerate(rows):
        for i, row in enumerate(rows):
            if i == k or k not in row:
                continue
            first = row[k]
            for j, second in through.items():
                total = first + second
                if j not in row or total < row[j]:
                    row[j] = total
    return rows


def shortest_in_arrays(rows: _Rows) -> _Rows:
    """The same for many stamps, a whole table at once."""
    import numpy as np  # noqa: PLC0415 - most programs do without, and it takes a while to load

    table = np.full((len(rows), len(rows)), _INFINITE, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, list(row)] = list(row.values())
    for k in range(len(rows)):
        np.minimum(table, table[:, k, None] + table[None, k, :], out=table)
    is_limited = table < _INFINITE >> 1
    return [
        dict(zip(own.nonzero()[0].tolist(), row[own].tolist(), strict=True))
        for own, row in zip(is_limited, table, strict=True)
    ]


def _direct(edges: Sequence[Edge]) -> _Table:
    table: _Table = {}
    for start, end, weight, _ in edges:
        table.setdefault(end, {})
        row = table.setdefault(start, {})
        row[end] = min(row.get(end, weight), weight)
    return table


def _with_moments(edges: Sequence[Edge]) -> list[Edge]:
    """The edges, and those between fixed moments, whose distance is known."""
    moments = sorted({s for e in edges for s in (e.start, e.end) if is_moment(s)})
    known = [
        Edge(a, b, at_most(microseconds(b) - microseconds(a), guaranteed=True))
        for a in moments
        for b in moments
        if a != b
    ]
    return [*edges, *known]


def _has_whole_solution(edges: Sequence[Edge]) -> bool:
    """Whether whole numbers satisfy the constraints; that is in question only where several are strict."""
    if sum(e.weight.is_strict for e in edges) < 2 or len(edges) > MOST_STAMPS * MOST_STAMPS // 8:
        return True
    return whole_distances(edges, None) is not None


def whole_distances(edges: Sequence[Edge], start: str | None) -> dict[str, int] | None:
    """How far each stamp can lie after `start` in whole microseconds (Bellman and Ford), for those that have a limit.

    None if a contradiction is met. Without a start all stamps begin at 0, which tells only whether there is a solution.
    """
    bounds = [(i, j, w.bound - w.is_strict) for i, j, w, _ in _with_moments(edges)]
    stamps = {s for i, j, _ in bounds for s in (i, j)}
    found = dict.fromkeys(stamps, 0) if start is None else {start: 0}
    for _ in range(len(stamps) + 1):
        changed = False
        for i, j, bound in bounds:
            if i in found and (j not in found or found[i] + bound < found[j]):
                found[j] = found[i] + bound
                changed = True
        if not changed:
            return found
    return None


def contradiction(edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """The edges of a cycle that no whole microseconds can satisfy, as they were given; none if there is no such."""
    every = _with_moments(edges)
    found = dict.fromkeys((s for e in every for s in (e.start, e.end)), 0)
    came: dict[str, Edge] = {}
    last: str | None = None
    for _ in range(len(found) + 1):
        last = None
        for edge in every:
            total = found[edge.start] + edge.weight.bound - edge.weight.is_strict
            if total < found[edge.end]:
                found[edge.end], came[edge.end], last = total, edge, edge.end
        if last is None:
            return ()
    here = last or ""
    for _ in found:  # so far back that it is on the cycle
        here = came[here].start
    cycle = [came[here]]
    while cycle[-1].start != here:
        cycle.append(came[cycle[-1].start])
    return tuple(cycle[::-1])


def hull(closures: Sequence[Closure], stamps: Sequence[str]) -> tuple[Edge, ...]:
    """What all cases have in common about some stamps: the edgewise maximum, guaranteed."""
    found: list[Edge] = []
    for i in stamps:
        for j in stamps:
            distances = [c.distance(i, j) for c in closures]
            known = [d for d in distances if d is not None]
            if i != j and known and len(known) == len(distances):
                found.append(Edge(i, j, max(known).guaranteed()))
    return tuple(found)
