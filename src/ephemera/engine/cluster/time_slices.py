"""This module cuts rules without a key along time: into how many slices, where, and which events each of them needs.

All that an answer depends on lies within its occurrence time, and that is no longer than the look-back of its group. So
a slice that has every event that begins less than a look-back before it, and ends with it or earlier, has all that the
answers need that end in it. The slices divide all of time among them, and each answer ends in one of them. Where they
are cut is for balance alone: wherever it is, the answers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.kernels.columns import Ints
from ephemera.kernels.history import FAR


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


@dataclass(frozen=True, slots=True)
class EndSample:
    """Some ends of the events of an input, in ascending order, and how many events each of them stands for."""

    ends: Ints
    weights: np.ndarray

    @property
    def total(self) -> float:
        """About how many events there are."""
        return float(self.weights.sum())


def sample_of(parts: Sequence[tuple[Ints, float]]) -> EndSample:
    """What is known of several inputs together: of each some ends, and how many events it has."""
    known = [(ends, count) for ends, count in parts if len(ends)]
    if not known:
        return EndSample(np.empty(0, dtype=np.int64), np.empty(0))
    ends = np.concatenate([ends for ends, _ in known])
    weights = np.concatenate([np.full(len(ends), count / len(ends)) for ends, count in known])
    order = np.argsort(ends, kind="stable")
    return EndSample(ends[order], weights[order])


@dataclass(frozen=True, slots=True)
class Slicing:
    """When slices are worth it."""

    least: float = 200_000
    """With fewer events one place is done before it would matter."""
    most: float = 2.0
    """How often an event may be worked on, on average."""
    gain: float = 0.85
    """Slices have to be done in this part of the time that one place needs, or less."""

    def may_help(self, places: int, cores: int) -> bool:
        """Whether there can be slices at all."""
        return places > 1 and 1 / cores <= self.gain


WORTHWHILE = Slicing()
FORCED = Slicing(least=0, most=np.inf, gain=np.inf)
"""As many slices as there are places, whatever that costs: for tests."""


def time_slices(
    sample: EndSample, look_back: int, places: int, cores: int, slicing: Slicing = WORTHWHILE
) -> TimeSlices | None:
    """How a group is best cut for so many cores; None if one place does it.

    The work of a slice are its events and those of its look-back. Of numbers of slices that take about as long the
    greatest is taken, since the work for events is not everywhere the same.
    """
    if sample.total < slicing.least or not len(sample.ends):
        return None
    shares = np.concatenate([[0.0], np.cumsum(sample.weights) / sample.total])
    choices: list[tuple[float, TimeSlices]] = []
    for count in range(2, places + 1):
        chosen = TimeSlices(_quantiles(sample, shares, count), look_back)
        work = [_work(sample, shares, chosen, k) for k in range(len(chosen))]
        if len(chosen) > 1 and sum(work) <= slicing.most:
            choices.append((_busiest(work, cores), chosen))
    best = min((time for time, _ in choices), default=np.inf)
    if best > slicing.gain:
        return None
    enough = 1.15 * best if slicing.gain < np.inf else np.inf
    return [chosen for time, chosen in choices if time <= enough][-1]


def _busiest(work: Sequence[float], cores: int) -> float:
    """What the busiest core has to do, if whichever has least takes the next slice, the longest first."""
    loads = [0.0] * cores
    for one in sorted(work, reverse=True):
        loads[loads.index(min(loads))] += one
    return max(loads)


def _quantiles(sample: EndSample, shares: np.ndarray, count: int) -> tuple[int, ...]:
    """The ends that part the events into so many equal shares, each once; behind the last end nothing is cut."""
    places = np.searchsorted(shares[1:], np.arange(1, count) / count)
    limits = np.unique(sample.ends[np.minimum(places, len(sample.ends) - 1)])
    return tuple(limits[limits < sample.ends[-1]].tolist())


def _work(sample: EndSample, shares: np.ndarray, slices: TimeSlices, number: int) -> float:
    """The share of all events that a slice works on, if events are short."""
    after, until = slices.span(number)
    since = after - slices.look_back if number else after
    first, last = np.searchsorted(sample.ends, [since, until], side="right")
    return float(shares[last] - shares[first])
