"""This module reads events of declared flat types from decoded JSON: the plain case, and quickly.

What a type asks of its values is found out once. Whatever is not plain is left to `json_events`, which reads everything
and says what is wrong: other times than whole numbers, values of another type than declared, texts of terms and XML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ephemera.base.time import LATEST
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import LARGEST_INTEGER, Term, Value

_ReadOne = Callable[[dict[str, Any]], Event | None]
_OTHERWISE = object()
"""What stands for a value that is not plain."""


class FlatReader:
    """The events of a program that are read quickly."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._types: dict[str, _ReadOne] = {}
        if catalogue.namespaces:  # labels may be written otherwise
            return
        for label, schema in catalogue.events.items():
            if schema.is_flat and not catalogue.stamps(label):
                self._types[label] = _reader(schema, catalogue.unit)

    def read(self, given: Any) -> Event | None:
        """An event at a time that is a whole number, or None if it has to be read otherwise."""
        label = given.get("event") if type(given) is dict else None
        read = self._types.get(label) if type(label) is str else None
        return read(given) if read is not None else None


def _reader(schema: Schema, unit: int) -> _ReadOne:
    attributes = [(name, _PLAIN.get(declared, _none)) for name, declared in schema.attributes or ()]
    label, keys, arity = schema.label, schema.columns, len(attributes)

    def read(given: dict[str, Any]) -> Event | None:
        time, values = given.get("time"), given.get("data")
        if type(time) is not int or "term" in given or "xml" in given:
            return None
        moment = time * unit
        if not -LATEST <= moment <= LATEST:
            return None
        positional = type(values) is list
        if positional:
            if len(values) != arity:  # type: ignore[arg-type]
                return None
        elif type(values) is dict:
            values = [values.get(key) for key in keys]
        else:
            return None
        children: list[Value] = []
        for (name, plain), value in zip(attributes, values, strict=True):  # type: ignore[arg-type]
            if value is not None:
                one = plain(value)
                if one is _OTHERWISE:
                    return None
                children.append(Term(name, (one,)))
        return Event(Term(label, tuple(children), ordered=False), Interval(moment, moment), positional)

    return read


def _none(_value: Any) -> Any:
    return _OTHERWISE


def _int(value: Any) -> Any:
    return value if type(value) is int and -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER else _OTHERWISE


def _float(value: Any) -> Any:
    number = float(value) if type(value) is Decimal else value
    return number if type(number) is float and math.isfinite(number) else _OTHERWISE


def _string(value: Any) -> Any:
    return value if type(value) is str else _OTHERWISE


def _bool(value: Any) -> Any:
    return value if type(value) is bool else _OTHERWISE


_PLAIN: dict[str, Callable[[Any], Any]] = {"int": _int, "float": _float, "string": _string, "bool": _bool}
