"""This module compares columns and joins truths: true, false or unknown on each row, or in doubt.

A comparison is unknown where a side has no value or is null, and where what has no order is put in order. Whole numbers
and doubles compare exactly, also where a double does not hold the whole number. A row is in doubt where columns cannot
vouch for what is compared; there somebody else has to look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.arithmetic import EXACT, Kind, Shares, paired
from ephemera.kernels.columns import Array, Mask
from ephemera.terms.nodes import ComparisonOperator

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
    ">=": np.greater_equal,
    ">": np.greater,
    "!=": np.not_equal,
}
_TURNED: dict[str, str] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<", "!=": "!="}
_TWO_TO_63 = float(2**63)


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Whether something holds, row by row."""

    true: Mask
    known: Mask | None = None
    """Where it is true or false; None is everywhere."""
    doubt: Mask | None = None
    """Where columns cannot tell, and say neither; None is nowhere."""

    @property
    def false(self) -> Mask:
        """Where it does not hold."""
        return ~self.true if self.known is None else self.known & ~self.true


def in_doubt(length: int) -> Truth:
    """What columns cannot tell of any row."""
    nothing: Mask = np.zeros(length, dtype=np.bool_)
    return Truth(nothing, nothing, np.ones(length, dtype=np.bool_))


def negation(truth: Truth) -> Truth:
    """What is unknown stays unknown."""
    return Truth(truth.false, truth.known, truth.doubt)


def conjunction(parts: Sequence[Truth]) -> Truth:
    """False where one is, else unknown where one is."""
    true: Mask = np.logical_and.reduce([t.true for t in parts])
    if all(t.known is None for t in parts):
        return Truth(true)
    false: Mask = np.logical_or.reduce([t.false for t in parts])
    return Truth(true, true | false, _doubt(parts, ~false))


def disjunction(parts: Sequence[Truth]) -> Truth:
    """True where one is, else unknown where one is."""
    true: Mask = np.logical_or.reduce([t.true for t in parts])
    if all(t.known is None for t in parts):
        return Truth(true)
    false: Mask = np.logical_and.reduce([t.false for t in parts])
    return Truth(true, true | false, _doubt(parts, ~true))


def _doubt(parts: Sequence[Truth], is_open: Mask) -> Mask | None:
    """Where one is in doubt and the others do not settle it."""
    doubts = [t.doubt for t in parts if t.doubt is not None]
    return np.logical_or.reduce(doubts) & is_open if doubts else None


def is_null(shares: Shares, length: int) -> Truth:
    """Whether a value is null; what has no value is unknown."""
    return _gathered([(s.rows, s.kind == "null", s.kind == "doubt") for s in shares], length)


def compared(operator: ComparisonOperator, left: Shares, right: Shares, length: int) -> Truth:
    """Whether values stand in a relation."""
    found: list[tuple[Any, Any, bool]] = []
    for a in left:
        for b in right:
            pair = paired(a, b)
            if pair is None or "null" in (a.kind, b.kind):
                continue
            truth = None if "doubt" in (a.kind, b.kind) else _related(operator, a.kind, pair[1], b.kind, pair[2])
            if "doubt" in (a.kind, b.kind):
                found.append((pair[0], False, True))
            elif truth is not None:
                found.append((pair[0], truth, False))
    return _gathered(found, length)


def _gathered(parts: Sequence[tuple[Any, Any, bool]], length: int) -> Truth:
    """The truths of some rows each, of which no two have one in common; with whether these are in doubt."""
    if len(parts) == 1 and parts[0][0] is None and not parts[0][2]:
        return Truth(np.broadcast_to(np.asarray(parts[0][1], dtype=np.bool_), (length,)))
    true, known, doubt = (np.zeros(length, dtype=np.bool_) for _ in range(3))
    for rows, truth, is_doubtful in parts:
        some = slice(None) if rows is None else rows
        if is_doubtful:
            doubt[some] = True
        else:
            true[some], known[some] = truth, True
    return Truth(true, known, doubt if doubt.any() else None)


def _related(operator: str, a: Kind, x: Array, b: Kind, y: Array) -> Any:
    """Whether values of two kinds stand in a relation; None where unlike kinds have no order."""
    if a == b:
        return _OPERATORS[operator](x, y)
    if a == "int" and b == "float":
        return _exactly(operator, x, y)
    if a == "float" and b == "int":
        return _exactly(_TURNED[operator], y, x)
    return {"=": False, "!=": True}.get(operator)


def _exactly(operator: str, x: Array, y: Array) -> Any:
    """Whole numbers with doubles: as doubles where these hold them, else with the whole number below the double."""
    if not x.size or (x.max() <= EXACT and x.min() >= -EXACT):
        return _OPERATORS[operator](x.astype(np.float64), y)
    inside = (y >= -_TWO_TO_63) & (y < _TWO_TO_63)
    below = np.floor(np.where(inside, y, 0.0))
    floor = below.astype(np.int64)
    is_equal = inside & (below == y) & (x == floor)
    is_less = np.where(inside, (x < floor) | ((x == floor) & (below < y)), y > 0)
    match operator:
        case "=":
            return is_equal
        case "!=":
            return ~is_equal
        case "<":
            return is_less
        case ">=":
            return ~is_less
        case "<=":
            return is_less | is_equal
        case _:
            return ~(is_less | is_equal)
