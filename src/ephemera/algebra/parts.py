"""This module finds the parts of a rule's expression: its head, and what is positive below all that accumulates."""

from __future__ import annotations

from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Cross,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Join,
    Merge,
    Point,
    Project,
    RelativeTimer,
    Select,
    SemiJoin,
    Union,
)
from ephemera.algebra.scalar import TRUE
from ephemera.base.errors import InternalError


def member_head(point: Point) -> Group | Imbed:
    """The head of a rule; a stored join has one that shows all its stamps and variables."""
    match point.expression:
        case Project(Merge(Group() | Imbed() as head)):
            return head
        case Imbed() as head if point.kind == "join":
            return head
        case _:
            raise InternalError("algebra", f"{point.name} has no head")


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
    """The operand that the tuples of a rule come from; None at an input."""
    match e:
        case Join(left) | Cross(left) | SemiJoin(left) | AntiSemiJoin(left) | Difference(left):
            return left
        case Union((first, *_)):
            return first
        case Select(inner) | RelativeTimer(inner) | Gap(inner):
            return inner
        case _:
            return None
