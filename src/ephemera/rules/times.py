"""This module checks what rules say about time: metric parameters, durations that contradict, dates that are not.

Only contradictions that two conditions of one conjunction show by themselves are found here; what follows from
several together is the business of the temporal analysis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field
from itertools import combinations

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Span
from ephemera.base.time import describe
from ephemera.base.tree import find, walk
from ephemera.rules.alternatives import cases
from ephemera.rules.dates import Dates
from ephemera.rules.declare import length_of
from ephemera.rules.findings import Findings, listed
from ephemera.rules.nodes import Catalogue
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import primitives
from ephemera.syntax.nodes import (
    CONDITIONS,
    Algebra,
    AllOf,
    And,
    Apart,
    Condition,
    Event,
    Or,
    Query,
    Relation,
    Rule,
    Timer,
    Unlimited,
    Where,
    Within,
)
from ephemera.terms.nodes import Call, Duration, Name, Node, Periodic, Text

PARAMETERS = {
    "before": (1, 2),
    "after": (1, 2),
    "meets": (1,),
    "met-by": (1,),
    "equals": (1, 2),
    "during": (1, 2, 4),
    "contains": (1, 2, 4),
    "overlaps": (1, 2, 4),
    "overlapped-by": (1, 2, 4),
    "starts": (1, 2, 3),
    "started-by": (1, 2, 3),
    "finishes": (1, 2, 3),
    "finished-by": (1, 2, 3),
}
"""How many metric parameters a relation takes (`docs/language.md`)."""

_RANGES = {
    **{(relation, 2): ((0, 1),) for relation in ("before", "after", "starts", "started-by", "finishes", "finished-by")},
    **{(relation, 3): ((1, 2),) for relation in ("starts", "started-by", "finishes", "finished-by")},
    **{(relation, 4): ((0, 1), (2, 3)) for relation in ("during", "contains", "overlaps", "overlapped-by")},
}
"""Which parameters are the two ends of a range."""

_EXACT = {
    *((relation, 1) for relation in PARAMETERS if relation not in ("meets", "met-by", "equals")),
    *((relation, 2) for relation in ("during", "contains", "overlaps", "overlapped-by")),
}
"""The forms whose parameters are exact distances."""


_SHORTENING = ("shorten", "shorten-begin")


def check_times(rule: Rule, catalogue: Catalogue, findings: Findings) -> None:
    """Tells what a rule says about time that cannot be."""
    checker = _Times(rule, catalogue, findings)
    for node in (rule.head, rule.body, *rule.having):
        checker.node(node)
    for conjunction in (rule.body, *(branch for choice in find(rule.body, Or) for branch in choice.items)):
        checker.contradictions(conjunction)
    checker.shortened()


@dataclass(frozen=True, slots=True)
class _Distance:
    """What one condition says of the gap between two events."""

    least: int
    most: int | None
    node: Condition
    first: str = ""
    """The event that ends before the other begins, where the condition says which."""
    strict: bool = False
    """Whether it leaves no room for two events at one instant."""


@dataclass(slots=True)
class _Gap:
    """What all conditions together say of the gap between two events, with the conditions that say most."""

    longest: _Distance | None = None
    shortest: _Distance | None = None
    order: dict[str, _Distance] = field(default_factory=dict)
    """For each of the two the condition that it comes first."""

    def add(self, distance: _Distance) -> None:
        if self.longest is None or distance.least > self.longest.least:
            self.longest = distance
        if distance.most is not None and (self.shortest is None or distance.most < (self.shortest.most or 0)):
            self.shortest = distance
        if distance.first:
            known = self.order.setdefault(distance.first, distance)
            if (distance.least, distance.strict) > (known.least, known.strict):
                self.order[distance.first] = distance


class _Times:
    def __init__(self, rule: Rule, catalogue: Catalogue, findings: Findings) -> None:
        self._rule = rule
        self._catalogue = catalogue
        self._findings = findings
        self._dates = Dates(findings, catalogue.zone)

    def _length(self, duration: Duration) -> int:
        return length_of(duration, self._catalogue.unit, self._findings)

    def node(self, node: Node) -> None:
        for current in walk(node):
            match current:
                case Duration():
                    self._length(current)
                case Relation():
                    self._relation(current)
                case Apart(events, _) if len(events) != 2:
                    self._findings.add(
                        Code.METRIC,
                        f"`apart-by` takes two events, not {len(events)}",
                        current.span,
                        help=[Help("write one condition for each pair of events")],
                    )
                case Periodic():
                    self._periodic(current)
                case Call("datetime", (Text(moment),)):
                    self._dates.moment(current, moment)
                case Event(_, pattern):
                    self._dates.absolute(pattern)
                case Algebra(_, expression, _):
                    for primitive in primitives(expression):
                        self._dates.absolute(primitive)

    def _periodic(self, timer: Periodic) -> None:
        """A period and a length are more than nothing, and an offset is less than the period."""
        for duration in (timer.length, timer.period):
            if duration is not None and not any(part.amount for part in duration.parts):
                advice = Help("write a length such as `1 sec`", (Edit(duration.span, "1 sec"),))
                self._findings.add(Code.DURATION, "a timer that comes again has a length", duration.span, help=[advice])
                return
        period = timer.period or timer.length
        if period is None or timer.offset is None:
            return
        every, offset = self._length(period), self._length(timer.offset)
        if every and offset >= every:
            rest = describe(offset % every)
            self._findings.add(
                Code.DURATION,
                f"an offset is shorter than the period, {describe(every)}, and this is {describe(offset)}",
                timer.offset.span,
                help=[
                    Help(
                        f"the same intervals begin {rest} later: write `offset {rest}`",
                        (Edit(timer.offset.span, rest),),
                    )
                ],
            )

    # ---- metric parameters ---------------------------------------------------------------------------------

    def _relation(self, relation: Relation) -> None:
        given = len(relation.parameters)
        if not given:
            return
        allowed = PARAMETERS[relation.relation]
        if given not in allowed:
            wanted = " or ".join(", ".join(map(str, allowed)).rsplit(", ", 1))
            first, last = relation.parameters[0].span, relation.parameters[-1].span
            keep = max((n for n in allowed if n < given), default=0)
            edits = (Edit(Span(relation.parameters[keep - 1].span.end, last.end), ""),) if keep else ()
            self._findings.add(
                Code.METRIC,
                f"`{relation.relation}` takes {wanted} parameter{'' if wanted == '1' else 's'}, not {given}",
                first.to(last),
                help=[Help(f"give it {wanted}", edits)],
            )
            return
        for parameter in relation.parameters:
            if isinstance(parameter, Unlimited) and (relation.relation, given) in _EXACT:
                self._findings.add(
                    Code.METRIC,
                    "this parameter is an exact distance, so it cannot be `*`",
                    parameter.span,
                    help=[
                        Help(
                            f"leave the parameters out for the plain `{relation.relation}`",
                            (Edit(Span(relation.left.span.end, relation.right.span.start), f" {relation.relation} "),),
                        )
                    ],
                )
        for low, high in _RANGES.get((relation.relation, given), ()):
            self._range(relation, low, high)

    def _range(self, relation: Relation, low: int, high: int) -> None:
        least, most = relation.parameters[low], relation.parameters[high]
        if not (isinstance(least, Duration) and isinstance(most, Duration)):
            return
        if self._length(least) > self._length(most):
            texts = describe(self._length(least)), describe(self._length(most))
            self._findings.add(
                Code.CONTRADICTORY_DURATION,
                f"nothing is at least {texts[0]} and at most {texts[1]}",
                least.span.to(most.span),
                help=[Help("turn the two round", (Edit(least.span.to(most.span), f"{texts[1]}, {texts[0]}"),))],
            )

    # ---- contradictions ------------------------------------------------------------------------------------

    def contradictions(self, query: Query | Condition) -> None:
        """Pairs of conditions that hold together in one conjunction and cannot."""
        gaps: dict[frozenset[str], _Gap] = {}
        conditions = list(_conjuncts(query))
        pairs = dict.fromkeys(frozenset(_pair(condition)) for condition in conditions)
        for condition in conditions:
            for pair, distance in self._distances(condition, pairs):
                if len(pair) == 2:
                    gap = gaps.setdefault(pair, _Gap())
                    self._check(pair, gap, distance)
                    gap.add(distance)

    def _check(self, pair: frozenset[str], gap: _Gap, distance: _Distance) -> None:
        """Tells the first condition that the new one contradicts."""
        opposite = next((other for first, other in gap.order.items() if distance.first not in ("", first)), None)
        if opposite is not None and (opposite.least + distance.least or opposite.strict or distance.strict):
            self._both_ways(opposite, distance)
        elif gap.shortest is not None and distance.least > (gap.shortest.most or 0):
            self._clash(pair, gap.shortest, distance, longer=distance, shorter=gap.shortest)
        elif gap.longest is not None and distance.most is not None and gap.longest.least > distance.most:
            self._clash(pair, gap.longest, distance, longer=gap.longest, shorter=distance)

    def _both_ways(self, before: _Distance, now: _Distance) -> None:
        relation = now.node
        if not isinstance(relation, Relation):
            return
        left, right = relation.left, relation.right
        edits: tuple[Edit, ...] = ()
        if isinstance(left, Name) and isinstance(right, Name):
            edits = (Edit(left.span, right.name), Edit(right.span, left.name))
        self._findings.add(
            Code.CONTRADICTORY_DURATION,
            f"`{now.first}` ends before `{before.first}` begins, and `{before.first}` before `{now.first}`",
            relation.span,
            related=[Related(before.node.span, "this contradicts it")],
            help=[Help("turn one of the two round", edits)],
        )

    def _distances(
        self, condition: Condition, pairs: Collection[frozenset[str]]
    ) -> Iterator[tuple[frozenset[str], _Distance]]:
        """What a condition says, of `pairs` only: no other condition says how far apart other events are."""
        match condition:
            case Within(events, duration):
                names = frozenset(e.name for e in events)
                few = len(names) ** 2 < len(pairs)
                most = self._length(duration)
                for pair in map(frozenset, combinations(sorted(names), 2)) if few else pairs:
                    if pair in pairs and pair <= names:
                        yield pair, _Distance(0, most, condition)
            case Apart(_, duration) if _pair(condition):
                yield frozenset(_pair(condition)), _Distance(self._length(duration), None, condition)
            case Relation("before" | "after" as relation, Name(left), Name(right), parameters):
                first = left if relation == "before" else right
                lower, upper = (parameters[0], parameters[-1]) if parameters else (None, None)
                low = self._length(lower) if isinstance(lower, Duration) else 0
                high = self._length(upper) if isinstance(upper, Duration) else None
                strict = not isinstance(lower, Duration)
                yield frozenset(_pair(condition)), _Distance(low, high, condition, first, strict)

    def _clash(
        self, pair: frozenset[str], a: _Distance, b: _Distance, *, longer: _Distance, shorter: _Distance
    ) -> None:
        least, most = describe(longer.least), describe(shorter.most or 0)
        edits = [Edit(duration.span, least) for duration in find(shorter.node, Duration)][-1:]
        self._findings.add(
            Code.CONTRADICTORY_DURATION,
            f"{listed(sorted(pair))} are at least {least} apart, and at most {most}",
            b.node.span,
            related=[Related(a.node.span, "this contradicts it")],
            help=[Help(f"write {least} or more instead of {most}", tuple(edits))],
        )

    def shortened(self) -> None:
        """A point cannot be shortened: the timer would end before it begins, so it never occurs.

        An alternative is looked at by itself; a timer that several share is told only if it occurs in none.
        """
        body = self._rule.body
        if not any(timer.kind in _SHORTENING for timer in find(body, Timer)):
            return
        found: dict[int, tuple[Timer, list[int | None]]] = {}
        for case in cases(body):
            events = {e.name.name: e for e in reversed(case) if isinstance(e, Event) and e.name is not None}
            for timer in case:
                if isinstance(timer, Timer) and timer.kind in _SHORTENING and isinstance(timer.duration, Duration):
                    _, lengths = found.setdefault(id(timer), (timer, []))
                    lengths.append(self._longest(events.get(timer.anchor.name)))
        for timer, lengths in found.values():
            known = [length for length in lengths if length is not None]
            if len(known) == len(lengths):
                self._shortened(timer, max(known))

    def _shortened(self, timer: Timer, longest: int) -> None:
        length = self._length(timer.duration) if isinstance(timer.duration, Duration) else 0
        if length <= longest:
            return
        what = "is a point in time" if longest == 0 else f"lasts at most {describe(longest)}"
        self._findings.add(
            Code.CONTRADICTORY_DURATION,
            f"`{timer.anchor.name}` {what}: shortened by {describe(length)} it would end before it begins",
            timer.duration.span,
            help=[
                *(
                    [
                        Help(
                            f"shorten it by at most {describe(longest)}",
                            (Edit(timer.duration.span, describe(longest)),),
                        )
                    ]
                    if longest
                    else []
                ),
                Help("declare that it may be longer: `LASTS AT MOST …` or `LASTS ANY`"),
            ],
        )

    def _longest(self, event: Event | None) -> int | None:
        """How long an event lasts at most, where its type is declared."""
        label = None if event is None else pattern_label(event.pattern)
        if label is None or str(label) in self._catalogue.derived:
            return None
        schema = self._catalogue.events.get(str(label))
        return None if schema is None else schema.longest


def _pair(condition: Condition) -> tuple[str, ...]:
    """The two events that a condition says to be apart, if it does."""
    match condition:
        case Relation("before" | "after", Name(left), Name(right), _):
            return left, right
        case Apart((first, second), _):
            return first.name, second.name
        case _:
            return ()


def _conjuncts(query: Query | Condition) -> Iterator[Condition]:
    """The conditions that every answer fulfils, without those of branches."""
    match query:
        case And(items):
            for item in items:
                yield from _conjuncts(item)
        case Where(inner, conditions):
            yield from _conjuncts(inner)
            for condition in conditions:
                yield from _conjuncts(condition)
        case AllOf(conditions):
            for condition in conditions:
                yield from _conjuncts(condition)
        case _ if isinstance(query, CONDITIONS):
            yield query
