"""This module searches many ranges for those that hold a value: by whole columns, and value by value.

The ends of all ranges, sorted, cut the values of a kind into places: one for each end, and one for each gap beside it.
A value is looked up by two binary searches, or one where it comes alone, and then is but the number of a place. A range
covers neighbouring places. A binary tree over the places holds each range at the few nodes that make it up (a segment
tree), so the ranges that hold a value stand at the nodes above its place, and what is looked at is what is found.

Ranges may be told apart by a group: then only those of a value's own group are found. Numbers compare exactly, whole
ones and doubles alike; texts by code points, so that those that begin alike are a range; other values lie in none.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Array, Column, Ints, Mask, objects
from ephemera.terms.values import LARGEST_INTEGER, Value

Order: TypeAlias = Literal["number", "text"]
"""What compares with its like."""
ORDERS: tuple[Order, ...] = ("number", "text")
MOST_LISTED = 1 << 18
"""Of so many whole numbers between the ends the places are listed, and of so many places what they are a part of."""
MANY = 1_024
"""For so many values a list is worth its making."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A range: where it begins and ends, if it does, and whether these values lie outside."""

    least: Value = None
    most: Value = None
    above: bool = False
    """Whether the least value is outside."""
    below: bool = False
    """Whether the most is outside."""

    def is_of(self, order: Order) -> bool:
        """Whether values of an order can lie in it: its ends are of the order."""
        return all(order_of(end) == order for end in (self.least, self.most) if end is not None)


def order_of(value: object) -> Order | None:
    """What a value compares with."""
    kind = type(value)
    return "number" if kind is int or kind is float else "text" if kind is str else None


def beginning_with(text: str) -> Limits:
    """The range of all texts that begin with one; texts compare by code points."""
    before = text.rstrip(chr(sys.maxunicode))
    if not before:
        return Limits(text)
    return Limits(text, before[:-1] + chr(ord(before[-1]) + 1), below=True)


class Ends:
    """Sorted ends, among which values of the same order are looked up."""

    def __init__(self, values: Sequence[Any], order: Order) -> None:
        self._order = order
        self._values: list[Any] = []
        for value in sorted(values):
            if not self._values or self._values[-1] != value:
                self._values.append(value)
        self._texts = objects(self._values)
        self._ints = _as_ints(self._values) if order == "number" else None
        self._floats = _as_floats(self._values) if order == "number" else None

    @cached_property
    def _listed(self) -> _Listed | None:
        """The places of all whole numbers between the ends, if these are not many."""
        if self._ints is None or not len(self._ints.down):
            return None
        least, most = int(self._ints.down[0]) - 1, int(self._ints.up[-1]) + 1
        if most - least >= MOST_LISTED or least < -LARGEST_INTEGER or most > LARGEST_INTEGER:
            return None
        return _Listed(least, most, self._ints.places(np.arange(least, most + 1)))

    def __len__(self) -> int:
        return len(self._values)

    def place(self, value: Any) -> int:
        """The place of a value of the order: odd for an end, even for a gap."""
        at = bisect_left(self._values, value)
        return 2 * at + (at < len(self._values) and self._values[at] == value)

    def places(self, values: Column) -> Ints:
        """The place of each value, or -1 for those of another order."""
        match values.kind:
            case "int" if self._ints is not None:
                listed = self._listed if len(values) >= MANY else None
                return self._ints.places(values.values) if listed is None else listed.places(values.values)
            case "float" if self._floats is not None:
                return self._floats.places(values.values)
            case "text" if self._order == "text":
                return _between(self._texts, self._texts, values.values)
            case "any":
                own = (self.place(v) if order_of(v) == self._order else -1 for v in values.values)
                return np.fromiter(own, dtype=np.int64, count=len(values))
            case _:
                return np.full(len(values), -1, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Rounded:
    """Ends as numbers of one machine type: the next one down and up, which compare as the end itself does."""

    before: int
    """How many ends are below all numbers of the type."""
    down: Array
    up: Array

    def places(self, values: Array) -> Ints:
        return 2 * self.before + _between(self.down, self.up, values)


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """The places of neighbouring whole numbers; those beyond them have the place of the first or the last."""

    least: int
    most: int
    numbers: Ints

    def places(self, values: Array) -> Ints:
        found: Ints = self.numbers[np.clip(values, self.least, self.most) - self.least]
        return found


def _between(down: Array, up: Array, values: Array) -> Ints:
    """How many ends are below a value, and how many not above it, which is one more if it is an end."""
    return down.searchsorted(values, side="left") + up.searchsorted(values, side="right")


def _as_ints(ends: Sequence[float]) -> _Rounded:
    before = sum(end < -LARGEST_INTEGER - 1 for end in ends)
    after = sum(end > LARGEST_INTEGER for end in ends)
    fitting = ends[before : len(ends) - after]
    down = np.array([int(end // 1) for end in fitting], dtype=np.int64)
    return _Rounded(before, down, np.array([-int(-end // 1) for end in fitting], dtype=np.int64))


def _as_floats(ends: Sequence[float]) -> _Rounded:
    down, up = [], []
    for end in ends:
        near = float(end)
        down.append(near if near <= end else float(np.nextafter(near, -np.inf)))
        up.append(near if near >= end else float(np.nextafter(near, np.inf)))
    return _Rounded(0, np.array(down, dtype=np.float64), np.array(up, dtype=np.float64))


class Ranges:
    """Ranges of one order, each with a number and in a group, and which of them hold a value."""

    def __init__(self, order: Order, limits: Sequence[Limits], numbers: Sequence[int], groups: Sequence[int]) -> None:
        """A range that mixes kinds, or has an end of another order, holds nothing and may not be among them."""
        given = [end for one in limits for end in (one.least, one.most) if end is not None]
        self._ends = Ends(given, order)
        self._width = 2 * len(self._ends) + 2
        """How many places a group has, and one before them, where no value lies."""
        own = np.asarray(groups, dtype=np.int64)
        first = own * self._width + np.array([1 + self._first(one) for one in limits], dtype=np.int64)
        last = own * self._width + np.array([1 + self._last(one) for one in limits], dtype=np.int64)
        # Of the places of a group only those count at which one of its own ranges begins or ends.
        self._cuts = np.unique(np.concatenate([own * self._width, first, last + 1]))
        self._tree = _Tree(len(self._cuts), self._part(first), self._part(last), np.asarray(numbers, dtype=np.int64))
        self._cut_list: list[int] = self._cuts.tolist()
        self._codes = (int(own.max(initial=0)) + 1) * self._width
        """How many places all groups have together."""

    def _first(self, one: Limits) -> int:
        return 0 if one.least is None else self._ends.place(one.least) + one.above

    def _last(self, one: Limits) -> int:
        return self._width - 2 if one.most is None else self._ends.place(one.most) - one.below

    def _part(self, places: Ints) -> Ints:
        if len(places) >= MANY and self._codes <= MOST_LISTED:
            return self._parts[places]
        return self._cuts.searchsorted(places, side="right") - 1

    @cached_property
    def _parts(self) -> Ints:
        """For each place the part that it lies in."""
        return self._cuts.searchsorted(np.arange(self._codes), side="right") - 1

    def of(self, value: Any, group: int) -> list[int]:
        """The numbers of the ranges that hold a value of the order."""
        place = group * self._width + 1 + self._ends.place(value)
        at = bisect_left(self._cut_list, place + 1) - 1
        return self._tree.above(at)

    def pairs(self, values: Column, groups: Ints) -> tuple[Ints, Ints]:
        """The pairs of a row and the number of a range that holds its value; group -1 has no ranges."""
        rows, parts = self._held(values, groups)
        found, numbers = self._tree.pairs(parts)
        return rows[found], numbers

    def holds(self, values: Column, groups: Ints) -> Mask:
        """Which values lie in some range."""
        found = np.zeros(len(values), dtype=np.bool_)
        found[self._held(values, groups)[0]] = True
        return found

    def holding_some(self, values: Column, most: int) -> list[int] | None:
        """The numbers of the ranges of the first group that hold some value; None if so many had to be looked at."""
        _, parts = self._held(values, np.zeros(len(values), dtype=np.int64))
        parts = np.unique(parts)
        if self._tree.counts[parts].sum() > most:
            return None
        found: list[int] = np.unique(self._tree.pairs(parts)[1]).tolist()
        return found

    def _held(self, values: Column, groups: Ints) -> tuple[Ints, Ints]:
        """The rows whose values lie in some range, and where."""
        places = self._ends.places(values)
        rows = np.flatnonzero((places >= 0) & (groups >= 0))
        if len(rows) < len(places):
            places, groups = places[rows], groups[rows]
        parts = self._part(groups * self._width + 1 + places)
        some = np.flatnonzero(self._tree.counts[parts])
        return rows[some], parts[some]


class _Tree:
    """A segment tree: ranges of neighbouring parts, each at the nodes that make it up."""

    def __init__(self, parts: int, first: Ints, last: Ints, numbers: Ints) -> None:
        filled = first <= last
        first, last, numbers = first[filled], last[filled], numbers[filled]
        steps = np.zeros(parts + 1, dtype=np.int64)
        np.add.at(steps, first, 1)
        np.add.at(steps, last + 1, -1)
        self.counts: Ints = np.cumsum(steps[:-1])
        """For each part how many ranges cover it."""
        self._leaves = 1 << max(parts - 1, 0).bit_length()
        nodes, owners = _made_of(first + self._leaves, last + self._leaves + 1, numbers)
        order = np.lexsort((owners, nodes))
        self._numbers: Ints = owners[order]
        self._starts: Ints = nodes[order].searchsorted(np.arange(2 * self._leaves + 1))
        levels = np.unique(np.frexp(nodes.astype(np.float64))[1]).tolist()
        self._levels = [self._leaves.bit_length() - level for level in reversed(levels)]
        """How far above the leaves there are nodes with ranges."""

    def above(self, part: int) -> list[int]:
        """The ranges that cover a part, in the order of their numbers."""
        if not self.counts[part]:
            return []
        found: list[int] = []
        for level in self._levels:
            node = (part + self._leaves) >> level
            found += self._numbers[self._starts[node] : self._starts[node + 1]].tolist()
        return sorted(found)

    def pairs(self, parts: Ints) -> tuple[Ints, Ints]:
        """The pairs of a row and a range that covers its part."""
        rows: list[Ints] = [np.empty(0, dtype=np.int64)]
        numbers: list[Ints] = [np.empty(0, dtype=np.int64)]
        for level in self._levels:
            nodes = (parts + self._leaves) >> level
            starts = self._starts[nodes]
            counts = self._starts[nodes + 1] - starts
            own = np.repeat(np.arange(len(parts)), counts)
            places = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
            rows.append(own)
            numbers.append(self._numbers[places])
        return np.concatenate(rows), np.concatenate(numbers)


def _made_of(first: Ints, beyond: Ints, numbers: Ints) -> tuple[Ints, Ints]:
    """The nodes that make up each range of leaves, and whose they are."""
    nodes: list[Ints] = [np.empty(0, dtype=np.int64)]
    owners: list[Ints] = [np.empty(0, dtype=np.int64)]
    first, beyond = first.copy(), beyond.copy()
    while (first < beyond).any():
        own = (first < beyond) & (first & 1 == 1)
        nodes.append(first[own])
        owners.append(numbers[own])
        first[own] += 1
        own = (first < beyond) & (beyond & 1 == 1)
        beyond[own] -= 1
        nodes.append(beyond[own])
        owners.append(numbers[own])
        first, beyond = first >> 1, beyond >> 1
    return np.concatenate(nodes), np.concatenate(owners)
