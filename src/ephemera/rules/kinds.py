"""This module knows the kinds of values, and how to write a value of one kind as another."""

from __future__ import annotations

from typing import Literal, assert_never

from ephemera.base.diagnostic import Edit, Help
from ephemera.rules.calendar import RANGES
from ephemera.rules.nodes import Schema
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import Bool, Node, Null, Number, Text, Value

Kind = Literal["number", "string", "bool", "time", "term", "any", "nothing"]

KIND_OF_TYPE: dict[str, Kind] = {"int": "number", "float": "number", "string": "string", "bool": "bool", "time": "time"}
FUNCTION_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("div", "mod", "subtract", "add", "mult", "duration"), "number"),
    **{name: function.gives for name, function in FUNCTIONS.items()},
    "begin": "time",
    "end": "time",
    "datetime": "time",
}
NUMERIC_FUNCTIONS = ("div", "mod", "subtract", "add", "mult")
UNKNOWN = ("any", "nothing")


def union(a: Kind, b: Kind) -> Kind:
    """The kind of what may be of either."""
    if "nothing" in (a, b):
        return b if a == "nothing" else a
    return a if a == b else "any"


def kind_of_type(declared: str) -> Kind:
    """The kind of the values of a declared type."""
    return KIND_OF_TYPE.get(declared, "any")


def attribute_kind(schema: Schema | None, label: str, name: str) -> Kind:
    """The kind of an attribute, also of a field of the clock."""
    if label == "timer:datetime":
        return "number" if name in RANGES else "string"
    if schema is None or schema.attributes is None:
        return "any"
    return kind_of_type(dict(schema.attributes).get(name, "any"))


def kind_of_value(value: Value) -> Kind:
    """The kind of a constant."""
    match value:
        case Text():
            return "string"
        case Number():
            return "number"
        case Bool():
            return "bool"
        case Null():
            return "any"
        case _:
            assert_never(value)


def shown_value(value: Text | Number | Bool) -> str:
    """A constant as it is written."""
    return f'"{value.value}"' if isinstance(value, Text) else str(value.value).lower()


def as_kind(value: Node, kind: Kind) -> Help:
    """The same value as another kind, where that can be."""
    if kind == "string" and isinstance(value, Number | Bool):
        text = f'"{str(value.value).lower()}"'
        return Help(f"write `{text}`", (Edit(value.span, text),))
    if kind == "number" and isinstance(value, Text):
        digits = value.value.strip()
        if digits.lstrip("-").replace(".", "", 1).isdigit():
            return Help(f"write `{digits}` without quotes", (Edit(value.span, digits),))
    return Help(
        {"time": 'write a time, as in `datetime("2026-09-18T09:00Z")`', "bool": "write `true` or `false`"}.get(
            kind, f"write a {kind}"
        )
    )
