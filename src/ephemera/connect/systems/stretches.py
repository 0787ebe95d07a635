"""This module says what of a system can be read in stretches: by any machine, in any order, and again.

A position says for each partition where to go on, as JSON can hold it. A stretch is what lies between two positions in
one partition, and it is always the same. So a run on many machines need only remember positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ephemera.connect.systems.live import Arrived

Place: TypeAlias = int | str
Position: TypeAlias = Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What lies between two places of a partition: at the first or behind it, as the system counts."""

    partition: str
    first: Place
    last: Place
    is_behind: bool = False
    """Whether there was more to read in the partition when this was cut."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a system can be read now, and in which partitions there is more than that."""

    position: Position
    behind: frozenset[str] = frozenset()


class LookedAt(Protocol):
    """A source that is looked at again and again."""

    @property
    def name(self) -> str:
        """The address by what is read."""

    def every(self) -> float:
        """Seconds between two looks at it; 0 for as often as anybody likes."""


class InStretches(Protocol):
    """A source that is read in stretches."""

    @property
    def source(self) -> LookedAt:
        """What is read."""

    def begin(self) -> Position:
        """Where to begin, as its address says."""

    def reached(self, since: Position, most: int | None = None) -> Reached:
        """How far it can be read from a position on; of messages no more than so many, if that is said."""

    def between(self, first: Position, last: Position) -> list[Stretch]:
        """What lies between two positions, if anything does, in stretches of a size that is worth a task."""

    def history(self) -> list[Stretch]:
        """All that is there now, as its address says."""

    def read(self, stretch: Stretch) -> Iterator[Arrived]:
        """What a stretch holds, some at a time."""
