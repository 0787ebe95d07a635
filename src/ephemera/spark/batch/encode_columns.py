"""This module writes answers by columns: `event`, `begin`, `end`, and one for each attribute, as for Arrow tables.

What a column holds is known when all answers are: so they are looked at first, then written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.algebra.attributes import position
from ephemera.engine.cluster.message import Answers, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.decode_arrow import Read
from ephemera.formats.encode_arrow import Writer
from ephemera.kernels.columns import Column, Ints, column
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.spark.runtime.exchange import answers_of
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.syntax.nodes import Raise
from ephemera.terms.values import Term, Time, Value

_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_STAMPS = "$stamps"
"""Stands for the columns `begin` and `end` among those that are looked at."""
_INSTANT = pa.timestamp("us", tz="UTC")
_ARROW = {
    "int": pa.int64(),
    "units": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "json": pa.string(),
    "bool": pa.bool_(),
    "time": _INSTANT,
}


def as_columns(answers: DataFrame, spreads: Sequence[DistributedProgram], *, as_numbers: bool) -> DataFrame:
    """Packed answers by columns."""
    own = {s.number: s for s in spreads}
    seen = map_in_arrow(answers, Look(own, as_numbers), "name string, kind string").distinct().collect()
    found: dict[str, set[str]] = {}
    for name, kind in seen:
        found.setdefault(name, set()).add(kind)
    declared: dict[str, set[str]] = {}
    for writer in (_writer(s, as_numbers=as_numbers) for s in spreads):
        for name, types in writer.declared.items():
            declared.setdefault(name, set()).update(types)
    names = [*declared, *sorted(n for n in found if n not in declared and n != _STAMPS)]
    stamps = "units" if as_numbers and "fraction" not in found.get(_STAMPS, ()) else "time"
    kinds = {n: _kind(found.get(n, set()), declared.get(n, set()), as_numbers=as_numbers) for n in names}
    schema = {"event": "string", "begin": stamps, "end": stamps, **kinds}
    fields = from_arrow_schema(pa.schema([(name, _ARROW[kind]) for name, kind in schema.items()]))
    return map_in_arrow(answers, ToColumns(own, as_numbers, schema), fields)


def _kind(found: set[str], declared: set[str], *, as_numbers: bool) -> str:
    """What a column is written as, from what it holds; of several kinds, as JSON."""
    types = found - {"fraction", "far"}
    if not types:
        (only,) = declared if len(declared) == 1 else ("string",)
        return only if only in ("int", "float", "bool", "time") else "string"
    if types == {"time"}:
        return "units" if as_numbers and "fraction" not in found else "time"
    if types <= {"int", "float"} and ("float" in types or declared == {"float"}) and "far" not in found:
        return "float"
    (first, *others) = types
    return first if not others and first in ("bool", "int", "string") else "json"


def _writer(spread: DistributedProgram, *, as_numbers: bool) -> Writer:
    return Writer(spread.compiled.rules, Read(numbers=as_numbers, plain_numbers=as_numbers))


# ---- in workers ----------------------------------------------------------------------------------------------


def _cells(
    answers: Answers, spread: DistributedProgram, writer: Writer, *, as_numbers: bool
) -> tuple[Events, dict[str, Column]]:
    """The values of some answers by their columns."""
    resolved = spread.compiled.rules.resolved
    events = unpack(answers.events, resolved.catalogue)
    if events.arity is not None and not answers.rule:
        names = writer.names(events.label, events.arity)
        return events, {n: events.batch.columns[position(k)] for k, n in enumerate(names)}
    head = resolved.rules[answers.rule - 1].head if answers.rule else None
    message = (head.recipient, head.transport) if isinstance(head, Raise) else None
    rows = [writer.cells(event, message, as_numbers) for event in events.events()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return events, {n: column([row.get(n) for row in rows]) for n in names}


@dataclass(frozen=True, slots=True)
class Look:
    """Says what kinds of values each column holds."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", self._seen(answers_of(given)))

    def _seen(self, given: Iterable[Answers]) -> Iterator[pa.RecordBatch]:
        writers = {n: _writer(s, as_numbers=self.as_numbers) for n, s in self.spreads.items()}
        seen: dict[tuple[str, str], None] = {}
        for answers in given:
            spread = self.spreads[answers.program]
            unit = spread.compiled.rules.resolved.catalogue.unit
            events, cells = _cells(answers, spread, writers[answers.program], as_numbers=self.as_numbers)
            if any((events.batch[stamp] % unit).any() for stamp in (BEGIN, END)):
                seen[_STAMPS, "fraction"] = None
            seen |= dict.fromkeys((name, kind) for name, c in cells.items() for kind in _kinds(c, unit))
        if seen:
            yield pa.RecordBatch.from_pydict({"name": [n for n, _ in seen], "kind": [k for _, k in seen]})


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


@dataclass(frozen=True, slots=True)
class ToColumns:
    """Makes columns of answers."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool
    kinds: Mapping[str, str]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", self._batches(answers_of(given)))

    def _batches(self, given: Iterable[Answers]) -> Iterator[pa.RecordBatch]:
        writers = {n: _writer(s, as_numbers=self.as_numbers) for n, s in self.spreads.items()}
        schema = pa.schema([(name, _ARROW[kind]) for name, kind in self.kinds.items()])
        for answers in given:
            spread, writer = self.spreads[answers.program], writers[answers.program]
            unit = spread.compiled.rules.resolved.catalogue.unit
            events, cells = _cells(answers, spread, writer, as_numbers=self.as_numbers)
            arrays = [pa.repeat(pa.scalar(events.label), len(events))]
            arrays += [self._stamps(events.batch[stamp], unit) for stamp in (BEGIN, END)]
            for name, kind in list(self.kinds.items())[3:]:
                c = cells.get(name)
                arrays.append(pa.nulls(len(events), _ARROW[kind]) if c is None else _array(c, kind, unit, writer))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _stamps(self, stamps: Ints, unit: int) -> pa.Array:
        return pa.array(stamps // unit) if self.kinds["begin"] == "units" else pa.array(stamps, _INSTANT)


def _array(c: Column, kind: str, unit: int, writer: Writer) -> pa.Array:
    if kind in ("int", "float") and c.kind in ("int", "float"):
        return pa.array(c.values.astype(np.int64 if kind == "int" else np.float64))
    values: list[Any] = c.tolist()
    match kind:
        case "float":
            values = [None if v is None else float(v) for v in values]
        case "units":
            values = [None if v is None else v.microseconds // unit for v in values]
        case "time":
            values = [None if v is None else v.microseconds for v in values]
        case "json":
            values = [None if v is None else json.dumps(writer.as_json(v), ensure_ascii=False) for v in values]
    return pa.array(values, _ARROW[kind])
