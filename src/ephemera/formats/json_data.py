"""This module reads the data of declared flat types from JSON: arrays by position and objects by key, to columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from operator import attrgetter
from types import NoneType
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from ephemera.algebra.attributes import position
from ephemera.formats.json_events import read_time
from ephemera.kernels.columns import Column, Ints, Mask, column, ints, objects
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.terms.errors import BadMessage
from ephemera.terms.values import LARGEST_INTEGER, Time, Value

SCALAR = int | float | str | bool | None
ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What may be wrong with a JSON text."""
_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_TYPES: dict[str, Any] = {
    "int": int | None,
    "float": float | None,
    "string": str | None,
    "bool": bool | None,
    "time": int | str | None,
    "any": SCALAR,
}


class DataType:
    """How the data of a declared flat type are read: arrays by position, objects by key."""

    def __init__(self, schema: Schema, catalogue: Catalogue, beside: Sequence[tuple[str, str, Any]] = ()) -> None:
        """Objects may have other keys beside the attributes: the field of each, the key, and the type."""
        self.schema = schema
        self._catalogue = catalogue
        self._declared = [declared for _, declared in schema.attributes or ()]
        types = [_TYPES[declared] for declared in self._declared]
        self._fields = [f"f{k}" for k in range(len(types))]
        keys = dict(zip(self._fields, schema.columns, strict=True))
        fields = [(name, kind | UnsetType, UNSET) for name, kind in zip(self._fields, types, strict=True)]
        fields += [(name, kind | UnsetType, UNSET) for name, _, kind in beside]
        keys |= {name: key for name, key, _ in beside}
        self._object = msgspec.defstruct("Data", fields, rename=keys, gc=False)
        either: Any = tuple.__class_getitem__(tuple(types)) | self._object
        self._all = msgspec.json.Decoder(list.__class_getitem__(either))
        self._one = msgspec.json.Decoder(either)
        self._is_whole = bool(types) and set(self._declared) == {"int"}

    @property
    def object_type(self) -> Any:
        """What an object is decoded as."""
        return self._object

    def decode(self, joined: bytes, raws: Sequence[Raw]) -> list[Any]:
        """The data of all lines, None for those that are not as declared."""
        try:
            found: list[Any] = self._all.decode(joined)
        except ERRORS:
            return [self._decoded(raw) for raw in raws]
        return found

    def _decoded(self, raw: Raw) -> Any:
        try:
            return self._one.decode(raw)
        except ERRORS:
            return None

    def lasts(self, begins: Ints, ends: Ints) -> Mask:
        """Which events last no longer than is declared."""
        if self.schema.longest is None:
            return np.ones(len(begins), dtype=np.bool_)
        lengths = (ends - begins).view(np.uint64)  # the longest has 64 bits
        return lengths <= self.schema.longest

    def lacking(self, decoded: Sequence[Any]) -> tuple[int, list[str]]:
        """How many objects there are, and which keys none of them had."""
        those = [one for one in decoded if one is not None]
        named = zip(self._fields, self.schema.columns, strict=True)
        return len(those), [name for f, name in named if all(getattr(one, f) is UNSET for one in those)]

    def columns(self, decoded: Sequence[Any]) -> tuple[dict[str, Column], Mask, int]:
        """The values by columns, for which lines they are right, and how many keys their objects have."""
        arity = len(self._fields)
        good = np.ones(len(decoded), dtype=np.bool_)
        kinds = set(map(type, decoded))
        if kinds == {tuple} and self._is_whole:
            try:
                flat = np.fromiter(chain.from_iterable(decoded), np.int64, arity * len(decoded))
            except (TypeError, OverflowError):  # null, or too large
                pass
            else:
                table = flat.reshape(-1, arity).T
                return {position(k): ints(np.ascontiguousarray(table[k])) for k in range(arity)}, good, 0
        lists, keys = self._lists(decoded, kinds)
        if NoneType in kinds:
            good = np.array([one is not None for one in decoded], dtype=np.bool_)
        found: dict[str, Column] = {}
        for k, declared in enumerate(self._declared):
            found[position(k)], fits = self._column(lists[k], declared)
            good &= fits
        return found, good, keys

    def _lists(self, decoded: Sequence[Any], kinds: set[type[Any]]) -> tuple[list[Sequence[Any]], int]:
        """The values attribute by attribute, and how many keys objects have; what could not be read is null."""
        if kinds <= {tuple}:
            return list(zip(*decoded, strict=True)) if decoded else [()] * len(self._fields), 0
        if kinds != {self._object}:
            nulls = (None,) * len(self._fields)
            those = [one for one in decoded if type(one) is self._object]
            named = zip(*self._lists(those, {self._object})[0], strict=True) if self._fields else repeat(())
            rows = [next(named) if type(one) is self._object else nulls if one is None else one for one in decoded]
            return list(zip(*rows, strict=True)), self._lists(those, {self._object})[1]
        lists: list[Sequence[Any]] = [list(map(attrgetter(name), decoded)) for name in self._fields]
        unset = [values.count(UNSET) for values in lists]
        for k in (k for k, count in enumerate(unset) if count):
            lists[k] = [None if value is UNSET else value for value in lists[k]]
        return lists, len(lists) * len(decoded) - sum(unset)

    def _column(self, values: Sequence[Any], declared: str) -> tuple[Column, Mask]:
        everywhere = np.ones(len(values), dtype=np.bool_)
        match declared:
            case "int":
                try:
                    return Column(np.array(values, dtype=np.int64), "int"), everywhere
                except (TypeError, OverflowError):
                    return column_of_values(values)
            case "float":
                c = column(values)
                exact = [v is None or -_EXACT < v < _EXACT for v in values] if c.kind == "any" else None
                return c, np.array(exact, np.bool_) if exact is not None else np.abs(c.values) < _EXACT
            case "time":
                return self._times(values)
            case "string" if None not in values:
                return Column(objects(values), "text"), everywhere
            case _:
                return column_of_values(values)

    def _times(self, values: Sequence[Any]) -> tuple[Column, Mask]:
        found: list[Value] = []
        good = np.ones(len(values), dtype=np.bool_)
        for k, value in enumerate(values):
            try:
                found.append(
                    None if value is None else Time(read_time(value, self._catalogue.unit, self._catalogue.local))
                )
            except BadMessage:
                found.append(None)
                good[k] = False
        return Column(objects(found), "any"), good


def column_of_values(values: Sequence[Any]) -> tuple[Column, Mask]:
    """Values of any kinds, and which of them there are: integers have 64 bits."""
    fits = np.array([type(v) is not int or -LARGEST_INTEGER - 1 <= v <= LARGEST_INTEGER for v in values], np.bool_)
    return column(values if fits.all() else [v if fit else None for v, fit in zip(values, fits, strict=True)]), fits
