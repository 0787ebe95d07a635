"""This module defines what the rules stage produces: the catalogue of a program, and rules in normal form.

In a resolved rule every variable is a `Var`, every `Name` is an event identifier, every duration is a whole
number of microseconds. A normal rule (thesis figure 13.2) is one conjunction: events first, then tables,
timers in the order of their anchors, collections, absences, and conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal, TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import NOWHERE, Span
from ephemera.syntax.nodes import AlgebraExpression, Condition, Head, Rule
from ephemera.terms.namespaces import NONE, Namespaces
from ephemera.terms.nodes import Expression, Pattern, Var
from ephemera.terms.user_functions import UserFunction
from ephemera.terms.zones import LocalTime


@dataclass(frozen=True, slots=True)
class Apart:
    """How close events of a type may end: at least so many microseconds apart, if they have the same values."""

    distance: int
    per: tuple[str, ...] = ()
    """The attributes by which they are told apart; none are all of the type."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A declared event type or table: its attributes in order, None where the shape is left open."""

    label: str
    attributes: tuple[tuple[str, str], ...] | None
    longest: int | None = 0
    """The longest an event of the type lasts, in microseconds; None is no limit, 0 a point."""
    arrives_at_begin: bool = False
    per_second: float | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    """The attributes whose column or key has another name, with that name."""
    apart: Apart | None = None
    """How close events of the type may come; None is as close as they like."""
    span: Span = field(default=NOWHERE, kw_only=True, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.attributes or ())

    @property
    def columns(self) -> tuple[str, ...]:
        """The column or key of each attribute, in their order."""
        if not self.renamed:
            return self.names
        other = dict(self.renamed)
        return tuple(other.get(name, name) for name in self.names)

    @property
    def arity(self) -> int | None:
        return None if self.attributes is None else len(self.attributes)

    @property
    def is_flat(self) -> bool:
        """Whether each attribute has one value."""
        return self.attributes is not None and not any(declared.endswith("[]") for _, declared in self.attributes)


@dataclass(frozen=True, slots=True)
class Source:
    """A declared stream: one source, whose event types share a bound."""

    name: str
    location: str | None
    format: str | None
    carries: tuple[str, ...]
    time: tuple[str, ...]
    watermark: int
    idle: int | None

    @property
    def only(self) -> str | None:
        """The one type that it carries, so that its rows and lines need not name it."""
        return self.carries[0] if len(self.carries) == 1 else None


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """Stands for what the environment holds when a message is sent; nobody writes that down."""

    name: str


SettingValue: TypeAlias = str | int | float | bool | tuple[str, ...] | EnvironmentVariable
"""What is said of a transport; durations are in microseconds."""


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """How messages are sent: by which kind of transport, with what settings."""

    name: str
    kind: str
    settings: Mapping[str, SettingValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that a program declares, and the rules that derive each label."""

    unit: int
    zone: str
    events: Mapping[str, Schema]
    tables: Mapping[str, Schema]
    table_locations: Mapping[str, tuple[str | None, str | None]]
    sources: tuple[Source, ...]
    derived: Mapping[str, tuple[int, ...]]
    """For each label the numbers of the rules that derive it."""
    arities: Mapping[str, tuple[int, ...]]
    """The arities of the labels that only arrow rules derive."""
    namespaces: Namespaces = NONE
    transports: Mapping[str, TransportSettings] = field(default_factory=dict)
    """How messages are sent, by the names that the program declares for it."""
    local: LocalTime = field(default_factory=LocalTime, compare=False)
    """What a time without a zone means."""
    writes: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Which derived events are written where, as it is declared."""
    reserves: Mapping[str, int] = field(default_factory=dict)
    """How long events of some types are kept whole for rules that come later, in microseconds."""
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    """The functions that people wrote, by their names."""
    only: str | None = None
    """Where it is the catalogue of one stream: the one type that this carries, which is that of whatever names none."""

    def carrying(self, only: str | None) -> Catalogue:
        """The same as a stream is read by it that carries one type, or several."""
        return self if only == self.only else replace(self, only=only)

    def attributes(self, label: str) -> tuple[str, ...] | None:
        """The attributes of a declared event in their order, or None."""
        schema = self.events.get(label)
        return None if schema is None or schema.attributes is None else schema.names

    def columns(self, label: str) -> tuple[str, ...] | None:
        """The columns or keys of the attributes of a declared event in their order, or None."""
        schema = self.events.get(label)
        return None if schema is None or schema.attributes is None else schema.columns

    def arrives_at_begin(self, label: str) -> bool:
        """Whether events of a type are known from their begin on; all others are when they end."""
        schema = self.events.get(label)
        return schema is not None and schema.arrives_at_begin

    def stamps(self, label: str) -> tuple[str, ...]:
        """The keys or columns that say when an event happens, as its stream declares them; none if it does not.

        What no stream carries is as the first stream says that carries nothing by name.
        """
        for source in self.sources:
            if label in source.carries:
                return source.time
        return next((source.time for source in self.sources if source.time and not source.carries), ())

    @property
    def is_closed(self) -> bool:
        """Whether events are declared at all, so that an unknown one is a mistake."""
        return bool(self.events)


# ---- normal form -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventLiteral:
    """A simple event query; absolute timers and calendars are events of an infinite stream."""

    name: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class AlgebraLiteral:
    name: str
    expression: AlgebraExpression
    restricted: bool
    per: tuple[Var, ...] = ()


@dataclass(frozen=True, slots=True)
class TableLiteral:
    """Rows of a table; `at` names the event at whose end a changing table is read."""

    pattern: Pattern
    at: str | None = None


@dataclass(frozen=True, slots=True)
class TimerLiteral:
    """A relative timer on one anchor, by a length in microseconds."""

    name: str
    kind: str
    anchor: str
    length: int
    """The longest that it may be, where what it binds says how long it is."""
    told: Expression | None = None
    """What says how long it is, in the program's time unit."""


@dataclass(frozen=True, slots=True)
class GapLiteral:
    """The timer between two events, [first.e, last.s]: what ``from first until last`` opens."""

    name: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class CollectLiteral:
    window: str
    begin: bool
    end: bool
    event: EventLiteral
    conditions: tuple[Condition, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class NotLiteral:
    window: str
    begin: bool
    end: bool
    event: EventLiteral
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AbsentRowLiteral:
    pattern: Pattern
    at: str | None = None


@dataclass(frozen=True, slots=True)
class TestLiteral:
    """The event must match this pattern again, with every variable bound.

    This is the part of a query term that can be decided only when other events have bound the variables that it
    negates (thesis 13.4.4).
    """

    __test__ = False  # not a test case, whatever pytest thinks

    event: str
    pattern: Pattern


TimerLike: TypeAlias = TimerLiteral | GapLiteral


@dataclass(frozen=True, slots=True)
class NormalRule:
    """One alternative of a rule: a conjunction in the order of figure 13.2."""

    rule: int
    """The number of the rule it comes from, counted from 1 in the order of the program."""
    head: Head
    events: tuple[EventLiteral, ...]
    algebra: tuple[AlgebraLiteral, ...]
    tables: tuple[TableLiteral, ...]
    timers: tuple[TimerLike, ...]
    collects: tuple[CollectLiteral, ...]
    absences: tuple[NotLiteral, ...]
    absent_rows: tuple[AbsentRowLiteral, ...]
    tests: tuple[TestLiteral, ...]
    conditions: tuple[Condition, ...]
    having: tuple[Condition, ...]
    unbound: frozenset[str] = frozenset()
    """Optional variables that have no value in this alternative."""


DependencyKind = Literal["positive", "negative", "grouping", "temporal"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """What a rule asks for: a label (None stands for any), how, and which rules may answer."""

    label: str | None
    kinds: tuple[DependencyKind, ...]
    rules: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A program whose every name is known: the catalogue, and the rules as written."""

    catalogue: Catalogue
    rules: tuple[Rule, ...]
    blocks: tuple[int | None, ...]
    """For each rule the STRATUM block it stands in, counted from 1, or None."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A recursive rule whose answers may grow without end."""

    rule: int
    cycle: tuple[tuple[int, str], ...]
    """The rules that need each other, it among them, and what they derive."""
    grows: tuple[str, ...]
    """The variables of its head that may get ever new values."""
    fixed: tuple[str, ...]
    """Those that may not."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The product of the stage: resolved rules with their strata, dependencies and normal forms."""

    resolved: Resolved
    strata: tuple[int, ...]
    dependencies: tuple[tuple[Dependency, ...], ...]
    normal: tuple[NormalRule, ...]
    growth: Mapping[int, Growth] = field(default_factory=dict)
    """The rules that may grow, by their numbers."""
