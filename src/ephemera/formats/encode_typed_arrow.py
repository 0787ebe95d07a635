"""This module writes answers as Arrow tables part by part, with columns that are known before the first answer.

`encode_arrow` looks at all answers and gives each column the type of its values. Here each column has the type that
the rules let expect. Where they leave it open, a column holds JSON. Numbers that may be whole or not are doubles.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ephemera.algebra.attributes import position
from ephemera.base.errors import EphemeraError
from ephemera.formats.addresses import addresses, fixed_address
from ephemera.formats.encode_arrow import DATA, RECIPIENT, TRANSPORT, AnswerColumns
from ephemera.formats.encode_json import json_cells
from ephemera.formats.json_events import write_event, write_value
from ephemera.kernels.columns import Column, column
from ephemera.kernels.event_columns import BEGIN, END, Events, flat_values
from ephemera.rules.nodes import Catalogue, Ruleset
from ephemera.rules.value_types import Times, Type, derived_types, keeps_units, union
from ephemera.syntax.nodes import Detect, Raise
from ephemera.terms.addresses import Address
from ephemera.terms.events import Event
from ephemera.terms.values import Time, Value

Held = Literal["int", "float", "string", "bool", "time", "json"]
"""What a column holds; numbers that count units are `int`."""
ARROW: dict[Held, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
}
_HELD: dict[Type, Held] = {
    "nothing": "string",
    "int": "int",
    "float": "float",
    "string": "string",
    "bool": "bool",
    "instant": "time",
    "any": "json",
}


class UnlikeType(EphemeraError):
    """An answer has a value of another type than the rules let expect."""


@dataclass(frozen=True, slots=True)
class Counting:
    """How the input writes times: as whole numbers of units, and so in its attributes."""

    stamps: bool
    attributes: bool


@dataclass(frozen=True)
class Layout:
    """The columns of answers behind `event`, and whether times count units."""

    catalogue: Catalogue
    names: AnswerColumns
    columns: Mapping[str, Held]
    counts: bool
    plain: bool
    """Whether times among the values count units, too."""
    messages: Mapping[int, Address | None]
    """For each rule that sends messages their recipient and transport, if its text says them."""
    has_fractions: bool = False
    """Whether times that count units are doubles, so that they may lie between two."""

    @property
    def schema(self) -> pa.Schema:
        """What tables of answers look like."""
        stamp = ARROW["float" if self.counts and self.has_fractions else "int" if self.counts else "time"]
        fields = [("event", pa.string()), ("begin", stamp), ("end", stamp)]
        return pa.schema([*fields, *((name, ARROW[held]) for name, held in self.columns.items())])

    def batch(self, events: Events, rule: int = 0, to: Address | None = None) -> pa.RecordBatch:
        """Some answers; `rule` is the one that sends them, if they are messages, and `to` where if it computes that."""
        found = self._cells(events, rule, to)
        count = len(events)
        arrays = [pa.repeat(pa.scalar(events.label), count), *(self._stamps(events.batch[n]) for n in (BEGIN, END))]
        for name, held in self.columns.items():
            arrays.append(found[name] if name in found else pa.nulls(count, ARROW[held]))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _stamps(self, stamps: np.ndarray) -> pa.Array:
        if not self.counts:
            return pa.array(stamps, ARROW["time"])
        unit = self.catalogue.unit
        if self.has_fractions:
            return pa.array(stamps // unit + stamps % unit / unit)  # apart, since a double does not hold all stamps
        if unit > 1 and (stamps % unit).any():
            raise UnlikeType(
                "an answer lies between two time units, where the rules let whole ones expect; write JSON lines"
            )
        return pa.array(stamps // unit)

    def _cells(self, events: Events, rule: int, to: Address | None) -> dict[str, pa.Array]:
        if rule in self.messages:
            sent = addresses(events, to or self.messages[rule])
            recipient, transport = (pa.array([one and one[k] for one in sent], pa.string()) for k in (0, 1))
            return {DATA: self._texts(events.events()), RECIPIENT: recipient, TRANSPORT: transport}
        if events.arity is not None and self.names.are_flat(events.label, events.arity):
            names = self.names.names(events.label, events.arity)
            return {n: self._array(events.batch.columns[position(k)], n, events.label) for k, n in enumerate(names)}
        return self._terms(events)

    def _terms(self, events: Events) -> dict[str, pa.Array]:
        """Terms one by one: declared ones may be flat, the others are JSON."""
        attributes = self.catalogue.attributes(events.label)
        listed = events.as_terms().events()
        rows = [None if attributes is None else flat_values(e.term, attributes) for e in listed]
        found: dict[str, pa.Array] = {}
        if any(row is None for row in rows):
            texts = self._texts(listed).to_pylist()
            kept = [t if row is None else None for t, row in zip(texts, rows, strict=True)]
            found[DATA] = pa.array(kept, pa.string())
        for k, name in enumerate(self.names.names(events.label, None) if attributes is not None else ()):
            values = column([None if row is None else row[k] for row in rows])
            found[name] = self._array(values, name, events.label)
        return found

    def _texts(self, events: Sequence[Event]) -> pa.Array:
        written = (write_event(e, self.catalogue, as_numbers=self.counts) for e in events)
        return pa.array([json.dumps(w.get("data", w.get("term")), ensure_ascii=False) for w in written], pa.string())

    # ---- values --------------------------------------------------------------------------------------------

    def _array(self, c: Column, name: str, label: str) -> pa.Array:
        held = self.columns[name]
        try:
            return self._json(c) if held == "json" else self._typed(c, held)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            raise UnlikeType(
                f"`{name}` of `{label}` should be {held} by the rules, and one value is not; "
                "declare with `EVENT` what the rules read"
            ) from None

    def _typed(self, c: Column, held: Held) -> pa.Array:
        if c.kind == "int" and held == "float":
            return pa.array(c.values).cast(pa.float64(), safe=False)
        if c.kind == "float" and held == "int":
            return pa.array(c.values).cast(pa.int64())
        if c.kind != "any":
            return pa.array(c.values, ARROW[held])
        values = c.tolist()
        if held in ("int", "time") and any(isinstance(v, Time) for v in values):
            stamps = [None if v is None else _microseconds(v) for v in values]
            return pa.array(stamps, ARROW["time"]) if held == "time" else self._units(stamps)
        if any(isinstance(v, bool) for v in values) and held != "bool":
            raise TypeError
        if held == "float":
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        return pa.array(values, ARROW[held])

    def _units(self, stamps: Sequence[int | None]) -> pa.Array:
        unit = self.catalogue.unit
        if any(s is not None and s % unit for s in stamps):
            raise ValueError
        return pa.array([None if s is None else s // unit for s in stamps], pa.int64())

    def _json(self, c: Column) -> pa.Array:
        if c.kind != "any":
            return json_cells(c, self.catalogue, self.plain)
        return pa.array([None if v is None else self._text(v) for v in c.tolist()], pa.string())

    def _text(self, value: Value) -> str:
        return json.dumps(write_value(value, self.catalogue.unit, as_numbers=self.plain), ensure_ascii=False)


def _microseconds(value: Any) -> int:
    if not isinstance(value, Time):
        raise TypeError
    return value.microseconds


def layout(rules: Ruleset, counting: Counting, calendars: Sequence[Event] = (), emit: Collection[str] = ()) -> Layout:
    """The columns of what a program derives from an input that writes times so, if only some is asked for, of that."""
    catalogue = rules.resolved.catalogue
    days = [stamp for day in calendars for stamp in (day.time.begin, day.time.end)]
    counts = counting.stamps and keeps_units(rules, days)
    plain = counts and counting.attributes
    names = AnswerColumns(rules, emit)
    types: dict[str, Type] = dict.fromkeys(names.declared, "nothing")
    for (label, arity), found in derived_types(rules, Times(counts, plain)).items():
        if emit and label not in emit:
            continue
        for name, kind in zip(names.names(label, arity), found, strict=True):
            types[name] = union(types.get(name, "nothing"), kind)
    if any(isinstance(rule.head, Detect) for rule in rules.resolved.rules):
        types.setdefault(DATA, "nothing")  # a term of a declared type need not be flat
    columns: dict[str, Held] = {}
    for name, kind in types.items():
        declared = "".join(names.declared.get(name, ()))
        held = ("int" if plain else "time") if kind == "time" else _HELD[kind]
        columns[name] = "float" if held == "int" and declared == "float" else held
        if kind == "nothing" and declared in ("int", "float", "bool"):
            columns[name] = declared  # type: ignore[assignment]
    heads = enumerate((rule.head for rule in rules.resolved.rules), 1)
    messages = {number: fixed_address(head) for number, head in heads if isinstance(head, Raise)}
    return Layout(catalogue, names, columns, counts, plain, messages)
