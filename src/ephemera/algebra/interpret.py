"""This module interprets plans over finite relations, operator by operator as they are defined; it is for tests only.

A relation is a list of tuples, a tuple a mapping from attributes to values; a variable without a value is not in it.
Recursive points are computed again and again until nothing is new. Nothing is clever here: engines are judged by the
oracle, and this shows that the plan they are given means what the rules mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias, assert_never

from ephemera.algebra import instances
from ephemera.algebra.attributes import EVENT, TERM, as_written, begin, end, is_stamp, reference, variables_in
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Base,
    Calendar,
    Cross,
    Detection,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Match,
    Merge,
    Plan,
    Point,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.scalar import Formula
from ephemera.algebra.timers import Moved, offsets
from ephemera.algebra.truth import Tester
from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import LATEST
from ephemera.rules.patterns import pattern_label
from ephemera.rules.series import Series, series_of
from ephemera.syntax.nodes import Derive, Head, Raise
from ephemera.terms.addresses import address
from ephemera.terms.atoms import match_event, match_term
from ephemera.terms.compute import lasting
from ephemera.terms.construct import Origin, Row, construct, value_of
from ephemera.terms.events import Event, Interval
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Expression as Computed
from ephemera.terms.nodes import Pattern
from ephemera.terms.values import Key, Term, Value, equal, key, merged

Tuple: TypeAlias = Mapping[str, Any]
Relation: TypeAlias = list[Tuple]
Source: TypeAlias = Callable[[Expression], Relation | None]

BEGIN, END = begin(EVENT), end(EVENT)


@dataclass(frozen=True, slots=True)
class Given:
    """What a plan is interpreted on."""

    events: Sequence[Event]
    tables: Mapping[str, Sequence[Term]] = field(default_factory=dict)
    calendars: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    clock: Callable[[Pattern], Sequence[Event]] = lambda _: ()
    """The events of `timer:datetime` that a pattern asks for."""


def interpret(plan: Plan, given: Given) -> dict[str, Relation]:
    """What every point of the plan holds."""
    interpreter = Interpreter(plan, given)
    found: dict[str, Relation] = {name: [] for name in plan.points}
    in_cycle = {name: cycle for cycle in plan.cycles for name in cycle}
    series = series_of(plan.growth)

    def stored(node: Expression) -> Relation | None:
        return found[node.point] if isinstance(node, Input) else None

    done: set[str] = set()
    for name in plan.points:
        if name in done:
            continue
        members = in_cycle.get(name, (name,))
        done |= set(members)
        while True:
            before = sum(len(found[m]) for m in members)
            for member in members:
                interpreter.series = series.get(plan.points[member].rule or 0)
                found[member] = interpreter.evaluate(plan.points[member].expression, stored)
            if name not in in_cycle or sum(len(found[m]) for m in members) == before:
                break
    return found


def events_of(point: Point, relation: Relation) -> list[Event]:
    """What a rule's point holds, as events."""
    built = [t for t in relation if TERM in t]
    return [Event(t[TERM], Interval(t[BEGIN], t[END])) for t in built if point.kind == "rule"]


class Interpreter:
    """Evaluates expressions; `source` may say what a node holds, else it is computed."""

    def __init__(self, plan: Plan, given: Given) -> None:
        self._plan = plan
        self._given = given
        self._tester = Tester(plan.catalogue, given.calendars)
        self._positive: frozenset[str] = frozenset()
        """The events and timers that the answers of the rule cover: all others are collected or forbidden."""
        self.series: Series | None = None
        """Where the answers of the rule that is evaluated are counted, if it may grow."""

    def evaluate(self, e: Expression, source: Source) -> Relation:
        known = source(e)
        return known if known is not None else distinct(self._tuples(e, source))

    def _tuples(self, e: Expression, source: Source) -> Iterable[Tuple]:
        match e:
            case Base(label):
                given = self._given.calendars.get(label or "", self._given.events)
                return [_of_event(event) for event in given if label is None or event.term.label == label]
            case Input(point):
                raise InternalError("interpret", f"nothing is known of {point}")
            case Match(inner, name, pattern):
                return (m for t in self.evaluate(inner, source) for m in self._matches(t, name, pattern))
            case Calendar(name, pattern):
                return (
                    m for event in self._given.clock(pattern) for m in self._matches(_of_event(event), name, pattern)
                )
            case Table(pattern, _):
                return self._rows(pattern)
            case Select(inner, condition, _):
                return (t for t in self.evaluate(inner, source) if self._tester.truth(condition, t))
            case Project(inner, attributes):
                whole = self.evaluate(inner, source)
                return ({a: v for a, v in t.items() if a in attributes or is_stamp(a)} for t in whole)
            case Rename(inner, renamed, variables):
                names: dict[str, str] = dict(variables)
                for old, new in renamed:
                    names |= {begin(old): begin(new), end(old): end(new), reference(old): reference(new)}
                return ({names.get(a, a): v for a, v in t.items()} for t in self.evaluate(inner, source))
            case Imbed(inner, head):
                return (m for t in self.evaluate(inner, source) for m in self._with_head(t, head))
            case RelativeTimer(inner, name, kind, anchor, int(length), None):
                return _with_timer(self.evaluate(inner, source), name, kind, *offsets(kind, anchor, length))
            case RelativeTimer(inner, _, _, _, int(longest), told) if told is not None:
                return self._with_told_timer(self.evaluate(inner, source), e, told, longest)
            case RelativeTimer():
                raise InternalError("interpret", f"rules of which each has another {e.name} run as one only in engines")
            case Gap(inner, name, first, last):
                return _with_timer(self.evaluate(inner, source), name, "gap", (end(first), 0), (begin(last), 0))
            case Merge(inner, name, events):
                self._positive = frozenset(events)
                covering = (_merged(t, name, events) for t in self.evaluate(inner, source))
                return (self._counted(t) for t in covering if t[begin(name)] >= -LATEST and t[end(name)] <= LATEST)
            case Group():
                return self._grouped(e, self.evaluate(e.input, source))
            case Join(left, right, condition, _) | Cross(left, right, condition, _):
                settled = isinstance(right, Rename) and self._positive.isdisjoint(new for _, new in right.events)
                sides = self.evaluate(left, source), self.evaluate(right, source)
                return self._joined(*sides, condition, settled=settled)
            case SemiJoin(left, right, condition, _):
                found = self.evaluate(right, source)
                return (t for t in self.evaluate(left, source) if any(self._joined([t], found, condition)))
            case AntiSemiJoin(left, right, condition, _):
                found = self.evaluate(right, source)
                return (t for t in self.evaluate(left, source) if not any(self._joined([t], found, condition)))
            case Union(inputs):
                return (t for one in inputs for t in self.evaluate(one, source))
            case Difference(left, right):
                return _difference(self.evaluate(left, source), self.evaluate(right, source))
            case Detection():
                return instances.found(e, [self.evaluate(i, source) for i in e.inputs], self._tester)
            case _:
                assert_never(e)

    # ---- matching ------------------------------------------------------------------------------------------

    def _matches(self, t: Tuple, name: str, pattern: Pattern) -> Iterator[Tuple]:
        event = Event(t[TERM], Interval(t[BEGIN], t[END]))
        own = {begin(name): t[BEGIN], end(name): t[END], reference(name): event}
        for substitution in match_event(pattern, event, {}, self._plan.catalogue.attributes):
            yield {**own, **substitution}

    def _rows(self, pattern: Pattern) -> Iterator[Tuple]:
        label = str(pattern_label(pattern))
        names = self._plan.catalogue.tables[label].names
        for row in self._given.tables.get(label, ()):
            yield from match_term(pattern, row, {}, names)

    # ---- joins ---------------------------------------------------------------------------------------------

    def _joined(self, left: Relation, right: Relation, condition: Formula, *, settled: bool = False) -> Iterator[Tuple]:
        """Tuples that agree; values of both meet, unless those of the left are settled, as they are for collections."""
        for a in left:
            for b in right:
                if all(_agree(a[name], b[name]) for name in a.keys() & b.keys()):
                    both = {**a, **b, **(a if settled else _met(a, b))}
                    if self._tester.truth(condition, both):
                        yield both

    def _counted(self, t: Tuple) -> Tuple:
        if self.series is not None and TERM in t:
            bound = {as_written(n): v for n, v in variables_in(t).items()}
            self.series.add((t[BEGIN], t[END]), bound, t[TERM])
        return t

    def _with_told_timer(self, given: Relation, timer: RelativeTimer, told: Computed, longest: int) -> Iterator[Tuple]:
        for t in given:
            length = lasting(told, variables_in(t), self._tester.scope(t), longest)
            if length is not None:
                yield from _with_timer([t], timer.name, timer.kind, *offsets(timer.kind, timer.anchor, length))

    # ---- heads ---------------------------------------------------------------------------------------------

    def _with_head(self, t: Tuple, head: Head) -> Iterator[Tuple]:
        row = Row(variables_in(t), (), ())
        for term in self._built(head, [row], Origin({}, 0), t):
            yield {**t, TERM: term}

    def _grouped(self, e: Group, relation: Relation) -> Iterator[Tuple]:
        origin = Origin(
            {v: k for k, c in reversed(list(enumerate(e.collections))) for v in c.binds},
            len(e.collections),
            tuple(c.name for c in e.collections),
        )
        groups: dict[Key, list[Tuple]] = {}
        for t in relation:
            groups.setdefault(tuple(_key(t.get(a, _NOTHING)) for a in e.by), []).append(t)
        for members in groups.values():
            rows = {(r.own, r.pairs): r for r in (_row(e, t) for t in members)}
            first = members[0]
            if self._tester.passes(e.having, list(rows.values()), origin, first):
                for term in self._built(e.head, list(rows.values()), origin, first):
                    yield {**{a: first[a] for a in e.by if a in first}, TERM: term}

    def _built(self, head: Head, rows: list[Row], origin: Origin, t: Tuple) -> list[Term]:
        scope = self._tester.scope(t)
        try:
            if isinstance(head, Derive):
                values = tuple(value_of(a, rows, origin, scope) for a in head.arguments)
                return [self._positional(str(head.label), values)]
            if isinstance(head, Raise):  # without an address there is no message
                address(head.recipient, head.transport, rows, origin, scope)
            return [v for v in construct(head.term, rows, origin, scope) if isinstance(v, Term)]
        except Undefined:
            return []

    def _positional(self, label: str, values: tuple[Value, ...]) -> Term:
        names = self._plan.catalogue.attributes(label)
        if names is None:
            return Term(label, values)
        known = [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
        return Term(label, tuple(Term(n, (v,)) for n, v in known), ordered=False)


# ---- tuples ------------------------------------------------------------------------------------------------

_NOTHING = object()


def distinct(tuples: Iterable[Tuple]) -> Relation:
    """Each tuple once."""
    found: dict[frozenset[tuple[str, Any]], Tuple] = {}
    for t in tuples:
        which = identity(t)
        found[which] = _met(found[which], t) if which in found else t
    return list(found.values())


def _met(a: Tuple, b: Tuple) -> Tuple:
    """A tuple where it meets another: integers for doubles that equal them."""
    shared = (n for n, v in a.items() if isinstance(v, float | Term) and n in b)
    changed = {n: both for n in shared if (both := merged(a[n], b[n])) is not a[n]}
    return {**a, **changed} if changed else a


def identity(t: Tuple) -> frozenset[tuple[str, Any]]:
    """What makes a tuple the tuple that it is."""
    return frozenset((a, _key(v)) for a, v in t.items())


def _key(value: Any) -> Any:
    if value is _NOTHING:
        return ()
    return value.key if isinstance(value, Event) else key(value)


def _of_event(event: Event) -> Tuple:
    return {BEGIN: event.time.begin, END: event.time.end, TERM: event.term}


def _agree(a: Any, b: Any) -> bool:
    return a == b if isinstance(a, Event) else bool(equal(a, b))


def _with_timer(relation: Relation, name: str, kind: str, first: Moved, last: Moved) -> Iterator[Tuple]:
    for t in relation:
        opens, closes = t[first[0]] + first[1], t[last[0]] + last[1]
        if opens <= closes:
            timer = Event(Term(f"timer:{kind}"), Interval(opens, closes))
            yield {**t, begin(name): opens, end(name): closes, reference(name): timer}


def _merged(t: Tuple, name: str, events: Sequence[str]) -> Tuple:
    rest = {a: v for a, v in t.items() if not is_stamp(a)}
    return {**rest, begin(name): min(t[begin(e)] for e in events), end(name): max(t[end(e)] for e in events)}


def _difference(left: Relation, right: Relation) -> Iterator[Tuple]:
    if not left:
        return
    names = {a for t in left for a in t}
    taken = {identity({a: v for a, v in t.items() if a in names}) for t in right}
    yield from (t for t in left if identity(t) not in taken)


def _row(e: Group, t: Tuple) -> Row:
    own = tuple(_key(t.get(v, _NOTHING)) for v in e.own)
    pairs: list[Key | None] = []
    times: list[Interval | None] = []
    for collection in e.collections:
        event = t.get(reference(collection.name))
        identity_of_pair = None if event is None else tuple(_key(t.get(v, _NOTHING)) for v in collection.variables)
        pairs.append(None if event is None else (event.key, identity_of_pair))
        times.append(None if event is None else event.time)
    return Row(variables_in(t), own, tuple(pairs), tuple(times))
