"""This module defines plans: relational expressions over events, and the materialization points they make up.

The operators are those of CERA (thesis 13.2) with the imbed, union and difference of temporal stream algebra. A tuple
has for each event or timer `o` of a rule the stamps `o.s` and `o.e` and the reference `o.ref`, and a value for each
variable; a variable of an optional part may have none. Nodes say what is computed and nothing else: what is known
about a point's stamps stands in the facts of the analysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias, get_args

from ephemera.algebra.attributes import Variable
from ephemera.algebra.scalar import TRUE, Formula
from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.nodes import Catalogue, Growth, NormalRule
from ephemera.syntax.nodes import AlgebraOperator, Condition, Head
from ephemera.terms.nodes import Expression as Value
from ephemera.terms.nodes import Pattern

# ---- where tuples come from --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Base:
    """The events that come from outside, of one label or (None) of any."""

    label: str | None


@dataclass(frozen=True, slots=True)
class Input:
    """What another materialization point holds."""

    point: str


@dataclass(frozen=True, slots=True)
class Match:
    """The matching operator: each way in which an event matches the pattern, named `name`."""

    input: Expression
    name: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Calendar:
    """Events of an infinite calendar: `timer:datetime`, or one that is given to the run."""

    name: str
    pattern: Pattern
    shortest: int = 0
    longest: int = 0
    """How long they last; all but periodic timers are points."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table that match; `at` names the event at whose end a changing table is read."""

    pattern: Pattern
    at: str | None = None


# ---- one input ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    input: Expression
    condition: Formula
    because: str = field(default="", compare=False)
    """The condition as its author wrote it."""


@dataclass(frozen=True, slots=True)
class Project:
    """Some attributes; stamps are never left out, so that nothing is forgotten of when a tuple happened."""

    input: Expression
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """Attributes under other names; those of an event (stamps and reference) are renamed together."""

    input: Expression
    events: tuple[tuple[str, str], ...]
    variables: tuple[tuple[Variable, Variable], ...]


@dataclass(frozen=True, slots=True)
class Imbed:
    """A new attribute, the term: the head, built from each tuple."""

    input: Expression
    head: Head


@dataclass(frozen=True, slots=True)
class RelativeTimer:
    """The timer `name`, a length before or after its anchor; where it would end before it begins there is no tuple."""

    input: Expression
    name: str
    kind: str
    anchor: str
    length: int | Variable
    """In microseconds; a variable where rules that are alike run as one, and differ in it. No author writes that."""
    told: Value | None = None
    """What says how long it is, if that is no constant: then it is at most so long."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The timer between two events, [first.e, last.s]; no tuple where it would end before it begins."""

    input: Expression
    name: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Merge:
    """One interval that covers several; all other stamps are dropped, references stay."""

    input: Expression
    name: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A collected event among the attributes, and the variables that tell its pairs apart."""

    name: str
    variables: tuple[Variable, ...]
    binds: tuple[Variable, ...]
    """Those that only it gives a value."""


@dataclass(frozen=True, slots=True)
class Group:
    """Temporal grouping: tuples that agree on `by` become the terms that the head builds from them (T§13.2.9)."""

    input: Expression
    by: tuple[str, ...]
    own: tuple[Variable, ...]
    """The variables of positive events: they tell bindings apart."""
    collections: tuple[Collection, ...]
    head: Head
    having: tuple[Condition, ...]


# ---- several inputs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    """Natural join: equal values for shared variables; null equals nothing, a variable without a value anything."""

    left: Expression
    right: Expression
    condition: Formula = TRUE
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Cross:
    """The same where no variable is shared."""

    left: Expression
    right: Expression
    condition: Formula = TRUE
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The tuples on the left that join with something on the right."""

    left: Expression
    right: Expression
    condition: Formula = TRUE
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class AntiSemiJoin:
    """The tuples on the left that join with nothing on the right."""

    left: Expression
    right: Expression
    condition: Formula = TRUE
    because: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    inputs: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The tuples on the left that are not on the right; the right may have more attributes than the left."""

    left: Expression
    right: Expression


# ---- the event detection algebra ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive:
    """The occurrences of the n-th input, where its pattern must be tested with the shared variables known."""

    input: int
    test: Formula = TRUE


@dataclass(frozen=True, slots=True)
class Composition:
    operator: AlgebraOperator
    left: Detected
    right: Detected
    label: int | None = None
    """How long an instance on the right of a sequence lasts at most, once `transform` has said so; None is any time."""
    within: int | None = None
    """How long an instance may last that can still matter above it; None is any time."""


@dataclass(frozen=True, slots=True)
class Limit:
    operand: Detected
    length: int


@dataclass(frozen=True, slots=True)
class Never:
    """What has no instance, whatever happens; only `shrink` makes it, and only of a whole expression."""


Detected: TypeAlias = Primitive | Composition | Limit | Never


@dataclass(frozen=True, slots=True)
class Detection:
    """The instances of an algebra expression, all or the one at each instant that the restriction leaves."""

    name: str
    inputs: tuple[Expression, ...]
    expression: Detected
    restricted: bool
    shared: tuple[Variable, ...]
    """The variables of several primitives; instances are found for each of their values apart."""
    labels: tuple[str, ...] = ()
    """What each input is called: the label of its events."""


Expression: TypeAlias = (
    Base
    | Input
    | Match
    | Calendar
    | Table
    | Select
    | Project
    | Rename
    | Imbed
    | RelativeTimer
    | Gap
    | Merge
    | Group
    | Join
    | Cross
    | SemiJoin
    | AntiSemiJoin
    | Union
    | Difference
    | Detection
)

OPERATORS = get_args(Expression)

# ---- plans -------------------------------------------------------------------------------------------------

PointKind = Literal["stream", "query", "join", "rule"]
"""A stream is a union of events that queries read, a query a simple event query, a join an intermediate result."""


@dataclass(frozen=True, slots=True)
class Point:
    """A materialization point: a name for the result of an expression, which is stored as long as it is relevant."""

    name: str
    kind: PointKind
    expression: Expression
    rule: int | None = None
    """The rule it evaluates, counted from 1."""
    normal: int | None = None
    """Which of the normal rules that is, counted from 0."""
    label: str | None = None
    """The label of what it holds, where that is known."""


Points = Literal["rules", "joins"]
"""What is materialized: rules and simple event queries (plan 1 of the paper), or every binary join too (plan 2)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The materialization points in an order in which they can be computed, those of a cycle next to each other."""

    points: Mapping[str, Point]
    cycles: tuple[tuple[str, ...], ...]
    """Points that need each other: recursive rules."""
    catalogue: Catalogue
    growth: Mapping[int, Growth] = field(default_factory=dict)
    """The rules that may grow without end, by their numbers."""
    normal: tuple[NormalRule, ...] = field(default=(), repr=False)
    """The normal rules, which say what its rules mean."""
    early: frozenset[str] = frozenset()
    """The labels of events from outside that arrive at their begin; all others arrive at their end."""
