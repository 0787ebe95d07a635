"""This module makes columns of expressions: the values for heads, and the keys that rows of a run are searched by.

A key that has no value is null, which equals nothing. Of a key that an equation was solved for only whole numbers
count: with doubles a sum may be rounded, so `v + w = 9` does not say that `w = 9 - v`. There a run that has other
numbers, or times, has no such column, and is searched without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import rebuild
from ephemera.kernels.arithmetic import Arithmetic, Share, Shares
from ephemera.kernels.columns import Array, Batch, Column, Mask, column, objects
from ephemera.kernels.columns import Kind as ColumnKind
from ephemera.terms.compute import Scope, compute
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Expression, Var
from ephemera.terms.values import Time, Value

_COLUMNS: dict[str, ColumnKind] = {"int": "int", "float": "float", "text": "text"}
_DTYPES: dict[ColumnKind, Any] = {"int": np.int64, "float": np.float64}


def gathered(shares: Shares, length: int) -> tuple[Column, Mask | None]:
    """The values of an expression as a column, and which rows have one that columns vouch for; None is all of them.

    What the others have in the column means nothing.
    """
    sure = [s for s in shares if s.kind != "doubt"]
    if len(sure) == 1 and sure[0].rows is None and sure[0].kind in _COLUMNS:
        values = sure[0].values
        whole = values if values.ndim else np.full(length, values, dtype=values.dtype)
        return Column(whole, _COLUMNS[sure[0].kind]), None
    has_value: Mask = np.zeros(length, dtype=np.bool_)
    kinds = {s.kind for s in sure}
    kind: ColumnKind = "any"
    if len(kinds) == 1:
        kind = _COLUMNS.get(kinds.pop(), "any")
    values = np.zeros(length, dtype=_DTYPES.get(kind, object))
    for share in sure:
        some = slice(None) if share.rows is None else share.rows
        has_value[some] = True
        values[some] = share.values if kind in _DTYPES else _objects(share, length)
    return Column(values, kind), _unless_all(has_value)


def _unless_all(mask: Mask) -> Mask | None:
    return None if mask.all() else mask


def _objects(share: Share, length: int) -> Array:
    """The values of a share as Python has them."""
    size = length if share.rows is None else len(share.rows)
    values = np.broadcast_to(share.values, (size,)).tolist()
    match share.kind:
        case "time":
            return objects([Time(v) for v in values])
        case "null":
            return objects([None] * size)
        case _:
            return objects(values)


ScopeOf = Callable[[Mapping[str, Any]], Scope]
"""What an expression may speak of besides the variables of a row: the times of its events."""


def key_column(e: Expression, batch: Batch, scope_of: ScopeOf) -> Column:
    """The values of an expression; what has none is null."""
    scope = scope_of({})
    shares = Arithmetic(batch, scope).shares(e)
    found, sure = gathered(shares, len(batch))
    if sure is None:
        return found
    values = found.values.astype(object)
    values[~sure] = None
    for share in shares:
        if share.kind == "doubt":
            rows = np.arange(len(batch)) if share.rows is None else share.rows
            one_by_one = batch.take(rows).rows()
            values[rows] = objects([value_or_null(e, row, scope_of(row)) for row in one_by_one])
    return column(values.tolist())


def value_or_null(e: Expression, row: Mapping[str, Any], scope: Scope) -> Value:
    """The value of an expression over one row; null if it has none."""
    try:
        return compute(e, row, scope)
    except Undefined:
        return None


def whole_numbers(e: Expression, batch: Batch, scope: Scope) -> tuple[Column, Mask | None]:
    """The values of an expression where they are whole numbers, and where that is; None is everywhere."""
    shares = tuple(s for s in Arithmetic(batch, scope).shares(e) if s.kind == "int")
    if not shares:
        return Column(np.zeros(len(batch), dtype=np.int64), "int"), np.zeros(len(batch), dtype=np.bool_)
    return gathered(shares, len(batch))


@dataclass(frozen=True, slots=True)
class Derived:
    """A column that is computed of the columns of a history, by which its runs are searched."""

    text: str
    """What tells it apart: expressions with 1 and with 1.0 are equal, but not the same."""
    expression: Expression = field(compare=False)
    scope: Scope = field(compare=False)
    whole: bool = False
    """Whether only whole numbers count."""

    def column(self, batch: Batch) -> Column | None:
        """The keys of all rows, null where a row has none; None if only whole numbers count, and there are others."""
        if not self.whole:
            return key_column(self.expression, batch, lambda _row: self.scope)
        shares = Arithmetic(batch, self.scope).shares(self.expression)
        if any(s.kind in ("float", "time", "doubt") for s in shares):
            return None
        found, sure = gathered(tuple(s for s in shares if s.kind == "int"), len(batch))
        if sure is None:
            return found
        values = found.values.astype(object)
        values[~sure] = None
        return Column(values, "any")

    def value(self, row: Mapping[str, Any]) -> Value:
        """The key of one row."""
        return value_or_null(self.expression, row, self.scope)


Key = str | Derived
"""What a history is searched by: a column that it has, or one that is computed."""


def computed(e: Expression, own: Mapping[str, str], scope: Scope, *, whole: bool) -> Derived:
    """What is computed of the columns of a history, some of which have another name there than in the expression."""
    named = rebuild(e, lambda n: Var(own.get(n.name, n.name)) if isinstance(n, Var) else n)
    return Derived(repr(named), named, scope, whole=whole)
