"""This module writes answers as Arrow tables, whose columns follow from the program alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ephemera.algebra.attributes import position
from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.decode_arrow import Read
from ephemera.formats.json_events import write_event, write_value
from ephemera.kernels.columns import Column, Ints, Kind, column
from ephemera.kernels.event_columns import BEGIN, END, flat_values
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.syntax.nodes import Derive, Raise
from ephemera.terms.events import Event
from ephemera.terms.nodes import Aggregate, Call, Expression, Name, Var
from ephemera.terms.values import Time, Value

DATA, RECIPIENT, TRANSPORT = "data", "recipient", "transport"
_TAKEN = ("event", "begin", "end", DATA, RECIPIENT, TRANSPORT)
"""Columns of answers that no attribute can have."""
_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}


class AnswerColumns:
    """The columns of answers: attributes, else what the first head shows, else positions; `data` is that of terms."""

    def __init__(self, rules: Ruleset, emit: Collection[str] = (), *, messages: bool = True) -> None:
        """Events that are not asked for have no columns, nor have messages where they stand apart."""
        self._catalogue = rules.resolved.catalogue
        self._by_heads = _named_by_heads(rules)
        self.declared: dict[str, set[str]] = {}
        """The columns in their order, with the types that are declared for them."""
        for number, rule in enumerate(rules.resolved.rules, 1):
            label = emitted_label(rule.head)
            if emit and label is not None and label not in emit:
                continue
            if isinstance(rule.head, Derive):
                self._expect(str(rule.head.label), len(rule.head.arguments))
            elif isinstance(rule.head, Raise):
                if not messages:
                    continue
                self.declared |= {DATA: set(), RECIPIENT: {"string"}, TRANSPORT: {"string"}}
            else:
                for name, numbers in self._catalogue.derived.items():
                    if number in numbers and (not emit or name in emit):
                        self._expect(name, None)

    def _expect(self, label: str, arity: int | None) -> None:
        schema = self._catalogue.events.get(label)
        types = [t for _, t in schema.attributes or ()] if schema is not None else []
        for k, name in enumerate(self.names(label, arity)):
            self.declared.setdefault(name, set()).update(types[k : k + 1])

    def are_flat(self, label: str, arity: int) -> bool:
        """Whether answers of a label with so many values have a column for each; a term with one child looks alike."""
        return self._catalogue.attributes(label) is not None or (label, arity) in self._by_heads

    def names(self, label: str, arity: int | None) -> list[str]:
        """The columns of a label."""
        names = self._catalogue.attributes(label)
        if names is not None:
            return _standing(names)
        return [DATA] if arity is None else self._by_heads.get((label, arity), _standing([None] * arity))


def _named_by_heads(rules: Ruleset) -> dict[tuple[str, int], list[str]]:
    """For each label and arity the columns that the first head of the text shows."""
    found: dict[tuple[str, int], list[str]] = {}
    for rule in rules.resolved.rules:
        if isinstance(rule.head, Derive):
            arguments = rule.head.arguments
            found.setdefault((str(rule.head.label), len(arguments)), _standing([_name(a) for a in arguments]))
    return found


def _name(argument: Expression) -> str | None:
    """What a value of a head is called: as its variable, or as `avg_v` what is computed from variables alone."""
    match argument:
        case Var(name):
            return name
        case Aggregate(function, None):
            return function
        case Aggregate(function, Var(name)):
            return f"{function}_{name}"
        case Call(function, arguments):
            names = [a.name for a in arguments if isinstance(a, Var | Name)]
            return "_".join([function, *names]) if len(names) == len(arguments) else None
        case _:
            return None


def _standing(names: Sequence[str | None]) -> list[str]:
    """Names as columns: by position where there is none, or it stands twice or is taken."""
    by_position = [f"value{k}" for k in range(1, len(names) + 1)]
    free = [n is not None and n not in _TAKEN and names.count(n) == 1 for n in names]
    standing = [str(n) if good else p for n, good, p in zip(names, free, by_position, strict=True)]
    return standing if len(set(standing)) == len(standing) else by_position


class Writer(AnswerColumns):
    """Writes answers and messages as a table, whose columns follow from the program."""

    def __init__(self, rules: Ruleset, read: Read, emit: Collection[str] = ()) -> None:
        super().__init__(rules, emit)
        self._read = read

    def table(self, given: Sequence[AnswerPart]) -> pa.Table:
        """All answers and messages, by end, begin, event and data."""
        parts = [part for part in given if len(part.events)]
        begins, ends = (np.concatenate([p.events.batch[n] for p in parts] or [_NONE]) for n in (BEGIN, END))
        numbers = self._read.numbers
        whole = not any((stamps % self._catalogue.unit).any() for stamps in (begins, ends))
        cells = [self._part_cells(part, numbers) for part in parts]
        names = dict.fromkeys([*self.declared, *(name for own in cells for name in own)])
        labels = [pa.repeat(pa.scalar(part.events.label), len(part.events)) for part in parts]
        table = pa.table(
            {
                "event": pa.concat_arrays(labels) if labels else pa.array([], pa.string()),
                "begin": self._stamps(begins, numbers, whole),
                "end": self._stamps(ends, numbers, whole),
                **{name: self._column(name, parts, cells) for name in names},
            }
        )
        order = in_order(parts)
        return table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))

    def _part_cells(self, part: AnswerPart, numbers: bool) -> dict[str, Column]:
        """The values of some answers by column; messages and terms that are not flat are JSON."""
        events = part.events
        if part.message is None and events.arity is not None:
            names = self.names(events.label, events.arity)
            return {name: events.batch.columns[position(k)] for k, name in enumerate(names)}
        rows = [self.cells(event, part.message, numbers) for event in events.events()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: column([row.get(name) for row in rows]) for name in names}

    def _column(self, name: str, parts: Sequence[AnswerPart], cells: Sequence[Mapping[str, Column]]) -> pa.Array:
        """A column of all parts, null where a part has none of that name."""
        declared = self.declared.get(name, set())
        kinds = {own[name].kind for own in cells if name in own}
        kind = _plain_kind(kinds, declared)
        if kind is None:
            values = [v for p, own in zip(parts, cells, strict=True) for v in _values(own.get(name), len(p.events))]
            return self._array(values, declared)
        arrays = [
            pa.array(own[name].values, kind) if name in own else pa.nulls(len(part.events), kind)
            for part, own in zip(parts, cells, strict=True)
        ]
        return pa.concat_arrays(arrays)

    def _stamps(self, stamps: Ints, numbers: bool, whole: bool) -> pa.Array:
        if not numbers:
            return pa.array(stamps, pa.timestamp("us", tz="UTC"))
        return pa.array(stamps // self._catalogue.unit if whole else stamps / self._catalogue.unit)

    def cells(self, event: Event, message: tuple[str, str] | None, numbers: bool) -> Mapping[str, Value]:
        """The values of an answer by column; messages and terms that are not flat are JSON."""
        if message is not None:
            recipient, transport = message
            return {"data": self._text(event, numbers), "recipient": recipient, "transport": transport}
        names = self._catalogue.attributes(event.term.label)
        flat = flat_values(event.term, names) if names is not None or event.positional else None
        if flat is None:
            return {"data": self._text(event, numbers)}
        return dict(zip(self.names(event.term.label, len(flat)), flat, strict=True))

    def _text(self, event: Event, numbers: bool) -> str:
        written = write_event(event, self._catalogue, as_numbers=numbers)
        return json.dumps(written.get("data", written.get("term")), ensure_ascii=False)

    def _array(self, values: list[Value], declared: set[str]) -> pa.Array:
        """A column of the values' kind; of several kinds, of JSON."""
        found = {type(v) for v in values if v is not None}
        if not found:
            return pa.nulls(len(values), _TYPES.get("".join(declared), pa.null()))
        if found == {Time}:
            stamps = [v.microseconds if isinstance(v, Time) else None for v in values]
            unit = self._catalogue.unit
            if self._read.plain_numbers and not any(s % unit for s in stamps if s is not None):
                return pa.array([None if s is None else s // unit for s in stamps], pa.int64())
            if self._read.plain_numbers:
                return pa.array([None if s is None else s / unit for s in stamps], pa.float64())
            return pa.array(stamps, pa.timestamp("us", tz="UTC"))
        if found <= {int, float} and (float in found or declared == {"float"}):
            floats = [None if v is None else float(v) for v in values]  # type: ignore[arg-type]
            if floats == values:
                return pa.array(floats, pa.float64())
        if len(found) == 1 and found <= {bool, int, str}:
            return pa.array(values)
        return pa.array([None if v is None else json.dumps(self.as_json(v), ensure_ascii=False) for v in values])

    def as_json(self, value: Value) -> Any:
        """A value as JSON has it."""
        return write_value(value, self._catalogue.unit, as_numbers=self._read.plain_numbers)


_NONE: Ints = np.empty(0, dtype=np.int64)


def _plain_kind(kinds: set[Kind], declared: set[str]) -> pa.DataType | None:
    """The type of a column whose values are all of one plain kind; None if they have to be looked at."""
    if kinds == {"int"} and declared != {"float"}:
        return pa.int64()
    if kinds == {"float"}:
        return pa.float64()
    return pa.string() if kinds == {"text"} else None


def _values(c: Column | None, length: int) -> list[Any]:
    return [None] * length if c is None else c.tolist()
