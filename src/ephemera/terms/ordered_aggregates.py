"""This module aggregates values in the order of time: `first`, `last`, `nth`, `list`, and `top`, which ranks them.

The order is total and knows no arrival: by the end of the events that a value is of, then by their begin, then by the
value. A list of values is the ordered term `list [ … ]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.events import Interval
from ephemera.terms.values import Key, Term, Value, key, merged

ORDERED = ("first", "last", "nth", "list", "top")
LISTS = ("list", "top")
"""Those whose value is a list."""
LIST = "list"
"""The label of a list of values."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A value, when what it is of happened, and what it is ranked by."""

    value: Value
    time: Interval
    rank: Value

    @property
    def moment(self) -> Key:
        """Where it stands in the order of time."""
        return (self.time.end, self.time.begin, key(self.value))


def ordered_aggregate(function: str, values: Sequence[Timed], number: int | None) -> Value:
    """An ordered aggregate; of nothing a list is empty, and one value of too few is null."""
    standing = _in_one_form(sorted(values, key=lambda one: one.moment))
    match function:
        case "list":
            return Term(LIST, tuple(one.value for one in standing))
        case "top":
            standing.sort(key=lambda one: key(one.rank), reverse=True)  # equal ranks stay in the order of time
            return Term(LIST, tuple(one.value for one in standing[:number]))
        case "last":
            return standing[-1].value if standing else None
        case _:
            place = 1 if number is None else number
            return standing[place - 1].value if place <= len(standing) else None


def _in_one_form(values: list[Timed]) -> list[Timed]:
    """The same with one form (`1`, not `1.0`) of values that are equal and happened together."""
    found: list[Timed] = []
    for _, group in groupby(values, key=lambda one: one.moment):
        same = list(group)
        value = reduce(merged, (one.value for one in same))
        found += [Timed(value, one.time, one.rank) for one in same]
    return found
