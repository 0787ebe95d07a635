"""This module gives the columns of answers the types of their values, when all answers have been seen.

So files of answers are alike whoever writes them: a column of one kind has its type, of several it holds JSON. Numbers
are doubles if one of them is, or if that is declared. Where times are numbers, they are whole as long as all of a
column are, else doubles, as JSON lines have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ephemera.algebra.attributes import position
from ephemera.formats.addresses import addresses
from ephemera.formats.encode_arrow import Writer
from ephemera.formats.encode_typed_arrow import Held
from ephemera.kernels.columns import Column, Ints, column
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.terms.values import Term, Time, Value

STAMPS = "$stamps"
"""Stands for the columns `begin` and `end` among those that are looked at."""
_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_INSTANT = pa.timestamp("us", tz="UTC")
ARROW = {
    "int": pa.int64(),
    "units": pa.int64(),
    "fractions": pa.float64(),
    "float": pa.float64(),
    "string": pa.string(),
    "json": pa.string(),
    "bool": pa.bool_(),
    "time": _INSTANT,
}
"""What columns of each kind are; times that are numbers are `units` or `fractions` of these."""


@dataclass(slots=True)
class SeenKinds:
    """The kinds of values that the columns of answers hold."""

    found: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, kind: str) -> None:
        """A column holds a value of a kind."""
        self.found.setdefault(name, set()).add(kind)

    def look(self, events: Events, cells: Mapping[str, Column], unit: int) -> None:
        """At some answers."""
        if any((events.batch[stamp] % unit).any() for stamp in (BEGIN, END)):
            self.add(STAMPS, "fraction")
        for name, c in cells.items():
            for kind in _kinds(c, unit):
                self.add(name, kind)

    def columns(
        self, writers: Sequence[Writer], expected: Mapping[str, Held], *, stamps: bool, attributes: bool
    ) -> dict[str, str]:
        """All columns with their kinds, if times are numbers there; `expected` is what stands for no values at all."""
        declared: dict[str, set[str]] = {}
        for writer in writers:
            for name, types in writer.declared.items():
                declared.setdefault(name, set()).update(types)
        names = [*declared, *sorted(n for n in self.found if n not in declared and n != STAMPS)]
        when = _when(self.found.get(STAMPS, set()), as_numbers=stamps)
        kinds = {
            n: _kind(self.found.get(n, set()), declared.get(n, set()), expected.get(n), as_numbers=attributes)
            for n in names
        }
        return {"event": "string", "begin": when, "end": when, **kinds}


def schema_of(kinds: Mapping[str, str]) -> pa.Schema:
    """What a table of such columns looks like."""
    return pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()])


def _when(found: set[str], *, as_numbers: bool) -> str:
    if not as_numbers:
        return "time"
    return "fractions" if "fraction" in found else "units"


def _kind(found: set[str], declared: set[str], expected: Held | None, *, as_numbers: bool) -> str:
    """What a column is written as, from what it holds; of several kinds, as JSON."""
    types = found - {"fraction", "far"}
    if not types:
        (only,) = declared if len(declared) == 1 else (expected or "string",)
        return only if only in ("int", "float", "bool", "time") else "string"
    if types == {"time"}:
        return _when(found, as_numbers=as_numbers)
    if types <= {"int", "float"} and ("float" in types or declared == {"float"}) and "far" not in found:
        return "float"
    (first, *others) = types
    return first if not others and first in ("bool", "int", "string") else "json"


def cells_of(events: Events, message: tuple[str, str] | None, writer: Writer, *, numbers: bool) -> dict[str, Column]:
    """The values of some answers by their columns."""
    if events.arity is not None and message is None:  # messages are terms
        names = writer.names(events.label, events.arity)
        return {n: events.batch.columns[position(k)] for k, n in enumerate(names)}
    sent = addresses(events, message)
    rows = [writer.cells(event, to, numbers) for event, to in zip(events.events(), sent, strict=True)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {n: column([row.get(n) for row in rows]) for n in names}


def _kinds(c: Column, unit: int) -> set[str]:
    """What a column holds, and whether there are whole numbers that are no doubles or times between two units."""
    if c.kind == "float":
        return {"float"} if len(c) else set()
    if c.kind == "text":
        return {"string"} if len(c) else set()
    if c.kind == "int":
        far = bool(((c.values > _EXACT) | (c.values < -_EXACT)).any())
        return ({"int"} if len(c) else set()) | (_far(c.tolist()) if far else set())
    values = [v for v in c.tolist() if v is not None]
    found = {_name(v) for v in values} | _far(v for v in values if type(v) is int)
    return found | ({"fraction"} if any(v.microseconds % unit for v in values if isinstance(v, Time)) else set())


def _far(values: Iterable[int]) -> set[str]:
    return {"far"} if any(float(v) != v for v in values) else set()


def _name(value: Value) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case Time():
            return "time"
        case Term():
            return "term"
        case _:
            return "string"


# ---- arrays ----------------------------------------------------------------------------------------------------


def batch_of(
    events: Events, cells: Mapping[str, Column], kinds: Mapping[str, str], unit: int, writer: Writer
) -> pa.RecordBatch:
    """Some answers with columns of such kinds."""
    arrays = [pa.repeat(pa.scalar(events.label), len(events))]
    arrays += [_stamps(events.batch[stamp], kinds["begin"], unit) for stamp in (BEGIN, END)]
    for name, kind in list(kinds.items())[3:]:
        c = cells.get(name)
        arrays.append(pa.nulls(len(events), ARROW[kind]) if c is None else _array(c, kind, unit, writer))
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(kinds))


def _stamps(stamps: Ints, kind: str, unit: int) -> pa.Array:
    if kind == "time":
        return pa.array(stamps, _INSTANT)
    return pa.array(stamps // unit) if kind == "units" else pa.array(stamps / unit)


def _array(c: Column, kind: str, unit: int, writer: Writer) -> pa.Array:
    if kind in ("int", "float") and c.kind in ("int", "float"):
        return pa.array(c.values.astype(np.int64 if kind == "int" else np.float64))
    if kind == "string" and c.kind == "text":
        return pa.array(c.values, pa.string())
    values: list[Any] = c.tolist()
    match kind:
        case "float":
            values = [None if v is None else float(v) for v in values]
        case "units":
            values = [None if v is None else v.microseconds // unit for v in values]
        case "fractions":
            values = [None if v is None else v.microseconds / unit for v in values]
        case "time":
            values = [None if v is None else v.microseconds for v in values]
        case "json":
            values = [None if v is None else json.dumps(writer.as_json(v), ensure_ascii=False) for v in values]
    return pa.array(values, ARROW[kind])
