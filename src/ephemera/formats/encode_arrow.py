"""This module writes answers as Arrow tables, whose columns follow from the program alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ephemera.formats.decode_arrow import Read
from ephemera.formats.json_events import write_event, write_time
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import flat_values
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import Message, Outcome
from ephemera.syntax.nodes import Derive, Raise
from ephemera.terms.events import Event
from ephemera.terms.json import to_object
from ephemera.terms.nodes import Var
from ephemera.terms.text import to_text
from ephemera.terms.values import Term, Time, Value

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
    """The columns of answers: attributes, else variables of heads, else positions; `data` is that of terms."""

    def __init__(self, rules: Ruleset) -> None:
        self._catalogue = rules.resolved.catalogue
        self._variables = _variables(rules)
        self.declared: dict[str, set[str]] = {}
        """The columns in their order, with the types that are declared for them."""
        for number, rule in enumerate(rules.resolved.rules, 1):
            if isinstance(rule.head, Derive):
                self._expect(str(rule.head.label), len(rule.head.arguments))
            elif isinstance(rule.head, Raise):
                self.declared |= {DATA: set(), RECIPIENT: {"string"}, TRANSPORT: {"string"}}
            else:
                for label, numbers in self._catalogue.derived.items():
                    if number in numbers:
                        self._expect(label, None)

    def _expect(self, label: str, arity: int | None) -> None:
        schema = self._catalogue.events.get(label)
        types = [t for _, t in schema.attributes or ()] if schema is not None else []
        for k, name in enumerate(self.names(label, arity)):
            self.declared.setdefault(name, set()).update(types[k : k + 1])

    def are_flat(self, label: str, arity: int) -> bool:
        """Whether answers of a label with so many values have a column for each; a term with one child looks alike."""
        return self._catalogue.attributes(label) is not None or (label, arity) in self._variables

    def names(self, label: str, arity: int | None) -> list[str]:
        """The columns of a label."""
        names = self._catalogue.attributes(label)
        if names is not None:
            return _standing(names)
        return [DATA] if arity is None else self._variables.get((label, arity), _standing([None] * arity))


def _variables(rules: Ruleset) -> dict[tuple[str, int], list[str]]:
    """For each label and arity the variables that all its heads show at each position."""
    found: dict[tuple[str, int], list[set[str | None]]] = {}
    for rule in rules.resolved.rules:
        if isinstance(rule.head, Derive):
            arguments = rule.head.arguments
            places = found.setdefault((str(rule.head.label), len(arguments)), [set() for _ in arguments])
            for place, argument in zip(places, arguments, strict=True):
                place.add(argument.name if isinstance(argument, Var) else None)
    return {key: _standing([p.pop() if len(p) == 1 else None for p in places]) for key, places in found.items()}


def _standing(names: Sequence[str | None]) -> list[str]:
    """Names as columns: by position where there is none, or it stands twice or is taken."""
    by_position = [f"value{k}" for k in range(1, len(names) + 1)]
    free = [n is not None and n not in _TAKEN and names.count(n) == 1 for n in names]
    standing = [str(n) if good else p for n, good, p in zip(names, free, by_position, strict=True)]
    return standing if len(set(standing)) == len(standing) else by_position


class Writer(AnswerColumns):
    """Writes answers and messages as a table, whose columns follow from the program."""

    def __init__(self, rules: Ruleset, read: Read) -> None:
        super().__init__(rules)
        self._read = read

    def table(self, outcome: Outcome) -> pa.Table:
        """All answers and messages, by end, begin, event and data."""
        answers: list[tuple[Event, Message | None]] = [(e, None) for e in outcome.events]
        answers += [(m.event, m) for m in outcome.messages]
        answers.sort(key=lambda a: (a[0].key, *((a[1].recipient, a[1].transport) if a[1] is not None else ("", ""))))
        begins = np.array([e.time.begin for e, _ in answers], dtype=np.int64)
        ends = np.array([e.time.end for e, _ in answers], dtype=np.int64)
        unit = self._catalogue.unit
        numbers = self._read.numbers and not (begins % unit).any() and not (ends % unit).any()
        rows = [self.cells(event, message, numbers) for event, message in answers]
        columns = dict.fromkeys([*self.declared, *(name for row in rows for name in row)])
        return pa.table(
            {
                "event": pa.array([e.term.label for e, _ in answers], pa.string()),
                "begin": self._stamps(begins, numbers),
                "end": self._stamps(ends, numbers),
                **{n: self._array([row.get(n) for row in rows], self.declared.get(n, set())) for n in columns},
            }
        )

    def _stamps(self, stamps: Ints, numbers: bool) -> pa.Array:
        return pa.array(stamps // self._catalogue.unit) if numbers else pa.array(stamps, pa.timestamp("us", tz="UTC"))

    def cells(self, event: Event, message: Message | None, numbers: bool) -> Mapping[str, Value]:
        """The values of an answer by column; messages and terms that are not flat are JSON."""
        if message is not None:
            return {
                "data": self._text(event, numbers),
                "recipient": message.recipient,
                "transport": message.transport,
            }
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
        if isinstance(value, Time):
            return write_time(value.microseconds, self._catalogue.unit, as_numbers=self._read.plain_numbers)
        if isinstance(value, Term):
            data = to_object(Term("", (value,), ordered=False))
            return to_text(value) if data is None else data
        return value
