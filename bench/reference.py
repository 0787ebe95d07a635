"""This module computes what the benchmark's queries must answer, by sorting and prefix sums over whole arrays.

It shares nothing with the engine and builds no answer: it counts them, and adds up the ids in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.data import HOUR, Ints, Stream

FAR_APART = 1 << 40
"""The distance between two keys on the common axis: further than any stream or window is long."""


@dataclass(frozen=True, slots=True)
class Answers:
    """How many there are, the sum of all ids in them, and for Q4 the sum of the averages."""

    count: int
    ids: int
    averages: float = 0.0

    def agree(self, other: Answers) -> bool:
        """Whether they are the same answers; averages are added in another order."""
        same = (self.count, self.ids) == (other.count, other.ids)
        return same and abs(self.averages - other.averages) <= 1e-9 * max(1.0, abs(self.averages))


class Line:
    """The events of one type on one axis: key after key, each in the order of time."""

    def __init__(self, stream: Stream, letter: str, *, by_key: bool = True) -> None:
        rows = np.flatnonzero(stream.kind == stream.types.index(letter))
        place = stream.begin[rows] + (stream.x[rows] * FAR_APART if by_key else 0)
        rows = rows[np.argsort(place, kind="stable")]
        self.place: Ints = np.sort(place, kind="stable")
        self.id: Ints = stream.id[rows]
        self.last = stream.end[rows] - stream.begin[rows]
        self._ids = _sums(self.id)
        self._values = _sums(stream.v[rows])

    def between(self, low: Ints, high: Ints, *, open_low: bool = False, open_high: bool = False) -> Found:
        """What begins in some ranges."""
        start = np.searchsorted(self.place, low, "right" if open_low else "left")
        stop = np.maximum(np.searchsorted(self.place, high, "left" if open_high else "right"), start)
        return Found(stop - start, self._ids[stop] - self._ids[start], self._values[stop] - self._values[start])


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What lies in each of some ranges: how much, and the sums of its ids and values."""

    count: Ints
    ids: Ints
    values: Ints


def _sums(numbers: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(numbers)])


def pairs(stream: Stream, within: int) -> Answers:
    """Q1 and Q1h: A and B of a key at most so far apart."""
    a, b = Line(stream, "A"), Line(stream, "B")
    found = b.between(a.place - within, a.place + within)
    return Answers(int(found.count.sum()), int((found.count * a.id + found.ids).sum()))


def chains(stream: Stream) -> Answers:
    """Q2: pairs within two hours, then D within four hours of their end, then E within an hour of D."""
    a, b, d, e = (Line(stream, letter) for letter in "ABDE")
    ended_by_a = b.between(a.place - 2 * HOUR, a.place, open_high=True)
    ended_by_b = a.between(b.place - 2 * HOUR, b.place, open_high=True)
    ends = np.concatenate([a.place, b.place])
    order = np.argsort(ends)
    ends = ends[order]
    counts = _sums(np.concatenate([ended_by_a.count, ended_by_b.count])[order])
    ids = _sums(np.concatenate([_with(ended_by_a, a.id), _with(ended_by_b, b.id)])[order])
    start, stop = np.searchsorted(ends, d.place - 4 * HOUR, "left"), np.searchsorted(ends, d.place, "left")
    pair_count, pair_ids = counts[stop] - counts[start], ids[stop] - ids[start]
    later = e.between(d.place, d.place + HOUR, open_low=True)
    total = pair_ids * later.count + pair_count * (later.count * d.id + later.ids)
    return Answers(int((pair_count * later.count).sum()), int(total.sum()))


def _with(found: Found, own: Ints) -> Ints:
    return found.count * own + found.ids


def absences(stream: Stream) -> Answers:
    """Q3: A with no B of its key in the hour after it."""
    a = Line(stream, "A")
    found = Line(stream, "B").between(a.place, a.place + HOUR, open_low=True)
    alone = a.id[found.count == 0]
    return Answers(len(alone), int(alone.sum()))


def averages(stream: Stream) -> Answers:
    """Q4: the average of B over the hour before A, where there is a B."""
    a = Line(stream, "A")
    found = Line(stream, "B").between(a.place - HOUR, a.place)
    some = found.count > 0
    means: npt.NDArray[np.float64] = found.values[some] / found.count[some]
    return Answers(int(some.sum()), int(a.id[some].sum()), float(means.sum()))


def afterwards(stream: Stream, *, by_key: bool) -> Answers:
    """Q5: B begins one or two units after A has ended."""
    a, b = Line(stream, "A", by_key=by_key), Line(stream, "B", by_key=by_key)
    ends = a.place + a.last
    found = b.between(ends + 1, ends + 2)
    return Answers(int(found.count.sum()), int((found.count * a.id + found.ids).sum()))
