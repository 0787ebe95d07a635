"""This module lowers one normal rule: joins for its events, timers, collections, absences, and its head.

The order is that of figure 13.2, and of figure 13.5 read from the leaves; only the head is built before the stamps are
merged, since it may speak of them. Conditions are tested as soon as all they speak of is there. Where a collection is
optional the body is a union: answers with all collections, and for those traces that have none, answers with one
collection less, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from ephemera.algebra.attributes import EVENT, TERM, begin, end, reference, variables
from ephemera.algebra.conditions import formula
from ephemera.algebra.detections import bound_by, detection
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Calendar,
    Collection,
    Cross,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Merge,
    Point,
    Project,
    RelativeTimer,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.queries import Asking, Queries, bound
from ephemera.algebra.scalar import Formula, Matches, every, window
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.rules.declare import head_label
from ephemera.rules.explain import accumulation_text, condition_text
from ephemera.rules.nodes import (
    AlgebraLiteral,
    CollectLiteral,
    EventLiteral,
    NotLiteral,
    Ruleset,
    TimerLiteral,
)
from ephemera.rules.patterns import pattern_label
from ephemera.rules.periods import periods
from ephemera.rules.scope import (
    Bindings,
    bindings,
    event_names,
    pattern_bindings,
    plain_variables,
    variable_names,
)
from ephemera.syntax.nodes import Algebra, Condition, Derive, Within
from ephemera.terms.nodes import Aggregate, All, Pattern, Periodic, Var


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition on its way to the place where it can be tested."""

    condition: Formula
    because: str
    events: frozenset[str]
    variables: frozenset[str]


class Body:
    """The points of one normal rule; see the module."""

    def __init__(self, rules: Ruleset, number: int, name: str, queries: Queries, *, materialize: bool) -> None:
        self._normal = normal = rules.normal[number]
        self._number = number
        self._name = name
        self._catalogue = rules.resolved.catalogue
        self._queries = queries
        self._materialize = materialize
        self._made: dict[str, Point] = {}
        self._events: set[str] = set()
        self._sure: set[str] = set()
        self._seen: set[str] = set()
        """Variables that have a value by now, surely or perhaps."""
        self._arrow = isinstance(normal.head, Derive)
        self._waiting = [test for c in normal.conditions for test in self._tests(c)]
        self._late: list[Formula] = []
        """Patterns to be tested when every variable has its value."""
        outer = [*(e.pattern for e in normal.events), *(t.pattern for t in normal.tables)]
        self._outer = _union(pattern_bindings(p).sure for p in outer)
        self._own = _union([*(bound(p) for p in outer), *(bound_by(a.expression) for a in normal.algebra)])
        self._all = self._own | _union(bound(c.event.pattern) for c in normal.collects)

    def points(self) -> dict[str, Point]:
        expression = self._built(self._accumulated(self._positive()))
        label = head_label(self._normal.head)
        self._made[self._name] = Point(self._name, "rule", expression, self._normal.rule, self._number, label)
        return self._made

    # ---- positive events, timers, tables -------------------------------------------------------------------

    def _positive(self) -> Expression:
        normal = self._normal
        literals: list[EventLiteral | AlgebraLiteral] = [*normal.events, *normal.algebra]
        whole: Expression | None = None
        for position, literal in enumerate(literals):
            if isinstance(literal, EventLiteral):
                one, found = self._event(literal)
            else:
                one, found = detection(literal, self._queries), bindings(Algebra(None, literal.expression))
            whole = one if whole is None else self._joined(whole, one, found.bound)
            self._events.add(literal.name)
            self._seen |= found.bound
            self._sure |= found.sure
            whole = self._selected(whole)
            if self._materialize and position and self._goes_on(position, literals):
                whole = self._stored(whole, literals[: position + 1])
        if whole is None:
            raise TypeError("a body has at least one event")
        # A table may say how long a timer is; otherwise what is left of a tuple without it is looked up.
        tables_first = any(isinstance(timer, TimerLiteral) and timer.told is not None for timer in normal.timers)
        whole = self._with_tables(whole) if tables_first else whole
        for timer in normal.timers:
            if isinstance(timer, TimerLiteral):
                whole = RelativeTimer(whole, timer.name, timer.kind, timer.anchor, timer.length, timer.told)
            else:
                whole = Gap(whole, timer.name, timer.first, timer.last)
            self._events.add(timer.name)
        return self._selected(whole if tables_first else self._with_tables(whole))

    def _with_tables(self, whole: Expression) -> Expression:
        for row in self._normal.tables:
            whole = self._joined(whole, Table(row.pattern, row.at), bound(row.pattern))
            self._seen |= bound(row.pattern)
            self._sure |= pattern_bindings(row.pattern).sure
        return whole

    def _event(self, literal: EventLiteral) -> tuple[Expression, Bindings]:
        """An event, and the variables that it binds."""
        normal = self._normal
        pattern = next((t.pattern for t in normal.tests if t.event == literal.name), literal.pattern)
        others = [e.pattern for e in normal.events if e is not literal]
        others += [t.pattern for t in normal.tables] + [c.event.pattern for c in normal.collects]
        elsewhere = _union([*(bound(p) for p in others), *(bound_by(a.expression) for a in normal.algebra)])
        one, test = self._asked(literal.name, pattern, elsewhere, self._all)
        self._late += test
        return one, pattern_bindings(pattern)

    def _asked(
        self, name: str, pattern: Pattern, elsewhere: frozenset[str], known: frozenset[str]
    ) -> tuple[Expression, list[Formula]]:
        """The answers to a pattern, and where it forbids what others bind, the test that is left to be done."""
        label = pattern_label(pattern)
        if label is not None and str(label) == "timer:datetime":
            if isinstance(pattern, Periodic):
                intervals = periods(pattern, self._catalogue.zone)
                return Calendar(name, pattern, intervals.shortest, intervals.longest), []
            return Calendar(name, pattern), []
        found = pattern_bindings(pattern)
        if not (found.perhaps | found.never) & elsewhere:
            return self._queries.use(Asking(pattern), name), []
        test = Matches(name, pattern, variables(known | bound(pattern)))
        return self._queries.use(Asking(pattern, tested=True), name), [test]

    def _joined(self, left: Expression, right: Expression, bound: frozenset[str]) -> Expression:
        return Join(left, right) if self._seen & bound else Cross(left, right)

    def _goes_on(self, position: int, literals: Sequence[EventLiteral | AlgebraLiteral]) -> bool:
        return position + 1 < len(literals) or bool(self._normal.collects or self._normal.absences)

    def _stored(self, whole: Expression, literals: Sequence[EventLiteral | AlgebraLiteral]) -> Expression:
        """A materialization point for a join."""
        name = f"{self._name}[{','.join(literal.name for literal in literals)}]"
        self._made[name] = Point(name, "join", whole, self._normal.rule, self._number)
        return Input(name)

    # ---- conditions ----------------------------------------------------------------------------------------

    def _tests(self, condition: Condition) -> list[_Test]:
        """A condition as tests; `within` of several events holds for each two of them, which may be there earlier."""
        written = condition_text(condition, arrow=self._arrow)
        if isinstance(condition, Within) and len(condition.events) > 2:
            pairs = [replace(condition, events=pair) for pair in combinations(condition.events, 2)]
            return [self._test(pair, written) for pair in pairs]
        return [self._test(condition, written)]

    def _test(self, condition: Condition, written: str) -> _Test:
        return _Test(
            formula(condition, self._catalogue.zone),
            written,
            frozenset(n.name for n in event_names(condition, frozenset())),
            frozenset(n.name for n in variable_names(condition, frozenset())),
        )

    def _selected(self, whole: Expression) -> Expression:
        """What can be tested by now."""
        ready = [t for t in self._waiting if t.events <= self._events and t.variables <= self._sure]
        self._waiting = [t for t in self._waiting if t not in ready]
        for test in ready:
            whole = Select(whole, test.condition, test.because)
        return whole

    # ---- collections and absences --------------------------------------------------------------------------

    def _accumulated(self, whole: Expression) -> Expression:
        """The traces with what was collected; where nothing of an optional collection is left, without it."""
        optional = [k for k, c in enumerate(self._normal.collects) if c.optional]
        level = [self._finished(whole, ())]
        found = list(level)
        for size in range(1, len(optional) + 1):
            whole = Difference(whole, _united(level))
            level = [self._finished(whole, empty) for empty in combinations(optional, size)]
            found += level
        return _united(found)

    def _finished(self, whole: Expression, empty: Sequence[int]) -> Expression:
        """The traces with the other collections, and all that is then tested.

        A condition or absence that speaks of what was not collected filters nothing.
        """
        normal = self._normal
        missing = {v for k in empty for v in self._binds(k)}
        for k, collect in enumerate(normal.collects):
            if k not in empty:
                whole = self._collected(whole, collect)
        for test in self._waiting:
            if not missing & test.variables:
                whole = Select(whole, test.condition, test.because)
        for pattern in self._late:
            whole = Select(whole, pattern)
        for row in normal.absent_rows:
            whole = AntiSemiJoin(whole, Table(row.pattern, row.at))
        for absence in normal.absences:
            if not missing & pattern_bindings(absence.event.pattern).all:
                whole = self._without(whole, absence)
        return whole

    def _collected(self, whole: Expression, collect: CollectLiteral) -> Expression:
        inner, tests = self._asked(collect.event.name, collect.event.pattern, self._own, self._own)
        condition = self._in_window(collect, tests)
        if not self._groups and not self._is_used(collect):
            return SemiJoin(whole, inner, condition, self._written(collect))
        shared = bound(collect.event.pattern) & self._all_but(collect)
        return (Join if shared else Cross)(whole, inner, condition, self._written(collect))

    def _without(self, whole: Expression, absence: NotLiteral) -> Expression:
        inner, tests = self._asked(absence.event.name, absence.event.pattern, self._all, self._all)
        return AntiSemiJoin(whole, inner, self._in_window(absence, tests), self._written(absence))

    def _in_window(self, literal: CollectLiteral | NotLiteral, tests: Sequence[Formula]) -> Formula:
        inside = window(literal.event.name, literal.window, begin_included=literal.begin, end_included=literal.end)
        own = (formula(c, self._catalogue.zone) for c in literal.conditions)
        return every([inside, *own, *tests])

    def _written(self, literal: CollectLiteral | NotLiteral) -> str:
        return accumulation_text(literal, arrow=self._arrow)

    def _all_but(self, collect: CollectLiteral) -> frozenset[str]:
        others = (bound(c.event.pattern) for c in self._normal.collects if c is not collect)
        return self._own | _union(others)

    def _binds(self, k: int) -> frozenset[str]:
        """The variables that only the k-th collection gives a value, or it before the others."""
        own = [bound(c.event.pattern) - self._outer for c in self._normal.collects]
        return own[k] - _union(own[:k])

    @property
    def _groups(self) -> bool:
        normal = self._normal
        if next(find(normal.head, (All, Aggregate)), None) is not None:
            return True
        return any(next(find(condition, Aggregate), None) is not None for condition in normal.having)

    def _is_used(self, collect: CollectLiteral) -> bool:
        """Whether something besides the collection speaks of its variables or of the event."""
        normal = self._normal
        asked = [*(c.event.pattern for c in normal.collects if c is not collect)]
        asked += [*(a.event.pattern for a in normal.absences), *(r.pattern for r in normal.absent_rows)]
        asked += [t.pattern for t in normal.tests]
        conditions = [*normal.conditions, *normal.having]
        conditions += [c for absence in normal.absences for c in absence.conditions]
        conditions += [c for other in normal.collects if other is not collect for c in other.conditions]
        used = _union(pattern_bindings(p).all for p in asked) | {v.name for v in find(normal.head, Var)}
        used |= {v.name for c in conditions for v in variable_names(c, frozenset())}
        return bool(used & (bound(collect.event.pattern) - self._own))

    # ---- the head ------------------------------------------------------------------------------------------

    def _built(self, whole: Expression) -> Expression:
        normal = self._normal
        happened = [*(e.name for e in normal.events), *(a.name for a in normal.algebra)]
        positive = [*happened, *(t.name for t in normal.timers)]
        if self._groups:
            stamps = [stamp for n in positive for stamp in (begin(n), end(n))]
            by = (*(reference(n) for n in happened), *stamps, *sorted(plain_variables(normal.head)))
            collections = tuple(self._collection(k, c) for k, c in enumerate(normal.collects))
            built: Expression = Group(whole, by, variables(self._own), collections, normal.head, normal.having)
        else:
            for condition in normal.having:
                whole = Select(whole, formula(condition, self._catalogue.zone))
            built = Imbed(whole, normal.head)
        return Project(Merge(built, EVENT, tuple(positive)), (TERM,))

    def _collection(self, k: int, collect: CollectLiteral) -> Collection:
        told_apart_by = variables(self._own | bound(collect.event.pattern))
        return Collection(collect.event.name, told_apart_by, variables(self._binds(k)))


def _united(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
