"""This module defines what selections and joins test: formulas over stamps, events and variables.

Every temporal condition is a combination of differences of two stamps (thesis figure 13.4, semantics by the tables of
`conditions.py`), so the analysis sees what the engine tests. Formulas are in negation normal form: differences are
never unknown, so a negation goes through them, and only what tests data may stand under `Negation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ephemera.algebra.attributes import Time, Variable, begin, end
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import walk
from ephemera.syntax.nodes import Comparison, IsNull
from ephemera.terms.nodes import Aggregate, Binary, Call, Negative, Pattern, Var


@dataclass(frozen=True, slots=True)
class Distance:
    """`later` − `earlier` ≤ `limit`, or < if it is strict; stamps are `o.s`, `o.e`, or a moment `@microseconds`."""

    later: Time
    earlier: Time
    limit: int
    strict: bool = False


@dataclass(frozen=True, slots=True)
class LimitedDistance:
    """`later` − `earlier` ≤ what a variable says, in microseconds, or < if it is strict: in that, rules differ.

    No author writes it: it stands where rules that are alike run as one, and what the variable says at most is known
    of the rule as a whole.
    """

    later: Time
    earlier: Time
    limit: Variable
    strict: bool = False


@dataclass(frozen=True, slots=True)
class SameEvent:
    """The two identifiers stand for one event, or for two."""

    left: str
    right: str
    same: bool = True


@dataclass(frozen=True, slots=True)
class Matches:
    """The event matches the pattern with the values of these variables, and binds nothing new (thesis 13.4.4)."""

    event: str
    pattern: Pattern
    known: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class InsideCalendar:
    """One interval of the calendar contains them all."""

    events: tuple[str, ...]
    calendar: str


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition on data; true, false or unknown."""

    condition: Comparison | IsNull


@dataclass(frozen=True, slots=True)
class Negation:
    """What tests data does not hold; unknown stays unknown."""

    formula: Holds | InsideCalendar


@dataclass(frozen=True, slots=True)
class Every:
    """All hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one holds."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Distance | LimitedDistance | SameEvent | Matches | InsideCalendar | Holds | Negation | Every | Some

TRUE = Every(())


def every(parts: Iterable[Formula]) -> Formula:
    """The conjunction, flat, each part once."""
    flat = dict.fromkeys(p for part in parts for p in (part.parts if isinstance(part, Every) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else Every(tuple(flat))


def some(parts: Iterable[Formula]) -> Formula:
    """The disjunction, flat, each part once."""
    flat = dict.fromkeys(p for part in parts for p in (part.parts if isinstance(part, Some) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else Some(tuple(flat))


def at_most(later: Time, earlier: Time, limit: int) -> Distance:
    """Later − earlier ≤ limit."""
    return Distance(later, earlier, limit)


def less(earlier: Time, later: Time) -> Distance:
    """Earlier < later."""
    return Distance(earlier, later, 0, strict=True)


def equal(a: Time, b: Time, shift: int = 0) -> Formula:
    """A = b + shift."""
    return Every((Distance(a, b, shift), Distance(b, a, -shift)))


def window(inner: str, outer: str, *, begin_included: bool = True, end_included: bool = True) -> Formula:
    """Inner ⊑ outer, its boundaries included or not."""
    return Every(
        (
            Distance(begin(outer), begin(inner), 0, strict=not begin_included),
            Distance(end(inner), end(outer), 0, strict=not end_included),
        )
    )


def negated(formula: Formula) -> Formula:
    """The formula that holds where this one does not; what is unknown stays unknown."""
    match formula:
        case Distance(later, earlier, limit, strict):
            return Distance(earlier, later, -limit, not strict)
        case SameEvent(left, right, same):
            return SameEvent(left, right, not same)
        case Every(parts):
            return some(negated(p) for p in parts)
        case Some(parts):
            return every(negated(p) for p in parts)
        case Negation(inner):
            return inner
        case Holds() | InsideCalendar():
            return Negation(formula)
        case Matches() | LimitedDistance():
            raise TypeError(f"{type(formula).__name__} is never negated")


def computed_variables(formula: Formula) -> frozenset[str]:
    """The variables that a formula computes with, not only compares: there 1 and 1.0 may make a difference."""
    computing = (part for part in walk(formula) if isinstance(part, Binary | Negative | Call | Aggregate))
    return frozenset(node.name for part in computing for node in walk(part) if isinstance(node, Var))
