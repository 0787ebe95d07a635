"""This module defines the syntax tree: a program as it was written, before any name is resolved.

Every node is frozen and carries its span outside equality, so two trees are equal when they say the same
thing in the same words. What the two rule forms share has one node: an arrow rule's body is an `And` whose
items may be conditions, a block rule's conditions stand in a `Where`.

The terms in it are those of `terms/nodes.py`. Names follow appendix A of the thesis; `docs/grammar.md` is the
grammar they come from.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Literal, TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.nodes import (
    Call,
    ComparisonOperator,
    ConstructTerm,
    Duration,
    Expression,
    Label,
    Name,
    Node,
    Pattern,
    Value,
    Var,
)

# ---- conditions --------------------------------------------------------------------------------------------


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
    is_listed: bool = field(default=False, compare=False)
    """Whether it was written as a list of values: ``x in (1, 2)`` says ``x = 1 or x = 2``."""


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
class AtMost(Node):
    """``2 * h AT MOST 30 days``: a length that events or tables say, and the longest that it may be."""

    expression: Expression
    limit: Duration


@dataclass(frozen=True, slots=True)
class Timer(Node):
    """A relative timer event, ``event w: timer:extend[event o, 6 hours]`` or ``w: extend(o, 6h)``."""

    name: Name | None
    kind: str
    anchor: Name
    duration: Duration | AtMost


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
class Selection(Node):
    """``j: next b(x) after i within 1h``, ``last b(x) before i``, ``first b(x) in w``, with b's own conditions.

    ``without { c, d(x) }`` names what must not come between either.
    """

    which: Literal["next", "first", "last"]
    event: Event
    relation: Literal["after", "before", "in"]
    anchor: Name
    within: Duration | None = None
    without: tuple[Pattern, ...] = ()
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
    """``e: algebra per x ((B(x); B(x))[2 sec] - P())``."""

    name: Name | None
    expression: AlgebraExpression
    restricted: bool = True
    per: tuple[Var, ...] = ()
    """The variables that the author names for whose values instances are found apart."""


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


Query: TypeAlias = Event | Timer | Accumulation | Selection | Absent | At | Algebra | And | Or | Where
QUERIES = (Event, Timer, Accumulation, Selection, Absent, At, Algebra, And, Or, Where)

# ---- rules -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detect(Node):
    term: ConstructTerm


@dataclass(frozen=True, slots=True)
class Raise(Node):
    """``to(recipient="desk", transport="http") { … }``; either may be computed: ``recipient=var R``."""

    recipient: str | Expression
    transport: str | Expression
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
class Namespace(Node):
    """``NAMESPACE o = "urn:orders";``: labels with the prefix are of that namespace."""

    prefix: str
    uri: str


@dataclass(frozen=True, slots=True)
class Import(Node):
    """``IMPORT "shop.eq" AS shop;``: what that program derives is known here by the prefix."""

    path: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """One attribute and its type: ``int``, ``float``, ``string``, ``bool``, ``time``, ``any``, or ``int[]``.

    Its column or key has another name where one is given: ``card: string FROM "card_no"``.
    """

    name: str
    type: str
    column: str | None = None


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
class LeastApart(Node):
    """``AT LEAST d APART PER x, y``: how close events of a type may come, or those with the same values."""

    distance: Duration
    per: tuple[PerAttribute, ...] = ()


@dataclass(frozen=True, slots=True)
class PerAttribute(Node):
    """An attribute that ``PER`` names."""

    name: str


@dataclass(frozen=True, slots=True)
class EventType(Node):
    """``EVENT order(id: string) …;``; without a list of attributes the shape is left open."""

    label: Label
    attributes: tuple[Attribute, ...] | None
    lasts: Lasts | None = None
    arrives_at_begin: bool = False
    rate: Rate | None = None
    apart: LeastApart | None = None


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


@dataclass(frozen=True, slots=True)
class Write(Node):
    labels: tuple[Label, ...]
    location: str


@dataclass(frozen=True, slots=True)
class Reserve(Node):
    """``RESERVE order 30 days;``: events of a type are kept whole for rules that come later."""

    label: Label
    length: Duration


@dataclass(frozen=True, slots=True)
class FromEnvironment(Node):
    """``env("AUDIT_TOKEN")``: a variable of the environment, looked up when a message is sent."""

    variable: str


@dataclass(frozen=True, slots=True)
class Texts(Node):
    """``["notify", "--urgent"]``."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting(Node):
    name: str
    value: Value | Duration | FromEnvironment | Texts


@dataclass(frozen=True, slots=True)
class Transport(Node):
    """``TRANSPORT audit IS http(url="https://…", timeout=5 sec, secret=env("AUDIT_TOKEN"));``."""

    name: str
    kind: str
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredFunction(Node):
    """``FUNCTION haversine(float, float, float, float): float FROM "geo:haversine";``."""

    name: str
    takes: tuple[str, ...]
    gives: str
    place: str


Declaration: TypeAlias = (
    TimeUnit
    | TimeZone
    | Import
    | Namespace
    | EventType
    | Stream
    | Table
    | Transport
    | Write
    | Reserve
    | DeclaredFunction
)
Statement: TypeAlias = Declaration | Rule | Stratum


@dataclass(frozen=True, slots=True)
class Program(Node):
    statements: tuple[Statement, ...]
