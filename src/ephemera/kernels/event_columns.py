"""This module holds events of one label by columns: flat ones attribute by attribute, others as terms.

An event is flat if it is of a declared type with one value for each attribute, or if it is an ordered term of values.
The columns of a batch of events are `$.s`, `$.e`, `$.ref`, and the values under their positions, `@0`, `@1`, …, or the
term under `$term`. Equal events are one: they are told apart by label, data and time, and get one reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ephemera.algebra.attributes import EVENT, TERM, begin, end, position, reference
from ephemera.kernels.columns import Batch, Column, Ints, Mask, column, ints, objects, stack
from ephemera.kernels.keys import all_distinct, fingerprints, same
from ephemera.kernels.tail import FEW, RowBatch
from ephemera.terms.atoms import Names
from ephemera.terms.events import Event, Interval, event_of_both
from ephemera.terms.values import Term, Value, merged

BEGIN: str = begin(EVENT)
END: str = end(EVENT)
REFERENCE: str = reference(EVENT)
RECIPIENT = "$recipient"
TRANSPORT = "$transport"
"""Messages have these columns where rules compute to whom they go; equal ones go to the same by the same."""
FITTING = 1 << 62
"""What is below this one fits a number."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of one label; flat ones have as many values as `arity`, others (None) are terms."""

    label: str
    batch: Batch
    arity: int | None
    names: Names
    """The attributes, if the type is declared with them."""
    is_set: bool = False
    """Whether it is known that no two of them are equal."""

    def __len__(self) -> int:
        return len(self.batch)

    def take(self, rows: Ints | np.ndarray) -> Events:
        return Events(self.label, self.batch.take(rows), self.arity, self.names, self.is_set)

    def first(self, stamp: str) -> int:
        """The least of their begins or ends."""
        if isinstance(self.batch, RowBatch):
            return min([row[stamp] for row in self.batch.given])  # type: ignore[no-any-return]
        return int(self.batch[stamp].min())

    def terms(self) -> list[Term]:
        """The data of each event as a term."""
        if self.arity is None:
            return self.batch.columns[TERM].tolist()
        values = [self.batch.columns[position(k)].tolist() for k in range(self.arity)]
        rows: Iterable[tuple[Value, ...]] = zip(*values, strict=True) if values else (() for _ in range(len(self)))
        return [flat_term(self.label, row, self.names) for row in rows]

    def events(self) -> list[Event]:
        """The events one by one."""
        times = zip(self.batch[BEGIN].tolist(), self.batch[END].tolist(), strict=True)
        positional = self.arity is not None
        return [Event(term, Interval(*time), positional) for term, time in zip(self.terms(), times, strict=True)]

    def as_terms(self) -> Events:
        if self.arity is None:
            return self
        kept = {n: self.batch.columns[n] for n in (BEGIN, END, REFERENCE) if n in self.batch.columns}
        return Events(
            self.label, Batch({**kept, TERM: Column(objects(self.terms()), "any")}, len(self)), None, self.names
        )


def size_of(events: Events) -> int:
    """About how many bytes some events take, by the lengths of a few of their texts."""
    step = max(1, len(events) // 64)
    more = 0
    for c in events.batch.columns.values():
        texts = [len(v) for v in c.values[::step] if isinstance(v, str)] if c.kind in ("text", "any") else []
        more += sum(texts) * step
    return events.batch.nbytes + more


def flat_term(label: str, values: Sequence[Value], names: Names) -> Term:
    """The term of a flat event: of its attributes if it is declared, else of its values."""
    if names is None:
        return Term(label, tuple(values))
    children = [Term(n, (v,)) for n, v in zip(names, values, strict=True) if v is not None]
    return Term(label, tuple(children), ordered=False)


def of_events(events: Sequence[Event], attributes: Callable[[str], Names]) -> list[Events]:
    """Events by their labels and shapes."""
    if len(events) == 1:
        event = events[0]
        names = attributes(event.term.label)
        values = flat_values(event.term, names)
        if values is not None:
            return [Events(event.term.label, RowBatch((_row(event, values),)), len(values), names, is_set=True)]
    groups: dict[tuple[str, int | None], tuple[list[Event], list[tuple[Value, ...]]]] = {}
    for event in events:
        names = attributes(event.term.label)
        values = flat_values(event.term, names)
        found = groups.setdefault((event.term.label, None if values is None else len(values)), ([], []))
        found[0].append(event)
        if values is not None:
            found[1].append(values)
    return [_made(label, arity, *rows, attributes(label)) for (label, arity), rows in groups.items()]


def _made(label: str, arity: int | None, events: list[Event], values: list[tuple[Value, ...]], names: Names) -> Events:
    if arity is not None and len(events) <= FEW:
        rows = [_row(event, own) for event, own in zip(events, values, strict=True)]
        return Events(label, RowBatch(rows), arity, names)
    columns = {BEGIN: ints([e.time.begin for e in events]), END: ints([e.time.end for e in events])}
    if arity is None:
        columns[TERM] = Column(objects([e.term for e in events]), "any")
    else:
        columns |= {position(k): column([row[k] for row in values]) for k in range(arity)}
    return Events(label, Batch(columns, len(events)), arity, names)


_NAMES = tuple((BEGIN, END, *map(position, range(arity))) for arity in range(33))
"""The columns of flat events of few attributes."""


def _names_of(arity: int) -> tuple[str, ...]:
    return _NAMES[arity] if arity < len(_NAMES) else (BEGIN, END, *map(position, range(arity)))


def _row(event: Event, values: tuple[Value, ...]) -> dict[str, Value]:
    time = event.time
    return dict(zip(_names_of(len(values)), (time.begin, time.end, *values), strict=True))


def flat_values(term: Term, names: Names) -> tuple[Value, ...] | None:
    """The values of a flat event, or None."""
    if names is None:
        return term.children if term.is_ordered and not term.attributes else None
    if term.attributes or (term.is_ordered and len(term.children) > 1):
        return None
    values: dict[str, Value] = dict.fromkeys(names)
    for child in term.children:
        if not isinstance(child, Term) or len(child.children) != 1 or child.attributes or child.label not in values:
            return None
        if values[child.label] is not None:
            return None
        values[child.label] = child.children[0]
    return tuple(values.values())


def distinct(parts: Sequence[Events]) -> list[Events]:
    """Each event once, by label and shape; one that comes in both shapes is flat."""
    if len(parts) == 1:
        return [_distinct(parts)]
    groups: dict[tuple[str, int | None], list[Events]] = {}
    for part in parts:
        groups.setdefault((part.label, part.arity), []).append(part)
    found = {shape: _distinct(own) for shape, own in groups.items()}
    for label, arity in groups:
        flat = [shape for shape in groups if shape[0] == label and shape[1] is not None] if arity is None else ()
        for shape in flat:
            found[shape], found[label, None] = _apart(found[shape], found[label, None])
    return [part for part in found.values() if len(part)]


def _apart(flat: Events, terms: Events) -> tuple[Events, Events]:
    """Flat events and terms of a label, of which none are equal: those that were are flat."""
    rows = np.flatnonzero(np.isin(flat.batch[END], terms.batch[END]) & np.isin(flat.batch[BEGIN], terms.batch[BEGIN]))
    if not len(rows):
        return flat, terms
    places = dict(zip(flat.take(rows).events(), rows.tolist(), strict=True))
    others = {places[event]: (row, event) for row, event in enumerate(terms.events()) if event in places}
    kept = np.ones(len(terms), dtype=np.bool_)
    kept[[row for row, _ in others.values()]] = False
    return meeting(flat, {place: event for place, (_, event) in others.items()})[0], terms.take(kept)


def _distinct(parts: Sequence[Events]) -> Events:
    if len(parts) == 1 and (parts[0].is_set or len(parts[0]) == 1):
        return parts[0] if parts[0].is_set else replace(parts[0], is_set=True)
    batch = stack([p.batch for p in parts])
    whole = Events(parts[0].label, batch, parts[0].arity, parts[0].names, is_set=True)
    if len(batch) < 2:
        return whole
    ends: Ints = batch[END]
    if (ends[1:] > ends[:-1]).all():  # no two end together, so no two are equal
        return whole
    names = [n for n in batch.columns if n != REFERENCE]
    columns = list({id(c.values): c for c in (batch.columns[n] for n in names)}.values())
    numbers = [c.values for c in columns if c.kind == "int"]
    if _ascend(numbers) or _differ(numbers):
        return whole
    hashes = fingerprints(columns, len(batch))
    if all_distinct(hashes):
        return whole
    keep, first = _first_of_equal(batch, names, hashes, np.argsort(hashes, kind="stable"))
    return whole if keep.all() else met(whole, np.flatnonzero(~keep), first[~keep]).take(keep)


def met(events: Events, rows: Ints, others: Ints) -> Events:
    """The events, of which some in `others` equal those in `rows` and meet them: integers for doubles."""
    columns: dict[str, Column] = {}
    for name, c in events.batch.columns.items():
        if name in (BEGIN, END, REFERENCE) or c.kind not in ("float", "any"):
            continue
        values = c.values.copy()
        if c.kind == "float":
            zero = values[rows] == 0
            np.add.at(values, others[zero], values[rows[zero]])
        else:
            for row, other in zip(rows.tolist(), others.tolist(), strict=True):
                values[other] = merged(values[other], values[row])
        columns[name] = Column(values, c.kind)
    batch = events.batch.with_columns(columns) if columns else events.batch
    return replace(events, batch=batch)


def meeting(part: Events, others: Mapping[int, Event]) -> tuple[Events, list[Event]]:
    """The events, some rows of which meet others that equal them: integers for doubles; and those that have changed."""
    rows = list(others)
    own = part.take(np.array(rows, dtype=np.int64)).events() if rows else []
    changed = {row: both for row, e in zip(rows, own, strict=True) if (both := event_of_both(e, others[row])) is not e}
    if not changed:
        return part, []
    columns: dict[str, list[Value]] = {}
    for name in [TERM] if part.arity is None else map(position, range(part.arity)):
        columns[name] = part.batch.columns[name].tolist()
    for row, event in changed.items():
        values = [event.term] if part.arity is None else flat_values(event.term, part.names) or ()
        for own_values, value in zip(columns.values(), values, strict=True):
            own_values[row] = value
    batch = part.batch.with_columns({name: column(values) for name, values in columns.items()})
    return replace(part, batch=batch), list(changed.values())


def _ascend(columns: Sequence[Ints]) -> bool:
    """Whether rows ascend by a column, and where they do not, by another: then no two are equal."""
    for one in columns:
        if not (one[1:] >= one[:-1]).all():
            continue
        if (one[1:] > one[:-1]).all():
            return True
        ties = np.flatnonzero(one[1:] == one[:-1])
        if len(ties) < len(one) - 1 and any((other[ties + 1] > other[ties]).all() for other in columns):
            return True
    return False


def _differ(columns: Sequence[Ints]) -> bool:
    """Whether rows differ in as many columns as fit one number together; values of events come last."""
    total: Ints | None = None
    size = 1
    for one in reversed(columns):
        least, most = int(one.min()), int(one.max())
        width = most - least + 1
        if width > 1 and size * width < FITTING:
            total = one - least if total is None else total * width + (one - least)
            size *= width
    return total is not None and size >= len(total) and all_distinct(total)


def _first_of_equal(batch: Batch, names: Sequence[str], hashes: np.ndarray, order: Ints) -> tuple[Mask, Ints]:
    """Which rows equal no earlier one, and for the others that one; rows of a hash are compared with their first."""
    sorted_hashes = hashes[order]
    starts = np.r_[True, sorted_hashes[1:] != sorted_hashes[:-1]]
    first = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    rows = np.flatnonzero(~starts)
    equal = np.ones(len(rows), dtype=np.bool_)
    for name in names:
        c = batch.columns[name]
        equal &= same(c.take(order[rows]), c.take(first[rows]))
    keep = np.ones(len(batch), dtype=np.bool_)
    keep[order[rows[equal]]] = False
    ones = np.arange(len(batch))
    ones[order[rows]] = first[rows]
    return keep, ones
