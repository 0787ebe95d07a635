"""This module says who is interested in some events or tuples, so that those are found without asking everybody.

Somebody may ask for a column to equal a value, or to lie in a range. A text that begins with some letters lies in a
range, too, so patterns such as `/ab.*/` and conditions such as `s >= "ab", s < "ac"` are found by one search. Who asks
for neither is found anyway. Of a term, `s { /ab.*/ }` asks for what stands in its children that are called `s`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ephemera.algebra.attributes import TERM, position
from ephemera.algebra.scalar import Every, Formula, Holds
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Batch, Column
from ephemera.kernels.event_columns import Events
from ephemera.kernels.ranges import ORDERS, Limits, Order, Ranges, beginning_with, order_of
from ephemera.kernels.tail import RowBatch, plain_key
from ephemera.physical.nodes import QueryPlan
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import As, Atom, Bool, Element, Label, NamedAtom, Number, Pattern, QueryTerm, Regex, Text, Var
from ephemera.terms.regex import beginning
from ephemera.terms.values import Term, Value

FEW_VALUES = 16
"""So few values are not looked for in many tuples: who asks for them is visited."""
MOST_FINDS = 4
"""If more ranges are found than this times those that there are, all are visited."""


@dataclass(frozen=True, slots=True)
class Field:
    """What stands in the children of a term that have a label."""

    label: str


Place: TypeAlias = str | Field
"""A column, or a field of events."""


@dataclass(frozen=True, slots=True)
class Equal:
    """A column has to have a value."""

    column: Place
    value: Value


@dataclass(frozen=True, slots=True)
class Within:
    """A column has to lie in a range."""

    column: Place
    limits: Limits


Asked: TypeAlias = Equal | Within
Values: TypeAlias = Sequence[Any] | Column
"""Some values, one by one or as a column."""
Look: TypeAlias = Callable[[Place], Values | None]
"""The values of a column; None if that cannot be said."""


class Interest:
    """Who is interested in some tuples: numbers, some only if a column has what they ask for."""

    def __init__(self) -> None:
        self._anyway: dict[int, None] = {}
        self._equal: dict[Place, dict[Any, dict[int, None]]] = {}
        self._within: dict[Place, _Within] = {}

    def add(self, who: int, asked: Asked | None) -> None:
        """One more."""
        match asked:
            case None:
                self._anyway[who] = None
            case Equal(column, value):
                self._equal.setdefault(column, {}).setdefault(plain_key(value), {})[who] = None
            case Within(column, limits):
                self._within.setdefault(column, _Within()).add(who, limits)

    def remove(self, who: int, asked: Asked | None) -> None:
        """One less."""
        match asked:
            case None:
                self._anyway.pop(who, None)
            case Equal(column, value):
                values, own = self._equal.get(column, {}), plain_key(value)
                values.get(own, {}).pop(who, None)
                if not values.get(own):
                    values.pop(own, None)
            case Within(column, limits):
                if column in self._within:
                    self._within[column].remove(who, limits)

    def of(self, look: Look) -> Iterator[int]:
        """Those that may find something in what has such values."""
        yield from self._anyway
        for column, those in self._equal.items():
            for value in _distinct(look(column), those):
                yield from those.get(value, ())
        for column, within in self._within.items():
            yield from within.of(look(column))


def _distinct(values: Values | None, every: Collection[Any]) -> Iterable[Any]:
    """Values as keys; where they are not known, all that somebody asks for."""
    if values is None or (isinstance(values, Column) and len(every) <= FEW_VALUES):
        return every
    if not isinstance(values, Column):
        return map(plain_key, values)
    return set(map(plain_key, values.tolist())) if values.kind == "any" else set(values.tolist())


class _Within:
    """Those that ask for a range of one column. Searching is made ready once: who is removed is only passed over."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Limits], int] = {}
        self._those: list[int] = []
        self._awake: set[int] = set()
        self._ranges: dict[Order, Ranges] | None = None

    def add(self, who: int, limits: Limits) -> None:
        number = self._numbers.setdefault((who, limits), len(self._numbers))
        if number == len(self._those):
            self._those.append(who)
            self._ranges = None
        self._awake.add(number)

    def remove(self, who: int, limits: Limits) -> None:
        self._awake.discard(self._numbers.get((who, limits), -1))

    def of(self, values: Values | None) -> Iterator[int]:
        if not self._awake:
            return
        for number in self._found(values):
            if number in self._awake:
                yield self._those[number]

    def _found(self, values: Values | None) -> Iterable[int]:
        every = range(len(self._those))
        if values is None:
            return every
        if self._ranges is None:
            self._ranges = {order: made for order in ORDERS if (made := self._made(order)) is not None}
        if not isinstance(values, Column):
            return [number for value in values for number in self._holding(value)]
        found: list[int] = []
        for ranges in self._ranges.values():
            some = ranges.holding_some(values, MOST_FINDS * len(self._those))
            if some is None:
                return every
            found += some
        return found

    def _holding(self, value: Any) -> Sequence[int]:
        order = order_of(value)
        ranges = (self._ranges or {}).get(order) if order is not None else None
        return ranges.of(value, 0) if ranges is not None else ()

    def _made(self, order: Order) -> Ranges | None:
        """The ranges of an order; those that mix kinds hold nothing."""
        own = [(limits, number) for (_, limits), number in self._numbers.items() if limits.is_of(order)]
        return Ranges(order, [o for o, _ in own], [n for _, n in own], [0] * len(own)) if own else None


# ---- what there is to look at ----------------------------------------------------------------------------------


def in_batch(batch: Batch) -> Look:
    """The values of tuples."""

    def look(column: Place) -> Values | None:
        if not isinstance(column, str):
            return None
        if isinstance(batch, RowBatch):
            rows = batch.given
            return [row[column] for row in rows] if all(column in row for row in rows) else None
        return batch.columns.get(column)

    return look


def in_events(events: Events) -> Look:
    """The values of events, and what their fields hold."""
    columns = in_batch(events.batch)

    def look(column: Place) -> Values | None:
        if isinstance(column, str):
            return columns(column)
        if events.arity is None:
            terms: list[Term] = events.batch.columns[TERM].tolist()
            inside = (child for term in terms for child in term.children if isinstance(child, Term))
            return [value for child in inside if child.label == column.label for value in child.children]
        names = events.names
        return columns(position(list(names).index(column.label))) if names and column.label in names else None

    return look


# ---- what is asked for -----------------------------------------------------------------------------------------


def asked_of_events(query: QueryPlan) -> Asked | None:
    """What events need to have for the one pattern of a query to match; a value before a range."""
    if len(query.patterns) != 1:
        return None
    asked = list(_asked_by(query.patterns[0]))
    return next((one for one in asked if isinstance(one, Equal)), asked[0] if asked else None)


def _asked_by(pattern: Pattern) -> Iterator[Asked]:
    match pattern:
        case Atom(_, arguments):
            for k, argument in enumerate(arguments):
                yield from _asked_value(position(k), argument)
        case NamedAtom(_, fields):
            for field in fields:
                yield from _asked_value(Field(field.name), field.argument)
        case As(_, Element() as inner):
            yield from _asked_by(inner)
        case Element(_, _, _, children):
            for child in map(_bare, children):
                match child:
                    case Element(Label() as label, _, _, values) if not str(label).startswith("@"):
                        for value in values:
                            yield from _asked_value(Field(str(label)), _bare(value))
                    case _:
                        continue
        case _:
            return


def _bare(term: QueryTerm) -> QueryTerm:
    """A term without the variable that is bound to it."""
    return _bare(term.term) if isinstance(term, As) else term


def _asked_value(column: Place, term: object) -> Iterator[Asked]:
    match term:
        case Text(value) | Number(value) | Bool(value):
            yield Equal(column, value)
        case Regex(expression):
            first = beginning(expression)
            if first:
                yield Within(column, beginning_with(first))
        case _:
            return


def asked_of_tuples(tests: Iterable[Formula], sure: Container[str]) -> Asked | None:
    """What a tuple needs to have for some tests to hold: a value, or else a range, best one with two ends."""
    ranges: dict[str, Limits] = {}
    for test in _parts(tests):
        found = _compared(test)
        if found is None or found[0] not in sure:
            continue
        name, operator, value = found
        if operator == "=":
            return Equal(name, value)
        one = ranges.get(name, Limits())
        if operator in (">", ">=") and one.least is None and order_of(value) is not None:
            ranges[name] = Limits(value, one.most, operator == ">", one.below)
        elif operator in ("<", "<=") and one.most is None and order_of(value) is not None:
            ranges[name] = Limits(one.least, value, one.above, operator == "<")
    best = max(ranges.items(), key=lambda one: (one[1].least is not None) + (one[1].most is not None), default=None)
    return Within(*best) if best is not None else None


def _parts(tests: Iterable[Formula]) -> Iterator[Formula]:
    for test in tests:
        if isinstance(test, Every):
            yield from _parts(test.parts)
        else:
            yield test


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _compared(test: Formula) -> tuple[str, str, Value] | None:
    """A variable, how it has to compare with a constant, and that."""
    match test:
        case Holds(Comparison(operator, Var(name), Number(value) | Text(value) | Bool(value))) if operator != "!=":
            return name, operator, value
        case Holds(Comparison(operator, Number(value) | Text(value) | Bool(value), Var(name))) if operator != "!=":
            return name, _MIRRORED[operator], value
        case _:
            return None
