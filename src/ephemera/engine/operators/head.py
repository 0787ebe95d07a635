"""This module builds what rules derive: from whole columns where a head shows values, else group by group.

The values of an arrow head are computed by columns. Rows for which columns cannot vouch, and those that have no value,
are built one by one, so that what had no value is told as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ephemera.algebra.attributes import (
    TERM,
    as_written,
    begin,
    end,
    is_of_event,
    is_stamp,
    is_variable,
    position,
    reference,
    variables_in,
)
from ephemera.algebra.nodes import Group, Imbed
from ephemera.algebra.truth import Tester
from ephemera.base.time import LATEST, TOO_FAR
from ephemera.engine.operators.head_columns import bound, exact, ranging, shown
from ephemera.engine.operators.window import COUNT, named, worth
from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import Batch, Column, Mask, column, earliest, ints, latest, objects
from ephemera.kernels.computed import gathered
from ephemera.kernels.event_columns import BEGIN, END, RECIPIENT, TRANSPORT, Events, distinct, flat_term
from ephemera.kernels.groups import aggregate, average, grouped, rounded
from ephemera.kernels.in_time import standing
from ephemera.physical.nodes import Wanted
from ephemera.rules.nodes import Catalogue
from ephemera.rules.series import Series
from ephemera.syntax.nodes import Derive, Head, Raise
from ephemera.terms.addresses import Address, address
from ephemera.terms.compute import compute
from ephemera.terms.construct import Origin, Row, construct, once, unified, value_of
from ephemera.terms.events import Event, Interval
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Aggregate, Bool, Construct, Expression, Number, Text, Var
from ephemera.terms.ordered_aggregates import ORDERED
from ephemera.terms.values import Key, Term, Value, key


class HeadBuilder:
    """The operator that makes events from the tuples of a rule; it owns what had no value until somebody takes that."""

    def __init__(
        self,
        head: Group | Imbed,
        covers: Sequence[str],
        catalogue: Catalogue,
        tester: Tester,
        series: Series | None = None,
    ) -> None:
        self.head = head
        self._series = series
        """Where the answers of a rule that may grow are counted."""
        self._begins, self._ends = [begin(n) for n in covers], [end(n) for n in covers]
        self._catalogue = catalogue
        self._tester = tester
        self._shown = _label_and_shown(head.head)
        self._names = catalogue.attributes(self._shown[0])
        self._undefined: list[tuple[Mapping[str, Value], str]] = []
        """What was bound where a head had no value, and why."""

    def step(self, batch: Batch) -> list[Events]:
        """The events of all tuples, each once."""
        if len(batch):
            batch = self._in_time(batch)
        if not len(batch):
            return []
        if isinstance(self.head, Imbed):
            return distinct(self._plain(batch, self.head.head))
        return distinct(self._grouped(batch, self.head))

    def at_once(self, batch: Batch) -> Events | None:
        """The events of the tuples of an arrow head, each once; None if columns do not vouch for all of them."""
        first, last = self._times(batch)
        if last.max() > LATEST or first.min() < -LATEST or not isinstance(self.head.head, Derive):
            return None
        if isinstance(self.head, Group):
            made = self._by_columns(batch, self.head)
        else:
            columns, sure = self._values(self.head.head, batch)
            made = [self._flat(self.head.head, columns, batch)] if sure is None else None
        return distinct(made)[0] if made is not None else None

    def take_undefined(self) -> list[tuple[Mapping[str, Value], str]]:
        """What was bound where a head had no value since this was last asked, and why."""
        undefined, self._undefined = self._undefined, []
        return undefined

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what had no value; what it returns goes back to that."""
        count = len(self._undefined)

        def go_back() -> None:
            del self._undefined[count:]

        return go_back

    def _in_time(self, batch: Batch) -> Batch:
        """The tuples without those that happen beyond the last time, which have no value."""
        first, last = self._times(batch)
        if last.max() <= LATEST and first.min() >= -LATEST:
            return batch
        far = (last > LATEST) | (first < -LATEST)
        if isinstance(self.head, Imbed):
            self._undefined += [(variables_in(t), TOO_FAR) for t in batch.take(far).rows()]
        else:
            self._undefined += [(dict(rows[0].variables), TOO_FAR) for _, rows, _ in self._groups(batch.take(far))]
        return batch.take(~far)

    def simple(self, row: Mapping[str, Any]) -> Event:
        """The event of one tuple, for a simple head."""
        label, shown = self._shown
        values = [row[a.name] if isinstance(a, Var) else a.value for a in shown]
        first = min([row[n] for n in self._begins])
        last = max([row[n] for n in self._ends])
        return Event(flat_term(label, values, self._names), Interval(first, last), positional=True)

    def _times(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        return earliest(batch, self._begins), latest(batch, self._ends)

    def _plain(self, batch: Batch, head: Head) -> list[Events]:
        if isinstance(head, Derive) and self._series is None:
            columns, sure = self._values(head, batch)
            if sure is None:
                return [self._flat(head, columns, batch)]
            found = [self._flat(head, [c.take(sure) for c in columns], batch.take(sure))] if sure.any() else []
            return [*found, *self._one_by_one(batch.take(~sure), head)]
        return self._one_by_one(batch, head)

    def _values(self, head: Derive, batch: Batch) -> tuple[list[Column], Mask | None]:
        """The values of an arrow head, and the rows on which columns vouch for all of them; None is all rows."""
        arithmetic = Arithmetic(batch, self._tester.scope({}))
        columns: list[Column] = []
        together: Mask | None = None
        for argument in head.arguments:
            plain = bound(argument, batch)
            c, sure = (plain, None) if plain is not None else gathered(arithmetic.shares(argument), len(batch))
            columns.append(c)
            if sure is not None:
                together = sure if together is None else together & sure
        return columns, together

    def _one_by_one(self, batch: Batch, head: Head) -> list[Events]:
        first, last = self._times(batch)
        made = _Made(head, first, last, self._catalogue)
        for number, t in enumerate(batch.rows()):
            row = Row(variables_in(t), (), ())
            built = self._built(head, [row], Origin({}, 0), t)
            if self._series is not None:
                bound = {as_written(name): value for name, value in row.variables.items()}
                for one in built:
                    if isinstance(one, _Sent):  # no rule reads messages, so none of them grows
                        continue
                    answer = one if isinstance(one, Term) else flat_term(self._shown[0], one, None)
                    self._series.add((int(first[number]), int(last[number])), bound, answer)
            made.add(number, built)
        return made.events()

    def _by_columns(self, batch: Batch, e: Group) -> list[Events] | None:
        """Aggregates of one collection in an arrow head, where all of it can be had exactly by columns."""
        head = e.head
        if not isinstance(head, Derive) or e.having or len(e.collections) > 1:
            return None
        if COUNT in batch.columns:
            return self._from_sums(batch, e, head)
        collected = batch.columns.get(reference(e.collections[0].name)) if e.collections else None
        if collected is None or collected.kind != "int":  # nothing was collected for some
            return None
        ranged = frozenset(e.collections[0].binds)
        scope = self._tester.scope({})
        if not all(isinstance(a, Aggregate) or exact(a, batch, scope) is not None for a in head.arguments):
            return None
        groups = grouped(batch, [name for name in e.by if not is_stamp(name)])
        firsts = batch.take(groups.first)
        columns: list[Column | None] = []
        for argument in head.arguments:
            if not isinstance(argument, Aggregate):
                columns.append(exact(argument, firsts, scope))
            elif argument.group_by or argument.collective:
                return None
            elif argument.argument is None:
                columns.append(aggregate("count", None, groups))
            elif (values := ranging(argument.argument, batch, ranged, scope)) is None:
                return None
            elif argument.function in ORDERED:
                rank = ranging(argument.by, batch, ranged, scope) if argument.by is not None else values
                times = batch[begin(e.collections[0].name)], batch[end(e.collections[0].name)]
                is_ranked = argument.function == "top"
                if is_ranked and rank is None:
                    return None
                columns.append(standing(argument, values, rank if is_ranked else None, times, groups))
            else:
                columns.append(aggregate(argument.function, values, groups))
        made = _complete(columns)
        return None if made is None else [self._flat(head, made, firsts)]

    def _from_sums(self, batch: Batch, e: Group, head: Derive) -> list[Events]:
        """The same where each tuple has the counts and sums of its window already."""
        groups = grouped(batch, [name for name in e.by if not is_stamp(name)])
        firsts = batch.take(groups.first)
        counts = np.add.reduceat(batch[COUNT][groups.order], groups.starts)
        columns: list[Column] = []
        for argument in head.arguments:
            match argument:
                case Aggregate(_, None):
                    columns.append(ints(counts))
                case Aggregate("sum" | "avg" as function, value) if value and not isinstance(value, Construct):
                    wanted = Wanted.of("sum", value)
                    sums = np.add.reduceat(batch[named(wanted)][groups.order], groups.starts)
                    if worth(wanted) in batch.columns:
                        power = int(batch[worth(wanted)][0])
                        columns.append(rounded(sums.tolist(), power, None if function == "sum" else counts))
                    else:
                        columns.append(ints(sums) if function == "sum" else average(sums, counts))
                case Aggregate("min" | "max" as function, value) if value and not isinstance(value, Construct):
                    c = batch.columns[named(Wanted.of(function, value))].take(groups.order)
                    extreme = np.minimum if function == "min" else np.maximum
                    columns.append(Column(extreme.reduceat(c.values, groups.starts), c.kind))
                case _:
                    columns.append(shown(argument, firsts) or self._computed(argument, firsts))
        return [self._flat(head, columns, firsts)]

    def _flat(self, head: Derive, columns: Sequence[Column], batch: Batch) -> Events:
        """The events of an arrow head with these values, one for each tuple."""
        first, last = self._times(batch)
        label = str(head.label)
        values = {position(k): c for k, c in enumerate(columns)}
        whole = Batch({BEGIN: ints(first), END: ints(last), **values}, len(batch))
        return Events(label, whole, len(columns), self._catalogue.attributes(label))

    def _computed(self, e: Expression, batch: Batch) -> Column:
        rows = batch.rows()
        return column([compute(e, variables_in(t), self._tester.scope(t)) for t in rows])

    def _grouped(self, batch: Batch, e: Group) -> list[Events]:
        quick = self._by_columns(batch, e)
        if quick is not None:
            return quick
        first, last = self._times(batch)
        made = _Made(e.head, first, last, self._catalogue)
        for number, rows, t in self._groups(batch):
            made.add(number, self._built(e.head, rows, self._origin, t))
        return made.events()

    @property
    def _origin(self) -> Origin:
        collections = self.head.collections if isinstance(self.head, Group) else ()
        binds: dict[str, int] = {v: k for k, one in enumerate(collections) for v in one.binds}
        return Origin(binds, len(collections), tuple(one.name for one in collections))

    def _groups(self, batch: Batch) -> Iterator[tuple[int, list[Row], dict[str, Any]]]:
        """The groups that a head is built for: the number of a tuple of each, its rows, and that tuple."""
        e, origin = self.head, self._origin
        if not isinstance(e, Group):
            return
        shown = [name for name in e.by if is_variable(name)]
        groups: dict[Key, list[tuple[int, dict[str, Any]]]] = {}
        times = frozenset(filter(is_of_event, e.by))
        for number, t in enumerate(batch.rows()):
            which = tuple([t.get(a, ()) if a in times else _key(t, a) for a in e.by])
            groups.setdefault(which, []).append((number, t))
        for members in groups.values():
            rows = unified(once(_row(e, t) for _, t in members), shown)
            number, t = members[0]
            if self._tester.passes(e.having, rows, origin, t):
                yield number, rows, t

    def _built(
        self, head: Head, rows: list[Row], origin: Origin, t: Mapping[str, Any]
    ) -> list[Term] | list[_Sent] | list[tuple[Value, ...]]:
        """What a head makes of some rows: terms, terms and where they go, or the values of an arrow head."""
        scope = self._tester.scope(t)
        try:
            if isinstance(head, Derive):
                return [tuple(value_of(a, rows, origin, scope) for a in head.arguments)]
            built = construct(head.term, rows, origin, scope)
            if any(not isinstance(v, Term) for v in built):
                raise Undefined("an event is an element, not a value")
            terms = [v for v in built if isinstance(v, Term)]
            if isinstance(head, Raise) and not (isinstance(head.recipient, str) and isinstance(head.transport, str)):
                to = address(head.recipient, head.transport, rows, origin, scope)
                return [_Sent(term, to) for term in terms]
            return terms
        except Undefined as undefined:
            self._undefined.append((dict(rows[0].variables), str(undefined)))
            return []


def _label_and_shown(head: Head) -> tuple[str, list[Var | Number | Text | Bool]]:
    """The label of an arrow head, and those of its arguments that are shown as they are."""
    if not isinstance(head, Derive):
        return "", []
    return str(head.label), [a for a in head.arguments if isinstance(a, Var | Number | Text | Bool)]


def is_message(head: Group | Imbed) -> bool:
    """Whether a rule sends what it finds instead of deriving it."""
    return isinstance(head.head, Raise)


def _complete(columns: Sequence[Column | None]) -> list[Column] | None:
    """The columns, if all of them could be had."""
    found = [c for c in columns if c is not None]
    return found if len(found) == len(columns) else None


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message whose rule computes where it goes."""

    term: Term
    to: Address


class _Made:
    """What a head has built so far, each with the row that says when."""

    def __init__(self, head: Head, first: np.ndarray, last: np.ndarray, catalogue: Catalogue) -> None:
        self._head = head
        self._first = first
        self._last = last
        self._catalogue = catalogue
        self._rows: list[int] = []
        self._built: list[Any] = []

    def add(self, row: int, built: Sequence[Any]) -> None:
        self._rows += [row] * len(built)
        self._built += built

    def events(self) -> list[Events]:
        if not self._rows:
            return []
        if isinstance(self._head, Derive):
            label, arity = str(self._head.label), len(self._head.arguments)
            values = {position(k): column([row[k] for row in self._built]) for k in range(arity)}
            return [self._events(label, range(len(self._rows)), values, arity)]
        groups: dict[str, list[int]] = {}
        terms = [one.term if isinstance(one, _Sent) else one for one in self._built]
        for number, term in enumerate(terms):
            groups.setdefault(term.label, []).append(number)
        return [
            self._events(label, own, {TERM: Column(objects([terms[n] for n in own]), "any"), **self._to(own)}, None)
            for label, own in groups.items()
        ]

    def _to(self, numbers: Sequence[int]) -> dict[str, Column]:
        """Where some of them go, if that was computed."""
        computed = [self._built[n].to for n in numbers if isinstance(self._built[n], _Sent)]
        if not computed:
            return {}
        recipients, transports = zip(*computed, strict=True)
        return {RECIPIENT: Column(objects(recipients), "text"), TRANSPORT: Column(objects(transports), "text")}

    def _events(self, label: str, numbers: Sequence[int], values: dict[str, Column], arity: int | None) -> Events:
        rows = np.array([self._rows[n] for n in numbers], dtype=np.int64)
        times = {BEGIN: ints(self._first[rows]), END: ints(self._last[rows])}
        return Events(label, Batch({**times, **values}, len(rows)), arity, self._catalogue.attributes(label))


def _key(t: Mapping[str, Any], name: str) -> Any:
    """What tuples are told apart by in a variable."""
    return key(t[name]) if name in t else ()


def _row(e: Group, t: Mapping[str, Any]) -> Row:
    own = tuple(_key(t, v) for v in e.own)
    pairs: list[Key | None] = []
    times: list[Interval | None] = []
    for collection in e.collections:
        event = t.get(reference(collection.name))
        pairs.append(None if event is None else (event, tuple(_key(t, v) for v in collection.variables)))
        times.append(None if event is None else Interval(t[begin(collection.name)], t[end(collection.name)]))
    return Row(variables_in(t), own, tuple(pairs), tuple(times))
