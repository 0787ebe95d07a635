"""This module estimates how many tuples come to each point of a plan, from how many events come of each type.

Rates are declared (`RATE 200 per sec`), or seen in an input; a type of which nothing is known has one event a second.
What a pattern or a condition leaves is guessed as it is everywhere in this field: an equation leaves one of as many as
there are values, an inequality a third. Nothing depends on it but how a program is run: what it answers does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ephemera.algebra.attributes import begin, end, is_stamp
from ephemera.algebra.nodes import (
    Base,
    Cross,
    Expression,
    Gap,
    Input,
    Join,
    Match,
    Plan,
    Point,
    RelativeTimer,
    Rename,
    Select,
    Union,
)
from ephemera.algebra.parts import member_head, position_of, positive_part, stored_stamps
from ephemera.algebra.scalar import Every, Formula, Holds, InsideCalendar, Matches, Negation, Some, computed_variables
from ephemera.analysis.join_estimates import DISTINCT, Flow, JoinEstimates, JoinPart, JoinTest
from ephemera.analysis.nodes import Facts
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.rules.nodes import Catalogue
from ephemera.rules.scope import event_names, pattern_bindings, variable_names
from ephemera.syntax.nodes import Comparison, Derive, IsNull
from ephemera.terms import nodes as terms
from ephemera.terms.nodes import Atom, Binary, Bool, NamedAtom, Number, Text, Var

RATE = 1.0
"""How many events of a type come in a second, if nobody says."""
_RANGE = 1 / 3
_NULL = 1 / 10
_OTHER = 1 / 2


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the events of each type, declared or seen."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """How many come in a second of their own time."""
    distinct: Mapping[tuple[str, int], float] = field(default_factory=dict)
    """How many values there are in a place of the flat events of a type."""
    seen: frozenset[str] = frozenset()
    """The types of which events were seen; of the others it is declared, if it is said here."""

    def __bool__(self) -> bool:
        return bool(self.rates or self.distinct)

    def updated(self, other: Statistics) -> Statistics:
        """The same, where the other does not know better."""
        return Statistics({**self.rates, **other.rates}, {**self.distinct, **other.distinct}, self.seen | other.seen)

    def origin(self, label: str) -> str:
        """Where it is known from how many events of a type come."""
        return "seen" if label in self.seen else "declared" if label in self.rates else "assumed"


def declared(catalogue: Catalogue) -> Statistics:
    """What a program says of its events."""
    schemas = catalogue.events.items()
    rates = {label: schema.per_second for label, schema in schemas if schema.per_second is not None}
    kinds = ((label, k, kind) for label, schema in schemas for k, (_, kind) in enumerate(schema.attributes or ()))
    return Statistics(rates, {(label, k): 2.0 for label, k, kind in kinds if kind == "bool"})


def flows(plan: Plan, facts: Facts, statistics: Statistics) -> dict[str, Flow]:
    """What comes to each point of a plan."""
    found: dict[str, Flow] = {}
    for name, point in plan.points.items():
        match point.kind:
            case "stream":
                found[name] = Flow(_rate(point.expression, plan, found, statistics), {})
            case "query":
                found[name] = _query_flow(point, plan, found, statistics)
            case "rule" | "join":
                found[name] = _derived_flow(point, plan, facts, found)
    return found


def _rate(e: Expression, plan: Plan, found: Mapping[str, Flow], statistics: Statistics) -> float:
    match e:
        case Union(inputs):
            return sum(_rate(one, plan, found, statistics) for one in inputs)
        case Base(None):
            return sum(statistics.rates.values()) or RATE
        case Base(str(label)):
            # That some of what rules derive come from outside as well is not assumed.
            return statistics.rates.get(label, 0.0 if label in plan.catalogue.derived else RATE)
        case Input(point):
            return found[point].rate if point in found else 0.0  # one of a cycle has not been looked at
        case _:
            return 0.0


def _query_flow(point: Point, plan: Plan, found: Mapping[str, Flow], statistics: Statistics) -> Flow:
    rate = 0.0
    distinct: dict[str, float] = {}
    for match in find(point.expression, Match):
        rate += _rate(match.input, plan, found, statistics) * _selected(match, plan, statistics)
        rules = list(_rules_behind(match.input, plan))
        for variable in pattern_bindings(match.pattern).bound:
            place = position_of(plan, point.name, variable)
            if is_stamp(variable):
                continue
            if place is None or place in statistics.distinct:
                distinct[variable] = DISTINCT if place is None else statistics.distinct[place]
            else:
                known = [n for rule in rules if (n := _derived_values(plan, found, place[1], rule)) is not None]
                distinct[variable] = max(known, default=DISTINCT)
    for part in find(point.expression, Select):
        rate *= selectivity(part.condition, Flow(rate, distinct))
    return Flow(rate, distinct)


def _rules_behind(e: Expression, plan: Plan) -> Iterator[str]:
    """The rules and stored joins that derive what a query reads."""
    for read in find(e, Input):
        if plan.points[read.point].kind == "stream":
            yield from _rules_behind(plan.points[read.point].expression, plan)
        else:
            yield read.point


def _derived_values(plan: Plan, found: Mapping[str, Flow], place: int, rule: str) -> float | None:
    """How many values what a rule derives has in a place, if that is known of the variable that it shows there."""
    head = member_head(plan.points[rule]).head
    if rule not in found or not isinstance(head, Derive) or place >= len(head.arguments):
        return None
    argument = head.arguments[place]
    return found[rule].distinct.get(argument.name) if isinstance(argument, Var) else 1.0


def _selected(match: Match, plan: Plan, statistics: Statistics) -> float:
    """Which part of the events a pattern leaves by its constants."""
    selected = 1.0
    match match.pattern:
        case Atom(label, arguments):
            for k, argument in enumerate(arguments):
                if isinstance(argument, Number | Text | Bool):
                    selected /= statistics.distinct.get((str(label), k), DISTINCT)
        case NamedAtom(label, fields):
            names = list(plan.catalogue.attributes(str(label)) or ())
            for one in fields:
                if isinstance(one.argument, Number | Text | Bool) and one.name in names:
                    selected /= statistics.distinct.get((str(label), names.index(one.name)), DISTINCT)
        case _:
            selected = _OTHER if any(True for _ in find(match.pattern, (Number, Text, Bool))) else 1.0
    return selected


def _derived_flow(point: Point, plan: Plan, facts: Facts, found: Mapping[str, Flow]) -> Flow:
    head = member_head(point)
    leaves, tests = joined_parts(positive_part(head.input), plan, found)
    if not leaves:
        return Flow(1 / 86_400, {})
    closures = [closure for _, closure in facts.cases.get(point.name, ())]
    return JoinEstimates(leaves, closures, tests).flow()


def joined_parts(e: Expression, plan: Plan, found: Mapping[str, Flow]) -> tuple[list[JoinPart], list[JoinTest]]:
    """What is joined in the positive part of a rule, and what is tested there."""
    leaves: list[JoinPart] = []
    conditions: list[Formula] = []
    waiting = [e]
    while waiting:
        match waiting.pop():
            case Select(inner, condition):
                conditions.append(condition)
                waiting.append(inner)
            case RelativeTimer(inner) | Gap(inner):
                waiting.append(inner)
            case Join(left, right) | Cross(left, right):
                waiting += [right, left]
            case Rename(Input(source)) as use:
                leaves.append(part_of(use, plan.points[source], found))
            case _:
                continue  # tables, calendars and algebra expressions: nothing is known of them
    return leaves, tests_of(conditions, leaves)


def part_of(use: Rename, source: Point, found: Mapping[str, Flow]) -> JoinPart:
    """An input of a rule, by the names that the rule has for the event and the variables."""
    flow = found.get(source.name, Flow(RATE, {}))  # one of a cycle has not been looked at
    names: dict[str, str] = dict(use.variables)
    distinct = {**dict.fromkeys(names.values(), DISTINCT), **{names.get(v, v): n for v, n in flow.distinct.items()}}
    event = use.events[0][1]
    stamps = stored_stamps(source, dict(use.events)) or (begin(event), end(event))
    return JoinPart(stamps, frozenset(distinct), Flow(flow.rate, distinct))


def tests_of(conditions: Iterable[Formula], parts: Sequence[JoinPart]) -> list[JoinTest]:
    """Conditions, and what is expected of them where some parts are joined."""
    distinct: dict[str, float] = {}
    for part in parts:
        for variable, values in part.flow.distinct.items():
            distinct[variable] = max(distinct.get(variable, 0.0), values)
    return [test_of(part, Flow(0.0, distinct)) for condition in conditions for part in _conjuncts(condition)]


def _conjuncts(f: Formula) -> Sequence[Formula]:
    return f.parts if isinstance(f, Every) else (f,)


def test_of(condition: Formula, flow: Flow) -> JoinTest:
    """A condition, and what is expected of it."""
    variables = {n.name for part in find(condition, Holds) for n in variable_names(part.condition, frozenset())}
    events = {n.name for part in find(condition, Holds) for n in event_names(part.condition, frozenset())}
    needs = frozenset(variables) | {begin(name) for name in events}
    is_key = isinstance(condition, Holds) and _is_equation(condition)
    return JoinTest(needs, selectivity(condition, flow), is_key, computed_variables(condition))


def _is_equation(condition: Holds) -> bool:
    return isinstance(condition.condition, Comparison) and condition.condition.operator == "="


def _values(e: terms.Expression, flow: Flow) -> float:
    """How many values an expression has at least: what is added keeps values apart, and so does what is multiplied."""
    match e:
        case Var(name):
            return flow.values(name)
        case Number() | Text() | Bool():
            return 1.0
        case Binary("+" | "-" | "*", left, right):
            return max(_values(left, flow), _values(right, flow))
        case _:
            return DISTINCT


def selectivity(f: Formula, flow: Flow) -> float:
    """Which part of some tuples a condition leaves; what it asks of their times is counted where they are searched."""
    match f:
        case Holds(Comparison("=", left, right)):
            most = max(_values(left, flow), _values(right, flow))
            return 1 / (most if most > 1 else DISTINCT)
        case Holds(Comparison("!=", _, _)):
            return 1.0
        case Holds(Comparison()):
            return _RANGE
        case Holds(IsNull(_, negated)):
            return 1 - _NULL if negated else _NULL
        case Negation(inner):
            return max(1 - selectivity(inner, flow), _NULL)
        case Every(parts):
            passing = 1.0
            for part in parts:
                passing *= selectivity(part, flow)
            return passing
        case Some(parts):
            return min(sum(selectivity(part, flow) for part in parts), 1.0)
        case Matches() | InsideCalendar():
            return _OTHER
        case _:
            return 1.0
