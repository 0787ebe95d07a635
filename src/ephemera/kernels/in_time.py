"""This module finds the first, last or n-th value of each group in the order of time, by columns.

The order is that of `terms/ordered_aggregates`: by end, then begin, then value. It does what is exact by columns and
says when that is not enough: texts that happened together are not compared here, zeros may have signs that vanish where
they meet, and a group may have too few values.
"""

from __future__ import annotations

import numpy as np

from ephemera.kernels.columns import Column, Ints
from ephemera.kernels.groups import Groups
from ephemera.terms.nodes import Aggregate


def standing(a: Aggregate, c: Column, times: tuple[Ints, Ints], groups: Groups) -> Column | None:
    """The value of each group that stands at the place of an aggregate; None if it cannot be had exactly by columns."""
    places = _places(a, groups)
    if places is None or c.kind not in ("int", "float", "text") or _has_signed_zero(c):
        return None
    begins, ends = (stamps[groups.order] for stamps in times)
    numbers = np.repeat(np.arange(len(groups)), groups.sizes)
    inner = () if c.kind == "text" else (c.values[groups.order],)
    order = np.lexsort((*inner, begins, ends, numbers))
    if c.kind == "text" and _ties(order, places, (begins, ends, numbers)):
        return None
    return c.take(groups.order[order[places]])


def _places(a: Aggregate, groups: Groups) -> Ints | None:
    """Where among the rows, sorted by group, the value of each group stands."""
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


def _ties(order: Ints, places: Ints, keys: tuple[Ints, Ints, Ints]) -> bool:
    """Whether something of the same group happened at the same time as what stands at one of the places."""
    before, after = np.maximum(places - 1, 0), np.minimum(places + 1, len(order) - 1)
    return any(
        bool(((other != places) & np.logical_and.reduce([k[order[other]] == k[order[places]] for k in keys])).any())
        for other in (before, after)
    )
