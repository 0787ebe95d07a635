"""This module finds the positive part of a rule: its events, timers and tables, below all that accumulates."""

from __future__ import annotations

from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Cross,
    Difference,
    Expression,
    Gap,
    Join,
    RelativeTimer,
    Select,
    SemiJoin,
    Union,
)
from ephemera.algebra.scalar import TRUE


def accumulates(e: Expression) -> bool:
    """Whether an operator gathers or forbids what lies in a window."""
    match e:
        case Join() | Cross() | SemiJoin():
            return e.condition != TRUE
        case AntiSemiJoin() | Union() | Difference():
            return True
        case _:
            return False


def positive_part(e: Expression) -> Expression:
    """The part below all that accumulates."""
    positive = e
    while (left := left_of(e)) is not None:
        positive = left if accumulates(e) else positive
        e = left
    return positive


def left_of(e: Expression) -> Expression | None:
    """What an operator goes on from; None if it goes on from nothing, or from several alike."""
    match e:
        case Join(left) | Cross(left) | SemiJoin(left) | AntiSemiJoin(left) | Difference(left):
            return left
        case Union((first, *_)):
            return first
        case Select(inner) | RelativeTimer(inner) | Gap(inner):
            return inner
        case _:
            return None
