"""This module cuts what is in one place along time: into how many slices, where, and which events each of them needs.

Rules without a key have one place, and so has a key with many events; what they read has its home there. Slices of it
are in several places.

All that an answer depends on lies within its occurrence time, and that is no longer than the look-back of its group. So
a slice that has every event that begins less than a look-back before it, and ends with it or earlier, has all that the
answers need that end in it. The slices divide all of time among them, and each answer ends in one of them. Where they
are cut is for balance alone: wherever it is, the answers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.kernels.columns import Hashes, Ints, Mask
from ephemera.kernels.history import FAR

MEETING = 0.02
"""What it costs an event to meet another one, where what it costs by itself is 1."""


_ROUNDING = 1e-9
"""Sums of shares may be less than what they are by so much."""


@dataclass(frozen=True, slots=True)
class TimeSlices:
    """How a group is cut along time."""

    limits: tuple[int, ...]
    """Where one slice ends and the next begins, in ascending order; what ends at a limit is of the earlier."""
    look_back: int

    def __len__(self) -> int:
        """How many there are."""
        return len(self.limits) + 1

    def span(self, number: int) -> tuple[int, int]:
        """After when, and until when, the answers of a slice end."""
        after = self.limits[number - 1] if number else -FAR
        return after, self.limits[number] if number < len(self.limits) else FAR

    def needed(self, number: int, begins: Ints, ends: Ints) -> Mask:
        """Which of some events one slice needs."""
        after, until = self.span(number)
        return (begins > after - self.look_back) & (ends <= until)

    def needing(self, begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The rows of some events, each as often as slices need it, and these slices.

        An event that is longer than any answer is in none, and may be needed nowhere.
        """
        limits = np.array(self.limits, dtype=np.int64)
        first = np.searchsorted(limits, ends)
        last = np.searchsorted(limits, begins + self.look_back)
        counts = np.maximum(last - first + 1, 0)
        rows = np.repeat(np.arange(len(ends)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return rows, first[rows] + np.arange(len(rows)) - before


def slice_places(home: int, count: int, places: int) -> list[int]:
    """The places of slices of what is at home in one of them, which has the last; the others have those before it."""
    return [(home + 1 + k - count) % places for k in range(count)]


@dataclass(frozen=True, slots=True)
class PlacedSample:
    """Some events that a group reads, by their ends: the hashes of their keys, and how many events each stands for."""

    ends: Ints
    keys: Hashes
    weights: np.ndarray

    @property
    def total(self) -> float:
        """About how many events there are."""
        return float(self.weights.sum())

    def work(self, look_back: int) -> np.ndarray:
        """How much there is to do for each, if an event by itself is 1: it meets those with its key in a look-back."""
        first, last = self.ends[[len(self.ends) // 50, -1 - len(self.ends) // 50]]  # a few may lie far off
        _, key = np.unique(self.keys, return_inverse=True)
        alike = np.bincount(key, self.weights)[key]
        met: np.ndarray = alike * min(1.0, look_back / max(int(last - first), 1))
        return self.weights * (1 + MEETING * met)


def sample_of(parts: Sequence[tuple[Ints, Hashes, float]]) -> PlacedSample:
    """What is known of several inputs together: of each some ends and keys, and how many events each stands for."""
    ends = np.concatenate([np.empty(0, dtype=np.int64), *(ends for ends, _, _ in parts)])
    keys = np.concatenate([np.empty(0, dtype=np.uint64), *(keys for _, keys, _ in parts)])
    weights = np.concatenate([np.empty(0), *(np.full(len(ends), weight) for ends, _, weight in parts)])
    order = np.argsort(ends, kind="stable")
    return PlacedSample(ends[order], keys[order], weights[order])


@dataclass(frozen=True, slots=True)
class Slicing:
    """When slices are worth it."""

    least: float = 200_000
    """With fewer events one place is done before it would matter."""
    most: float = 2.0
    """How often an event may be worked on, on average."""
    gain: float = 0.85
    """Slices have to be done in this part of the time that is needed without them, or less."""
    heavy: float = 1.5
    """What is at home in a place is cut if it is so many times what each place would have if all had the same."""

    def may_help(self, places: int, cores: int) -> bool:
        """Whether there can be slices at all."""
        return places > 1 and 1 / cores <= self.gain


WORTHWHILE = Slicing()
FORCED = Slicing(least=0, most=np.inf, gain=np.inf, heavy=0)
"""As many slices as there are places, whatever that costs: for tests."""


def place_slices(
    sample: PlacedSample, look_back: int, places: int, cores: int, slicing: Slicing = WORTHWHILE
) -> dict[int, TimeSlices]:
    """The places in which too much of a group is at home, and how that is best cut for so many cores.

    The work of a slice is that for its events and those of its look-back. Of numbers of slices that take about as long
    the greatest is taken, since the work for events is not everywhere the same.
    """
    if sample.total < slicing.least or not len(sample.ends):
        return {}
    homes, work_of = np.asarray(sample.keys % np.uint64(places), dtype=np.int64), sample.work(look_back)
    loads = np.bincount(homes, work_of, places) / work_of.sum()
    heavy = {
        home: _TimeShares(sample.ends[homes == home], work_of[homes == home])
        for home in np.flatnonzero(loads > slicing.heavy / places).tolist()
    }
    choices: list[tuple[float, dict[int, TimeSlices]]] = []
    for count in range(2, places + 1):
        cut = {home: TimeSlices(own.limits(count), look_back) for home, own in heavy.items()}
        cut = {home: slices for home, slices in cut.items() if len(slices) > 1}
        work = loads.copy()
        work[list(cut)] = 0
        for home, slices in cut.items():
            shares = [heavy[home].work(slices, k) for k in range(len(slices))]
            work[slice_places(home, len(slices), places)] += loads[home] * np.array(shares)
        if cut and work.sum() <= slicing.most:
            choices.append((_busiest(work.tolist(), cores), cut))
    best = min((time for time, _ in choices), default=np.inf)
    if best > slicing.gain * _busiest(loads.tolist(), cores):
        return {}
    enough = 1.15 * best if slicing.gain < np.inf else np.inf
    return [chosen for time, chosen in choices if time <= enough][-1]


def _busiest(work: Sequence[float], cores: int) -> float:
    """What the busiest core has to do, if whichever has least takes the next place, the longest first."""
    loads = [0.0] * cores
    for one in sorted(work, reverse=True):
        loads[loads.index(min(loads))] += one
    return max(loads)


class _TimeShares:
    """How the work of a place is spread over time."""

    def __init__(self, ends: Ints, work: np.ndarray) -> None:
        self._ends = ends
        self._shares = np.concatenate([[0.0], np.cumsum(work) / work.sum()])

    def limits(self, count: int) -> tuple[int, ...]:
        """The ends that part the work into so many equal shares, each once; behind the last end nothing is cut."""
        places = np.searchsorted(self._shares[1:], np.arange(1, count) / count - _ROUNDING)
        limits = np.unique(self._ends[np.minimum(places, len(self._ends) - 1)])
        return tuple(limits[limits < self._ends[-1]].tolist())

    def work(self, slices: TimeSlices, number: int) -> float:
        """The share of all work that a slice has, if events are short."""
        after, until = slices.span(number)
        since = after - slices.look_back if number else after
        first, last = np.searchsorted(self._ends, [since, until], side="right")
        return float(self._shares[last] - self._shares[first])
