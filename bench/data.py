"""This module makes up the event streams of the engine's benchmark, and keeps them in files that are read in slices.

Keyed streams hold the types A, B, D and E in equal parts, with strictly increasing times and on average half an event
for each key, type and hour. Streams of lifetimes hold A and B that last two units each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Lifetimes = Literal["memory", "response"]

HOUR = 3_600_000
"""In milliseconds, as all times here."""
PER_KEY_AND_HOUR = 2
"""How many events of all four types."""
COLUMNS = ("kind", "id", "x", "v", "begin", "end")


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Events by columns, in the order of their times."""

    types: str
    """The letters of the types; `kind` counts them."""
    kind: Ints
    id: Ints
    x: Ints
    v: Ints
    begin: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.kind)

    def save(self, folder: Path) -> None:
        """One file for each column."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in COLUMNS:
            getattr(self, name).tofile(folder / name)
        (folder / "types").write_text(self.types)


def load(folder: Path, first: int = 0, count: int = -1) -> Stream:
    """Some events of a stream that was saved, without the others ever being in memory."""
    found: dict[str, Ints] = {
        name: np.fromfile(folder / name, dtype=np.int64, count=count, offset=8 * first) for name in COLUMNS
    }
    return Stream((folder / "types").read_text(), **found)


def size(folder: Path) -> int:
    """How many events a saved stream has."""
    return (folder / "kind").stat().st_size // 8


def keyed(keys: int, count: int, hot: float = 0.0, seed: int = 7) -> Stream:
    """A stream over some keys; `hot` is the share of all events that one of them gets on top."""
    random = np.random.default_rng(seed)
    step = HOUR // (PER_KEY_AND_HOUR * keys)
    time = np.arange(count) * step + random.integers(0, step, count)
    kind = random.integers(0, 4, count)
    x = random.integers(0, keys, count)
    v = random.integers(0, 1000, count)
    if hot:
        x[np.random.default_rng(seed + 1).random(count) < hot] = 0
    return Stream("ABDE", kind, np.arange(count), x, v, time, time)


def lasting(run: Lifetimes) -> Stream:
    """A stream of events that last two units: one A for 20,000 B in a unit, or 1,000 of both with the same keys."""
    units, a, b = (20, 1, 20_000) if run == "memory" else (500, 1_000, 1_000)
    begin = np.repeat(np.arange(units), a + b)
    kind = np.tile(np.repeat([0, 1], [a, b]), units)
    x = np.tile(np.concatenate([np.arange(a), np.arange(b)]), units)
    return Stream("AB", kind, np.arange(len(begin)), x, np.zeros_like(x), begin, begin + 2)
