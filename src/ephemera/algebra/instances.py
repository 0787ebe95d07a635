"""This module finds the instances of algebra expressions in finite relations, for the interpreter and the local engine.

Unrestricted, an instance is a set of occurrences, as semantics by sets has it. Restricted, it says for every
subexpression and instant which instance figure 2 of the paper picks there, as a function of what was picked up to then.
Asked only for what ends in some time, it looks only at what can be part of that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias, assert_never

from ephemera.algebra.attributes import as_written, begin, end, reference, variables_in
from ephemera.algebra.attributes import primitive as primitive_name
from ephemera.algebra.nodes import Composition, Detected, Detection, Limit, Never, Primitive
from ephemera.algebra.scalar import TRUE
from ephemera.algebra.sharing import Choice, Shared
from ephemera.algebra.truth import Tester
from ephemera.base.tree import find
from ephemera.terms.events import Event, Interval
from ephemera.terms.match import all_merged
from ephemera.terms.values import Key, Term, Value, key

Tuple: TypeAlias = Mapping[str, Any]
Occurrence: TypeAlias = tuple[Event, tuple[tuple[str, Key], ...]]
"""An event, and what a pattern bound in it."""
Span: TypeAlias = tuple[float, float]
"""Behind the first time, and until the second."""

ALWAYS: Span = (float("-inf"), float("inf"))


class Instance(NamedTuple):
    """When an instance begins and ends, and what it consists of."""

    begin: int
    end: int
    parts: frozenset[Occurrence]


def found(e: Detection, inputs: Sequence[Sequence[Tuple]], tester: Tester) -> list[Tuple]:
    """The instances as tuples: when they happened, and what is bound in them."""
    shared = Shared(e)
    for number, tuples in enumerate(inputs):
        for t in tuples:
            shared.add(number, t)
    return among(e, shared.choices(), tester)


def among(e: Detection, choices: Iterator[Choice], tester: Tester, span: Span = ALWAYS) -> list[Tuple]:
    """The instances of some choices of values that end in a span of time."""
    made: dict[Key, Tuple] = {}
    """By what it consists of: what can do without the shared variables is found for several of their values."""
    for choice in choices:
        if _may_occur(e.expression, choice):
            for t in _Streams(e, choice, tester, span).tuples():
                made.setdefault(t[reference(e.name)].key, t)
    return list(made.values())


def _may_occur(e: Detected, choice: Choice) -> bool:
    """Whether there are tuples for all that an instance needs."""
    match e:
        case Primitive(number, _):
            return bool(choice.tuples[number])
        case Never():
            return False
        case Limit(operand, _) | Composition("-", operand, _):
            return _may_occur(operand, choice)
        case Composition("|", left, right):
            return _may_occur(left, choice) or _may_occur(right, choice)
        case Composition(_, left, right):
            return _may_occur(left, choice) and _may_occur(right, choice)
        case _:
            assert_never(e)


class _Streams:
    """The occurrences of each primitive for one choice of values of the shared variables."""

    def __init__(self, e: Detection, choice: Choice, tester: Tester, span: Span) -> None:
        self._e = e
        self._choice = choice
        self._tester = tester
        self._span = span
        self._bound: dict[Occurrence, Mapping[str, Value]] = {}
        self._of_primitive: dict[int, tuple[Instance, ...]] = {}
        self._latest: dict[int, dict[int, Instance]] = {}
        self._recorded: dict[int, tuple[list[Instance], list[int]]] = {}
        self._at_instant: dict[tuple[int, int], Instance | None] = {}
        """What was picked of each node, so that it is worked out once; all this goes with the evaluation."""

    def tuples(self) -> list[Tuple]:
        expression = self._e.expression
        chosen = self._picked() if self._e.restricted else self._all(expression, self._span)
        return [self._tuple(instance) for instance in chosen]

    def _tuple(self, instance: Instance) -> Tuple:
        bound: Mapping[str, Value] = {}
        ordered = sorted(instance.parts, key=lambda o: (o[0].key, o[1]))
        for occurrence in ordered:  # of several that bind a variable the first counts, if they differ
            own = self._bound[occurrence]
            equals = {n: v for n, v in own.items() if n in bound and key(v) == key(bound[n])}
            bound = {**own, **all_merged(bound, equals)}
        time = Interval(instance.begin, instance.end)
        which = Event(Term("$algebra", (repr([(o[0].key, o[1]) for o in ordered]),)), time)
        name = self._e.name
        return {**bound, begin(name): time.begin, end(name): time.end, reference(name): which}

    def _occurrences(self, primitive: Primitive) -> tuple[Instance, ...]:
        known = self._of_primitive.get(id(primitive))
        if known is None:
            known = self._of_primitive[id(primitive)] = tuple(self._matching(primitive))
        return known

    def _matching(self, primitive: Primitive) -> Iterator[Instance]:
        name = primitive_name(self._e.name, primitive.input + 1)
        for t in self._choice.tuples[primitive.input]:
            if primitive.test == TRUE or self._tester.truth(primitive.test, {**self._choice.values, **t}):
                variables = variables_in(t)
                event = t[reference(name)]
                occurrence = (event, tuple(sorted((as_written(n), key(v)) for n, v in variables.items())))
                self._bound[occurrence] = variables
                yield Instance(event.time.begin, event.time.end, frozenset([occurrence]))

    # ---- all instances -------------------------------------------------------------------------------------

    def _all(self, e: Detected, span: Span) -> set[Instance]:
        """The instances that end in a span."""
        after, until = span
        match e:
            case Primitive():
                return {i for i in self._occurrences(e) if after < i.end <= until}
            case Never():
                return set()
            case Limit(operand, length):
                return {i for i in self._all(operand, span) if i.end - i.begin <= length}
            case Composition("|", left, right):
                return self._all(left, span) | self._all(right, span)
            case Composition("-", left, right):
                outer = self._all(left, span)
                forbidden = _Lying(self._all(right, (ALWAYS[0], until))) if outer else None
                return {i for i in outer if forbidden is None or not forbidden.lie_in(i)}
            case Composition("+", left, right):
                earlier, here = (ALWAYS[0], after), span
                ones, others = self._all(left, here), self._all(right, here)
                pairs = {_both(i, j) for i, j in product(ones, others)}
                if ones:
                    pairs |= {_both(i, j) for i, j in product(ones, self._all(right, earlier))}
                if others:
                    pairs |= {_both(i, j) for i, j in product(self._all(left, earlier), others)}
                return pairs
            case Composition(_, left, right):
                seconds = self._all(right, span)
                if not seconds:
                    return set()
                firsts = sorted(self._all(left, (ALWAYS[0], until)), key=lambda i: i.end)
                ends = [i.end for i in firsts]
                return {_both(i, j) for j in seconds for i in firsts[: bisect_left(ends, j.begin)]}
            case _:
                assert_never(e)

    # ---- the restricted ones -------------------------------------------------------------------------------

    def _picked(self) -> list[Instance]:
        after, until = self._span
        instants = [now for now in self._instants(self._e.expression) if after < now <= until]
        picked = (self._at(self._e.expression, now) for now in instants)
        return [instance for instance in picked if instance is not None]

    def _instants(self, e: Detected) -> list[int]:
        """When something ends that is part of an expression."""
        return sorted({o.end for p in find(e, Primitive) for o in self._occurrences(p)})

    def _at(self, e: Detected, now: int) -> Instance | None:
        """What is picked for a subexpression at an instant."""
        which = id(e), now
        if which not in self._at_instant:
            self._at_instant[which] = self._picked_at(e, now)
        return self._at_instant[which]

    def _picked_at(self, e: Detected, now: int) -> Instance | None:
        match e:
            case Primitive():
                return self._latest_of(e).get(now)
            case Never():
                return None
            case Limit(operand, length):
                one = self._at(operand, now)
                return one if one is not None and one.end - one.begin <= length else None
            case Composition("|", left, right):
                one, other = self._at(left, now), self._at(right, now)
                return other if _start(one) <= _start(other) else one
            case Composition("-", left, right):
                one = self._at(left, now)
                if one is None:
                    return None
                last = self._last(right, now, included=True)
                return one if last is None or last.begin < one.begin else None
            case Composition("+", left, right):
                return self._both_at(left, right, now)
            case Composition(_, left, right):
                second = self._at(right, now)
                first = None if second is None else self._last(left, second.begin, included=False)
                return None if first is None or second is None else _both(first, second)
            case _:
                assert_never(e)

    def _latest_of(self, e: Primitive) -> dict[int, Instance]:
        """What is picked of the occurrences of a primitive, by their ends."""
        if id(e) not in self._latest:
            picked: dict[int, Instance] = {}
            for one in self._occurrences(e):
                best = picked.get(one.end)
                if best is None or _rank(best) < _rank(one):
                    picked[one.end] = one
            self._latest[id(e)] = picked
        return self._latest[id(e)]

    def _both_at(self, left: Detected, right: Detected, now: int) -> Instance | None:
        one, other = self._at(left, now), self._at(right, now)
        if one is None and other is None:
            return None
        first, second = self._last(left, now, included=True), self._last(right, now, included=True)
        if first is None or second is None:
            return None
        if one is not None and _start(other) <= _start(one):
            return _both(one, second)
        return None if other is None else _both(first, other)

    def _last(self, e: Detected, time: int, *, included: bool) -> Instance | None:
        """Of what ends before a time, or with it, the instance that starts last, and the first of those."""
        if id(e) not in self._recorded:
            records: list[Instance] = []
            for now in self._instants(e):
                one = self._at(e, now)
                if one is not None and (not records or records[-1].begin < one.begin):
                    records.append(one)
            self._recorded[id(e)] = records, [one.end for one in records]
        records, ends = self._recorded[id(e)]
        place = bisect_right(ends, time) if included else bisect_left(ends, time)
        return records[place - 1] if place else None


class _Lying:
    """Instances by their begins, and the least end of all that begin no earlier than each."""

    def __init__(self, instances: set[Instance]) -> None:
        ordered = sorted(instances, key=lambda i: i.begin)
        self._begins = [i.begin for i in ordered]
        self._ends: list[int] = [i.end for i in ordered]
        for k in range(len(ordered) - 2, -1, -1):
            self._ends[k] = min(self._ends[k], self._ends[k + 1])

    def lie_in(self, outer: Instance) -> bool:
        """Whether one of them lies in an instance."""
        place = bisect_left(self._begins, outer.begin)
        return place < len(self._ends) and self._ends[place] <= outer.end


def _both(one: Instance, other: Instance) -> Instance:
    return Instance(min(one.begin, other.begin), max(one.end, other.end), one.parts | other.parts)


def _start(instance: Instance | None) -> float:
    return float("-inf") if instance is None else instance.begin


def _rank(instance: Instance) -> tuple[int, Key, tuple[tuple[str, Key], ...]]:
    """Of what ends together, the last is picked of those that begin last."""
    ((event, bound),) = instance.parts
    return instance.begin, event.term.key, bound
