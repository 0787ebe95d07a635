"""This module gives values and rows of Arrow tables as Python has them, whatever they are.

Arrow holds more than Python does: times beyond its calendar or finer than a microsecond, zones that nobody knows, bytes
that are no text. One such value must not end a run, so it becomes `Unheld`, with Arrow's own text; and some kinds of
columns cannot be taken apart by rows, so that their values are asked for one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

_ERRORS = (ValueError, OverflowError, LookupError, ImportError, pa.ArrowException)
"""What Arrow raises where Python has no such value; of zones, a library of them does."""
_FINE = "[ns"
"""In the names of types whose values Python has only where pandas is installed, and so not everywhere alike."""


@dataclass(frozen=True, slots=True)
class Unheld:
    """A value that Python cannot hold, as a text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def values_of(column: pa.Array | pa.ChunkedArray, rows: Sequence[int], *, floor: bool = False) -> list[Any]:
    """The values of some rows of a column; if asked to `floor`, times without what is finer than a microsecond."""
    if _FINE not in str(column.type):
        try:
            return column.take(pa.array(rows, pa.int64())).to_pylist()  # type: ignore[no-any-return]
        except _ERRORS:
            pass  # some value, or the kind of the column
    return [_value(column[row], floor) for row in rows]


def shown_rows(table: pa.Table, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Some rows as objects, for people: what Python cannot hold is a text."""
    columns = [values_of(column, rows) for column in table.columns] if rows else []
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def unheld_in(value: Any) -> Unheld | None:
    """What Python cannot hold of a value."""
    match value:
        case Unheld():
            return value
        case dict():
            return next(filter(None, map(unheld_in, value.values())), None)
        case list() | tuple():
            return next(filter(None, map(unheld_in, value)), None)
        case _:
            return None


def _value(scalar: pa.Scalar, floor: bool) -> Any:
    t = scalar.type
    if not scalar.is_valid:
        return None
    if kinds.is_struct(t):
        return {t.field(k).name: _value(scalar[k], floor) for k in range(t.num_fields)}
    if kinds.is_map(t):
        return [(_value(one[0], floor), _value(one[1], floor)) for one in scalar.values]
    if hasattr(scalar, "values"):  # all kinds of lists
        return [_value(one, floor) for one in scalar.values]
    if kinds.is_dictionary(t) or kinds.is_run_end_encoded(t):
        return _value(scalar.value, floor)
    try:
        if _FINE in str(t) and not kinds.is_time(t):
            coarse = pa.duration("us") if kinds.is_duration(t) else pa.timestamp("us", tz=t.tz)
            if floor:
                scalar = pa.scalar(scalar.cast(pa.int64()).as_py() // 1_000, pa.int64())
            return scalar.cast(coarse).as_py()
        return scalar.as_py()
    except _ERRORS:
        return _value(scalar.value, floor) if isinstance(scalar, pa.ExtensionScalar) else Unheld(_text(scalar))


def _text(scalar: pa.Scalar) -> str:
    for kind in (pa.string(), pa.int64(), pa.binary()):
        try:
            return _shown(scalar.cast(kind).as_py())
        except _ERRORS:
            continue
    return f"<{scalar.type}>"


def _shown(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
