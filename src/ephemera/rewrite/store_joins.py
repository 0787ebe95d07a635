"""This module stores the join of some events of a rule where that is expected to cost less (T§14.5.3, R§6.3).

Where two events that seldom meet are followed by one that comes often, each of the latter would make anew what the
first two have in common: then their join is worth to be kept, and is all that is searched. Of up to `NESTED` events
every set is tried, with joins within joins and after joins at once; of up to `EXHAUSTIVE` events sets of two and three,
one after the other; of more events none. When that is exact is told in `rule_parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from ephemera.analysis.distances import Closure
from ephemera.analysis.join_estimates import EXHAUSTIVE, JoinEstimates, JoinPart, JoinTest
from ephemera.base.lazy_dataclass import dataclass
from ephemera.rewrite.optimize import Rewritten
from ephemera.rewrite.rule_parts import BUILD, RuleParts, changed, open_rules

WORTH = 0.8
"""A join is stored if what is then expected is less than so much of the cost without."""
NESTED = 5
"""Of more parts it is not tried to store joins within joins, but one after the other."""

Stored: TypeAlias = tuple[frozenset[str], ...]
"""The joins that are stored one after the other, each by the events that are in it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Joins that may be stored, and what the rule costs then."""

    stored: Stored
    cost: float


def store_joins(given: Rewritten) -> Rewritten:
    """The plan with stored joins where they pay."""
    rules = [rule for rule in open_rules(given).values() if 2 < len(rule.parts) <= EXHAUSTIVE]
    for rule in rules:
        while len(rule.parts) > 2 and (best := choices(rule)[0]).cost < WORTH * without(rule).cost:
            store(rule, best.stored)
    made = {rule.name: rule.points() for rule in rules if rule.stored}
    return changed(given, made) if made else given


def store_every_join(given: Rewritten) -> Rewritten:
    """The plan with every binary join of every rule stored, in the order of the body: plan 2 of the paper."""
    rules = [rule for rule in open_rules(given).values() if len(rule.parts) > 2]
    for rule in rules:
        while len(rule.parts) > 2:
            rule.store(rule.parts[:2])
    made = {rule.name: rule.points() for rule in rules}
    return changed(given, made) if made else given


def store(rule: RuleParts, stored: Stored) -> None:
    """Stores some joins of a rule, one after the other."""
    for events in stored:
        rule.store([part for part in rule.parts if events.issuperset(part.events)])


def without(rule: RuleParts) -> Choice:
    """What a rule costs that stores no join."""
    return Choice((), rule.estimates().cost())


def choices(rule: RuleParts) -> list[Choice]:
    """What may be stored of a rule, the cheapest first."""
    estimates = rule.estimates()
    parts = [_Named(frozenset(part.events), one) for part, one in zip(rule.parts, estimates.parts, strict=True)]
    search = _Search(parts, rule.closures, estimates.tests)
    return sorted(search.choices(parts), key=lambda choice: (choice.cost, len(choice.stored)))


@dataclass(frozen=True, slots=True)
class _Named:
    events: frozenset[str]
    part: JoinPart


class _Search:
    """Looks for what to store; what was found for some parts is remembered."""

    def __init__(self, parts: Sequence[_Named], closures: Sequence[Closure], tests: Sequence[JoinTest]) -> None:
        self._parts = parts
        self._closures = closures
        self._tests = tests
        self._best: dict[frozenset[frozenset[str]], Choice] = {}

    def choices(self, parts: Sequence[_Named]) -> Iterator[Choice]:
        """The ways to join some parts: as they are, or with some of them joined and stored first."""
        yield self._flat(parts)
        for size in range(2, len(parts) if len(parts) <= NESTED else 4):
            for several in combinations(parts, size):
                one = self._joined(several)
                inner, outer = self._best_of(several), self._best_of([one, *(p for p in parts if p not in several)])
                cost = inner.cost + outer.cost + BUILD * one.part.flow.rate
                yield Choice((*inner.stored, one.events, *outer.stored), cost)

    def _best_of(self, parts: Sequence[_Named]) -> Choice:
        """The cheapest way to join some parts; of many it is not tried to store joins."""
        key = frozenset(part.events for part in parts)
        if key not in self._best:
            ways = self.choices(parts) if 2 < len(parts) < NESTED else iter([self._flat(parts)])
            self._best[key] = min(ways, key=lambda choice: (choice.cost, len(choice.stored)))
        return self._best[key]

    def _flat(self, parts: Sequence[_Named]) -> Choice:
        return Choice((), self._estimates(parts).cost(exhaustive=len(parts) <= NESTED))

    def _estimates(self, parts: Sequence[_Named]) -> JoinEstimates:
        """What is expected of a join; what is tested of a stored join alone was tested there."""
        known = [frozenset(one.part.stamps) | one.part.variables for one in parts]
        done = [own for own, one in zip(known, parts, strict=True) if len(one.events) > 1]
        names = frozenset[str]().union(*known)
        events = frozenset[str]().union(*(one.events for one in parts))
        to_come = frozenset[str]().union(*(one.part.variables for one in self._parts if not one.events <= events))
        can = [test for test in self._tests if test.needs <= names and test.computes.isdisjoint(to_come)]
        tests = [test for test in can if not any(test.needs <= own for own in done)]
        return JoinEstimates([one.part for one in parts], self._closures, tests)

    def _joined(self, parts: Sequence[_Named]) -> _Named:
        stamps = tuple(stamp for one in parts for stamp in one.part.stamps)
        variables = frozenset[str]().union(*(one.part.variables for one in parts))
        flow = self._estimates(parts).flow()
        return _Named(frozenset[str]().union(*(one.events for one in parts)), JoinPart(stamps, variables, flow))
