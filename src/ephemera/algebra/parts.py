"""This module finds the parts of a rule's expression: its head, and what is positive below all that accumulates.

And where in the events of a query a variable stands, or the stamps of a stored join.
"""

from __future__ import annotations

from collections.abc import Mapping

from ephemera.algebra.attributes import Stamp, event_of, is_stamp, moved
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Cross,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Join,
    Match,
    Merge,
    Plan,
    Point,
    Project,
    RelativeTimer,
    Select,
    SemiJoin,
    Union,
)
from ephemera.algebra.scalar import TRUE
from ephemera.base.errors import InternalError
from ephemera.base.tree import find
from ephemera.terms.nodes import Atom, NamedAtom, Var


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


def position_of(plan: Plan, query: str, variable: str) -> tuple[str, int] | None:
    """Where in the flat events of a query's one pattern a variable stands."""
    patterns = [match.pattern for match in find(plan.points[query].expression, Match)]
    match patterns:
        case [Atom(label, arguments)]:
            places = [k for k, a in enumerate(arguments) if a == Var(variable)]
            return (str(label), places[0]) if places else None
        case [NamedAtom(label, fields)]:
            names = plan.catalogue.attributes(str(label))
            if names is None:
                return None
            places = [list(names).index(x.name) for x in fields if x.argument == Var(variable) and x.name in names]
            return (str(label), places[0]) if places else None
        case _:
            return None


def stored_stamps(point: Point, events: Mapping[str, str] | None = None) -> tuple[Stamp, ...]:
    """The stamps that the tuples of a query have besides those of its event: the query reads a stored join.

    Whoever reads the query may have other names for the events.
    """
    patterns = [match.pattern for match in find(point.expression, Match)]
    match patterns:
        case [Atom(_, arguments)]:
            stamps = [a.name for a in arguments if isinstance(a, Var) and is_stamp(a.name)]
            return tuple(moved(s, (events or {}).get(event_of(s), event_of(s))) for s in stamps)
        case _:
            return ()
