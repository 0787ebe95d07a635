"""This module compares columns row by row, by the equality of the language."""

from __future__ import annotations

import numpy as np

from ephemera.kernels.columns import UNBOUND, Column, Mask
from ephemera.terms.values import Value, equal, key

_SAME = frozenset({("int", "int"), ("float", "float"), ("text", "text")})


def joins(a: Column, b: Column) -> Mask:
    """Where two values join: they are equal, and neither is null; no value at all joins with anything."""
    if (a.kind, b.kind) in _SAME:
        return np.asarray(a.values == b.values, dtype=np.bool_)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.fromiter((_joins(x, y) for x, y in pairs), dtype=np.bool_, count=len(a))


def _joins(a: Value | object, b: Value | object) -> bool:
    return a is UNBOUND or b is UNBOUND or equal(a, b) is True  # type: ignore[arg-type]


def same(a: Column, b: Column) -> Mask:
    """Where two values are one: in sets and groups null is a value like others, and so is none at all."""
    if (a.kind, b.kind) in _SAME:
        return np.asarray(a.values == b.values, dtype=np.bool_)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.fromiter((_is_one(x, y) for x, y in pairs), dtype=np.bool_, count=len(a))


def _is_one(a: Value | object, b: Value | object) -> bool:
    if a is UNBOUND or b is UNBOUND:
        return a is b
    return bool(key(a) == key(b))  # type: ignore[arg-type]
