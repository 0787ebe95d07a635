"""This module finds the sums, the least and the greatest values of many ranges of an array, or of a run, at once.

For each power of two it keeps the extreme of all ranges of that length (a sparse table); any range is two of these that
overlap. Tables are made only as far as the longest range that was asked for. What is made for a run stays with its
index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ephemera.kernels.columns import Array, Ints
from ephemera.kernels.history import Question, Run


class Extremes:
    """The least or the greatest values in ranges of an array."""

    def __init__(self, values: Array, *, greatest: bool) -> None:
        self._choose: Any = np.maximum if greatest else np.minimum
        self._tables = [values]

    def of(self, starts: Ints, stops: Ints) -> Array:
        """The extreme of each range; none may be empty."""
        lengths = stops - starts
        levels = np.frexp(lengths)[1] - 1  # exact: no array is longer than a double can count
        found = np.empty(len(starts), dtype=self._tables[0].dtype)
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            mine = np.flatnonzero(levels == level)
            table = self._table(level)
            found[mine] = self._choose(table[starts[mine]], table[stops[mine] - (1 << level)])
        return found

    def _table(self, level: int) -> Array:
        while len(self._tables) <= level:
            last, half = self._tables[-1], 1 << (len(self._tables) - 1)
            self._tables.append(self._choose(last[:-half], last[half:]))
        return self._tables[level]


def running_sum(run: Run, asked: Question, name: str) -> Ints:
    """The sums of a column of whole numbers over all rows before each, in the order of an index, and over all."""
    index = run.index(asked.keys, asked.stamp)
    if ("sum", name) not in index.summaries:
        index.summaries["sum", name] = np.concatenate([[0], np.cumsum(run.batch[name][index.order])])
    sums: Ints = index.summaries["sum", name]
    return sums


def extremes(run: Run, asked: Question, name: str, function: str) -> Extremes:
    """The least or greatest values (`min`, `max`) of a column of numbers in ranges of an index."""
    index = run.index(asked.keys, asked.stamp)
    if (function, name) not in index.summaries:
        index.summaries[function, name] = Extremes(run.batch[name][index.order], greatest=function == "max")
    found: Extremes = index.summaries[function, name]
    return found
