"""This module reads and writes events as JSON objects, one a line.

`time` is a point or `[begin, end]`; numbers count the program's time unit, strings are ISO 8601, and Python's own times
are times, too. Without a zone they are in the program's. A stream may declare other keys for it; where an event has
none of them, `time` counts. `data` is an array of values by position or an object whose keys are children; `term` and
`xml` are the event as text. What does not fit what is declared is a bad event, with the reason; nothing is converted
unless nothing is lost.

A stream that carries one type need not name it, and its objects need not keep their data apart; what they are read by
is the catalogue of that stream.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ephemera.base.time import LATEST, TOO_FAR
from ephemera.formats.check_columns import time_columns
from ephemera.formats.json_head import exact, head_of, unnamed
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.rules.outcome import CloseEvent
from ephemera.terms.atoms import attributes_term
from ephemera.terms.errors import LARGEST_LINE, BadMessage, excerpt
from ephemera.terms.events import Event, Interval
from ephemera.terms.json import decode, from_object, list_items, to_object
from ephemera.terms.namespaces import Namespaces
from ephemera.terms.text import from_text, iso, to_text
from ephemera.terms.values import Term, Time, Value, is_number, is_valid
from ephemera.terms.xml import from_xml, root_labels
from ephemera.terms.zones import LocalTime, plain_datetime

_FAR = 99
"""Powers of ten that no time needs; to compute with larger ones may take forever."""
A_TIME = "a time is a number or a text such as 2026-03-01T09:00:00Z"


@dataclass(frozen=True, slots=True)
class BadEvent:
    """An input that is no event of the program: what it was, and why not."""

    original: str
    reason: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """An input decoded once, however many programs read it: what it was, what it says, or why it cannot be read.

    Of a line that cannot, what it says is at most its name and what stands beside its data.
    """

    original: Any
    data: Any
    complaint: str | None = None


def original_text(given: Any) -> str:
    """An input as it was given, or as JSON if it was no text."""
    if isinstance(given, bytes):
        return given.decode("utf-8", "backslashreplace")
    try:
        return given if isinstance(given, str) else json.dumps(given, default=str)
    except (RecursionError, TypeError, ValueError):
        return reprlib.repr(given)  # what is no JSON at all: too deep, within itself, or with keys that are no texts


def decode_line(line: str | bytes) -> Message:
    """One line of JSON, decoded."""
    try:
        return Message(line, decode(line, fraction=exact, largest=LARGEST_LINE))
    except BadMessage as error:
        return Message(line, head_of(line), str(error))


def read_message(message: Message, catalogue: Catalogue) -> Event | BadEvent:
    """An event from what was decoded."""
    if message.complaint is not None:
        return BadEvent(original_text(message.original), message.complaint)
    return read_object(message.data, catalogue, message.original)


def read_object(data: Any, catalogue: Catalogue, original: Any = None) -> Event | BadEvent:
    """An event from decoded JSON, whose fractions may be decimals."""
    given = data if original is None else original
    data = enveloped(data, catalogue)
    label = data.get("event") if isinstance(data, Mapping) else None
    if not isinstance(label, str):
        return BadEvent(original_text(given), unnamed(data))
    label = label_in(data, catalogue.namespaces)
    try:
        stamp = given_time(data, label, catalogue)
        if stamp is None:
            names = " and ".join(f"`{name}`" for name in catalogue.stamps(label) or ("time",))
            raise BadMessage(f"{A_TIME}; there is no {names}")
        time = interval_of(stamp, catalogue)
        schema = catalogue.events.get(label)
        longest = schema.longest if schema is not None else None
        if longest is not None and time.end - time.begin > longest:
            raise BadMessage("it lasts longer than declared")
        term, positional = _term(label, data, schema, catalogue)
    except BadMessage as error:
        return BadEvent(original_text(given), str(error), label)
    except RecursionError:
        return BadEvent(original_text(given), "its data nests too deep", label)
    return Event(term, time, positional)


def enveloped(data: Any, catalogue: Catalogue) -> Any:
    """What was decoded as the object of an event, where it is of a stream of one type: with its name, its data apart.

    A name that is there counts, unless the type has an attribute of that key. Plain objects have neither `data` nor
    `term` nor `xml`, but attributes of such names: these are single values.
    """
    only = catalogue.only
    if only is None or not isinstance(data, Mapping):
        return data
    own = catalogue.columns(only) or ()
    is_named = "event" in data and "event" not in own
    if is_named and data["event"] != only:
        return data
    if any(n in data and (n not in own or isinstance(data[n], Mapping | list)) for n in ("data", "term", "xml")):
        return data if is_named else {**data, "event": only}
    when = time_columns(data, catalogue, only)
    stamps = [data[name] for name in when]
    content = {n: v for n, v in data.items() if n in own or n not in ("event", *when)}
    if is_named and not content:
        return data
    return {"event": only, "time": stamps if len(stamps) > 1 else stamps[0] if stamps else None, "data": content}


def named(message: Message, catalogue: Catalogue) -> Message:
    """A message of a stream of one type as one that names it, for whoever does not know where it comes from."""
    data = enveloped(message.data, catalogue)
    return message if data is message.data else Message(message.original, data, message.complaint)


def label_in(event: Mapping[str, Any], namespaces: Namespaces) -> str:
    """The label of an event, decoded; a document may write it with another prefix than the program."""
    given, text = str(event.get("event")), event.get("xml")
    if not namespaces:
        return given
    if isinstance(text, str):
        try:
            written, label = root_labels(text, namespaces)
        except BadMessage:  # which is told where it is read
            return given
        if given == written:
            return label
    return namespaces.label(given)


# ---- time --------------------------------------------------------------------------------------------------


def interval_of(value: Any, catalogue: Catalogue) -> Interval:
    """When an event was, from a point or a pair of them."""
    if not isinstance(value, list | tuple):
        point = read_time(value, catalogue.unit, catalogue.local)
        return Interval(point, point)
    if len(value) != 2:
        raise BadMessage("`time` is a point or [begin, end]")
    begin, end = (read_time(point, catalogue.unit, catalogue.local) for point in value)
    if begin > end:
        raise BadMessage("it begins after its end")
    return Interval(begin, end)


def read_time(value: Any, unit: int, local: LocalTime | None = None) -> int:
    """A point in time in microseconds; what is finer is cut off. Without a zone it is local, or in UTC."""
    if type(value) is int:
        return _in_range(value * unit)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        if isinstance(value, Decimal) and value and value.is_finite() and abs(value.adjusted()) > _FAR:
            value = Decimal(f"1e{_FAR if value.adjusted() > 0 else -_FAR}").copy_sign(value)
        if isinstance(value, float):
            value = Decimal(repr(float(value)))  # as it is written: 19.999999 is not a little less than that
        try:
            microseconds = math.floor(Fraction(value) * unit)
        except (OverflowError, ValueError):
            raise BadMessage("a time is a finite number") from None
        return _in_range(microseconds)
    if isinstance(value, Time):
        return _in_range(value.microseconds)
    if isinstance(value, str):
        return (local or LocalTime()).read(value)
    if isinstance(value, date) and (moment := plain_datetime(value)) is not None:
        return (local or LocalTime()).instant(moment)
    given = "" if value is None else f", and not {excerpt(repr(value))}"
    raise BadMessage(f"{A_TIME}{given}")


def _in_range(microseconds: int) -> int:
    if abs(microseconds) > LATEST:
        raise BadMessage(TOO_FAR)
    return microseconds


def given_time(event: Mapping[str, Any], label: str, catalogue: Catalogue) -> Any:
    """What an event, decoded, gives as its time: a point, or a pair of them."""
    names = catalogue.stamps(label)
    if not any(name in event for name in names):
        return event.get("time")
    return event[names[0]] if len(names) == 1 else [event.get(name) for name in names]


def at_time(event: Mapping[str, Any], time: str, catalogue: Catalogue) -> dict[str, Any]:
    """An event, decoded, as happening at a time, whatever it says itself."""
    own = catalogue.stamps(label_in(event, catalogue.namespaces))
    return {**{name: value for name, value in event.items() if name not in own}, "time": time}


def uses_text(event: object, catalogue: Catalogue) -> bool:
    """Whether an event, decoded, writes its time as text, so that answers do, too."""
    event = enveloped(event, catalogue)
    time = given_time(event, label_in(event, catalogue.namespaces), catalogue) if isinstance(event, Mapping) else None
    return any(isinstance(t, str | date | Time) for t in (time if isinstance(time, list | tuple) else [time]))


def write_time(microseconds: int, unit: int, *, as_numbers: bool) -> int | float | str:
    """A point in time as the input wrote its own."""
    if as_numbers:
        whole, rest = divmod(microseconds, unit)
        return whole if not rest else microseconds / unit
    return iso(Time(microseconds))


# ---- data --------------------------------------------------------------------------------------------------


def _term(label: str, data: Mapping[str, Any], schema: Schema | None, catalogue: Catalogue) -> tuple[Term, bool]:
    namespaces = catalogue.namespaces
    given = [name for name in ("data", "term", "xml") if name in data]
    if len(given) > 1:
        raise BadMessage("an event has one of `data`, `term` and `xml`")
    value = data.get(given[0], []) if given else []
    if given and given[0] != "data":
        if not isinstance(value, str):
            raise BadMessage(f"`{given[0]}` is a text")
        texts = [n for n, t in schema.attributes or () if t.startswith("string")] if schema is not None else []
        is_xml = given[0] == "xml"
        term = from_xml(value, strings=texts, namespaces=namespaces) if is_xml else namespaces.term(from_text(value))
        if term.label != label:
            raise BadMessage(f"the event is `{label}`, and its text `{term.label}`")
        return (term if schema is None else _declared_term(term, schema, catalogue)), False
    if isinstance(value, list | tuple):
        if schema is not None and schema.attributes is not None:
            if len(value) != len(schema.attributes):
                where = "" if given else "; they stand under `data`"
                raise BadMessage(f"`{label}` has {len(schema.attributes)} attributes, not {len(value)}{where}")
            pairs = [(n, _declared(v, t, n, catalogue)) for (n, t), v in zip(schema.attributes, value, strict=True)]
            return _attributes(label, pairs), True
        return Term(label, tuple(_scalar(v, catalogue.local) for v in value)), True
    if isinstance(value, Mapping):
        if schema is not None and schema.attributes is not None:
            keys = {**value, **namespaces.keys(value)} if namespaces else value  # columns are named as they are
            return _attributes(label, _by_key(keys, schema, catalogue)), False
        value = namespaces.keys(value)
        return from_object(label, {name: _plain(v, catalogue.local) for name, v in value.items()}), False
    raise BadMessage("`data` is an array or an object")


def _plain(value: Any, local: LocalTime) -> Any:
    """Decoded JSON with doubles for decimals, and times for Python's."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        moment = plain_datetime(value)
        return None if moment is None else Time(local.instant(moment))
    if isinstance(value, list | tuple):
        return [_plain(v, local) for v in value]
    if isinstance(value, Mapping):
        return {name: _plain(v, local) for name, v in value.items()}
    return value


def _scalar(value: Any, local: LocalTime) -> Value:
    plain = _plain(value, local)
    if plain is not None and not isinstance(plain, bool | int | float | str | Time):
        raise BadMessage(
            f"an attribute by position is a text, a number, a time, true, false or null, not {excerpt(repr(value))}"
        )
    if not is_valid(plain):
        raise BadMessage("integers have 64 bits, other numbers are finite")
    return plain


Declared = Value | list[Value]


def _declared(value: Any, declared: str, name: str, catalogue: Catalogue) -> Declared:
    """A value of a declared type, where that loses nothing."""
    if declared.endswith("[]"):
        members = value if isinstance(value, list) else [] if value is None else [value]
        return [_one(member, declared[:-2], name, catalogue) for member in members]
    return _one(value, declared, name, catalogue)


_TYPES = {int: "int", str: "string", bool: "bool"}


def _one(value: Any, declared: str, name: str, catalogue: Catalogue) -> Value:
    if value is None or (isinstance(value, date) and plain_datetime(value) is None):
        return None
    if _TYPES.get(type(value)) == declared and (declared != "int" or -(1 << 63) <= value < 1 << 63):
        return value  # type: ignore[no-any-return]
    if declared == "time":
        return Time(read_time(value, catalogue.unit, catalogue.local))
    if declared == "any" and isinstance(value, Mapping | list):
        children = from_object("value", {name: _plain(value, catalogue.local)}).children
        if len(children) != 1 or not isinstance(children[0], Term) or len(children[0].children) != 1:
            raise BadMessage(f"`{name}` is no single value")
        return children[0].children[0]
    scalar = _scalar(value, catalogue.local)
    match declared:
        case "int" if is_number(scalar) and int(scalar) == scalar and is_valid(int(scalar)):  # type: ignore[arg-type]
            return int(scalar)  # type: ignore[arg-type]
        case "float" if is_number(scalar) and float(scalar) == scalar:  # type: ignore[arg-type]
            return float(scalar)  # type: ignore[arg-type]
        case "string" if isinstance(scalar, str):
            return scalar
        case "bool" if isinstance(scalar, bool):
            return scalar
        case "any":
            return scalar
    written = iso(scalar) if isinstance(scalar, Time) else scalar
    raise BadMessage(f"`{name}` is {declared}, and {json.dumps(written)} is not")


def _by_key(data: Mapping[str, Any], schema: Schema, catalogue: Catalogue) -> list[tuple[str, Declared]]:
    """The attributes of a type, each from its key; what is wrong is told of the key."""
    attributes = zip(schema.attributes or (), schema.columns, strict=True)
    return [(name, _declared(data.get(key), declared, key, catalogue)) for (name, declared), key in attributes]


def _attributes(label: str, pairs: Sequence[tuple[str, Declared]]) -> Term:
    flat = [(name, v) for name, value in pairs for v in (value if isinstance(value, list) else [value])]
    return attributes_term(label, flat)


def _declared_term(term: Term, schema: Schema, catalogue: Catalogue) -> Term:
    """A term of a declared type: its attributes in their types, each child with one value."""
    if schema.attributes is None:
        return term
    pairs: list[tuple[str, Declared]] = []
    for name, declared in schema.attributes:
        values: list[Any] = []
        for child in term.children:
            if isinstance(child, Term) and child.label == name:
                if len(child.children) != 1:
                    raise BadMessage(f"`{name}` has {len(child.children)} values, not one")
                values.append(child.children[0])
        if declared == "string":
            values = [str(v) if is_number(v) else v for v in values]
        if len(values) > 1 and not declared.endswith("[]"):
            raise BadMessage(f"`{name}` occurs {len(values)} times")
        found = [v if isinstance(v, Term) else _one(v, declared.removesuffix("[]"), name, catalogue) for v in values]
        pairs.append((name, list(found)))
    return _attributes(term.label, pairs)


def read_row(row: Mapping[str, Any], schema: Schema, catalogue: Catalogue) -> Term:
    """A row of a table, its columns in their declared types."""
    return _attributes(schema.label, _by_key(row, schema, catalogue))


# ---- writing -----------------------------------------------------------------------------------------------


def write_event(event: Event, catalogue: Catalogue, *, as_numbers: bool) -> dict[str, Any]:
    """An event as a JSON object."""
    unit = catalogue.unit
    begin, end = (write_time(t, unit, as_numbers=as_numbers) for t in (event.time.begin, event.time.end))
    head = {"event": event.term.label, "time": begin if event.time.begin == event.time.end else [begin, end]}
    schema = catalogue.events.get(event.term.label)
    written = partial(write_value, unit=unit, as_numbers=as_numbers)
    if event.positional:
        if schema is not None and schema.attributes is not None:
            children = {c.label: c.children[0] for c in event.term.children if isinstance(c, Term)}
            return {**head, "data": [written(children.get(name)) for name in schema.names]}
        return {**head, "data": [written(v) for v in event.term.children]}
    data = to_object(event.term)
    return {**head, "data": data} if data is not None else {**head, "term": to_text(event.term)}


def bad_of_close(close: Iterable[CloseEvent], catalogue: Catalogue, *, as_numbers: bool) -> list[BadEvent]:
    """Events that came too close to others, as the bad events that they are."""
    return [
        BadEvent(
            json.dumps(write_event(one.event, catalogue, as_numbers=as_numbers), ensure_ascii=False),
            one.reason,
            one.event.term.label,
        )
        for one in close
    ]


def write_value(value: Value, unit: int, *, as_numbers: bool) -> Any:
    """A value among the data of an event as JSON has it."""
    if isinstance(value, Time):
        return write_time(value.microseconds, unit, as_numbers=as_numbers)
    if isinstance(value, Term):
        if (items := list_items(value)) is not None:
            return [write_value(item, unit, as_numbers=as_numbers) for item in items]
        data = to_object(Term("", (value,), ordered=False))
        return to_text(value) if data is None else data
    return value
