"""This module runs programs on tables: Arrow, pandas, Polars and DuckDB in, the same kind out.

A table has a column `event` (or the program one type of input), `time` or `begin` and `end`, and a column for each
attribute; a column that is missing is null. Whole numbers count the program's time unit. Timestamps are instants, in
UTC unless they have a zone, and what is finer than a microsecond is floored.

Rows of declared types go from columns to columns. Only what that cannot vouch for is read row by row, exactly as the
same JSON object would be: other types and undeclared labels, and whatever may be bad, which gets its reason there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.engine.batch import Batch as History
from ephemera.engine.events import BEGIN, END, Events, of_events, position
from ephemera.engine.events import _flat as flat_values
from ephemera.engine.live import Compiled
from ephemera.io.jsonl import LATEST, BadEvent, read_object, write_event, write_time
from ephemera.kernels.columns import Batch, Column, Ints, Kind, Mask, ints, objects
from ephemera.rules.nodes import Catalogue, Ruleset, Schema
from ephemera.rules.outcome import DeadLetter, Message, Outcome, World
from ephemera.syntax.nodes import Derive, Raise
from ephemera.terms.compute import EPOCH
from ephemera.terms.events import Event
from ephemera.terms.json import to_object
from ephemera.terms.nodes import Var
from ephemera.terms.text import iso, to_text
from ephemera.terms.values import Term, Time, Value

Evaluate: TypeAlias = Callable[[list[Event], World], Outcome]

_KINDS = frozenset(
    "pyarrow.Table pyarrow.RecordBatch pyarrow.RecordBatchReader pandas.DataFrame polars.DataFrame polars.LazyFrame "
    "duckdb.DuckDBPyRelation".split()
)
_TAKEN = ("event", "begin", "end", "data", "recipient", "transport")
"""Columns of answers that no attribute can have."""
_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}
_TICKS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no event of the program: its number, counted from 0, and why not."""

    row: int
    reason: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class TableRun:
    """What came of a run: answers and messages in a table, bad rows, and heads that had no value."""

    answers: Any
    bad: list[BadRow]
    undefined: list[DeadLetter]


def is_table(given: object) -> bool:
    """Whether something is a table that programs run on."""
    return _kind(given) is not None


def run_table(compiled: Compiled, given: Any, world: World, evaluate: Evaluate | None = None) -> TableRun:
    """All that a program derives from the rows of a table, as a table of the same kind.

    `evaluate` runs the events instead of the engine.
    """
    read = _Reader(_to_arrow(given), compiled).read()
    if evaluate is not None:
        outcome = evaluate([event for part in read.parts for event in part.events()], world)
    else:
        history = _Columns(compiled.rules, compiled.plan, compiled.facts, read.parts, world)
        outcome = history.run(history.slices())
    answers = _Writer(compiled.rules, read).table(outcome)
    return TableRun(_like(given, answers), sorted(read.bad, key=lambda bad: bad.row), outcome.dead_letters)


class _Columns(History):
    """A history that comes by columns."""

    def __init__(self, rules: Ruleset, plan: Plan, facts: Facts, parts: Sequence[Events], world: World) -> None:
        super().__init__(rules, plan, facts, (), world)
        ends = [int(limit) for p in parts if len(p) for limit in (p.batch[END].min(), p.batch[END].max())]
        if ends:
            self._first = min(ends)
            self._last = max(ends) if world.until is None else max(*ends, world.until)
        self._parts = [*parts, *self._parts]


# ---- kinds of tables ---------------------------------------------------------------------------------------


def _kind(given: object) -> str | None:
    names = (f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(given).__mro__)
    return next((name for name in names if name in _KINDS), None)


def _to_arrow(given: Any) -> pa.Table:
    match _kind(given):
        case "pandas.DataFrame":
            try:
                return pa.Table.from_pandas(given, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise ValueError(f"a column holds values of several kinds; give each column one: {error}") from None
        case "polars.LazyFrame":
            return given.collect().to_arrow()
        case "polars.DataFrame":
            return given.to_arrow()
        case "duckdb.DuckDBPyRelation":
            return given.to_arrow_table()
        case "pyarrow.RecordBatchReader":
            return given.read_all()
        case "pyarrow.RecordBatch":
            return pa.Table.from_batches([given])
        case "pyarrow.Table":
            return given
        case _:
            raise TypeError(f"a {type(given).__name__} is no table; give Arrow, pandas, Polars or DuckDB")


def _like(given: Any, answers: pa.Table) -> Any:
    """The answers as a table of the given one's kind; integers stay such where some are null."""
    match _kind(given):
        case "pandas.DataFrame":
            return answers.to_pandas(integer_object_nulls=True)
        case "polars.LazyFrame":
            return import_module("polars").from_arrow(answers).lazy()
        case "polars.DataFrame":
            return import_module("polars").from_arrow(answers)
        case "duckdb.DuckDBPyRelation":
            return _relation(given, answers)
        case "pyarrow.RecordBatchReader":
            return answers.to_reader()
        case "pyarrow.RecordBatch":
            return pa.RecordBatch.from_arrays([c.combine_chunks() for c in answers.columns], schema=answers.schema)
        case _:
            return answers


def _relation(given: Any, ephemera_answers: pa.Table) -> Any:  # noqa: ARG001 - DuckDB finds the table by its name
    """A relation of the same connection, so that it can be joined with others."""
    return given.query("ephemera_events", "SELECT * FROM ephemera_answers")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of a plain type."""
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_string(column.type) or kinds.is_string_view(column.type):
        column = column.cast(pa.large_string())  # one array may be longer than 2 GB
    return column.combine_chunks()


# ---- reading -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Read:
    """The events of a table, and how it writes times: all as numbers, and so in its attributes."""

    parts: list[Events] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    numbers: bool = True
    plain_numbers: bool = True


class _Reader:
    """Reads the rows of a table, label by label."""

    def __init__(self, table: pa.Table, compiled: Compiled) -> None:
        self._catalogue = compiled.rules.resolved.catalogue
        self._limits = compiled.limits
        self._length = table.num_rows
        twice = [name for name, count in Counter(table.column_names).items() if count > 1]
        if twice:
            raise ValueError(f"the table has several columns `{twice[0]}`; rename all but one")
        self._arrays = {n: _whole(c) for n, c in zip(table.column_names, table.columns, strict=True)}
        self._times = _time_columns(self._arrays, self._catalogue)
        stamps = [_stamps(self._arrays[n], self._catalogue.unit) for n in self._times]
        self._begin, self._end = stamps[0][0], stamps[-1][0]
        self._good = stamps[0][1] & stamps[-1][1] & (self._begin <= self._end)
        self._found = _Read()

    def read(self) -> _Read:
        used = {n for schema in self._catalogue.events.values() for n in schema.names}
        used = used & set(self._arrays) if self._catalogue.events else set(self._arrays)
        self._found.numbers = all(_is_numeric(self._arrays[n].type) for n in self._times)
        self._found.plain_numbers = self._found.numbers and not any(_is_instant(self._arrays[n].type) for n in used)
        singles: list[Event] = []
        for label, rows in self._labels():
            schema = self._catalogue.events.get(label)
            if schema is not None and schema.attributes is not None and not _has_lists(schema):
                part, good = self._flat(schema, schema.attributes, rows)
                self._found.parts += [part] if len(part) else []
                rows = rows[~good]  # noqa: PLW2901 - what is left
            if len(rows):
                singles += self._one_by_one(label, schema, rows)
        self._found.parts += of_events(singles, self._catalogue.attributes)
        return self._found

    def _labels(self) -> Iterator[tuple[str, Ints]]:
        """The labels with their rows; rows without one are bad."""
        if "event" not in self._arrays:
            yield _only_label(self._catalogue), np.arange(self._length)
            return
        array = self._arrays["event"]
        if not kinds.is_large_string(array.type):
            array = pa.nulls(self._length, pa.large_string())
        encoded = array.dictionary_encode()
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        unnamed = np.flatnonzero(numbers < 0).tolist()
        self._found.bad += [BadRow(row, "an event has a name in the column `event`") for row in unnamed]
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], np.arange(len(encoded.dictionary) + 1))
        for k, label in enumerate(encoded.dictionary.to_pylist()):
            yield label, order[cuts[k] : cuts[k + 1]]

    def _flat(self, schema: Schema, attributes: Sequence[tuple[str, str]], rows: Ints) -> tuple[Events, Mask]:
        """The events of a declared type by columns, and which rows they are."""
        good = self._good[rows]
        if schema.longest is not None:
            lengths = (self._end[rows] - self._begin[rows]).view(np.uint64)  # the longest has 64 bits
            good = good & (lengths <= schema.longest)
        columns = {BEGIN: ints(self._begin[rows]), END: ints(self._end[rows])}
        for k, (name, declared) in enumerate(attributes):
            array = self._arrays.get(name)
            given = pa.nulls(len(rows)) if array is None else array if len(rows) == self._length else array.take(rows)
            columns[position(k)], right = _column(given, declared, self._catalogue.unit)
            good = good & right
        batch = Batch(columns, len(rows))
        return Events(schema.label, batch if good.all() else batch.take(good), len(attributes), schema.names), good

    def _one_by_one(self, label: str, schema: Schema | None, rows: Ints) -> Iterator[Event]:
        """The events of some rows as JSON objects would be read; what is none is bad."""
        is_open = schema is None or schema.attributes is None
        types = dict(schema.attributes or ()) if schema is not None else {}
        names = [n for n in self._arrays if (n not in ("event", *self._times) if is_open else n in types)]
        lists = {n: _listed(n, self._arrays[n].take(rows)) for n in names}
        times = [[_as_text(t) for t in _listed(n, self._arrays[n].take(rows))] for n in self._times]
        for k, row in enumerate(rows.tolist()):
            values = {n: v[k] for n, v in lists.items() if v[k] is not None}
            stamps = [t[k] for t in times]
            event = _read_row(label, stamps if len(stamps) > 1 else stamps[0], values, types, self._catalogue)
            reason = event.reason if isinstance(event, BadEvent) else self._limits.complaint(event)
            if reason is not None:
                self._found.bad.append(BadRow(row, reason, label))
            elif isinstance(event, Event):
                yield event


def _read_row(
    label: str, time: object, values: Mapping[str, Any], types: Mapping[str, str], catalogue: Catalogue
) -> Event | BadEvent:
    """The event of a row; JSON has no instants, so those of no declared type are added to what it reads."""
    instants = {n: v for n, v in values.items() if isinstance(v, Time) and types.get(n, "any") == "any"}
    data = {
        n: _as_text(v) if types.get(n, "").startswith("time") else v for n, v in values.items() if n not in instants
    }
    event = read_object({"event": label, "time": time, "data": data}, catalogue)
    if isinstance(event, BadEvent) or not instants:
        return event
    more = tuple(Term(n, (v,), ordered=False) for n, v in instants.items())
    return Event(Term(label, event.term.children + more, ordered=False, attributes=event.term.attributes), event.time)


def _only_label(catalogue: Catalogue) -> str:
    labels = list(catalogue.events)
    if len(labels) > 1:
        labels = [label for label in labels if label not in catalogue.derived]
    if len(labels) != 1:
        raise ValueError(
            f"the table has no column `event`, and the program declares {len(labels) or 'no'} types of input; "
            "add the column, or declare exactly one with `EVENT`"
        )
    return labels[0]


def _time_columns(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """The columns that say when; `time` may also be an attribute, and then `begin` and `end` come first."""
    given = set(names)
    is_attribute = any("time" in schema.names for schema in catalogue.events.values())
    if {"begin", "end"} <= given and ("time" not in given or is_attribute):
        return ("begin", "end")
    if "time" not in given:
        raise ValueError("the table does not say when events happen; name a column `time`, or two `begin` and `end`")
    return ("time",)


def _has_lists(schema: Schema) -> bool:
    return any(declared.endswith("[]") for _, declared in schema.attributes or ())


# ---- columns of a table ------------------------------------------------------------------------------------


def _is_instant(t: pa.DataType) -> bool:
    return bool(kinds.is_timestamp(t) or kinds.is_date(t))


def _is_numeric(t: pa.DataType) -> bool:
    return bool(kinds.is_integer(t) or kinds.is_floating(t) or kinds.is_decimal(t) or kinds.is_null(t))


def _ticks(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Instants as whole numbers, and what they are multiplied with and divided by to be microseconds."""
    if kinds.is_timestamp(array.type):
        return array.cast(pa.int64()), *_TICKS[array.type.unit]
    if kinds.is_date32(array.type):
        return array.cast(pa.int32()).cast(pa.int64()), 86_400_000_000, 1
    return array.cast(pa.int64()), 1_000, 1


def _numbers(array: pa.Array) -> tuple[Ints, Mask]:
    """Whole numbers of 64 bits, and which rows they are right for."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if kinds.is_integer(array.type):
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        fits = values <= np.uint64(2**63 - 1) if values.dtype == np.uint64 else np.ones(len(values), dtype=np.bool_)
        return values.astype(np.int64), valid & fits
    if kinds.is_floating(array.type):
        floats, valid = _floats(array)
        whole = valid & (np.abs(floats) <= _EXACT) & (np.floor(floats) == floats)
        return np.where(whole, floats, 0).astype(np.int64), whole
    return np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.bool_)


def _floats(array: pa.Array) -> tuple[np.ndarray, Mask]:
    """Doubles, and which rows they are right for."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if kinds.is_floating(array.type):
        floats = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        return floats, valid & np.isfinite(floats)
    values, fits = _numbers(array)
    return values.astype(np.float64), fits & (values <= _EXACT) & (values >= -_EXACT)


def _stamps(array: pa.Array, unit: int) -> tuple[Ints, Mask]:
    """Points in time in microseconds, and which rows they are right for."""
    factor, divisor = unit, 1
    if _is_instant(array.type):
        array, factor, divisor = _ticks(array)
    values, good = _numbers(array)
    near = good & (values <= LATEST // factor) & (values >= -(LATEST // factor)) if divisor == 1 else good
    return np.where(near, values, 0) * factor // divisor, near


def _column(array: pa.Array, declared: str, unit: int) -> tuple[Column, Mask]:
    """The values of an attribute, and which rows they are right for; null always is."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    t = array.type
    is_number = kinds.is_integer(t) or kinds.is_floating(t)
    kind: Kind = "any"
    if declared == "time" or (declared == "any" and _is_instant(t)):
        stamps, good = _stamps(array, unit)
        values: np.ndarray = objects([Time(v) for v in stamps.tolist()])
    elif (declared == "int" and is_number) or (declared == "any" and kinds.is_integer(t)):
        (values, good), kind = _numbers(array), "int"
    elif is_number and declared in ("float", "any"):
        (values, good), kind = _floats(array), "float"
    elif kinds.is_large_string(t) and declared in ("string", "any"):
        values, good, kind = array.to_numpy(zero_copy_only=False), valid, "text"
    elif kinds.is_boolean(t) and declared in ("bool", "any"):
        values, good = array.fill_null(False).to_numpy(zero_copy_only=False).astype(object), valid
    else:
        values, good = objects([None] * len(array)), np.zeros(len(array), dtype=np.bool_)
    if not valid.all():
        values, kind = values.astype(object), "any"
        values[~valid] = None
    return Column(values, kind), good | ~valid


def _listed(name: str, array: pa.Array) -> list[Any]:
    """The values as Python has them, instants as times, decimals as the numbers they are."""
    if _is_instant(array.type):
        numbers, factor, divisor = _ticks(array)
        return [None if v is None else Time(v * factor // divisor) for v in numbers.to_pylist()]
    try:
        return [_plain(v) for v in array.to_pylist()]
    except ValueError as error:
        raise ValueError(f"the column `{name}` of type {array.type} cannot be read: {error}; cast it first") from None


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return Time(((value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1))
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list():
            return [_plain(v) for v in value]
        case dict():
            return {name: _plain(v) for name, v in value.items()}
        case _:
            return value


def _as_text(value: Any) -> Any:
    """Instants as JSON has them."""
    if isinstance(value, list):
        return [_as_text(v) for v in value]
    return iso(value) if isinstance(value, Time) else value


# ---- writing -----------------------------------------------------------------------------------------------


class _Writer:
    """Writes answers and messages as a table, whose columns follow from the program."""

    def __init__(self, rules: Ruleset, read: _Read) -> None:
        self._catalogue = rules.resolved.catalogue
        self._read = read
        self._variables = _variables(rules)
        self._declared: dict[str, set[str]] = {}
        """The columns in their order, with the types that are declared for them."""
        for number, rule in enumerate(rules.resolved.rules, 1):
            if isinstance(rule.head, Derive):
                self._expect(str(rule.head.label), len(rule.head.arguments))
            elif isinstance(rule.head, Raise):
                self._declared |= {"data": set(), "recipient": {"string"}, "transport": {"string"}}
            else:
                for label, numbers in self._catalogue.derived.items():
                    if number in numbers:
                        self._expect(label, None)

    def _expect(self, label: str, arity: int | None) -> None:
        schema = self._catalogue.events.get(label)
        types = [t for _, t in schema.attributes or ()] if schema is not None else []
        for k, name in enumerate(self._names(label, arity)):
            self._declared.setdefault(name, set()).update(types[k : k + 1])

    def _names(self, label: str, arity: int | None) -> list[str]:
        """The columns of a label: its attributes, else the variables of its heads; `data` is that of terms."""
        names = self._catalogue.attributes(label)
        if names is not None:
            return _standing(names)
        return ["data"] if arity is None else self._variables.get((label, arity), _standing([None] * arity))

    def table(self, outcome: Outcome) -> pa.Table:
        """All answers and messages, by end, begin, event and data."""
        answers: list[tuple[Event, Message | None]] = [(e, None) for e in outcome.events]
        answers += [(m.event, m) for m in outcome.messages]
        answers.sort(key=lambda a: (a[0].key, *((a[1].recipient, a[1].transport) if a[1] is not None else ("", ""))))
        begins = np.array([e.time.begin for e, _ in answers], dtype=np.int64)
        ends = np.array([e.time.end for e, _ in answers], dtype=np.int64)
        unit = self._catalogue.unit
        numbers = self._read.numbers and not (begins % unit).any() and not (ends % unit).any()
        rows = [self._cells(event, message, numbers) for event, message in answers]
        columns = dict.fromkeys([*self._declared, *(name for row in rows for name in row)])
        return pa.table(
            {
                "event": pa.array([e.term.label for e, _ in answers], pa.string()),
                "begin": self._stamps(begins, numbers),
                "end": self._stamps(ends, numbers),
                **{n: self._array([row.get(n) for row in rows], self._declared.get(n, set())) for n in columns},
            }
        )

    def _stamps(self, stamps: Ints, numbers: bool) -> pa.Array:
        return pa.array(stamps // self._catalogue.unit) if numbers else pa.array(stamps, pa.timestamp("us", tz="UTC"))

    def _cells(self, event: Event, message: Message | None, numbers: bool) -> Mapping[str, Value]:
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
        return dict(zip(self._names(event.term.label, len(flat)), flat, strict=True))

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
        return pa.array([None if v is None else json.dumps(self._json(v), ensure_ascii=False) for v in values])

    def _json(self, value: Value) -> Any:
        if isinstance(value, Time):
            return write_time(value.microseconds, self._catalogue.unit, as_numbers=self._read.plain_numbers)
        if isinstance(value, Term):
            data = to_object(Term("", (value,), ordered=False))
            return to_text(value) if data is None else data
        return value


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
