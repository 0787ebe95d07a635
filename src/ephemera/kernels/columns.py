"""This module holds columns and batches: the values of many tuples, attribute by attribute.

A column is one array of one kind: whole numbers and doubles as such, texts and anything else as objects. Anything else
includes null, bools, times, terms, and `UNBOUND` where an optional part gave no value. Kinds are told by the values,
so that the common case is fast and every case is right.

As an Arrow table a batch is stored and sent, without loss. Whole numbers, doubles and texts are Arrow's own. A column
of anything else is a column of texts, each with a letter that says what it is; terms and events nest as JSON. The kind
of each column stands in the metadata of its field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time, Value

Kind = Literal["int", "float", "text", "any"]
Ints: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Objects: TypeAlias = npt.NDArray[np.object_]
Array: TypeAlias = npt.NDArray[Any]


class _Unbound:
    """A variable without a value."""

    def __repr__(self) -> str:
        return "UNBOUND"

    def __reduce__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of one attribute."""

    values: Array
    kind: Kind

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Ints | Mask) -> Column:
        return Column(self.values.take(places(rows)), self.kind)

    def tolist(self) -> list[Any]:
        """The values as Python has them."""
        return self.values.tolist()  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """About how much room the values take; an object counts with its pointer and a few words."""
        return self.values.nbytes * (1 if self.kind in ("int", "float") else 8)


def places(rows: Ints | Mask) -> Ints:
    """Rows by their numbers, also those that a mask leaves: numpy takes by numbers several times as fast."""
    found: Ints = rows.nonzero()[0] if rows.dtype == np.bool_ else rows  # type: ignore[assignment]
    return found


def ints(values: Array | Sequence[int]) -> Column:
    """A column of whole numbers, such as stamps and references."""
    return Column(np.asarray(values, dtype=np.int64), "int")


def objects(values: Sequence[Any]) -> Objects:
    """An array of Python objects; numpy must not look into them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def column(values: Sequence[Value | _Unbound]) -> Column:
    """A column of the narrowest kind that holds the values."""
    kinds = {type(v) for v in values}
    if kinds == {int}:
        return Column(np.array(values, dtype=np.int64), "int")
    if kinds == {float}:
        return Column(np.array(values, dtype=np.float64), "float")
    array = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):  # a term is a sequence to nobody, but a slice assignment would ask
        array[k] = value
    return Column(array, "text" if kinds == {str} else "any")


def constant(value: Value | _Unbound, length: int) -> Column:
    """The same value for all rows."""
    if type(value) is int:
        return Column(np.full(length, value, dtype=np.int64), "int")
    if type(value) is float:
        return Column(np.full(length, value, dtype=np.float64), "float")
    array = np.empty(length, dtype=object)
    array.fill(value)
    return Column(array, "text" if type(value) is str else "any")


def concat(parts: Sequence[Column]) -> Column:
    """The rows of all, of the kind that holds them."""
    filled = [p for p in parts if len(p)] or list(parts[:1])
    if len(filled) == 1:
        return filled[0]
    kinds = {p.kind for p in filled}
    if len(kinds) == 1:
        return Column(np.concatenate([p.values for p in filled]), filled[0].kind)
    return Column(np.concatenate([_as_objects(p) for p in filled]), "any")


def _as_objects(c: Column) -> Objects:
    return c.values if c.values.dtype == object else objects(c.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tuples by columns, all of one length."""

    columns: Mapping[str, Column]
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Array:
        return self.columns[name].values

    def take(self, rows: Ints | Mask) -> Batch:
        chosen = places(rows)
        if rows.dtype == np.bool_ and len(chosen) == self.length:
            return self
        return Batch(taken(self.columns, chosen), len(chosen))

    def cut(self, start: int, stop: int) -> Batch:
        """Some neighbouring rows, without copying them."""
        if start == 0 and stop == self.length:
            return self
        columns = {name: Column(c.values[start:stop], c.kind) for name, c in self.columns.items()}
        return Batch(columns, stop - start)

    def renamed(self, names: Mapping[str, str]) -> Batch:
        return Batch({names.get(name, name): c for name, c in self.columns.items()}, self.length)

    def with_columns(self, columns: Mapping[str, Column]) -> Batch:
        return Batch({**self.columns, **columns}, self.length)

    def rows(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The tuples one by one, without what has no value; for what cannot be done by columns."""
        chosen = list(self.columns if names is None else names)
        lists = [self.columns[name].tolist() for name in chosen]
        if not lists:
            return [{} for _ in range(self.length)]
        if all(self.columns[name].kind != "any" for name in chosen):
            return [dict(zip(chosen, row, strict=True)) for row in zip(*lists, strict=True)]
        return [
            {name: v for name, v in zip(chosen, row, strict=True) if v is not UNBOUND}
            for row in zip(*lists, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns.values())


def taken(columns: Mapping[str, Column], rows: Ints | Mask) -> dict[str, Column]:
    """Some rows of some columns; two columns that are one stay one."""
    chosen = places(rows)
    done: dict[int, Column] = {}
    found: dict[str, Column] = {}
    for name, c in columns.items():
        one = done.get(id(c.values))
        if one is None:
            one = done[id(c.values)] = c.take(chosen)
        found[name] = one
    return found


def latest(batch: Batch, stamps: Iterable[str]) -> Ints:
    """The last of some stamps, row by row."""
    first, *others = {id(c.values): c.values for c in (batch.columns[s] for s in stamps)}.values()
    for other in others:
        first = np.maximum(first, other)
    return first


def earliest(batch: Batch, stamps: Iterable[str]) -> Ints:
    """The first of some stamps, row by row."""
    first, *others = {id(c.values): c.values for c in (batch.columns[s] for s in stamps)}.values()
    for other in others:
        first = np.minimum(first, other)
    return first


def stack(parts: Sequence[Batch]) -> Batch:
    """The rows of all; a column that a part lacks has no value there, and two columns that are one stay one."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.columns)
    done: dict[tuple[int, ...], Column] = {}
    columns: dict[str, Column] = {}
    for name in names:
        given = [p.columns[name] if name in p.columns else constant(UNBOUND, len(p)) for p in parts]
        key = tuple(id(c.values) for c in given)
        if key not in done:
            done[key] = concat(given)
        columns[name] = done[key]
    return Batch(columns, sum(len(p) for p in parts))


# ---- Arrow tables ------------------------------------------------------------------------------------------

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
