"""This module cuts a live batch of a group along time, where so much of it is in one place that others would wait.

All events of the batch go to each of the places that do a slice, with the state that the group has at home; so each of
them cuts the batch at the same times. What an answer of a slice depends on is in the batch or in the state: there all
is that may still matter. The last slice is done at home. It has all that begins less than a look-back before it, and
nothing else is in answers that end after it; so the state that it leaves is one to go on from. All slices but the last
end where every source has come by the end of the batch, so that all of them can be done.

What is worth it is decided by what was seen of the batch before. It changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.engine.cluster.message import EventsFor, Shipment, ends_of
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.run_stats import RunStats
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.cluster.time_slices import TimeSlices
from ephemera.engine.engine import Engine
from ephemera.kernels.columns import Mask
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.history import FAR

Visited = Mapping[int, Mapping[tuple[int, int], int]]
"""Of each program what is cut along time in a batch: which group, where it is at home, and into how many slices."""
Loads = Mapping[tuple[int, int, int], float]
"""By program, group and home how many seconds a processor was busy with a batch."""


@dataclass(frozen=True, slots=True)
class BatchSlice:
    """One slice of a batch."""

    slices: TimeSlices
    number: int
    bounds: Mapping[str, int]
    """How far the sources have come with the whole batch."""

    def drive(  # noqa: PLR0913, PLR0917 - an engine, where it is, and what it runs on
        self,
        spread: DistributedProgram,
        engine: Engine,
        level: int,
        place: int,
        shipments: Iterable[EventsFor],
        reached: int = -FAR,
    ) -> Iterator[Shipment]:
        """What the engine makes of the slice; what ends where it had come before is looked at in any case."""
        after, until = self.slices.span(self.number)
        bounds = {name: min(bound, until) for name, bound in self.bounds.items()}

        def needed(part: Events) -> Mask:
            begins, ends = part.batch[BEGIN], part.batch[END]
            return self.slices.needed(self.number, begins, ends) | (ends <= reached)

        yield from spread.drive(engine, level, place, shipments, bounds, RunStats(after), needed)


def slice_of_batch(  # noqa: PLR0913, PLR0917 - a group, where it is, and what came
    spread: DistributedProgram,
    group: int,
    home: int,
    place: int,
    shipments: Sequence[EventsFor],
    standing: Progress,
) -> BatchSlice | None:
    """The slice of a batch that is done in a place; None if there is none, or at home if there is only one."""
    places = spread.slice_places(group, home)
    slices = _slices(spread, group, len(places), shipments, standing)
    number = places.index(place) - (len(places) - len(slices))
    return BatchSlice(slices, number, standing.bounds) if len(slices) > 1 and number >= 0 else None


def _slices(
    spread: DistributedProgram, group: int, count: int, shipments: Sequence[EventsFor], standing: Progress
) -> TimeSlices:
    """So many slices with about as many events, or fewer; the last begins where all sources have come."""
    look_back = spread.look_backs[group]
    ends = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(ends_of(one.events) for one in shipments)]))
    last = _slowest(spread, group, standing)
    own = ends[ends <= last]
    limits = np.unique(own[np.arange(1, count) * len(own) // count]) if len(own) else own
    return TimeSlices(tuple(limits.tolist()), look_back)


def _slowest(spread: DistributedProgram, group: int, standing: Progress) -> int:
    """How far all sources have come that a group depends on."""
    return min((standing.bound(name) for name in spread.sources(group)), default=-FAR)


# ---- what is worth it ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiveSlicing:
    """When slices of a batch are worth it."""

    least: float = 0.5
    """Seconds of work of the batch before; with less an exchange costs more than another core gains."""
    heavy: float = 1.3
    """What is in one place is cut if it is so many times what each core would have if all had the same."""
    gain: float = 0.85
    """Slices have to be done in this part of the time that is needed without them, or less."""
    most: int = 4
    """Into so many slices at most, since all events go to all of them."""

    def is_busy(self, loads: Loads) -> bool:
        """Whether there is so much to do that several processes are done sooner."""
        return sum(loads.values()) >= self.least


WORTHWHILE = LiveSlicing()
FORCED = LiveSlicing(least=0, heavy=0, gain=np.inf)
"""Whatever can be cut: for tests."""


def visited_next(  # noqa: PLR0913, PLR0917 - all that was seen of a batch
    spreads: Sequence[DistributedProgram],
    loads: Loads,
    before: Mapping[int, Progress],
    after: Mapping[int, Progress],
    cores: int,
    slicing: LiveSlicing = WORTHWHILE,
) -> Visited:
    """What of the next batch is cut along time, if it is like the last, of which is known how far it has come."""
    found: dict[int, dict[tuple[int, int], int]] = {}
    if not slicing.is_busy(loads):
        return found
    for (program, group, home), load in loads.items():
        spread = next(one for one in spreads if one.number == program)
        count = min(cores, spread.places, slicing.most)
        look_back = spread.look_backs.get(group)
        if look_back is None or count < 2 or load <= slicing.heavy * sum(loads.values()) / count:
            continue
        standings = [standing.get(program, Progress()) for standing in (before, after)]
        begin, end = (_slowest(spread, group, standing) for standing in standings)
        if 1 / count + look_back / max(end - begin, 1) <= slicing.gain:
            found.setdefault(program, {})[group, home] = count
    return found
