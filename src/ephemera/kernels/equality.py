"""This module compares columns row by row, by the equality of the language, and puts together rows that agree."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ephemera.kernels.columns import UNBOUND, Batch, Column, Ints, Mask, column, taken
from ephemera.terms.values import Value, equal, key, merged

_SAME = frozenset({("int", "int"), ("float", "float"), ("text", "text")})


def joins(a: Column, b: Column) -> Mask:
    """Where two values join: they are equal, and neither is null; no value at all joins with anything."""
    if (a.kind, b.kind) in _SAME:
        return np.asarray(a.values == b.values, dtype=np.bool_)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.fromiter((_joins(x, y) for x, y in pairs), dtype=np.bool_, count=len(a))


def _joins(a: Value | object, b: Value | object) -> bool:
    return a is UNBOUND or b is UNBOUND or equal(a, b) is True  # type: ignore[arg-type]


def meeting(a: Column, b: Column) -> Column:
    """What values become that are equal row by row where they meet: integers for doubles; some value for none."""
    if a.kind in ("int", "text") or a.values is b.values:
        return a
    if b.kind in ("int", "text") and a.kind != "any":
        return b
    if a.kind == b.kind == "float":
        zero = a.values == 0
        return Column(np.where(zero, a.values + b.values, a.values), "float") if zero.any() else a
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return column([y if x is UNBOUND else x if y is UNBOUND else merged(x, y) for x, y in pairs])


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


def paired(  # noqa: PLR0913, PLR0917 - two batches, their rows, and what is kept
    left: Batch,
    rows: Ints,
    right: Batch,
    others: Ints,
    kept: Collection[str] | None = None,
    settled: Collection[str] = (),
) -> Batch:
    """Rows of two batches side by side that agree; where both have a variable their values meet.

    With `kept` only these columns. What is settled stays as the left batch has it, if it has a value there.
    """
    mine, yours = left.columns, right.columns
    if kept is not None:
        mine = {name: c for name, c in mine.items() if name in kept}
        yours = {name: c for name, c in yours.items() if name in kept}
    done = {name for name in mine if name in yours and mine[name].kind in ("int", "text")}
    columns = taken(mine, rows)
    for name, c in taken({name: c for name, c in yours.items() if name not in done}, others).items():
        own = columns.get(name)
        if own is None:
            columns[name] = c
        else:
            columns[name] = _first_bound(own, c) if name in settled else meeting(own, c)
    return Batch(columns, len(rows))


def _first_bound(a: Column, b: Column) -> Column:
    if a.kind != "any":
        return a
    lacking = a.values == np.array(UNBOUND, dtype=object)
    if not lacking.any():
        return a
    return column([y if x is UNBOUND else x for x, y in zip(a.tolist(), b.tolist(), strict=True)])
