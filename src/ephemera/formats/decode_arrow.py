"""This module reads the rows of Arrow tables as events: by columns where their types are declared, else one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from ephemera.algebra.attributes import position
from ephemera.formats.arrow_columns import (
    coded,
    column_of,
    foreign_name,
    is_foreign,
    is_instant,
    is_numeric,
    listed,
    stamps_of,
    whole_column,
)
from ephemera.formats.arrow_rows import shown_rows, unheld_in, values_of
from ephemera.formats.check_columns import Offer, row_label, stamp_columns, time_columns
from ephemera.formats.json_events import BadEvent, original_text, read_object
from ephemera.kernels.columns import Batch, Column, Ints, Mask, ints
from ephemera.kernels.event_columns import BEGIN, END, Events, flat_values, of_events
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.terms.errors import excerpt
from ephemera.terms.events import Event

_FEW = 16
"""Labels that are sooner looked for one by one than sorted."""
_CAST = "make it numbers, texts or timestamps first, in pandas of periods by `.dt.to_timestamp()`"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no event of the program: its number, counted from 0, and why not."""

    row: int
    reason: str
    label: str | None = None


@dataclass(slots=True)
class Read:
    """The events of a table, and how it writes times: all as numbers, and so in its attributes."""

    parts: list[Events] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)
    """For each part the rows that it comes from."""
    bad: list[BadRow] = field(default_factory=list)
    numbers: bool = True
    plain_numbers: bool = True


class Reader:
    """Reads the rows of a table, label by label."""

    def __init__(self, table: pa.Table, compiled: Compiled, refused: Mapping[str, str] | None = None) -> None:
        """`refused` are types of which no row is an event, and why."""
        self._refused = refused or {}
        self._catalogue = compiled.rules.resolved.catalogue
        self._limits = compiled.limits
        self._is_unread = compiled.is_unread
        self._length = table.num_rows
        twice = [name for name, count in Counter(table.column_names).items() if count > 1]
        if twice:
            raise ValueError(f"the table has several columns `{twice[0]}`; rename all but one")
        self._arrays = {n: self._whole(n, c) for n, c in zip(table.column_names, table.columns, strict=True)}
        self._foreign = {field.name: foreign_name(field) for field in table.schema if is_foreign(field)}
        self._times = stamp_columns(self._arrays, self._catalogue)
        self._stamps: dict[tuple[str, ...], tuple[Ints, Ints, Mask]] = {}
        self._found = Read()

    def _whole(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        """A column as one array; labels that are numbered stay so, unless there is an attribute of that name."""
        is_label = name == "event" and not any(name in schema.columns for schema in self._catalogue.events.values())
        found = coded(column) if is_label else None
        return whole_column(column) if found is None else found

    def read(self) -> Read:
        """The events of the table."""
        local = self._catalogue.local
        assumed = local.assumed
        found = self._read()
        if not found.parts:  # what is said of times is said of those that count
            local.assumed = assumed
        return found

    def _read(self) -> Read:
        used = {n for schema in self._catalogue.events.values() for n in schema.columns}
        used = used & set(self._arrays) if self._catalogue.events else set(self._arrays)
        self._found.numbers = all(is_numeric(self._arrays[n].type) for n in self._times)
        self._found.plain_numbers = self._found.numbers and not any(is_instant(self._arrays[n].type) for n in used)
        singles: dict[tuple[str, int | None], list[tuple[int, Event]]] = {}
        for label, rows in self._labels():
            if label in self._refused:
                self._found.bad += [BadRow(row, self._refused[label], label) for row in rows.tolist()]
                continue
            schema = self._catalogue.events.get(label)
            if schema is not None and schema.attributes is not None and not _has_lists(schema):
                part, good = self._flat(schema, rows)
                if len(part):
                    self._found.parts.append(part)
                    self._found.rows.append(rows[good])
                rows = rows[~good]  # noqa: PLW2901 - what is left
            for row, event in self._one_by_one(label, schema, rows) if len(rows) else ():
                values = flat_values(event.term, self._catalogue.attributes(label))
                singles.setdefault((label, None if values is None else len(values)), []).append((row, event))
        for found in singles.values():
            self._found.parts += of_events([event for _, event in found], self._catalogue.attributes)
            self._found.rows.append(np.array([row for row, _ in found], dtype=np.int64))
        return self._found

    def _labels(self) -> Iterator[tuple[str, Ints]]:
        """The labels with their rows; rows without one are bad."""
        only = row_label(self._arrays, self._catalogue)
        if only is not None:
            yield only, np.arange(self._length)
            return
        array = self._arrays["event"]
        if not kinds.is_large_string(array.type) and not kinds.is_dictionary(array.type):
            array = pa.nulls(self._length, pa.large_string())
        for label, rows in label_rows(array):
            if label is not None:
                yield label, rows
                continue
            unnamed = "an event has a name in the column `event`"
            self._found.bad += [BadRow(row, unnamed) for row in rows.tolist()]

    def _flat(self, schema: Schema, rows: Ints) -> tuple[Events, Mask]:
        """The events of a declared type by columns, and which rows they are."""

        def column(name: str, declared: str) -> tuple[Column, Mask]:
            array = self._arrays.get(name)
            if array is not None and name in self._foreign:
                array = pc.if_else(array.is_null(), pa.scalar(None, pa.binary()), pa.scalar(b""))  # which is no value
            given = pa.nulls(len(rows)) if array is None else array if len(rows) == self._length else array.take(rows)
            return column_of(given, declared, self._catalogue.unit, self._catalogue.local)

        begins, ends, right = self._when(schema.label)
        part, good = flat_part(schema, begins[rows], ends[rows], column)
        good = good & right[rows]
        return part if good.all() else part.take(good), good

    def _when(self, label: str) -> tuple[Ints, Ints, Mask]:
        """When the rows happen if they are of some type, and for which of them that is right."""
        names = time_columns(self._arrays, self._catalogue, label)
        if names not in self._stamps:
            arrays = [self._arrays[n] for n in names] or [pa.nulls(self._length)]
            stamps = [stamps_of(array, self._catalogue.unit, self._catalogue.local) for array in arrays]
            begin, end = stamps[0][0], stamps[-1][0]
            is_time = self._foreign.keys().isdisjoint(names)
            self._stamps[names] = begin, end, stamps[0][1] & stamps[-1][1] & (begin <= end) & is_time
        return self._stamps[names]

    def _one_by_one(self, label: str, schema: Schema | None, rows: Ints) -> Iterator[tuple[int, Event]]:
        """The events of some rows as JSON objects would be read; what is none is bad."""
        is_unread = self._is_unread(label)
        is_open = schema is None or schema.attributes is None
        columns = schema.columns if schema is not None else ()
        when = time_columns(self._arrays, self._catalogue, label)
        names = [n for n in self._arrays if (n not in ("event", *when) if is_open else n in columns)]
        local = self._catalogue.local
        lists = {n: listed(self._arrays[n], rows, local) for n in names}
        times = {n: listed(self._arrays[n], rows, local) for n in when}
        for k, row in enumerate(rows.tolist()):
            values = {n: v[k] for n, v in lists.items() if v[k] is not None}
            stamps = [t[k] for t in times.values()]
            reason = self._unheld({**values, **dict(zip(times, stamps, strict=True))})
            time = stamps if len(stamps) > 1 else stamps[0] if stamps else None
            event = read_object({"event": label, "time": time, "data": values}, self._catalogue) if not reason else None
            if is_unread and not isinstance(event, Event):  # only when it was may matter
                event = read_object({"event": label, "time": time, "data": {}}, self._catalogue)
            elif isinstance(event, BadEvent):
                reason = event.reason
            elif event is not None:
                reason = self._limits.complaint(event)
            if isinstance(event, Event) and (is_unread or reason is None):
                yield row, event
            elif not is_unread:
                self._found.bad.append(BadRow(row, reason or "", label))

    def _unheld(self, values: Mapping[str, Any]) -> str | None:
        """What is wrong with values of a row that say nothing here."""
        for name, value in values.items():
            if name in self._foreign and value is not None:
                return f"`{name}` is a column of type {self._foreign[name]}, which is not read; {_CAST}"
            if (unheld := unheld_in(value)) is not None:
                return f"`{name}` holds what cannot be read: {excerpt(unheld.text)}"
        return None


def flat_part(
    schema: Schema, begins: Ints, ends: Ints, column: Callable[[str, str], tuple[Column, Mask]]
) -> tuple[Events, Mask]:
    """Events of a declared type from its columns, and for which rows they are right, whenever they happen."""
    good = np.ones(len(begins), dtype=np.bool_)
    if schema.longest is not None:
        lengths = (ends - begins).view(np.uint64)  # the longest has 64 bits
        good = lengths <= schema.longest
    columns = {BEGIN: ints(begins), END: ints(ends)}
    for k, (name, (_, declared)) in enumerate(zip(schema.columns, schema.attributes or (), strict=True)):
        columns[position(k)], fits = column(name, declared)
        good = good & fits
    return Events(schema.label, Batch(columns, len(begins)), len(columns) - 2, schema.names), good


def label_rows(labels: pa.Array) -> Iterator[tuple[str | None, Ints]]:
    """The labels of a column with their rows; those without one come under none."""
    encoded = labels if kinds.is_dictionary(labels.type) else labels.dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    unnamed = np.flatnonzero(numbers < 0)
    if len(unnamed):
        yield None, unnamed
    held = values_of(encoded.dictionary, range(len(encoded.dictionary)))
    names = [label if isinstance(label, str) else None for label in held]
    if len(names) <= _FEW:
        yield from ((label, np.flatnonzero(numbers == k)) for k, label in enumerate(names))
        return
    order = np.argsort(numbers, kind="stable")
    cuts = np.searchsorted(numbers[order], np.arange(len(names) + 1))
    yield from ((label, order[cuts[k] : cuts[k + 1]]) for k, label in enumerate(names))


def _has_lists(schema: Schema) -> bool:
    return any(declared.endswith("[]") for _, declared in schema.attributes or ())


def bad_events(bad: Sequence[BadRow], table: pa.Table) -> list[BadEvent]:
    """Bad rows with what they were."""
    ordered = sorted(bad, key=lambda one: one.row)
    given = shown_rows(table, [one.row for one in ordered])
    return [BadEvent(original_text(row), one.reason, one.label) for one, row in zip(ordered, given, strict=True)]


def stamped(table: pa.Table, now: int, catalogue: Catalogue) -> pa.Table:
    """The table with all its rows happening now; columns that say when make way."""
    attributes = {name for schema in catalogue.events.values() for name in schema.names}
    declared = {name for source in catalogue.sources for name in source.time}
    if both := declared & attributes & set(table.column_names):
        raise ValueError(f"`{min(both)}` is an attribute and says when events happen; it cannot be stamped on arrival")
    kept = table.select([n for n in table.column_names if n not in {"time", "begin", "end", *declared} - attributes])
    stamps = pa.array([now] * table.num_rows, pa.timestamp("us", tz="UTC"))
    for name in ("time",) if "time" not in attributes else ("begin", "end"):
        kept = kept.append_column(name, stamps)
    return kept


def offer_of(table: pa.Table, name: str) -> Offer:
    """What a table offers."""

    def holds(label: str) -> bool:
        names = whole_column(table.column("event"))
        return bool(kinds.is_large_string(names.type) and pc.any(pc.equal(names, label)).as_py())

    return Offer(name, table.column_names, holds)
