"""This module takes the values of each group in the order of time, by columns: the first, last or n-th, lists, the top.

The order is that of `terms/ordered_aggregates`: by end, then begin, then value. It does what is exact by columns and
says when that is not enough: texts that happened together are not compared here, zeros may have signs that vanish where
they meet, and a group may have too few values.
"""

from __future__ import annotations

import numpy as np

from ephemera.kernels.columns import Array, Column, Ints, column
from ephemera.kernels.groups import Groups
from ephemera.terms.nodes import Aggregate
from ephemera.terms.ordered_aggregates import LIST
from ephemera.terms.values import Term


def standing(a: Aggregate, c: Column, rank: Column | None, times: tuple[Ints, Ints], groups: Groups) -> Column | None:
    """What an ordered aggregate makes of each group; None if it cannot be had exactly by columns.

    `rank` is what the values are ranked by, where they are.
    """
    if c.kind not in ("int", "float", "text") or _has_signed_zero(c):
        return None
    begins, ends = (stamps[groups.order] for stamps in times)
    numbers = np.repeat(np.arange(len(groups)), groups.sizes)
    keys: tuple[Array, ...] = (begins, ends)
    if rank is not None:
        if rank.kind not in ("int", "float"):
            return None
        falling = ~rank.values if rank.kind == "int" else -rank.values
        keys = (*keys, falling[groups.order])
    inner = () if c.kind == "text" else (c.values[groups.order],)
    order = np.lexsort((*inner, *keys, numbers))
    if c.kind == "text" and _ties(order, (*keys, numbers)):
        return None
    sorted_values = c.take(groups.order[order])
    if a.function in ("list", "top"):
        return _lists(sorted_values, groups, a.number)
    places = _places(a, groups)
    return None if places is None else sorted_values.take(places)


def _lists(c: Column, groups: Groups, most: int | None) -> Column:
    """The first values of each group, or all, as a list."""
    values = c.tolist()
    sizes = groups.sizes if most is None else np.minimum(groups.sizes, min(most, len(c)))
    ranges = zip(groups.starts.tolist(), (groups.starts + sizes).tolist(), strict=True)
    return column([Term(LIST, tuple(values[start:stop])) for start, stop in ranges])


def _places(a: Aggregate, groups: Groups) -> Ints | None:
    """Where among the sorted rows the value of each group stands."""
    match a.function:
        case "first":
            return groups.starts
        case "last":
            return groups.starts + groups.sizes - 1
        case "nth" if a.number is not None and a.number <= int(groups.sizes.min()):
            return groups.starts + (a.number - 1)
        case _:
            return None


def _has_signed_zero(c: Column) -> bool:
    return c.kind == "float" and bool((np.signbit(c.values) & (c.values == 0)).any())


def _ties(order: Ints, keys: tuple[Array, ...]) -> bool:
    """Whether two rows of a group happened together, and have one rank."""
    before, after = order[:-1], order[1:]
    return bool(np.logical_and.reduce([k[before] == k[after] for k in keys]).any())
