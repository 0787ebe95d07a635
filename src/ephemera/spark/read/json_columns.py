"""This module turns lines of JSON into columns of events, and says for which lines it cannot vouch.

A line is parsed as a variant, which keeps what is a number, a text or null, and refuses keys that stand twice. A line
is taken only if all of its keys and types are those that its event type declares, with no value missing; so numbers
that would have to be converted, null and further keys are for Python, too.

Lines of a stream that carries one type may be plain: the attributes stand beside the time, without a name of the type.
Those are taken, too, if all keys are there and no other.

Spark does not mind what stands behind an object. So each line is wrapped into another object, behind it a number that
nobody can guess: only if that comes out, the line was one value and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ephemera.base.time import LATEST
from ephemera.formats.check_columns import time_columns
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.spark.read.flat_events import (
    EXACT,
    REST,
    TEXT,
    Cell,
    ColumnKind,
    EventShape,
    ScannedEvents,
    ScannedRows,
    by_label,
    flat_types,
    length_faults,
    once,
    select,
    times,
)

_LONGEST_LINE = 1_000_000
_TIME = r"BIGINT|STRING|ARRAY<BIGINT>|ARRAY<STRING>"
_MOMENT = r"^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
"""Moments that Python and Spark read alike."""
_READ: dict[str, tuple[ColumnKind, str, str]] = {
    "int": ("int", "bigint", "BIGINT"),
    "float": ("float", "double", r"(?:BIGINT|DOUBLE|DECIMAL\(\d+,\d+\))"),
    "string": ("string", "string", "STRING"),
    "bool": ("bool", "boolean", "BOOLEAN"),
    "time": ("time", "bigint", "(?:BIGINT|STRING)"),
}
"""For each declared type the kind of its column, what it is read as, and what it must be."""


def flat_lines(lines: DataFrame, catalogue: Catalogue, wanted: Mapping[str, frozenset[str]]) -> ScannedEvents:
    """The events of lines by columns, and the lines that have to be read one by one."""
    line = f.col("line").cast("binary")
    schemas = [s for s in flat_types(catalogue, catalogue.events) if _is_simple(s, catalogue)]
    if not schemas or "event" in (catalogue.columns(catalogue.only or "") or ()):  # then that names no type
        return ScannedEvents(lines.select(line.alias(REST)), "lines")
    secret = _secret()
    whens = [_when(_stamps(schema, catalogue), catalogue.unit) for schema in schemas]
    plain = next((_plain(s, w) for s, w in zip(schemas, whens, strict=True) if _may_be_plain(s, catalogue)), None)
    shapes = [
        _shape(schema, when, catalogue.unit, may_be_plain=plain is not None and schema.label == catalogue.only)
        for schema, when in zip(schemas, whens, strict=True)
    ]
    clean = f.lit(False)
    for shape in reversed(shapes):
        good = f.coalesce(_all(shape.faults), f.lit(False))
        clean = f.when(f.col("event") == shape.schema.label, good).otherwise(clean)
    taken = (
        f.col("shape").isNotNull()
        & (f.col("secret") == f.lit(secret))
        & (f.octet_length("line") < _LONGEST_LINE)
        & clean
    )
    both = list(zip(schemas, whens, strict=True))
    told = once(
        _parsed(lines, secret, plain, catalogue.only),
        began=by_label(f.col("event"), [(s.label, when.begin) for s, when in both]),
        ended=by_label(f.col("event"), [(s.label, when.end) for s, when in both]),
        is_object=by_label(f.col("event"), [(s.label, _is_object(s, when)) for s, when in both]),
    )
    judged = once(told, taken=f.coalesce(taken, f.lit(False)))
    used = [shape for shape in shapes if shape.schema.label in wanted]
    kept = judged.where(~f.col("taken") | f.col("event").isin([s.schema.label for s in used]))
    rows = ScannedRows(kept, "lines", f.col("event"), f.when(~f.col("taken"), line))
    is_text = by_label(f.col("event"), [(s.label, when.is_text) for s, when in both])
    return select(rows, used, wanted, [is_text.alias(TEXT)])


@cache
def _secret() -> int:
    """The same in all runs of a process, so that Spark need not compile its code again."""
    return secrets.randbits(62)


def _is_simple(schema: Schema, catalogue: Catalogue) -> bool:
    stamps = catalogue.stamps(schema.label)
    names = [*stamps, *schema.columns]
    is_plain = {"data", "event"}.isdisjoint(stamps) and all(name.isidentifier() and name.isascii() for name in names)
    return is_plain and all(declared in _READ for _, declared in schema.attributes or ())


def _stamps(schema: Schema, catalogue: Catalogue) -> tuple[str, ...]:
    return catalogue.stamps(schema.label) or ("time",)


def _may_be_plain(schema: Schema, catalogue: Catalogue) -> bool:
    """Whether lines of a type may have their attributes beside the time, and no key says two things."""
    stamps, columns = _stamps(schema, catalogue), schema.columns
    keys = {*stamps, *columns}
    is_clear = len(keys) == len(stamps) + len(columns) and keys.isdisjoint(("event", "data", "term", "xml"))
    return schema.label == catalogue.only and is_clear and time_columns(keys, catalogue, schema.label) == stamps


def _parsed(lines: DataFrame, secret: int, plain: str | None, only: str | None) -> DataFrame:
    """Lines with their variants and what these hold; those that are `plain` are of the only type."""
    whole = f.concat(f.lit('{"l":'), f.col("line"), f.lit(f',"z":{secret}}}'))
    valid = f.when(f.is_valid_utf8("line"), f.try_parse_json(whole))
    found = once(
        once(lines, v=valid),
        event=f.try_variant_get("v", "$.l.event", "string"),
        shape=f.schema_of_variant("v"),
        time=f.schema_of_variant(f.try_variant_get("v", "$.l.time", "variant")),
        secret=f.try_variant_get("v", "$.z", "bigint"),
    )
    if plain is None:
        return found
    judged = once(
        found.withColumnRenamed("event", "named"), is_plain=f.coalesce(f.col("shape").rlike(plain), f.lit(False))
    )
    return once(judged, event=f.when(f.col("is_plain"), f.lit(only)).otherwise(f.col("named")))


# ---- time --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _When:
    """The time of events, under one key or two."""

    fields: Mapping[str, str]
    """The keys, and of which types they must be."""
    begin: Column
    end: Column
    is_text: Column
    is_right: Column


def _when(names: Sequence[str], unit: int) -> _When:
    if len(names) == 2:
        begin, end = (_moment(_text(f"$.l.{name}"), _type(name) == "STRING", unit) for name in names)
        is_text = (_type(names[0]) == "STRING") | (_type(names[1]) == "STRING")
        return _When(dict.fromkeys(names, "(?:BIGINT|STRING)"), begin, end, is_text, f.col("began") <= f.col("ended"))
    kind, path = _type(names[0]), f"$.l.{names[0]}"
    is_pair, is_text = kind.startswith("ARRAY"), kind.contains("STRING")
    begin, end = (_moment(f.when(is_pair, _text(f"{path}[{k}]")).otherwise(_text(path)), is_text, unit) for k in (0, 1))
    has_two = f.size(f.try_variant_get("v", path, "array<variant>")) == 2
    is_right = (
        kind.rlike(f"^(?:{_TIME})$") & (kind.isin("BIGINT", "STRING") | has_two) & (f.col("began") <= f.col("ended"))
    )
    return _When({names[0]: f"(?:{_TIME})"}, begin, end, is_text, is_right)


def _type(name: str) -> Column:
    return f.col("time") if name == "time" else f.schema_of_variant(f.try_variant_get("v", f"$.l.{name}", "variant"))


def _text(path: str) -> Column:
    return f.try_variant_get("v", path, "string")


def _moment(text: Column, is_text: Column, unit: int) -> Column:
    """A point in time in microseconds, null where there is none."""
    number = text.try_cast("bigint")
    near = number.between(f.lit(-(LATEST // unit)), f.lit(LATEST // unit))
    read = f.when(text.rlike(_MOMENT), f.unix_micros(text.try_cast("timestamp")))
    return f.when(is_text, read).otherwise(f.when(near, times(number, unit)))


# ---- data --------------------------------------------------------------------------------------------------


def _shape(schema: Schema, when: _When, unit: int, *, may_be_plain: bool) -> EventShape:
    """An event type; its `faults` are here the conditions that must all hold."""
    attributes = schema.attributes or ()
    is_object = f.col("is_object")
    cells = {
        name: _cell(f.col("is_plain") if may_be_plain else None, key, k, declared, unit)
        for k, ((name, declared), key) in enumerate(zip(attributes, schema.columns, strict=True))
    }
    arity = f.size(f.try_variant_get("v", "$.l.data", "array<variant>")) == len(attributes)
    is_array = f.col("shape").rlike(_pattern(r"ARRAY<[A-Z]+(?:\(\d+,\d+\))?>", when))
    typed = _all(
        tuple(
            f.schema_of_variant(f.try_variant_get("v", f"$.l.data[{k}]", "variant")).rlike(f"^{_READ[declared][2]}$")
            for k, (_, declared) in enumerate(attributes)
        )
    )
    by_position = is_array & arity & typed
    right = [when.is_right, is_object | by_position | f.col("is_plain") if may_be_plain else is_object | by_position]
    right += [~fault for cell in cells.values() for fault in cell.faults]
    right += [~fault for fault in length_faults(f.col("began"), f.col("ended"), schema.longest)]
    return EventShape(schema, cells, f.col("began"), f.col("ended"), tuple(right))


def _is_object(schema: Schema, when: _When) -> Column:
    """Whether the data of a line is an object with all attributes and nothing else."""
    return f.col("shape").rlike(_pattern(_object(_types(schema)), when))


def _types(schema: Schema) -> dict[str, str]:
    """The keys of the attributes, and of which types these must be."""
    attributes = zip(schema.columns, schema.attributes or (), strict=True)
    return {key: _READ[declared][2] for key, (_, declared) in attributes}


def _object(fields: Mapping[str, str]) -> str:
    return f"OBJECT<{', '.join(f'{_name(name)}: {fields[name]}' for name in sorted(fields))}>"


def _pattern(data: str, when: _When) -> str:
    """What the shape of a wrapped line looks like that has its data, its name and its time, and nothing else."""
    return _wrapped({"data": data, "event": "STRING", **when.fields})


def _plain(schema: Schema, when: _When) -> str:
    """The same of a line that has its attributes and its time, and nothing else."""
    return _wrapped({**_types(schema), **when.fields})


def _wrapped(fields: Mapping[str, str]) -> str:
    return rf"^OBJECT<l: {_object(fields)}, z: BIGINT>$"


def _name(name: str) -> str:
    return f"`?{name}`?"


def _cell(is_plain: Column | None, key: str, k: int, declared: str, unit: int) -> Cell:
    """The values of an attribute by its key or its position; where lines may be plain, beside the time."""
    kind, read_as, _ = _READ[declared]

    def got(form: str) -> Column:
        by_name = f.when(f.col("is_object"), f.try_variant_get("v", f"$.l.data.{key}", form))
        found = by_name.otherwise(f.try_variant_get("v", f"$.l.data[{k}]", form))
        return (
            found if is_plain is None else f.when(is_plain, f.try_variant_get("v", f"$.l.{key}", form)).otherwise(found)
        )

    if declared == "time":
        is_text = f.schema_of_variant(got("variant")) == "STRING"
        value = _moment(got("string"), is_text, unit)
        return Cell(value, kind, (value.isNull(),))
    value = got(read_as)
    if declared == "float":
        limit = f.lit(1.7976931348623157e308)
        is_whole = f.schema_of_variant(got("variant")) == "BIGINT"
        far = is_whole & ~got("bigint").between(f.lit(-EXACT), f.lit(EXACT))
        signed_zero = (value == 0) & f.col("line").contains("-0")
        return Cell(value, kind, (value.isNull(), far, value > limit, value < -limit, f.isnan(value), signed_zero))
    return Cell(value, kind, (value.isNull(),))


def _all(conditions: tuple[Column, ...]) -> Column:
    result = f.lit(True)
    for condition in conditions:
        result = result & condition
    return result
