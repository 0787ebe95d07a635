"""This module defines physical plans: for each rule its leaves, tests and timers, and how each leaf is searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal, NamedTuple, TypeAlias

from ephemera.algebra.attributes import Stamp, Time, begin, end
from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import Calendar, Detection, Gap, Group, Imbed, RelativeTimer, Table
from ephemera.algebra.scalar import Formula
from ephemera.analysis.nodes import ANY_LENGTH, Length
from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.nodes import Expression, Pattern, Var


@dataclass(frozen=True, slots=True)
class Leaf:
    """An input of a rule: where its tuples come from, and what the rule calls the event and the variables."""

    name: str
    source: str
    """The query, join or calendar."""
    names: Mapping[str, str]
    """The attributes of the source under the names of the rule."""
    variables: frozenset[str]
    sure: frozenset[str]
    longest: int | None = None
    """How long its events last at most; None is any time. If they have no length, one stamp says all."""
    stored: tuple[Stamp, ...] = ()
    """The stamps of the events of a stored join, if it is one."""

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        """The stamps that conditions speak of: its own, or those of the events that it joins."""
        return self.stored or (begin(self.name), end(self.name))


@dataclass(frozen=True, slots=True)
class Range:
    """How a stamp of a leaf lies to a stamp that is known: between `earliest` before it and `latest` after it."""

    known: Time
    """The stamp; in a window it may be a moment, too, such as `@0`."""
    earliest: int | None
    latest: int | None


@dataclass(frozen=True, slots=True)
class KeyEquation:
    """A computed key: what a leaf computes of its own variables must equal what is computed of what is known."""

    own: Expression
    known: Expression
    is_solved: bool = False
    """Whether a condition was solved for `own`: then it holds of whole numbers only, and the condition is tested."""


@dataclass(frozen=True, slots=True)
class Probe:
    """How a leaf is searched: by the values of some variables, by computed keys, by a range of one of its stamps."""

    leaf: int
    keys: tuple[str, ...]
    stamp: str
    ranges: tuple[Range, ...]
    tests: tuple[Formula, ...] = ()
    """What is tested then, apart from what the ranges see to."""
    kept: frozenset[str] | None = None
    """The columns that are needed then; None is all of them."""
    equations: tuple[KeyEquation, ...] = ()
    """The computed keys; a solved one is the only key of all."""


@dataclass(frozen=True, slots=True)
class Test:
    """A condition, and the attributes that it needs."""

    __test__ = False

    condition: Formula
    needs: frozenset[str]
    computes: frozenset[str] = frozenset()
    """The variables that it computes with; it waits until they have met all others of their name."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is done with a leaf that is new: it is tested, and then the others are searched one by one."""

    tests: tuple[Formula, ...]
    kept: frozenset[str] | None
    """The columns that are needed of it; None is all of them."""
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sum, least or greatest value (`sum`, `min`, `max`) of a variable or an expression in a window."""

    function: str
    text: str
    """What tells it apart: the name of the variable; expressions with 1 and with 1.0 are equal, but not the same."""
    value: Expression = field(compare=False)

    @classmethod
    def of(cls, function: str, value: Expression) -> Wanted:
        """What is wanted of a value; averages are made of sums."""
        text = value.name if isinstance(value, Var) else repr(value)
        return cls("sum" if function == "avg" else function, text, value)


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """How a window is looked into: by the values of some variables, and by a range of the ends of what lies in it."""

    leaf: Leaf
    kind: Literal["absence", "presence", "collection", "summary"]
    """Nothing may be in it, or something must be; what is in it is gathered, or only summarized where that can be."""
    keys: tuple[str, ...]
    ranges: tuple[Range, ...]
    tests: tuple[Formula, ...]
    """What is tested then, apart from what the ranges see to."""
    is_exact: bool
    """Whether all that keys and ranges find lies in the window, so that it need not be unfolded."""
    wanted: tuple[Wanted, ...] = ()
    """What a summary has besides how much there is."""


@dataclass(frozen=True, slots=True)
class AbsentRows:
    """A table that may have no row for a tuple."""

    table: Table


Step: TypeAlias = WindowPlan | AbsentRows | Formula
Branch: TypeAlias = tuple[Step, ...]
"""What is done with tuples of positive events, one after the other: windows looked into, conditions tested."""


@dataclass(frozen=True, slots=True)
class DetectionPlan:
    """An algebra expression, its inputs, and how it is detected."""

    detection: Detection
    inputs: tuple[Leaf, ...]
    detector: Detector | None
    """None if it is evaluated over all that is kept."""


@dataclass(frozen=True, slots=True)
class ConstantRange:
    """A variable that constants of rules which are alike limit: each rule asks for values in a range of its own."""

    variable: str
    least: str | None = None
    """The constant from which on values count, if there is one."""
    most: str | None = None
    above: bool = False
    """Whether values must be more than the least."""
    below: bool = False
    """Whether they must be less than the most."""
    distance: tuple[Time, Time] | None = None
    """Where it is no variable of the rule, but how far one stamp lies behind another: these two."""

    @property
    def needs(self) -> frozenset[str]:
        """The columns that its value is found by."""
        return frozenset((self.variable,) if self.distance is None else self.distance)

    @property
    def constants(self) -> frozenset[str]:
        return frozenset(name for name in (self.least, self.most) if name is not None)


def differ(timers: Iterable[RelativeTimer | Gap]) -> bool:
    """Whether they stand for those of rules that are alike, each of which has some of another length."""
    return any(isinstance(timer, RelativeTimer) and isinstance(timer.length, str) for timer in timers)


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule as engines run it: positive events first, from whichever of them is new, then all else."""

    point: str
    leaves: tuple[Leaf, ...]
    detections: tuple[DetectionPlan, ...]
    orders: tuple[Order, ...]
    """For each leaf in which order the others are searched when it is new."""
    tests: tuple[Formula, ...]
    """What can only be tested with timers and tables."""
    timers: tuple[RelativeTimer | Gap, ...]
    tables: tuple[Table, ...]
    ends: tuple[str, ...]
    """The stamps of which the last says when a tuple happens."""
    attempts: tuple[tuple[Branch, ...], ...]
    """What is done when a tuple happens: with those that no branch of one attempt lets through, the next is made."""
    having: tuple[Formula, ...]
    """What is tested after the attempts, if there are several."""
    collects: frozenset[str]
    """The histories in which windows look for what has to be there."""
    heads: Mapping[str, Group | Imbed]
    """Its head; where it stands for rules that are alike, the heads of these."""
    events: tuple[str, ...]
    """What the occurrence time covers."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Where it stands for rules that are alike: the constants of these that tuples find by a column, and by which."""
    ranged: ConstantRange | None = None
    """Where it stands for rules that are alike: the constants that tuples find by a range."""
    gives_rows: bool = False
    """Whether a few answers may skip the columns: nobody reads them, and they only have to be shown."""

    @property
    def then(self) -> tuple[RelativeTimer | Gap | Table, ...]:
        """Timers and tables in their order: a table may say how long a timer is, and is looked up late otherwise."""
        told = any(isinstance(timer, RelativeTimer) and timer.told is not None for timer in self.timers)
        return (*self.tables, *self.timers) if told else (*self.timers, *self.tables)

    def inputs(self) -> Iterator[Leaf]:
        """All that it reads: positive events, what algebra expressions are made of, and what windows are looked for."""
        inner = {one.detection.name: one.inputs for one in self.detections}
        for leaf in self.leaves:
            yield from inner.get(leaf.name, (leaf,))
        for step in (step for branches in self.attempts for branch in branches for step in branch):
            if isinstance(step, WindowPlan):
                yield step.leaf


class Reader(NamedTuple):
    """What a reader of a history needs: tuples that all its stamps let count, and that last as long as it asks."""

    times: tuple[tuple[str, int], ...]
    """How long before now some stamps count, each once; without any, tuples count forever."""
    length: Length = ANY_LENGTH


Needed: TypeAlias = tuple[Reader, ...] | None
"""What readers of a history need; None if one needs everything."""


@dataclass(frozen=True, slots=True)
class HistoryUse:
    """What a rule needs of a history that it reads."""

    history: str
    stamps: tuple[str, ...]
    """All that its tuples have; the last says when they happen."""
    needed: Needed
    reach: int | None
    """How far before the bound a tuple may end and still matter; None is any time."""
    is_whole: bool = False
    """Whether it tests the events again, or tells them apart."""


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """A history of a lane, for all its readers."""

    stamps: tuple[str, ...]
    needed: Needed
    reach: int | None
    """How far before the bound a tuple may end and still matter; None is any time."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query of a lane: what it matches."""

    label: str | None
    patterns: tuple[Pattern, ...]
    keeps_events: bool = False
    """Whether somebody needs the events whole."""


@dataclass(frozen=True, slots=True)
class LanePlan:
    """Rules that wait for the same sources, with all that they need to run."""

    schedule: tuple[tuple[tuple[str, ...], bool], ...]
    """Queries and rules in the order in which they are computed; those that need each other, which is a cycle,
    together."""
    uses: Mapping[str, tuple[HistoryUse, ...]]
    """The rules, in the order of the plan, and what each reads."""
    queries: Mapping[str, QueryPlan]
    histories: Mapping[str, HistoryPlan]
    """Those of the queries, and of the timers and algebra expressions of its rules."""
    timers: Mapping[str, Calendar]
    """The absolute timers, by their histories."""
    days: tuple[str, ...]
    """The calendars of which it reads the days."""
