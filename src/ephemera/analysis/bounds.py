"""This module derives stream bound functions: up to when a rule's answers are certain, given the bounds of its sources.

An answer is certain when all that can decide it is here (S§6, definition 24). A rule's function is the minimum, over
all it reads, of the bound of what it reads plus a shift: the least time by which the end of an answer lies behind the
stamp at which the input arrives, in any case. For a positive input that is what conditions and timers guarantee; what
is collected or absent counts as far as it can lie in its window. Tables limit nothing.

Functions of derived inputs are put into those of their readers, and shifts add up. Shifts are never negative, since all
that decides an answer lies within its occurrence time; so around a cycle of recursive rules nothing is lost, and as
every answer is derived in finitely many steps, the least shift over all ways to the sources is what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ephemera.algebra.attributes import EVENT, begin, end
from ephemera.algebra.nodes import Base, Detection, Expression, Group, Imbed, Input, Match, Plan, Point, Rename, Union
from ephemera.algebra.parts import member_head, positive_part
from ephemera.analysis.cases import Case
from ephemera.analysis.distances import Closure, Edge, close
from ephemera.analysis.knowledge import Described, describe_plan
from ephemera.analysis.relevance import Context, contexts
from ephemera.analysis.sources import UNNAMED
from ephemera.analysis.weights import ZERO, Weight
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.rules.nodes import Catalogue
from ephemera.syntax.nodes import Raise

CLOCK = "timer:datetime"
"""The source of absolute timers and calendars: their answers are given as time passes, and never ahead of it."""

_BEGIN, _END = begin(EVENT), end(EVENT)


@dataclass(frozen=True, slots=True)
class SourceBound:
    """A source: what its events move its bound by, and when it moves by itself."""

    name: str
    labels: tuple[str, ...]
    """The events that are read from it."""
    at_begin: tuple[str, ...]
    """Those of them that are known when they begin."""
    watermark: int
    idle: int | None


@dataclass(frozen=True, slots=True)
class Limit:
    """What one source contributes to a function: its bound plus a shift, and the input through which."""

    source: str
    shift: int
    strict: bool
    """Whether the input even lies before that; then one microsecond more is certain."""
    input: str
    """The point that the rule reads."""
    name: str
    """What the rule calls it."""
    negated: bool
    because: tuple[str, ...]
    """The conditions that make up the shift."""

    @property
    def more(self) -> int:
        """How much is certain behind the bound of the source, in whole microseconds."""
        return self.shift + self.strict


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """The stream bound function of a rule, or of all rules of a label: the minimum of its limits; none is always."""

    limits: tuple[Limit, ...]
    unless: tuple[str, ...] = ()
    """Derived events that the function supposes nobody sends from outside."""

    def at(self, bounds: Mapping[str, int]) -> int | None:
        """Up to when answers are certain, by the bounds of the sources; None is forever."""
        return min((bounds[limit.source] + limit.more for limit in self.limits), default=None)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sources of a program, and the functions of its rules and of the labels that they derive."""

    sources: tuple[SourceBound, ...]
    rules: Mapping[str, BoundFunction]
    streams: Mapping[str, BoundFunction]


def derive_bounds(plan: Plan) -> Bounds:
    """The stream bound functions of a plan."""
    return _Derivation(plan, _readings).run()


def lasting(plan: Plan) -> dict[str, Limit]:
    """For each rule how far its answers end at least behind the last event from outside that they are made of.

    What is absent or collected is not what an answer is made of; of rules that read no event nothing is said.
    """
    rules = _Derivation(plan, _positive_readings).run().rules
    nearest = {
        name: min((one for one in f.limits if one.source != CLOCK), key=lambda one: one.shift, default=None)
        for name, f in rules.items()
    }
    return {name: limit for name, limit in nearest.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class _Outside:
    """Events of a derived label that come from outside all the same, through no stream."""

    label: str


_Origin = str | _Outside
_Reach = dict[tuple[_Origin, str], Weight]
"""For each origin, and each stamp of the point's tuples: how long after the stamp what made the tuple may arrive.

Zero where the stamp itself is when it arrives; less than zero where all that made a tuple arrives before.
"""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A rule reads a point: how long after the end of an answer a stamp of the input may lie, zero or less."""

    point: str
    stamp: str
    weight: Weight
    context: Context = field(compare=False)
    own: str = ""
    """What the rule calls the stamp."""


class _Derivation:
    def __init__(self, plan: Plan, readings: Callable[[Point, Described], list[_Reading]]) -> None:
        self._plan = plan
        self._catalogue = plan.catalogue
        self._described = describe_plan(plan)
        self._carried = {label: s.name for s in self._catalogue.sources for label in s.carries}
        bases = [b.label for p in plan.points.values() for b in find(p.expression, Base)]
        self._labels = tuple(dict.fromkeys(label for label in bases if label is not None))
        self._readings = {
            name: readings(point, self._described) for name, point in plan.points.items() if point.kind == "rule"
        }
        self._alone: set[str] = set()
        """Streams of derived events of which rules derive none: only what comes from outside is there."""

    def run(self) -> Bounds:
        reach = self._fixpoint()
        while lonely := self._lonely(reach):
            self._alone |= lonely
            reach = self._fixpoint()
        rules = {name: self._function(readings, reach) for name, readings in self._readings.items()}
        return Bounds(tuple(self._sources(rules.values())), rules, self._streams(rules))

    # ---- sources -------------------------------------------------------------------------------------------

    def _origin(self, label: str) -> _Origin:
        """Where the events of a label come from; what rules derive and no stream carries goes with the rules."""
        if label in self._carried:
            return self._carried[label]
        if label in self._catalogue.derived:
            return _Outside(label)
        return CLOCK if _is_calendar(label, self._catalogue) else UNNAMED

    def _every(self) -> list[str]:
        """All sources: what is of any label, or comes from nowhere in particular, waits for all of them."""
        used = [o for o in map(self._origin, self._labels) if isinstance(o, str) and o != CLOCK]
        return list(dict.fromkeys([*(s.name for s in self._catalogue.sources), *used])) or [UNNAMED]

    def _sources(self, functions: Iterable[BoundFunction]) -> Iterator[SourceBound]:
        used = {limit.source for function in functions for limit in function.limits}
        for source in self._catalogue.sources:
            early = tuple(filter(self._catalogue.arrives_at_begin, source.carries))
            yield SourceBound(source.name, source.carries, early, source.watermark, source.idle)
        if UNNAMED in used:
            labels = tuple(label for label in self._labels if self._origin(label) == UNNAMED)
            yield SourceBound(UNNAMED, labels, tuple(filter(self._catalogue.arrives_at_begin, labels)), 0, None)
        if CLOCK in used:
            yield SourceBound(CLOCK, tuple(n for n in self._labels if self._origin(n) == CLOCK), (), 0, None)

    # ---- reach ---------------------------------------------------------------------------------------------

    def _fixpoint(self) -> dict[str, _Reach]:
        """The reach of every point; from nothing, again and again until no way to a source brings it nearer."""
        reach: dict[str, _Reach] = {name: {} for name in self._plan.points}
        reach[CLOCK] = {(CLOCK, _END): ZERO}
        changed = True
        while changed:
            changed = False
            for name, point in self._plan.points.items():
                found = self._rule(name, reach) if point.kind == "rule" else self._read(point.expression, reach, name)
                if found != reach[name]:
                    reach[name], changed = found, True
        return reach

    def _rule(self, name: str, reach: Mapping[str, _Reach]) -> _Reach:
        ways = _ways(self._readings[name], reach)
        return _nearest(((origin, _END), weight) for origin, weight, _ in ways)

    def _read(self, e: Expression, reach: Mapping[str, _Reach], name: str) -> _Reach:
        """The reach of a stream or a query."""
        match e:
            case Input(point):
                return reach[point]
            case Match(inner):
                return self._read(inner, reach, name)
            case Union(inputs):
                return _nearest(item for one in inputs for item in self._read(one, reach, name).items())
            case Base(label):
                return self._base(label, name)
            case _:
                raise TypeError(f"a stream or query reads a {type(e).__name__}")

    def _base(self, label: str | None, name: str) -> _Reach:
        if label is None or name in self._alone:
            return {(source, _END): ZERO for source in self._every()}
        return {(self._origin(label), _BEGIN if self._catalogue.arrives_at_begin(label) else _END): ZERO}

    def _lonely(self, reach: Mapping[str, _Reach]) -> set[str]:
        """Streams that nothing but what comes from outside can reach."""
        return {
            name
            for name, point in self._plan.points.items()
            if point.kind == "stream" and reach[name] and all(isinstance(o, _Outside) for o, _ in reach[name])
        }

    # ---- functions -----------------------------------------------------------------------------------------

    def _function(self, readings: Sequence[_Reading], reach: Mapping[str, _Reach]) -> BoundFunction:
        best: dict[_Origin, tuple[Weight, _Reading]] = {}
        for origin, weight, reading in _ways(readings, reach):
            if origin not in best or not _is_nearer(best[origin][0], weight):
                best[origin] = weight, reading
        limits = [_limit(o, weight, reading) for o, (weight, reading) in best.items() if isinstance(o, str)]
        outside = {o.label: weight for o, (weight, _) in best.items() if isinstance(o, _Outside)}
        # From outside they count with the slowest source: that matters where more than this is claimed.
        unless = [
            label
            for label, weight in outside.items()
            if any(_is_nearer(weight, best[limit.source][0]) for limit in limits)
        ]
        return BoundFunction(tuple(limits), tuple(unless))

    def _streams(self, rules: Mapping[str, BoundFunction]) -> dict[str, BoundFunction]:
        """For each label the minimum over the rules that may derive it."""
        points = self._plan.points
        anything = [f for name, f in rules.items() if points[name].label is None and not _is_message(points[name])]
        found: dict[str, list[BoundFunction]] = {}
        for name, function in rules.items():
            label = points[name].label
            if label is not None:
                found.setdefault(label, [*anything]).append(function)
        return {label: _least(functions) for label, functions in found.items()}


def _is_calendar(label: str, catalogue: Catalogue) -> bool:
    """Whether a label belongs to a namespace in which the program itself names nothing."""
    prefix, colon, _ = label.partition(":")
    named = [*catalogue.events, *catalogue.tables, *catalogue.derived]
    return bool(colon) and not any(other.startswith(f"{prefix}:") for other in named)


def _is_message(point: Point) -> bool:
    built: list[Imbed | Group] = [*find(point.expression, Imbed), *find(point.expression, Group)]
    return any(isinstance(node.head, Raise) for node in built)


# ---- what rules read ---------------------------------------------------------------------------------------


def _readings(point: Point, described: Described) -> list[_Reading]:
    """All that a rule reads, each input with each of its stamps, in the case where it may lie latest."""
    cases = described.cases.get(point.name, [])
    inputs = [x for case, closure in cases for x in contexts(case, closure)]
    inputs += [x for d in find(point.expression, Detection) for x in _rivals(d, described, cases)]
    found: dict[tuple[str, str, str], _Reading] = {}
    for context in inputs:
        use = context.use
        known = described.known.get(use.point)
        for stamp, own in zip((_BEGIN, _END) if known is None else known.stamps, use.stamps, strict=True):
            reading = _Reading(use.point, stamp, _after(context.closure, own), context, own)
            before = found.get((use.point, use.name, stamp))
            if before is None or _is_nearer(reading.weight, before.weight):
                found[use.point, use.name, stamp] = reading
    return list(found.values())


def _positive_readings(point: Point, described: Described) -> list[_Reading]:
    """What the answers of a rule are made of: neither what is absent nor what is collected."""
    positive = {id(use) for use in find(positive_part(member_head(point).input), Rename)}
    windows = {name for use in find(point.expression, Rename) if id(use) not in positive for _, name in use.events}
    readings = _readings(point, described)
    return [one for one in readings if not one.context.negated and one.context.use.name not in windows]


def _after(closure: Closure, stamp: str) -> Weight:
    """How long after the end of the answer a stamp may lie: zero or less, as it lies in the answer's time."""
    distance = closure.distance(_END, stamp)
    return ZERO if distance is None or _is_nearer(distance, ZERO) else distance.guaranteed()


def _rivals(detection: Detection, described: Described, cases: Sequence[tuple[Case, Closure]]) -> Iterator[Context]:
    """The primitives of a restricted expression, whatever the rule asks of its instances.

    An instance that the rule rejects may still be the one that is picked instead of another. It ends when that does.
    """
    if not detection.restricted or not cases or described.describer is None:
        return
    ends = end(detection.name)
    nearest = max(_after(closure, ends) for _, closure in cases)
    for case in described.describer.instances(detection):
        rival = case.with_edges([Edge(_END, ends, nearest)])
        closure = close(rival.edges)
        if closure is not None:
            yield from contexts(rival, closure)


def _ways(readings: Iterable[_Reading], reach: Mapping[str, _Reach]) -> Iterator[tuple[_Origin, Weight, _Reading]]:
    """How a rule depends on each origin, through each of its readings."""
    for reading in readings:
        for (origin, stamp), weight in reach[reading.point].items():
            if stamp == reading.stamp:
                yield origin, ZERO if origin == CLOCK else weight.plus(reading.weight), reading


# ---- weights -----------------------------------------------------------------------------------------------


def _is_nearer(a: Weight, b: Weight) -> bool:
    """Whether an input may lie later by one weight than by another."""
    return a[:2] > b[:2]


def _nearest(found: Iterable[tuple[tuple[_Origin, str], Weight]]) -> _Reach:
    reach: _Reach = {}
    for key, weight in found:
        reach[key] = max(weight, reach.get(key, weight))
    return reach


def _limit(source: str, weight: Weight, reading: _Reading) -> Limit:
    context = reading.context
    path = context.closure.path(_END, reading.own) if weight.bound or weight.is_strict or context.negated else []
    because = tuple(dict.fromkeys(e.because for e in path if e.because))
    return Limit(source, -weight.bound, weight.is_strict, reading.point, context.use.name, context.negated, because)


def _least(functions: Sequence[BoundFunction]) -> BoundFunction:
    """The minimum of several functions."""
    limits: dict[str, Limit] = {}
    for limit in (limit for function in functions for limit in function.limits):
        if limit.source not in limits or limit.more < limits[limit.source].more:
            limits[limit.source] = limit
    unless = dict.fromkeys(label for function in functions for label in function.unless)
    return BoundFunction(tuple(limits.values()), tuple(unless))
