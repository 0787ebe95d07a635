"""This module holds spread programs on their way to workers: each is unpacked where it is used, once in a process.

A run of one program is not helped by this, but a run of hundreds is: a task meets only a few of them, and the processes
of workers live longer than their tasks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ephemera.engine.cluster.routing import DistributedProgram


class Programs(Mapping[int, DistributedProgram]):
    """The programs of a run by their numbers."""

    def __init__(self, spreads: Sequence[DistributedProgram]) -> None:
        self._packed = {spread.number: pickle.dumps(spread, pickle.HIGHEST_PROTOCOL) for spread in spreads}

    def __getitem__(self, number: int) -> DistributedProgram:
        return _unpacked(self._packed[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


@lru_cache(maxsize=1_000)
def _unpacked(packed: bytes) -> DistributedProgram:
    """A program by what it was packed as: the same bytes are the same program, whichever run they are of."""
    found: DistributedProgram = pickle.loads(packed)
    return found
