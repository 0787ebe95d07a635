"""This module says what of a program is cut along time before a run over history, by some events of its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ephemera.base.errors import InternalError
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.time_slices import (
    WORTHWHILE,
    PlacedSample,
    Slicing,
    TimeSlices,
    place_slices,
    sample_of,
)
from ephemera.kernels.columns import Hashes, Ints
from ephemera.kernels.event_columns import END, Events

Sampled = Sequence[tuple[Events, float]]
"""Some events of an input, and how many of it each of them stands for."""


def cut_along_time(
    spread: DistributedProgram, sampled: Sampled, cores: int, slicing: Slicing = WORTHWHILE
) -> DistributedProgram:
    """The program with slices of that for which they are worth it."""
    slices = {
        (group, home): chosen
        for group, look_back in spread.look_backs.items()
        for home, chosen in place_slices(
            _sample(spread, group, sampled), look_back, spread.places, cores, slicing
        ).items()
    }
    return replace(spread, slices=slices)


def _sample(spread: DistributedProgram, group: int, sampled: Sampled) -> PlacedSample:
    """What is known of the events that a group reads; what others derive for it ends when events of the input do."""
    known: list[tuple[Ints, Hashes, float]] = []
    for part, weight in sampled:
        ends = part.batch[END]
        if spread.has_keys(group):
            rows, keys = spread.keys(part, group)
            known.append((ends[rows], keys, weight))
        else:
            known.append((ends, np.full(len(ends), spread.pinned(group), dtype=np.uint64), weight))
    return sample_of(known)


def cut_at(spread: DistributedProgram, limits: Sequence[int]) -> DistributedProgram:
    """The program with all that can be cut along time cut at the same times, fewer than there are places."""
    if not limits:
        return spread
    if len(limits) >= spread.places:
        raise InternalError("engine", f"{len(limits)} limits make more slices than {spread.places} places")
    known = tuple(limits)
    homes = {g: range(spread.places) if spread.has_keys(g) else [spread.pinned(g)] for g in spread.look_backs}
    slices = {(g, home): TimeSlices(known, one) for g, one in spread.look_backs.items() for home in homes[g]}
    return replace(spread, slices=slices)
