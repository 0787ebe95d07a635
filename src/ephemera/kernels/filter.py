"""This module tests formulas on whole batches; what cannot be tested by columns is tested row by row.

Differences of stamps, references and plain comparisons of numbers and texts are vectorised. A formula that is true,
false or unknown keeps a row only where it is true, so a conjunction may be tested part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ephemera.algebra.attributes import Time, is_moment, microseconds, reference
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, SameEvent, Some
from ephemera.algebra.truth import Tester
from ephemera.kernels.columns import Array, Batch, Column, Kind, Mask
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import Expression, Number, Text, Var

Resolve = Callable[[Batch], Batch]
"""Puts events in place of references, for what is tested row by row."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
    ">=": np.greater_equal,
    ">": np.greater,
    "!=": np.not_equal,
}


class Filter:
    """Tests formulas on batches."""

    def __init__(self, tester: Tester, resolve: Resolve) -> None:
        self.tester = tester
        self._resolve = resolve

    def keep(self, f: Formula, batch: Batch) -> Batch:
        """The rows for which the formula is true."""
        together: Mask | None = None
        left: list[Formula] = []
        for part in f.parts if isinstance(f, Every) else (f,):
            mask = self._by_columns(part, batch)
            if mask is None:
                left.append(part)
            else:
                together = mask if together is None else together & mask
        if together is not None:
            batch = batch.take(together)
        for part in left:
            if len(batch):
                batch = batch.take(self._by_rows(part, batch))
        return batch

    def _by_rows(self, f: Formula, batch: Batch) -> Mask:
        rows = self._resolve(batch).rows()
        return np.fromiter((self.tester.truth(f, t) is True for t in rows), dtype=np.bool_, count=len(batch))

    def _by_columns(self, f: Formula, batch: Batch) -> Mask | None:
        match f:
            case Distance(later, earlier, limit, strict):
                distance = times(batch, later) - times(batch, earlier)
                return np.asarray(distance < limit if strict else distance <= limit, dtype=np.bool_)
            case SameEvent(left, right, same):
                a, b = batch.columns.get(reference(left)), batch.columns.get(reference(right))
                if a is None or b is None:
                    return None
                return np.asarray((a.values == b.values) == same, dtype=np.bool_)
            case Every(parts):
                masks = [self._by_columns(p, batch) for p in parts]
                return None if any(m is None for m in masks) else np.logical_and.reduce(masks)  # type: ignore[arg-type]
            case Some(parts):
                masks = [self._by_columns(p, batch) for p in parts]
                return None if any(m is None for m in masks) else np.logical_or.reduce(masks)  # type: ignore[arg-type]
            case Holds(Comparison(operator, left, right)):
                return _compared(operator, _operand(left, batch), _operand(right, batch))
            case _:
                return None


def times(batch: Batch, time: Time) -> Any:
    """A stamp of each row, or a moment for all of them."""
    return microseconds(time) if is_moment(time) else batch[time]


def _operand(e: Expression, batch: Batch) -> Column | tuple[Any, Kind] | None:
    match e:
        case Var(name):
            return batch.columns.get(name)
        case Number(value):
            return value, "int" if isinstance(value, int) else "float"
        case Text(value):
            return value, "text"
        case _:
            return None


def _compared(operator: str, a: Column | tuple[Any, Kind] | None, b: Column | tuple[Any, Kind] | None) -> Mask | None:
    """By columns where both sides are of one kind; doubles and whole numbers compare exactly only one by one."""
    if a is None or b is None:
        return None
    (x, kind), (y, other) = _plain(a), _plain(b)
    if "any" in (kind, other) or kind != other or not (isinstance(x, np.ndarray) or isinstance(y, np.ndarray)):
        return None
    return np.asarray(_OPERATORS[operator](x, y), dtype=np.bool_)


def _plain(a: Column | tuple[Any, Kind]) -> tuple[Array | Any, Kind]:
    return (a.values, a.kind) if isinstance(a, Column) else a
