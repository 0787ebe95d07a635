"""This module searches for streams that show a relevance condition to be as short as it can be.

A witness is a stream on which nothing changes with the conditions as derived, while an answer is lost or a wrong one
gained as soon as one bound is shortened by a microsecond below the latest arrival that whole microseconds allow. Where
a tuple is needed only at the moment it arrives, the shortened condition would refuse it then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Literal

from ephemera.algebra.attributes import begin, end
from ephemera.algebra.interpret import Given, Interpreter, Relation, Tuple, identity, interpret
from ephemera.algebra.nodes import Expression, Input, Plan, Rename
from ephemera.analysis.nodes import Bound, Facts, Relevance
from ephemera.analysis.relevance import derive
from ephemera.analysis.weights import at_most
from ephemera.terms.events import Event, Interval
from tests.plans.scenarios import Layout, Times, Unfolding, placements, term_for
from tests.plans.stepwise import Conditions, Identity, conditions_of, happened, is_relevant, leaf_name, step_by_step

ORIGIN = 10**15
"""When scenarios happen, so that no time is negative."""

DATA = ((1, 0), (99, 0), (1, 1))
"""The first value, and how much each later one is more: one value for all joins, small or large, or a chain."""

OTHER = 1_000
"""How much other values are more, of events that shall not join."""

MOST_LAYOUTS = 400
"""How many ways to derive the inputs of a case are tried."""

How = Literal["lost", "gained", "refused"]


@dataclass(frozen=True, slots=True)
class Witness:
    """A stream, and what becomes of its answers with the shortened condition."""

    how: How
    events: tuple[Event, ...]


class Unsound(AssertionError):
    """The conditions as derived change the answers."""


class Search:
    """Finds witnesses for the conditions of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.facts: Facts = derive(plan)
        self._derived = conditions_of(self.facts)
        self._unfolding = Unfolding(plan)

    def bounds(self) -> list[tuple[Relevance, Bound]]:
        """Everything that is to be shown."""
        return [(r, bound) for r in self.facts.relevance for bound in r.keep_while if bound.time is not None]

    def witness(self, relevance: Relevance, bound: Bound, spare: int = 0) -> Witness | None:
        """A stream that shows the bound to be tight, or tight up to some microseconds, if one is found."""
        shorter = self._shortened(relevance, bound, latest(bound) - spare - 1)
        for stream in self._streams(relevance, bound, spare, elsewhere=True):
            outcome = step_by_step(self.plan, shorter, Given(stream), only=[relevance.point])
            if not outcome.is_same:
                self._sound(stream)
                return Witness("lost" if outcome.lost[relevance.point] else "gained", tuple(stream))
        for stream in self._streams(relevance, bound, spare, elsewhere=False):
            if self._refuses(relevance, shorter, stream):
                self._sound(stream)
                if self._refuses(relevance, self._derived, stream):
                    raise Unsound(f"{relevance.point} refuses {relevance.name} on arrival: {stream}")
                return Witness("refused", tuple(stream))
        return None

    # ---- conditions ----------------------------------------------------------------------------------------

    def _shortened(self, relevance: Relevance, bound: Bound, time: int) -> Conditions:
        less = replace(bound, time=at_most(time))
        others = [b for b in relevance.minimal if b.stamp != bound.stamp]
        return {**self._derived, (relevance.point, relevance.name): [*others, less]}

    def _sound(self, stream: Sequence[Event]) -> None:
        outcome = step_by_step(self.plan, self._derived, Given(stream))
        if not outcome.is_same:
            raise Unsound(f"lost {outcome.lost}, gained {outcome.gained} on {stream}")

    def _refuses(self, relevance: Relevance, conditions: Conditions, stream: Sequence[Event]) -> bool:
        """Whether answers change if tuples that are irrelevant by the time they arrive are never stored."""
        bounds = conditions[relevance.point, relevance.name]
        assert not isinstance(bounds, Relevance)
        whole, answers = self._without(relevance, stream, lambda t: not is_relevant(t, bounds, happened(t)))
        return whole != answers

    def is_gone_at_once(self, relevance: Relevance, witness: Witness) -> bool:
        """Whether answers change without the tuples that are irrelevant as soon as they have arrived."""
        bounds = relevance.minimal
        whole, answers = self._without(relevance, witness.events, lambda t: not is_relevant(t, bounds, happened(t) + 1))
        return whole != answers

    def _without(
        self, relevance: Relevance, stream: Sequence[Event], drop: Callable[[Tuple], bool]
    ) -> tuple[set[Identity], set[Identity]]:
        """The answers of a point, and those without some tuples of one input."""
        given = Given(stream)
        whole = interpret(self.plan, given)
        interpreter = Interpreter(self.plan, given)

        def stored(e: Expression) -> Relation | None:
            return whole[e.point] if isinstance(e, Input) else None

        def kept(e: Expression) -> Relation | None:
            if not isinstance(e, Input | Rename):
                return None
            found = interpreter.evaluate(e, stored)
            return found if leaf_name(e, found) != relevance.name else [t for t in found if not drop(t)]

        answers = interpreter.evaluate(self.plan.points[relevance.point].expression, kept)
        return {identity(t) for t in whole[relevance.point]}, {identity(t) for t in answers}

    # ---- streams -------------------------------------------------------------------------------------------

    def _streams(self, relevance: Relevance, bound: Bound, spare: int, *, elsewhere: bool) -> Iterator[list[Event]]:
        """Streams with an arrival as late as the bound says, that of another input or that of the tuple itself."""
        for layout, goal, own in self._late(relevance, elsewhere=elsewhere):
            for times in placements(layout, bound.stamp, goal, own):
                if times[goal] - times[bound.stamp] < latest(bound) - spare:
                    continue
                for data in DATA:
                    events = self._events(layout, times, data)
                    if not elsewhere:
                        yield events
                        continue
                    for step in self._steps(layout, times, goal, data):
                        yield list(dict.fromkeys([*events, *step]))

    def _late(self, relevance: Relevance, *, elsewhere: bool) -> Iterator[tuple[Layout, str, str]]:
        for context in self._unfolding.contexts(relevance.point, relevance.name):
            mine = context.use.arrivals
            goals = [a for a in dict.fromkeys(context.case.arrivals) if (a not in mine) == elsewhere]
            for layout in islice(self._unfolding.layouts(relevance.point, context.case), MOST_LAYOUTS):
                for goal in goals:
                    for own in mine:
                        yield layout, goal, own

    def _events(self, layout: Layout, times: Times, data: tuple[int, int], shift: int = ORIGIN) -> list[Event]:
        first, step = data
        return [
            Event(
                term_for(w.pattern, count(first + k * step, step), self.plan),
                Interval(shift + times[begin(w.name)], shift + times[end(w.name)]),
            )
            for k, w in enumerate(layout.wanted)
        ]

    def _steps(self, layout: Layout, times: Times, goal: str, data: tuple[int, int]) -> Iterator[list[Event]]:
        """Events with other values that make a step just before the goal: one event, or all of them once more."""
        yield []
        first, step = data
        before = ORIGIN + times[goal] - 1
        for event in self._events(layout, times, (first + OTHER, step)):
            yield [Event(event.term, Interval(before, before))]
        yield self._events(layout, times, (first + OTHER, step), shift=ORIGIN - 1)


def latest(bound: Bound) -> int:
    """How far behind the stamp something may arrive in whole microseconds: each strict distance takes one away."""
    if bound.time is None:
        raise TypeError("what is kept forever has no latest arrival")
    return bound.time.bound - sum(e.weight.is_strict for e in bound.path)
