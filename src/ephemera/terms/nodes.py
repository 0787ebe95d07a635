"""This module defines query terms, construct terms and expressions as they are written.

They are the leaves of the syntax tree, which holds all else; every node is frozen and carries its span outside
equality, so two trees are equal when they say the same thing in the same words.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Literal, TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Node:
    """What all nodes have: the place they were read from."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)


# ---- values and expressions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var(Node):
    """``var X``, a variable in so many words."""

    name: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: a variable, or in some places an event identifier; resolution tells."""

    name: str


@dataclass(frozen=True, slots=True)
class Anonymous(Node):
    """``_``, a variable that is always fresh."""


@dataclass(frozen=True, slots=True)
class Text(Node):
    value: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    value: int | float


@dataclass(frozen=True, slots=True)
class Bool(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Null(Node):
    pass


@dataclass(frozen=True, slots=True)
class Quantity(Node):
    """One part of a duration; a bare number has the unit ``""`` and counts the program's time unit."""

    amount: Decimal
    unit: str


@dataclass(frozen=True, slots=True)
class Duration(Node):
    parts: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    operand: Expression


ArithmeticOperator: TypeAlias = Literal["+", "-", "*", "/", "div", "mod"]
ComparisonOperator: TypeAlias = Literal["<", "<=", "=", ">=", ">", "!="]


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function applied: ``div(var M, var V)``, ``begin(o)``, ``datetime("2026-09-18T09:00Z")``."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """``count(*)`` (no argument), ``avg(v)``, or ``sum(all var Q group by { var P })`` (`collective`).

    An element as argument, ``count(all item { var X, var Y })``, stands only where a construct term may.
    """

    function: str
    argument: Expression | Construct | None
    collective: bool = False
    group_by: tuple[Var, ...] = ()
    number: int | None = None
    """Which one, in ``nth(v, 3)``; how many, in ``top(v, 3 by w)``."""
    by: Expression | None = None
    """What the values of ``top(v, 3 by w)`` are ranked by; None if by themselves."""


Value: TypeAlias = Text | Number | Bool | Null
Expression: TypeAlias = Var | Name | Value | Duration | Negative | Binary | Call | Aggregate
Argument: TypeAlias = Var | Name | Anonymous | Value

# ---- query terms and atoms ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Label(Node):
    """The name of an element or event type, with its namespace prefix if it has one."""

    name: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{self.prefix}:{self.name}" if self.prefix else self.name


@dataclass(frozen=True, slots=True)
class Element(Node):
    """``a { … }``, ``a {{ … }}``, ``a [ … ]`` or ``a [[ … ]]``; doubled brackets are partial in breadth."""

    label: Label | Var
    ordered: bool
    partial: bool
    children: tuple[QueryTerm, ...]


@dataclass(frozen=True, slots=True)
class As(Node):
    """``var X -> t``: X is bound to what t matches."""

    variable: str
    term: QueryTerm


@dataclass(frozen=True, slots=True)
class Desc(Node):
    term: QueryTerm


@dataclass(frozen=True, slots=True)
class Without(Node):
    term: QueryTerm


@dataclass(frozen=True, slots=True)
class Optional(Node):
    term: QueryTerm


@dataclass(frozen=True, slots=True)
class Regex(Node):
    """``/re/``, a text that matches as a whole."""

    pattern: str


QueryTerm: TypeAlias = Element | As | Desc | Without | Optional | Regex | Var | Value


@dataclass(frozen=True, slots=True)
class Atom(Node):
    """``order(i, p, q)``: an event by its positions."""

    label: Label
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Field(Node):
    name: str
    argument: Argument


@dataclass(frozen=True, slots=True)
class NamedAtom(Node):
    """``order(id: i, qty: q)``: an event by some of its attributes, the rest being free."""

    label: Label
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class AnyEvent(Node):
    """A bare label in an algebra expression: every event that carries it."""

    label: Label


@dataclass(frozen=True, slots=True)
class Periodic(Node):
    """``every 10 sec`` or ``window 10 min every 1 min offset 30 sec``: intervals that begin again and again.

    A window without a period begins anew when the one before it ends, and `every` without a length lasts its period.
    """

    length: Duration | None
    period: Duration | None
    offset: Duration | None = None

    @property
    def label(self) -> Label:
        """That of the calendar, whose events they are."""
        return Label("datetime", "timer")


Pattern: TypeAlias = Atom | NamedAtom | AnyEvent | Periodic | Element | As | Desc | Var

# ---- construct terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Construct(Node):
    label: Label | Var
    ordered: bool
    children: tuple[ConstructTerm, ...]


@dataclass(frozen=True, slots=True)
class OrderBy(Node):
    """``order by (lexical, descending) [var S]``: by texts, by numbers or by all values, up or down."""

    modes: tuple[str, ...]
    keys: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class All(Node):
    """``all c group by { … } order by […]``; `group_by` is None when the clause is left out."""

    term: ConstructTerm
    group_by: tuple[Var, ...] | None = None
    order_by: OrderBy | None = None


@dataclass(frozen=True, slots=True)
class OptionalConstruct(Node):
    """``optional c with default d``; without a default nothing is built when c's variables are unbound."""

    term: ConstructTerm
    default: ConstructTerm | None = None


ConstructTerm: TypeAlias = Construct | All | OptionalConstruct | Expression
