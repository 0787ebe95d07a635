"""This module constructs terms from substitution sets: variables, functions, `all … group by … order by`, aggregates.

A row is one substitution together with what it came from: the (event, binding) pair of each collected query, so that
an aggregate ranges over the distinct pairs of the collection that binds its variable, and two collections never
multiply each other. Variables of positive events are aggregated over their distinct bindings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.terms.compute import Scope, compute
from ephemera.terms.errors import BadMessage
from ephemera.terms.events import Interval, covering
from ephemera.terms.functions import Undefined, checked
from ephemera.terms.match import Substitution, all_merged
from ephemera.terms.nodes import (
    Aggregate,
    All,
    Binary,
    Call,
    Construct,
    ConstructTerm,
    Expression,
    Label,
    Name,
    Negative,
    OptionalConstruct,
    OrderBy,
    Var,
)
from ephemera.terms.ordered_aggregates import ORDERED, Timed, ordered_aggregate
from ephemera.terms.text import plain, read_number
from ephemera.terms.values import Key, Term, Value, is_number, key, merged


@dataclass(frozen=True, slots=True)
class Row:
    """One binding of all variables; `pairs` are what each collection gave to it, None where it gave nothing."""

    variables: Substitution
    own: Key
    pairs: tuple[Key | None, ...]
    times: tuple[Interval | None, ...] = ()
    """When the event of each of these pairs happened."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Which collection binds a variable; those of positive events are not in it."""

    collection: Mapping[str, int]
    collections: int
    names: tuple[str, ...] = ()
    """What the event of each collection is called."""


def direct_variables(term: ConstructTerm) -> frozenset[str]:
    """The variables that stand outside `all` and aggregates: those a term is built separately for."""
    match term:
        case All() | Aggregate():
            return frozenset()
        case Construct(label, _, children):
            own = frozenset([label.name]) if isinstance(label, Var) else frozenset[str]()
            return own.union(*(direct_variables(child) for child in children))
        case OptionalConstruct(inner, default):
            return direct_variables(inner) | (direct_variables(default) if default is not None else frozenset())
        case Var(name):
            return frozenset([name])
        case Binary(_, left, right):
            return direct_variables(left) | direct_variables(right)
        case Negative(operand):
            return direct_variables(operand)
        case Call(_, arguments):
            return frozenset[str]().union(*(direct_variables(a) for a in arguments))
        case _:
            return frozenset()


def _needed_variables(term: ConstructTerm) -> frozenset[str]:
    """The direct variables without which nothing is built: those outside `optional`."""
    match term:
        case OptionalConstruct():
            return frozenset()
        case Construct(label, _, children):
            own = frozenset([label.name]) if isinstance(label, Var) else frozenset[str]()
            return own.union(*(_needed_variables(child) for child in children))
        case _:
            return direct_variables(term)


def _direct_aggregates(term: ConstructTerm) -> Iterator[Aggregate]:
    """The aggregates of a term outside `all`, and outside what is optional itself."""
    match term:
        case Aggregate():
            yield term
        case Construct(_, _, children) | Call(_, children):
            for child in children:
                yield from _direct_aggregates(child)
        case Binary(_, left, right):
            yield from _direct_aggregates(left)
            yield from _direct_aggregates(right)
        case Negative(operand):
            yield from _direct_aggregates(operand)
        case _:
            return


def partition(rows: Sequence[Row], variables: Iterable[str]) -> list[list[Row]]:
    """The rows by the values of some variables, in the order of the values; no value comes first."""
    names = sorted(variables)
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(_values(row, names), []).append(row)
    return [unified(groups[k], names) for k in sorted(groups)]


def unified(rows: list[Row], names: Iterable[str]) -> list[Row]:
    """Rows that agree on some variables, with one form of each of their values."""
    if len(rows) == 1:
        return rows
    forms: dict[str, Value] = {}
    for name in names:
        values = [row.variables[name] for row in rows if name in row.variables]
        if len({type(v) for v in values}) > 1 or (values and isinstance(values[0], float | Term)):
            forms[name] = reduce(merged, (v for v in values if key(v) == key(values[0])))
    return [replace(row, variables={**row.variables, **forms}) for row in rows] if forms else rows


def once(rows: Iterable[Row]) -> list[Row]:
    """Each row once; of equal ones the values meet."""
    found: dict[Key, Row] = {}
    for row in rows:
        which = (row.own, row.pairs)
        same = found.get(which)
        found[which] = row if same is None else replace(same, variables=all_merged(same.variables, row.variables))
    return list(found.values())


def _values(row: Row, names: Sequence[str]) -> Key:
    return tuple(key(row.variables[n]) if n in row.variables else (-1,) for n in names)


def construct(term: ConstructTerm, rows: Sequence[Row], origin: Origin, scope: Scope) -> list[Value]:
    """What a construct term builds from rows that agree on its direct variables."""
    match term:
        case Construct(label, ordered, children):
            name = str(label) if isinstance(label, Label) else _label(rows[0].variables.get(label.name))
            built = [v for child in children for v in construct(child, rows, origin, scope)]
            attributes = [v for v in built if isinstance(v, Term) and v.label.startswith("@")]
            inside = tuple(v for v in built if not (isinstance(v, Term) and v.label.startswith("@")))
            return [Term(name, inside, ordered, tuple((a.label[1:], _only(a)) for a in attributes))]
        case All(inner, group_by, order_by):
            groups_by = frozenset(v.name for v in group_by or ())
            needed = _needed_variables(inner) | groups_by
            complete = [row for row in rows if all(name in row.variables for name in needed)]
            groups = partition(complete, direct_variables(inner) | groups_by)
            if order_by is not None:
                # A group that has several values of a key stands where the first of them does.
                descending = "descending" in order_by.modes
                first = max if descending else min
                groups.sort(key=lambda group: first(_order(row, order_by) for row in group), reverse=descending)
            found = [v for group in groups for v in construct(inner, group, origin, scope)]
            distinct: dict[Key, Value] = {}
            for v in found:
                distinct[key(v)] = merged(distinct[key(v)], v) if key(v) in distinct else v
            return list(distinct.values())
        case OptionalConstruct(inner, default):
            has_values = all(n in rows[0].variables for n in direct_variables(inner))
            if has_values and all(_ranges(a, rows, origin, scope) for a in _direct_aggregates(inner)):
                return construct(inner, rows, origin, scope)
            return [] if default is None else construct(default, rows, origin, scope)
        case _:
            return [value_of(term, rows, origin, scope)]


def value_of(e: Expression, rows: Sequence[Row], origin: Origin, scope: Scope) -> Value:
    """An expression over rows that agree on its variables, its aggregates over all of them."""
    return compute(e, rows[0].variables, replace(scope, aggregate=lambda a: aggregate(a, rows, origin, scope)))


def _label(value: Value) -> str:
    if not isinstance(value, str):
        raise Undefined("a label is a string")
    return value


def _only(attribute: Term) -> Value:
    if len(attribute.children) != 1 or isinstance(attribute.children[0], Term):
        raise Undefined("an attribute has one value")
    return attribute.children[0]


def _order(row: Row, order: OrderBy) -> Key:
    return tuple(_ordered_as(row.variables.get(v.name), order.modes) for v in order.keys)


def _ordered_as(value: Value, modes: Sequence[str]) -> Key:
    """Lexical order takes values as texts, numeric order texts as the numbers that they are, if they are any."""
    if "lexical" in modes and value is not None and not isinstance(value, Term):
        return key(plain(value))
    if "numeric" in modes and isinstance(value, str):
        return key(_number(value))
    return key(value)


def _number(text: str) -> Value:
    try:
        number = read_number(text)
    except BadMessage:  # too large for one of ours
        return text
    return text if number is None else number


# ---- aggregates --------------------------------------------------------------------------------------------


def aggregate(a: Aggregate, rows: Sequence[Row], origin: Origin, scope: Scope) -> Value:
    """An aggregate over rows; of nothing, counts and sums are 0 and the rest null."""
    if a.argument is None:
        return _counted(rows, origin)
    if a.function in ORDERED:
        return ordered_aggregate(a.function, _timed(a, rows, origin, scope), a.number)
    values = [v for v in _ranged(a, a.argument, rows, origin, scope) if v is not None]
    match a.function:
        case "count":
            return len({key(v) for v in values})
        case "sum":
            return _sum(values)
        case "avg":
            return _average(values) if values else None
        case "min":
            return _extreme(min(values, key=key, default=None), values)
        case _:
            return _extreme(max(values, key=key, default=None), values)


def _extreme(extreme: Value, values: Sequence[Value]) -> Value:
    """The least or greatest value, in the form that all which equal it make."""
    return extreme if type(extreme) is int else reduce(merged, (v for v in values if key(v) == key(extreme)), extreme)


def _counted(rows: Sequence[Row], origin: Origin) -> int:
    return len({row.pairs[0] if origin.collections else row.own for row in rows} - {None})


def _ranges(a: Aggregate, rows: Sequence[Row], origin: Origin, scope: Scope) -> bool:
    """Whether there is anything that an aggregate ranges over."""
    if a.argument is None:
        return _counted(rows, origin) > 0
    return any(v is not None for v in _ranged(a, a.argument, rows, origin, scope))


def _ranged(
    a: Aggregate, argument: Expression | Construct, rows: Sequence[Row], origin: Origin, scope: Scope
) -> list[Value]:
    """The argument's value for each pair (or binding) that it ranges over."""
    found, _ = _known(a, rows, origin)
    if isinstance(argument, Construct):
        return [v for row in found for v in construct(argument, [row], origin, scope)]
    return [compute(argument, row.variables, _with_events(scope, row, origin)) for row in found]


def _timed(a: Aggregate, rows: Sequence[Row], origin: Origin, scope: Scope) -> list[Timed]:
    """What an ordered aggregate ranges over; bindings of the trace alone happened all at once."""
    if a.argument is None or isinstance(a.argument, Construct):
        raise Undefined(f"`{a.function}` takes a value")
    found, collections = _known(a, rows, origin)
    timed: list[Timed] = []
    for row in found:
        times = [time for k in collections if (time := row.times[k]) is not None]
        own = _with_events(scope, row, origin)
        value = compute(a.argument, row.variables, own)
        rank = value if a.by is None else compute(a.by, row.variables, own)
        if value is not None and rank is not None:
            timed.append(Timed(value, covering(times) if times else Interval(0, 0), rank))
    return timed


def _with_events(scope: Scope, row: Row, origin: Origin) -> Scope:
    """What expressions may speak of, with the times of collected events."""
    own = {name: time for name, time in zip(origin.names, row.times, strict=False) if time is not None}
    return replace(scope, times={**scope.times, **own}) if own else scope


def _known(a: Aggregate, rows: Sequence[Row], origin: Origin) -> tuple[list[Row], list[int]]:
    """A row for each pair (or binding) that an aggregate ranges over, if all in it has a value; and the collections."""
    named = [part for e in (a.argument, a.by) if e is not None for part in find(e, (Var, Name))]
    used = {v.name for v in named if isinstance(v, Var)}
    events = {n.name for n in named if isinstance(n, Name)}
    ranged = {origin.collection[name] for name in used if name in origin.collection}
    collections = sorted(ranged.union(k for k, name in enumerate(origin.names) if name in events))
    found: dict[Key, list[Row]] = {}
    for row in rows:
        if a.group_by:
            identity: Key = (_values(row, [v.name for v in a.group_by]), _values(row, sorted(used)))
        elif collections:
            identity = tuple(row.pairs[k] for k in collections)
        else:
            identity = row.own
        if not collections or None not in identity:
            found.setdefault(identity, []).append(row)
    # Aggregates skip null, and so what is computed from it.
    first = [unified(same, used)[0] for same in found.values()]
    return [row for row in first if all(row.variables.get(name) is not None for name in used)], collections


def _numbers(values: Sequence[Value]) -> list[int | float]:
    numbers = [v for v in values if isinstance(v, int | float) and is_number(v)]
    if len(numbers) != len(values):
        raise Undefined("sums and averages take numbers")
    return numbers


def _sum(values: Sequence[Value]) -> Value:
    numbers = _numbers(values)
    if all(isinstance(n, int) for n in numbers):
        return checked(sum(numbers))
    try:
        return checked(math.fsum(numbers))
    except OverflowError:
        raise Undefined("the sum is infinite") from None


def _average(values: Sequence[Value]) -> Value:
    numbers = _numbers(values)
    try:
        return checked(float(sum(Fraction(n) for n in numbers) / len(numbers)))
    except OverflowError:
        raise Undefined("the average is infinite") from None
