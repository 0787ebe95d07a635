"""This module computes expressions over whole columns, exactly as `terms/compute` does row by row.

The values of an expression are shared out by kind: each share holds the rows on which it is of one kind. So a column of
mixed values, or a length of time that is a whole number on some rows only, is a few shares, and an operator works on
pairs of shares. A row in no share has no value there: kinds that do not go together, division by zero, a sum beyond 64
bits. The rows of a share of kind `doubt` are those that columns cannot vouch for; they have to be computed one by one.

What makes it exact: sums of whole numbers are checked for overflow bit by bit, doubles are IEEE's own in numpy and in
Python, and a quotient of two numbers that doubles hold is rounded correctly by one division. Larger whole numbers are
divided one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ephemera.algebra.attributes import begin, end
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import LATEST
from ephemera.kernels.columns import UNBOUND, Array, Batch, Column, Ints, Mask
from ephemera.terms.compute import OPERATORS, Scope, compute
from ephemera.terms.nodes import Binary, Bool, Call, Duration, Expression, Name, Negative, Null, Number, Text, Var
from ephemera.terms.values import Time, Value, is_valid

Kind = Literal["int", "float", "text", "time", "null", "doubt"]

EXACT = 1 << 53
"""Up to here a double holds every whole number."""
SMALLEST = int(np.iinfo(np.int64).min)
SURELY_FITS, SURELY_OVERFLOWS = 9.2e18, 9.25e18
"""Products of doubles of which the exact ones surely fit 64 bits, or do not: 2^63 is 9.223e18."""


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Some rows on which an expression has values of one kind."""

    kind: Kind
    values: Array
    """One for each of the rows, or one for all of them; times are their microseconds, and null and doubt have none."""
    rows: Ints | None = None
    """Ascending; None is all rows."""


Shares = tuple[Share, ...]
_EMPTY: Array = np.zeros((), dtype=np.int64)
_DOUBT = Share("doubt", _EMPTY)
_ZERO = Share("int", _EMPTY)


class Arithmetic:
    """Computes expressions over the columns of one batch, each variable once."""

    def __init__(self, batch: Batch, scope: Scope) -> None:
        """Of the scope the unit and the zone count; the times of events stand in the batch."""
        self._batch = batch
        self._scope = scope
        self._variables: dict[str, Shares] = {}

    def shares(self, e: Expression) -> Shares:
        """The values of an expression by kind."""
        with np.errstate(all="ignore"):
            return self._shares(e)

    def _shares(self, e: Expression) -> Shares:
        match e:
            case Var(name):
                if name not in self._variables:
                    self._variables[name] = _of_column(self._batch.columns.get(name))
                return self._variables[name]
            case Text() | Number() | Bool() | Null() | Duration() | Call("datetime", (Text(),)):
                return (_constant(compute(e, {}, self._scope)),)
            case Negative(operand):
                return self._joined("-", (_ZERO,), self._shares(operand))
            case Binary(operator, left, right):
                return self._joined(operator, self._shares(left), self._shares(right))
            case Call("begin" | "end" | "duration" as function, (Name(event),)):
                return self._time_of(function, event)
            case Call(function, (first, *others)) if function in OPERATORS:
                found = self._shares(first)
                for other in others:
                    found = self._joined(OPERATORS[function], found, self._shares(other))
                return found
            case _:
                return (_DOUBT,)

    def _time_of(self, function: str, event: str) -> Shares:
        stamps = self._batch.columns.get(begin(event)), self._batch.columns.get(end(event))
        opens, closes = (c.values if c is not None and c.kind == "int" else None for c in stamps)
        if opens is None or closes is None:
            return (_DOUBT,)
        match function:
            case "begin":
                return (Share("time", opens),)
            case "end":
                return (Share("time", closes),)
            case _:
                return tuple(_lengths(closes - opens, None, self._scope.unit))

    def _joined(self, operator: str, left: Shares, right: Shares) -> Shares:
        found: list[Share] = []
        for a in left:
            for b in right:
                pair = paired(a, b)
                if pair is not None:
                    found += _operated(operator, a.kind, b.kind, pair, self._scope.unit)
        return tuple(found)


Pair = tuple["Ints | None", Array, Array]
"""The rows of two shares, and their values."""


def paired(a: Share, b: Share) -> Pair | None:
    """The rows that two shares have in common, with the values of both; None if there are none."""
    if a.rows is b.rows:
        return a.rows, a.values, b.values
    if a.rows is None:
        return b.rows, _taken(a.values, b.rows), b.values
    if b.rows is None:
        return a.rows, a.values, _taken(b.values, a.rows)
    rows, mine, yours = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
    return (rows, _taken(a.values, mine), _taken(b.values, yours)) if len(rows) else None


def _taken(values: Array, rows: Ints | None) -> Array:
    return values[rows] if values.ndim and rows is not None else values


# ---- variables and constants -------------------------------------------------------------------------------

_TYPES: dict[type, int] = {int: 0, float: 1, str: 2, Time: 3, type(None): 4, type(UNBOUND): 4}
_KINDS: tuple[Kind, ...] = ("int", "float", "text", "time", "null", "doubt")
_TIME, _IN_DOUBT = 3, 5


def _of_column(c: Column | None) -> Shares:
    """The values of a variable: one that is not there is null; truth values and terms are left to Python."""
    if c is None:
        return (Share("null", _EMPTY),)
    if c.kind != "any":
        return (Share(c.kind, c.values if c.kind != "int" else c.values.astype(np.int64, copy=False)),)
    values = c.values
    types = np.fromiter((_TYPES.get(type(v), _IN_DOUBT) for v in values), dtype=np.int8, count=len(values))
    for row in np.flatnonzero(types == _TIME):
        if _is_far(values[row]):
            types[row] = _IN_DOUBT
    found: list[Share] = []
    for number, kind in enumerate(_KINDS):
        rows = np.flatnonzero(types == number)
        if len(rows):
            found.append(Share(kind, _typed(kind, values[rows]), None if len(rows) == len(values) else rows))
    return tuple(found)


def _typed(kind: Kind, values: Array) -> Array:
    match kind:
        case "int":
            return values.astype(np.int64)
        case "float":
            return values.astype(np.float64)
        case "time":
            return np.fromiter((v.microseconds for v in values), dtype=np.int64, count=len(values))
        case "text":
            return values
        case _:
            return _EMPTY


def _is_far(time: Time) -> bool:
    """Whether a time is none of ours, so that differences might not fit."""
    return abs(time.microseconds) > LATEST + 1  # a timer that ends too late ends just there


def _constant(value: Value) -> Share:
    kind = _KINDS[_TYPES.get(type(value), _IN_DOUBT)]
    if isinstance(value, Time):
        return _DOUBT if _is_far(value) else Share("time", np.asarray(value.microseconds, dtype=np.int64))
    if kind in ("null", "doubt"):
        return Share(kind, _EMPTY)
    if not is_valid(value):
        return _DOUBT
    return Share(kind, np.asarray(value, dtype={"int": np.int64, "float": np.float64}.get(kind, object)))


# ---- operators ---------------------------------------------------------------------------------------------


def _operated(operator: str, a: Kind, b: Kind, pair: Pair, unit: int) -> Sequence[Share]:
    """Two values joined by an operator, row by row; kinds that do not go together have no value."""
    rows, x, y = pair
    if "doubt" in (a, b):
        return [Share("doubt", _EMPTY, rows)]
    if a == b == "int" and operator in _WHOLE:
        return _WHOLE[operator](x, y, rows)
    if a in ("int", "float") and b in ("int", "float"):
        return _DOUBLES.get(operator, _quotients)(x, y, rows)
    if a == b == "time" and operator == "-":
        return _lengths(x - y, rows, unit)
    if b == "time" and operator == "+":
        a, b, x, y = b, a, y, x
    if a == "time" and b in ("int", "float") and operator in ("+", "-"):
        return _moved(x, y, rows, unit, forward=operator == "+")
    return []


def _sums(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    values = np.add(x, y)
    return _shared("int", values, rows, undefined=((x ^ values) & (y ^ values)) < 0)


def _differences(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    values = np.subtract(x, y)
    return _shared("int", values, rows, undefined=((x ^ y) & (x ^ values)) < 0)


def _products(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    about = np.abs(x.astype(np.float64) * y.astype(np.float64))
    overflows = about > SURELY_OVERFLOWS
    return _shared("int", np.multiply(x, y), rows, undefined=overflows, doubt=(about > SURELY_FITS) & ~overflows)


def _remainders(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    """With the sign of the dividend; the least number has no absolute value within 64 bits."""
    by_zero = y == 0
    doubt = ((x == SMALLEST) | (y == SMALLEST)) & ~by_zero
    values = np.fmod(np.where(doubt, 0, x), np.where(by_zero | doubt, 1, y))
    return _shared("int", values, rows, undefined=by_zero, doubt=doubt)


def _of_doubles(operation: Callable[[Any, Any], Any]) -> Callable[[Array, Array, Ints | None], list[Share]]:
    def operated(x: Array, y: Array, rows: Ints | None) -> list[Share]:
        values = np.asarray(operation(x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)))
        return _shared("float", values, rows, undefined=~np.isfinite(values))

    return operated


def _remainders_of_doubles(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    by_zero = y == 0
    values = np.fmod(x.astype(np.float64, copy=False), np.where(by_zero, 1.0, y))
    return _shared("float", values, rows, undefined=by_zero)


def _quotients(x: Array, y: Array, rows: Ints | None) -> list[Share]:
    """Of numbers that doubles hold, rounded once; nothing divided by something is a zero without a sign."""
    by_zero = y == 0
    values = np.where(x == 0, 0.0, x.astype(np.float64, copy=False) / np.where(by_zero, 1.0, y))
    doubt = (_is_large(x) | _is_large(y)) & ~by_zero
    return _shared("float", values, rows, undefined=(by_zero | ~np.isfinite(values)) & ~doubt, doubt=doubt)


def _is_large(x: Array) -> Any:
    """Where a whole number may be none that a double holds."""
    return (x > EXACT) | (x < -EXACT) if x.dtype == np.int64 else np.zeros((), dtype=np.bool_)


_Operation = Callable[[Array, Array, "Ints | None"], list[Share]]
_WHOLE: dict[str, _Operation] = {"+": _sums, "-": _differences, "*": _products, "mod": _remainders}
_DOUBLES: dict[str, _Operation] = {
    "+": _of_doubles(np.add),
    "-": _of_doubles(np.subtract),
    "*": _of_doubles(np.multiply),
    "mod": _remainders_of_doubles,
}


def _lengths(microseconds: Array, rows: Ints | None, unit: int) -> list[Share]:
    """Lengths of time in the program's unit, whole numbers where they are whole."""
    if unit == 1:
        return [Share("int", microseconds, rows)]
    whole = microseconds // unit
    is_whole = np.asarray(whole * unit == microseconds)
    found = _shared("int", whole, rows, undefined=~is_whole)
    if not is_whole.all():
        found += _shared(
            "float", microseconds / unit, rows, undefined=is_whole, doubt=~is_whole & _is_large(microseconds)
        )
    return found


def _moved(times: Array, by: Array, rows: Ints | None, unit: int, *, forward: bool) -> list[Share]:
    """Times moved by lengths; a double is left to Python unless it is a whole number."""
    far = (LATEST << 1) // unit
    if by.dtype == np.int64:
        doubt, steps = (by > far) | (by < -far), by
    else:
        doubt = ~((by == np.floor(by)) & (np.abs(by) < min(far, EXACT)))
        steps = np.where(doubt, 0.0, by).astype(np.int64)
    offset = np.where(doubt, 0, steps) * unit
    values = times + offset if forward else times - offset
    return _shared("time", values, rows, undefined=(np.abs(values) > LATEST) & ~doubt, doubt=doubt)


def _shared(kind: Kind, values: Any, rows: Ints | None, undefined: Any, doubt: Any = None) -> list[Share]:
    """The values without the rows that have none, and without those in doubt, which are a share of their own."""
    out: Mask = np.asarray(undefined if doubt is None else undefined | doubt)
    values = np.asarray(values)
    if not out.any():
        return [Share(kind, values, rows)]
    size = len(values) if values.ndim else len(out) if out.ndim else None
    if size is None:  # one value for all rows, which has none or is in doubt
        return [Share("doubt", _EMPTY, rows)] if doubt is not None and np.asarray(doubt).any() else []
    out = np.broadcast_to(out, (size,))
    every = np.arange(size) if rows is None else rows
    found: list[Share] = []
    if not out.all():
        found.append(Share(kind, values[~out] if values.ndim else values, every[~out]))
    if doubt is not None and np.asarray(doubt).any():
        found.append(Share("doubt", _EMPTY, every[np.broadcast_to(doubt, (size,))]))
    return found
