"""This module estimates from some rows how many values a column has."""

from __future__ import annotations

import numpy as np

from ephemera.kernels.columns import Batch, Column
from ephemera.kernels.keys import hash_column

SAMPLE = 4_096
"""So many rows are looked at, spread over all of them."""


def distinct_values(column: Column, count: int) -> float:
    """About how many values there are in a column of so many rows (Chao's estimate).

    What was seen twice tells how much was not seen at all: if most values of a sample came once, there are many more.

    >>> from ephemera.kernels.columns import ints
    >>> round(distinct_values(ints(np.arange(100_000) % 50), 100_000))
    50
    >>> round(distinct_values(ints(np.arange(100_000)), 100_000))
    100000
    """
    if not count:
        return 1.0
    rows = np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64)
    hashes = np.sort(hash_column(column.take(rows)))
    times = np.diff(np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1], [True]])))
    once, twice = int(np.count_nonzero(times == 1)), int(np.count_nonzero(times == 2))
    if once == len(rows):
        return float(count)
    return float(min(len(times) + once * once / (2 * max(twice, 1)), count))


def distinct_in(batch: Batch, names: dict[str, str]) -> dict[str, float]:
    """The same for some columns of a batch, under other names."""
    return {new: distinct_values(batch.columns[own], len(batch)) for own, new in names.items() if own in batch.columns}
