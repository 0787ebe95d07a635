"""This module defines the values that events carry: null, bool, number, string, time, and terms.

Python's own equality will not do: `True == 1` there, and here they are of unlike kinds. So values are compared by
their `key`, which is also the total order of the language: null < false < true < numbers < strings < times < terms.
Numbers compare exactly, `1 = 1.0`, and nothing else is converted.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, TypeAlias

from ephemera.base.lazy_dataclass import dataclass

LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Time:
    """A point in time, in microseconds since 1970-01-01T00:00Z."""

    microseconds: int


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A labelled tree: children in order or without one, attributes apart.

    Unordered children are a multiset. With one child or none there is no order to speak of, so both kinds are equal.
    """

    label: str
    children: tuple[Value, ...] = ()
    ordered: bool = True
    attributes: tuple[tuple[str, Value], ...] = ()
    _key: Key | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """The key of a deep term is made from the bottom up, so that nothing recurses deeply."""
        for child in self.children:
            if type(child) is Term:
                if child._key is not None:
                    _ = self.key
                    return
                for inner in child.children:
                    if type(inner) is Term:
                        _ = self.key
                        return

    @property
    def key(self) -> Key:
        """What it is compared by; for a flat term it is made when it is first asked for."""
        if self._key is None:
            keys = [key(child) for child in self.children]
            attributes = sorted((name, key(value)) for name, value in self.attributes)
            inner = (self.label, self.is_ordered, tuple(keys if self.is_ordered else sorted(keys)), tuple(attributes))
            object.__setattr__(self, "_key", (6, inner))
        return self._key  # type: ignore[return-value]

    @property
    def is_ordered(self) -> bool:
        """Whether an ordered pattern may match the children."""
        return self.ordered or len(self.children) < 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


Value: TypeAlias = bool | int | float | str | Time | Term | None
Key: TypeAlias = tuple[Any, ...]


def key(value: Value) -> Key:
    """What a value is compared by: equal keys are one value, and keys sort in the total order.

    >>> key(1) == key(1.0), key(1) == key(True), key(None) < key(False) < key(0) < key("") < key(Time(0))
    (True, False, True)
    """
    match value:
        case None:
            return (0,)
        case bool():
            return (2,) if value else (1,)
        case int() | float():
            return (3, value)
        case str():
            return (4, value)
        case Time(microseconds):
            return (5, microseconds)
        case Term():
            return value.key


def merged(a: Value, b: Value) -> Value:
    """What two equal values become where they meet: an integer for a double, also within terms; zero has no sign.

    >>> merged(1.0, 1), merged(1, 1.0), merged(0.0, -0.0), merged("x", "x")
    (1, 1, 0.0, 'x')
    """
    if type(a) is float:
        is_smaller_zero = a == 0 and math.copysign(1.0, a) < math.copysign(1.0, b)  # type: ignore[arg-type]
        return b if type(b) is int or is_smaller_zero else a
    if not isinstance(a, Term) or not isinstance(b, Term) or a is b or not (_has_float(a) or _has_float(b)):
        return a
    mine, yours = (t.children if a.is_ordered else tuple(sorted(t.children, key=_form)) for t in (a, b))
    values, others = (dict(sorted(t.attributes, key=lambda one: one[0])) for t in (a, b))
    children = tuple(merged(x, y) for x, y in zip(mine, yours, strict=True))
    attributes = tuple((name, merged(v, others[name])) for name, v in values.items())
    if all(x is y for x, y in zip(children, mine, strict=True)) and all(v is values[n] for n, v in attributes):
        return a
    return Term(a.label, children, a.ordered, attributes)


def widened(value: Value) -> Value:
    """An integer as the double that equals it, if there is one: what meets it keeps its own form."""
    return float(value) if type(value) is int and float(value) == value else value


def _form(value: Value) -> tuple[Key, bool]:
    """Sorts equal numbers with integers first, so that equal sets of children meet one by one."""
    return key(value), isinstance(value, float)


def _has_float(term: Term) -> bool:
    stack: list[Value] = [term]
    while stack:
        value = stack.pop()
        if isinstance(value, float):
            return True
        if isinstance(value, Term):
            stack += value.children
            stack += [v for _, v in value.attributes]
    return False


def is_number(value: Value) -> bool:
    """Whether a value is a number; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_valid(value: Value) -> bool:
    """Whether a number is one of ours: an integer of 64 bits or a finite double; all else is."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not is_number(value) or -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER  # type: ignore[operator]


def equal(a: Value, b: Value) -> bool | None:
    """`a = b`; unknown if either is null."""
    return None if a is None or b is None else key(a) == key(b)


def less(a: Value, b: Value) -> bool | None:
    """`a < b`; unknown unless both are numbers, strings or times."""
    if is_number(a) and is_number(b):
        return a < b  # type: ignore[operator]
    if isinstance(a, str) and isinstance(b, str):
        return a < b
    if isinstance(a, Time) and isinstance(b, Time):
        return a.microseconds < b.microseconds
    return None
