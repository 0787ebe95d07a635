"""This module holds events by columns of a data frame beside the rows that are none, and says which rows are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ephemera.base.time import LATEST
from ephemera.formats.check_columns import Offer
from ephemera.rewrite.pushdown import Asked, comparable, only_attribute
from ephemera.rules.nodes import Catalogue, Schema

ColumnKind = Literal["int", "float", "string", "bool", "time"]
"""What a column holds: bigint, double, string, boolean, or bigint microseconds."""
Form = Literal["lines", "rows", "cells", "documents", "sheets"]
"""What the rows of a frame are: lines of JSON, rows or cells of a table, or whole files: of XML messages, or of CSV."""
ANY = "*"
"""Stands among the types that are wanted where programs may use any other, too."""
EVENT, BEGIN, END, TEXT, REST = "event", "s", "e", "text", "rest"
EXACT = 2**53
"""Whole numbers up to here are doubles, too."""


@dataclass(frozen=True, slots=True)
class AttributeColumn:
    """Where an attribute is: in which column, and of which kind."""

    column: str
    kind: ColumnKind


@dataclass(frozen=True, slots=True)
class ScannedEvents:
    """What is read from an input, in one scan: events by columns, and what has to be read one by one in Python.

    The columns are `event`, `s`, `e`, and those that hold the attributes of each type; where types declare an attribute
    of one name differently, it has several. Lines have a column `text`, too: whether the event wrote its time as text.
    The column `rest` is null where these say all. Elsewhere it has the row itself, and only it counts: the line in
    bytes, or a structure, and no array of one: Spark asks for the size of a batch behind each of its rows, and for that
    Arrow goes through all arrays that were null so far. If no type is flat, there is only `rest`.
    """

    frame: DataFrame
    form: Form
    held: Mapping[tuple[str, str], AttributeColumn] = field(default_factory=dict)
    is_point: bool = False
    """Whether all events by columns are points, so that one stamp says all."""
    counts: bool = True
    """Whether the columns of a table that say when hold numbers."""
    offer: Offer | None = None
    """What it offers, if it has columns."""
    only: str | None = None
    """The type of all that names none, if it is of a stream that carries one."""
    files: tuple[str, ...] = ()
    """Where it is, if these are files."""

    @property
    def has_columns(self) -> bool:
        """Whether there may be events by columns."""
        return EVENT in self.frame.columns


@dataclass(frozen=True, slots=True)
class Cell:
    """A value by column, and what is wrong with a row; a fault that is unknown is none."""

    value: Column
    kind: ColumnKind
    faults: tuple[Column, ...] = ()
    is_plain: bool = True
    """Whether scans can use the faults, since they are comparisons with constants, or what comes near to them."""
    near: tuple[Column, ...] = ()
    """Comparisons of which one holds wherever there is a fault; the faults themselves if there are none."""


@dataclass(frozen=True, slots=True)
class EventShape:
    """An event type by columns: the cells of all its attributes, and the faults of a row of the type."""

    schema: Schema
    cells: Mapping[str, Cell]
    begin: Column
    end: Column
    faults: tuple[Column, ...]
    suspects: tuple[Column, ...] | None = None
    """Comparisons with constants of which one holds wherever there is a fault, so that scans can use them."""

    @property
    def fault(self) -> Column:
        return any_of(self.faults)


def is_flat(schema: Schema | None) -> bool:
    """Whether the events of a type are declared with one value for each attribute."""
    return schema is not None and schema.is_flat


def flat_types(catalogue: Catalogue, wanted: Iterable[str]) -> list[Schema]:
    """The flat types among those wanted."""
    return [catalogue.events[label] for label in wanted if is_flat(catalogue.events.get(label))]


def stamp_faults(stamp: Column, unit: int) -> tuple[Column, ...]:
    """What is wrong with a number that counts the unit: it is none, or too far from 1970."""
    furthest = LATEST // unit
    return stamp.isNull(), stamp > f.lit(furthest), stamp < f.lit(-furthest)


def no_stamp() -> Cell:
    """The time of rows that do not say when."""
    return Cell(f.lit(None).cast("bigint"), "time", (f.lit(True),), is_plain=False)


def times(stamp: Column, unit: int) -> Column:
    """Numbers that count the unit in microseconds; only good ones are used."""
    return stamp if unit == 1 else f.try_multiply(stamp, f.lit(unit))


def length_faults(begin: Column, end: Column, longest: int | None) -> tuple[Column, ...]:
    """What is wrong with an interval: it ends before it begins, or lasts longer than declared."""
    backwards = begin > end
    return (backwards,) if longest is None else (backwards, f.try_subtract(end, begin) > f.lit(min(longest, 2**63 - 1)))


def once(frame: DataFrame, **columns: Column) -> DataFrame:
    """The frame with more columns, each computed once: no filter or projection is moved across a generator."""
    return frame.select("*", f.inline(f.array(f.struct(*(c.alias(name) for name, c in columns.items())))))


def named(name: str) -> Column:
    """The column of a name, whatever characters it has."""
    return f.col("`" + name.replace("`", "``") + "`")


def any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of some conditions holds; each is there once."""
    distinct = list({str(c): c for c in conditions}.values())
    return reduce(or_, distinct) if distinct else f.lit(False)


def _kept(
    event: Column, shapes: Iterable[EventShape], constants: Mapping[str, tuple[Asked, ...]], *, plainly: bool
) -> Column:
    """Whether a row is of a type and has constants that rules ask for, or is at fault; if plainly, a scan can tell."""
    whole: list[str] = []
    found: list[Column] = []
    for shape in shapes:
        test = _has_constants(shape, constants.get(shape.schema.label, ()))
        faults = shape.suspects if plainly else shape.faults
        if test is None or faults is None:
            whole.append(shape.schema.label)
        else:
            found.append((event == shape.schema.label) & any_of([test, *faults]))
    return any_of([*([event.isin(whole)] if whole else []), *found])


def _has_constants(shape: EventShape, uses: tuple[Asked, ...]) -> Column | None:
    """Whether a row has the constants of one of some uses; None if any may do."""
    tests: list[dict[str, object]] = []
    for use in uses:
        kinds = ((name, comparable(shape.cells[name].kind, constant)) for name, constant in use)
        tests.append({name: constant for name, constant in kinds if constant is not None})
    if not tests or not all(tests):
        return None
    name = only_attribute(uses)
    if name is not None:
        values = [test[name] for test in tests]
        value = shape.cells[name].value
        return value == f.lit(values[0]) if len(values) == 1 else value.isin(values)
    return any_of(reduce(and_, (shape.cells[n].value == f.lit(c) for n, c in test.items())) for test in tests)


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """Rows that may be events: of which type, and what of them is read one by one where it has to be."""

    frame: DataFrame
    form: Form
    event: Column
    rest: Column


def of_rows(
    rows: ScannedRows,
    shapes: Sequence[EventShape],
    wanted: Mapping[str, frozenset[str]],
    constants: Mapping[str, tuple[Asked, ...]],
) -> ScannedEvents:
    """What is read of a table or of cells.

    A row is read one by one if it names no type, is of a type that is not flat, or is at fault, whatever its constants.
    """
    event, labels = rows.event, [shape.schema.label for shape in shapes]
    others = [label for label in wanted if label not in labels and label != ANY]
    by_fault: dict[str, tuple[list[str], Column]] = {}
    for shape in shapes:
        by_fault.setdefault(str(shape.fault), ([], shape.fault))[0].append(shape.schema.label)
    apart = [event.isNull(), *([event.isin(others)] if others else [])]
    frame = rows.frame
    if ANY in wanted:
        apart = [event.isNull(), ~event.isin(labels)] if labels else [f.lit(True)]
    else:
        plain, kept = (_kept(event, shapes, constants, plainly=plainly) for plainly in (True, False))
        frame = frame.where(any_of([*apart, plain]))
        if str(plain) != str(kept):  # within `coalesce`, so that it is not merged with what scans can use
            frame = frame.where(f.coalesce(any_of([*apart, kept]), f.lit(False)))
    is_rest = any_of([*apart, *(event.isin(those) & fault for those, fault in by_fault.values())])
    return select(replace(rows, frame=frame, rest=f.when(is_rest, rows.rest)), shapes, wanted)


def select(
    rows: ScannedRows, shapes: Sequence[EventShape], wanted: Mapping[str, frozenset[str]], more: Iterable[Column] = ()
) -> ScannedEvents:
    """Events by the columns of the attributes that are wanted, and the rest."""
    if not shapes:
        return ScannedEvents(rows.frame.select(rows.rest.alias(REST)), rows.form)
    asked = [(shape, name) for shape in shapes for name in sorted(wanted[shape.schema.label])]
    kinds: dict[str, set[ColumnKind]] = {}
    for shape, name in asked:
        kinds.setdefault(name, set()).add(shape.cells[name].kind)
    # In most sessions names do not differ by case alone, so none of ours may.
    alike = Counter(name.casefold() for name in kinds)
    marks = {name: f":{k}" if alike[name.casefold()] > 1 else "" for k, name in enumerate(kinds)}
    held: dict[tuple[str, str], AttributeColumn] = {}
    values: dict[str, list[tuple[str, Column]]] = {}
    for shape, name in asked:
        cell = shape.cells[name]
        is_plain = len(kinds[name]) == 1 and name.casefold() not in (EVENT, BEGIN, END, TEXT, REST)
        column = name if is_plain and not marks[name] else f"{name}:{cell.kind}{marks[name]}"
        held[shape.schema.label, name] = AttributeColumn(column, cell.kind)
        values.setdefault(column, []).append((shape.schema.label, cell.value))
    columns = [by_label(rows.event, found).alias(column) for column, found in values.items()]
    begin = by_label(rows.event, [(shape.schema.label, shape.begin) for shape in shapes])
    end = by_label(rows.event, [(shape.schema.label, shape.end) for shape in shapes])
    stamps = begin.alias(BEGIN), end.alias(END)
    frame = rows.frame.select(rows.event.alias(EVENT), *stamps, *more, *columns, rows.rest.alias(REST))
    return ScannedEvents(frame, rows.form, held, is_point=str(begin) == str(end))


def by_label(event: Column, values: Sequence[tuple[str, Column]]) -> Column:
    """The values of a column; types may find them in different places."""
    (_, result), *others = values
    for label, value in others:
        if str(value) != str(result):
            result = f.when(event == label, value).otherwise(result)
    return result
