"""This module generates streams: events that fit a shape, times with many ties, and the ways in which a stream arrives.

Times are whole numbers of the program's time unit from 0 to 12, so that intervals touch, tie and nest often; values
come from a tiny domain, so that they join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Value

T = TypeVar("T")

LATEST = 12
MOST_EVENTS = 8
SPANS = tuple((b, e) for e in range(LATEST + 1) for b in range(e, -1, -1))
"""Every interval between the limits, the shortest first."""

VALUES: tuple[Value, ...] = (1, 2, 3, "x", "y")
NUMBERS: tuple[Value, ...] = (1, 2, 3)


class Dice:
    """Choices, made one by one: `index` gives a number below its argument; 0 is the simplest."""

    def __init__(self, index: Callable[[int], int]) -> None:
        self._index = index

    def pick(self, options: Sequence[T]) -> T:
        return options[self._index(len(options))]

    def number(self, least: int, most: int) -> int:
        return least + self._index(most - least + 1)

    def chance(self, percent: int) -> bool:
        return self._index(100) >= 100 - percent

    def weighed(self, options: Mapping[T, int]) -> T:
        """An option, each as often as its weight says."""
        return self.pick([option for option, weight in options.items() for _ in range(weight)])

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [left.pop(self._index(len(left))) for _ in items]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the events of a label look like: values by position, declared attributes, or a tree."""

    label: str
    kind: Literal["flat", "declared", "tree"]
    arity: int
    ordered: bool = False
    attribute: bool = False
    nested: bool = False
    numbers: bool = False


def shape(dice: Dice, label: str, *, declared: bool) -> Shape:
    """The shape of a label; a declared program has only declared ones."""
    numbers = dice.chance(35)
    if declared:
        return Shape(label, "declared", dice.weighed({2: 3, 1: 1}), numbers=numbers)
    if dice.chance(55):
        return Shape(label, "flat", dice.weighed({2: 7, 1: 4, 0: 1}), ordered=True, numbers=numbers)
    return Shape(label, "tree", 2, dice.chance(50), dice.chance(40), dice.chance(40), numbers)


def value(dice: Dice, shape: Shape, *, null: bool = True) -> Value:
    """A value for an event of the shape."""
    if null and shape.kind != "tree" and dice.chance(7):
        return None
    return dice.pick(NUMBERS if shape.numbers else VALUES)


def term(dice: Dice, shape: Shape, values: Sequence[Value] = ()) -> Term:
    """The data of an event; the first values are given, the rest are drawn."""
    drawn = [*values, *(value(dice, shape) for _ in range(shape.arity - len(values)))][: shape.arity]
    names = ("k", "v")[: shape.arity]
    match shape.kind:
        case "flat":
            return Term(shape.label, tuple(drawn))
        case "declared":
            return attributes_term(shape.label, list(zip(names, drawn, strict=True)))
        case _:
            children: list[Value] = [Term(n, (v,)) for n, v in zip(names, drawn, strict=True)]
            if dice.chance(30):
                children.append(Term("v", (value(dice, shape),)))
            if shape.nested:
                children.append(Term("n", (Term("m", (value(dice, shape),)),)))
            attributes = (("t", value(dice, shape)),) if shape.attribute else ()
            return Term(shape.label, tuple(children), shape.ordered, attributes)


def span(dice: Dice) -> tuple[int, int]:
    """When something happens: a point, or an interval that is mostly short."""
    begin = dice.number(0, LATEST)
    length = 0 if dice.chance(30) else dice.weighed({1: 3, 2: 4, 3: 3, 4: 2, 6: 1, 9: 1})
    return begin, min(begin + length, LATEST)


def moved(event: Event, times: tuple[int, int], unit: int) -> Event:
    """The event at another time."""
    return replace(event, time=Interval(times[0] * unit, times[1] * unit))


# ---- how a stream arrives ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrival:
    """An order in which the events of a stream come, and where it is cut into batches."""

    events: tuple[Event, ...]
    cuts: tuple[int, ...]

    @property
    def batches(self) -> list[tuple[Event, ...]]:
        limits = (0, *self.cuts, len(self.events))
        return [self.events[a:b] for a, b in pairwise(limits)]


@st.composite
def _arrivals(draw: DrawFn, events: Sequence[Event]) -> Arrival:
    order = draw(st.permutations(list(events)))
    cuts = draw(st.lists(st.integers(0, len(order)), max_size=4).map(sorted))
    return Arrival(tuple(order), tuple(cuts))


def arrivals(events: Sequence[Event]) -> SearchStrategy[Arrival]:
    """A permutation of the events with cut points; batches may be empty."""
    return _arrivals(events)
