"""This module finds the instances of algebra expressions in finite relations, for the interpreter and the local engine.

Unrestricted, an instance is a set of occurrences, as semantics by sets has it. Restricted, it says for every
subexpression and instant which instance figure 2 of the paper picks there, as a function of what was picked up to then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias, assert_never

from ephemera.algebra.attributes import as_written, begin, end, reference, variables_in
from ephemera.algebra.attributes import primitive as primitive_name
from ephemera.algebra.nodes import Composition, Detected, Detection, Limit, Primitive
from ephemera.algebra.truth import Tester
from ephemera.base.tree import find
from ephemera.terms.events import Event, Interval
from ephemera.terms.match import all_merged
from ephemera.terms.values import Key, Term, Value, equal, key, merged, widened

Tuple: TypeAlias = Mapping[str, Any]
Occurrence: TypeAlias = tuple[Event, tuple[tuple[str, Key], ...]]
"""An event, and what a pattern bound in it."""
Instance: TypeAlias = frozenset[Occurrence]


def found(e: Detection, inputs: Sequence[Sequence[Tuple]], tester: Tester) -> list[Tuple]:
    """The instances as tuples: when they happened, and what is bound in them."""
    values: dict[str, dict[Key, Value]] = {name: {} for name in e.shared}
    for t in (t for one in inputs for t in one):
        for name in e.shared:
            if name in t:
                values[name][key(t[name])] = merged(values[name].get(key(t[name]), t[name]), t[name])
    made: list[Tuple] = []
    for chosen in product(*(values[n].values() for n in e.shared)):
        made += _Streams(e, inputs, dict(zip(e.shared, chosen, strict=True)), tester).tuples()
    return made


class _Streams:
    """The occurrences of each primitive for one value of the shared variables."""

    def __init__(
        self, e: Detection, inputs: Sequence[Sequence[Tuple]], values: Mapping[str, Value], tester: Tester
    ) -> None:
        self._e = e
        self._inputs = inputs
        self._values = {name: widened(value) for name, value in values.items()}
        """As doubles, so that an occurrence keeps the form that it has."""
        self._tester = tester
        self._bound: dict[Occurrence, Mapping[str, Value]] = {}
        self._of_primitive: dict[Primitive, tuple[Occurrence, ...]] = {}
        self._at_instant: dict[tuple[Detected, int], Instance | None] = {}
        """What was picked, so that each is worked out once; it goes with the evaluation."""

    def tuples(self) -> list[Tuple]:
        chosen = self._picked() if self._e.restricted else self._all(self._e.expression)
        return [self._tuple(instance) for instance in chosen]

    def _tuple(self, instance: Instance) -> Tuple:
        bound: Mapping[str, Value] = {}
        ordered = sorted(instance, key=lambda o: (o[0].key, o[1]))
        for occurrence in ordered:  # of several that bind a variable the first counts, if they differ
            own = self._bound[occurrence]
            equals = {n: v for n, v in own.items() if n in bound and key(v) == key(bound[n])}
            bound = {**own, **all_merged(bound, equals)}
        time = Interval(start(instance), stop(instance))
        which = Event(Term("$algebra", (repr([(o[0].key, o[1]) for o in ordered]),)), time)
        name = self._e.name
        return {**bound, begin(name): time.begin, end(name): time.end, reference(name): which}

    def _occurrences(self, primitive: Primitive) -> tuple[Occurrence, ...]:
        if primitive not in self._of_primitive:
            self._of_primitive[primitive] = tuple(self._matching(primitive))
        return self._of_primitive[primitive]

    def _matching(self, primitive: Primitive) -> list[Occurrence]:
        name = primitive_name(self._e.name, primitive.input + 1)
        made: list[Occurrence] = []
        for t in self._inputs[primitive.input]:
            if all(equal(t[n], v) for n, v in self._values.items() if n in t):
                both = {**self._values, **t}
                if self._tester.truth(primitive.test, both):
                    variables = variables_in(both)
                    occurrence = (
                        t[reference(name)],
                        tuple(sorted((as_written(n), key(v)) for n, v in variables.items())),
                    )
                    self._bound[occurrence] = variables
                    made.append(occurrence)
        return made

    # ---- all instances -------------------------------------------------------------------------------------

    def _all(self, e: Detected) -> set[Instance]:
        match e:
            case Primitive():
                return {frozenset([o]) for o in self._occurrences(e)}
            case Limit(operand, length):
                return {i for i in self._all(operand) if stop(i) - start(i) <= length}
            case Composition("|", left, right):
                return self._all(left) | self._all(right)
            case Composition("-", left, right):
                forbidden = self._all(right)
                return {i for i in self._all(left) if not any(_lies_in(j, i) for j in forbidden)}
            case Composition(operator, left, right):
                pairs = product(self._all(left), self._all(right))
                return {i | j for i, j in pairs if operator == "+" or stop(i) < start(j)}
            case _:
                assert_never(e)

    # ---- the restricted ones -------------------------------------------------------------------------------

    def _picked(self) -> list[Instance]:
        primitives = find(self._e.expression, Primitive)
        self._instants = sorted({o[0].time.end for p in primitives for o in self._occurrences(p)})
        picked = (self._at(self._e.expression, now) for now in self._instants)
        return [instance for instance in picked if instance is not None]

    def _at(self, e: Detected, now: int) -> Instance | None:
        """What is picked for a subexpression at an instant."""
        if (e, now) not in self._at_instant:
            self._at_instant[e, now] = self._picked_at(e, now)
        return self._at_instant[e, now]

    def _picked_at(self, e: Detected, now: int) -> Instance | None:
        match e:
            case Primitive():
                here = [o for o in self._occurrences(e) if o[0].time.end == now]
                latest = max(here, key=lambda o: (o[0].time.begin, o[0].term.key, o[1]), default=None)
                return None if latest is None else frozenset([latest])
            case Limit(operand, length):
                one = self._at(operand, now)
                return one if one is not None and stop(one) - start(one) <= length else None
            case Composition("|", left, right):
                one, other = self._at(left, now), self._at(right, now)
                return other if _start(one) <= _start(other) else one
            case Composition("-", left, right):
                one = self._at(left, now)
                latest_start = max((_start(i) for i in self._until(right, now)), default=float("-inf"))
                return one if one is not None and latest_start < start(one) else None
            case Composition("+", left, right):
                return self._both(left, right, now)
            case Composition(_, left, right):
                second = self._at(right, now)
                if second is None:
                    return None
                firsts = [i for i in self._records(left, now) if stop(i) < start(second)]
                return max(firsts, key=start) | second if firsts else None
            case _:
                assert_never(e)

    def _both(self, left: Detected, right: Detected, now: int) -> Instance | None:
        one, other = self._at(left, now), self._at(right, now)
        ones, others = self._records(left, now, included=True), self._records(right, now, included=True)
        if not ones or not others or (one is None and other is None):
            return None
        if one is not None and _start(other) <= _start(one):
            return one | others[-1]
        return None if other is None else ones[-1] | other

    def _until(self, e: Detected, now: int) -> list[Instance]:
        return [i for t in self._instants if t <= now and (i := self._at(e, t)) is not None]

    def _records(self, e: Detected, now: int, *, included: bool = False) -> list[Instance]:
        """Those that started later than all before them; before now, or until now."""
        records: list[Instance] = []
        for t in self._instants:
            if t > now or (t == now and not included):
                break
            one = self._at(e, t)
            if one is not None and (not records or start(records[-1]) < start(one)):
                records.append(one)
        return records


def start(instance: Instance) -> int:
    """The least begin of its occurrences."""
    return min(event.time.begin for event, _ in instance)


def stop(instance: Instance) -> int:
    """The greatest end of its occurrences."""
    return max(event.time.end for event, _ in instance)


def _start(instance: Instance | None) -> float:
    return float("-inf") if instance is None else start(instance)


def _lies_in(inner: Instance, outer: Instance) -> bool:
    return start(outer) <= start(inner) and stop(inner) <= stop(outer)
