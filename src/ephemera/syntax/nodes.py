"""This module defines the syntax tree: a program as it was written, before any name is resolved.

Every node is frozen and carries its span outside equality, so two trees are equal when they say the same
thing in the same words. What the two rule forms share has one node: an arrow rule's body is an `And` whose
items may be conditions, a block rule's conditions stand in a `Where`.

Names of the nodes follow appendix A of the thesis; `docs/language.md` shows the grammar they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

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
    """``count(*)`` (no argument), ``avg(v)``, or ``sum(all var Q group by { var P })`` (`collective`)."""

    function: str
    argument: Expression | None
    collective: bool = False
    group_by: tuple[Var, ...] = ()


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


Pattern: TypeAlias = Atom | NamedAtom | AnyEvent | Element | As | Desc | Var

# ---- construct terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Construct(Node):
    label: Label | Var
    ordered: bool
    children: tuple[ConstructTerm, ...]


@dataclass(frozen=True, slots=True)
class OrderBy(Node):
    """``order by (lexical) [var S]``; the mode is ``""`` when none is written."""

    mode: str
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

# ---- conditions --------------------------------------------------------------------------------------------

ComparisonOperator: TypeAlias = Literal["<", "<=", "=", ">=", ">", "!="]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Unlimited(Node):
    """``*`` as a metric parameter: the plain relation's own limit below, infinity above."""


Moment: TypeAlias = Name | Call
Parameter: TypeAlias = Duration | Unlimited


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """An Allen relation, plain or with metric parameters: ``b before[0h, 4h] s``."""

    relation: str
    left: Moment
    right: Moment
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Within(Node):
    events: tuple[Name, ...]
    duration: Duration


@dataclass(frozen=True, slots=True)
class Apart(Node):
    """``{i, j} apart-by d``, also written ``{i, j} 2 hours apart``."""

    events: tuple[Name, ...]
    duration: Duration


@dataclass(frozen=True, slots=True)
class InCalendar(Node):
    """``{i, j} in cal:x()``: one interval of the calendar contains them all."""

    events: tuple[Name, ...]
    calendar: Label


@dataclass(frozen=True, slots=True)
class Not(Node):
    condition: Condition


@dataclass(frozen=True, slots=True)
class AllOf(Node):
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Node):
    conditions: tuple[Condition, ...]


Condition: TypeAlias = Comparison | IsNull | Relation | Within | Apart | InCalendar | Not | AllOf | AnyOf
CONDITIONS = (Comparison, IsNull, Relation, Within, Apart, InCalendar, Not, AllOf, AnyOf)

# ---- the event detection algebra ---------------------------------------------------------------------------

AlgebraOperator: TypeAlias = Literal["|", "+", "-", ";"]


@dataclass(frozen=True, slots=True)
class Composed(Node):
    """``A|B`` either, ``A+B`` both, ``A - B`` A without B in it, ``A;B`` A, then B."""

    operator: AlgebraOperator
    left: AlgebraExpression
    right: AlgebraExpression


@dataclass(frozen=True, slots=True)
class Limited(Node):
    """``A[t]``: A no longer than t."""

    operand: AlgebraExpression
    duration: Duration


AlgebraExpression: TypeAlias = Composed | Limited | Pattern

# ---- queries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event(Node):
    """A simple event query, ``event o: order {{ … }}`` or ``o: order(i, p)``; the identifier is optional."""

    name: Name | None
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Timer(Node):
    """A relative timer event, ``event w: timer:extend[event o, 6 hours]`` or ``w: extend(o, 6h)``."""

    name: Name | None
    kind: str
    anchor: Name
    duration: Duration


@dataclass(frozen=True, slots=True)
class While(Node):
    """``while w``; ``while(excl,incl) w`` leaves a boundary out."""

    event: Name
    begin: bool = True
    end: bool = True


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``from a until c``: strictly between the two."""

    first: Name
    last: Name


Window: TypeAlias = While | Between


@dataclass(frozen=True, slots=True)
class Accumulation(Node):
    """What happens in a window: ``not q``, ``collect q`` or ``collect optional q``, with q's own conditions."""

    window: Window
    mode: Literal["not", "collect", "collect optional"]
    event: Event
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """``not t(…)``: no row of a table matches."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class At(Node):
    """``at i: t(…)``: a table as it was when i ended; ``at i: not t(…)``."""

    moment: Name
    pattern: Pattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Algebra(Node):
    """``e: algebra ((B(); B())[2 sec] - P())``."""

    name: Name | None
    expression: AlgebraExpression
    restricted: bool = True


@dataclass(frozen=True, slots=True)
class And(Node):
    items: tuple[Query | Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    items: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Where(Node):
    query: Query
    conditions: tuple[Condition, ...]


Query: TypeAlias = Event | Timer | Accumulation | Absent | At | Algebra | And | Or | Where
QUERIES = (Event, Timer, Accumulation, Absent, At, Algebra, And, Or, Where)

# ---- rules -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detect(Node):
    term: ConstructTerm


@dataclass(frozen=True, slots=True)
class Raise(Node):
    recipient: str
    transport: str
    term: ConstructTerm


@dataclass(frozen=True, slots=True)
class Derive(Node):
    """The head of an arrow rule."""

    label: Label
    arguments: tuple[Expression, ...]


Head: TypeAlias = Detect | Raise | Derive


@dataclass(frozen=True, slots=True)
class Rule(Node):
    head: Head
    body: Query
    having: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Stratum(Node):
    """``STRATUM … END``: rules that the author put into one stratum by hand."""

    rules: tuple[Rule, ...]


# ---- declarations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeUnit(Node):
    duration: Duration


@dataclass(frozen=True, slots=True)
class TimeZone(Node):
    zone: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """One attribute and its type: ``int``, ``float``, ``string``, ``bool``, ``time``, ``any``, or ``int[]``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Lasts(Node):
    """``LASTS AT MOST d``, or ``LASTS ANY`` with no limit."""

    limit: Duration | None


@dataclass(frozen=True, slots=True)
class Rate(Node):
    """``RATE 200 per sec``."""

    count: Decimal
    per: str


@dataclass(frozen=True, slots=True)
class EventType(Node):
    """``EVENT order(id: string) …;``; without a list of attributes the shape is left open."""

    label: Label
    attributes: tuple[Attribute, ...] | None
    lasts: Lasts | None = None
    arrives_at_begin: bool = False
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class Stream(Node):
    name: str
    location: str | None = None
    format: str | None = None
    carries: tuple[Label, ...] = ()
    time: tuple[str, ...] = ()
    watermark: Duration | None = None
    idle: Duration | None = None


@dataclass(frozen=True, slots=True)
class Table(Node):
    label: Label
    attributes: tuple[Attribute, ...]
    location: str | None = None
    format: str | None = None


Declaration: TypeAlias = TimeUnit | TimeZone | EventType | Stream | Table
Statement: TypeAlias = Declaration | Rule | Stratum


@dataclass(frozen=True, slots=True)
class Program(Node):
    statements: tuple[Statement, ...]
