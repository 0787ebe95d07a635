"""This module turns batches into Arrow tables and back, without loss.

Whole numbers, doubles and texts are Arrow's own. A column of anything else is a column of texts, each with a letter
that says what it is; terms and events nest as JSON. The kind of each column stands in the metadata of its field.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ephemera.kernels.columns import UNBOUND, Batch, Column, Kind, column, objects
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time

_TYPES: dict[Kind, Any] = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "any": pa.string()}


def to_arrow(batch: Batch) -> pa.Table:
    """A batch as a table; the number of rows is kept even where there is no column."""
    fields, arrays = [], []
    for name, c in batch.columns.items():
        values = [_written(v) for v in c.values] if c.kind == "any" else c.values
        is_narrow = c.kind == "int" and c.values.dtype != np.int64
        arrays.append(pa.array(values, type=None if is_narrow else _TYPES[c.kind]))
        fields.append(pa.field(name, arrays[-1].type, metadata={"kind": c.kind}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"rows": str(len(batch))}))


def from_arrow(table: pa.Table) -> Batch:
    """The batch that a table was made of."""
    columns: dict[str, Column] = {}
    for field, values in zip(table.schema, table.columns, strict=True):
        kind: Kind = field.metadata[b"kind"].decode()
        match kind:
            case "int":
                columns[field.name] = Column(np.ascontiguousarray(values.to_numpy(), dtype=np.int64), kind)
            case "float":
                columns[field.name] = Column(np.ascontiguousarray(values.to_numpy()), kind)
            case "text":
                columns[field.name] = Column(objects(values.to_pylist()), kind)
            case "any":
                columns[field.name] = _any([_read(v) for v in values.to_pylist()])
    return Batch(columns, int(table.schema.metadata[b"rows"]))


def _any(values: Sequence[Any]) -> Column:
    found = column(values)
    return found if found.kind == "any" else Column(objects(values), "any")


def _written(value: Any) -> str:
    return "u" if value is UNBOUND else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON has it; what JSON has no word for is a list that begins with one."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return ["float", value.hex()]
        case Time(microseconds):
            return ["time", microseconds]
        case Term(label, children, ordered, attributes):
            inside = [_plain(child) for child in children]
            return ["term", label, ordered, inside, [[name, _plain(v)] for name, v in attributes]]
        case Event(term, time, positional):
            return ["event", _plain(term), time.begin, time.end, positional]
        case _:
            raise TypeError(f"{type(value).__name__} cannot be stored")


def _read(text: str) -> Any:
    return UNBOUND if text == "u" else _value(json.loads(text))


def _value(plain: Any) -> Any:
    match plain:
        case ["float", text]:
            return float.fromhex(text)
        case ["time", microseconds]:
            return Time(microseconds)
        case ["term", label, ordered, inside, attributes]:
            children = tuple(_value(child) for child in inside)
            return Term(label, children, ordered, tuple((name, _value(v)) for name, v in attributes))
        case ["event", term, begin, end, positional]:
            return Event(_value(term), Interval(begin, end), positional)
        case _:
            return plain
