"""This module says which queries and rules of a lane a step has to visit, so that an event costs what it can match.

A query is visited when events of its label come, and if its pattern has a constant, or a text that begins with some
letters, when one of them has that. A rule is visited while each of its positive inputs that few rules read holds
something, when one of them has something new, and if it asks there for a variable to equal a constant or to lie in a
range, when a new tuple does; or when a tuple that waits for its timer or window is due. Those of cycles, of the clock,
of calendars and of algebra expressions, and queries for any label, are visited in every step.

Who is not visited would have found nothing. What is visited once too often does no harm. So rules that have a past of
their own beside the histories are visited in every step, too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush

from ephemera.engine.interest import Asked, Interest, asked_of_events, asked_of_tuples, in_batch, in_events
from ephemera.kernels.columns import Batch
from ephemera.kernels.event_columns import Events
from ephemera.kernels.history import History
from ephemera.physical.nodes import LanePlan, QueryPlan, RulePlan

FEW_READERS = 16
"""Of what more rules read it does not matter whether it holds something."""


class Agenda:
    """The places of a lane's schedule that are to be visited in this step, in their order."""

    def __init__(
        self,
        plan: LanePlan,
        rules: Mapping[str, RulePlan],
        calendars: Container[str | None],
        histories: Mapping[str, History],
    ) -> None:
        self._histories = histories
        self._places = {name: k for k, (members, _) in enumerate(plan.schedule) for name in members}
        self._count = len(plan.schedule)
        self._always: list[int] = []
        self._besides: list[int] = []
        """The places that are visited in every step for now."""
        self._labels: dict[str, Interest] = {}
        self._inputs: dict[str, Interest] = {}
        self._leaves: dict[int, list[tuple[str, Asked | None]]] = {}
        """For each rule its queries, each with what it asks of their tuples."""
        self._readers: dict[str, list[int]] = {}
        self._filled: set[str] = set()
        """The queries whose histories hold something."""
        self._lacking: dict[int, int] = {}
        """For each rule how many of its queries have nothing in their histories: then nothing new makes an answer."""
        self._due: list[tuple[int, int]] = []
        """When tuples that wait happen, and of which place; a heap."""
        self._first_due: dict[int, int] = {}
        """For each place in it when it is visited for that."""
        self._queue: list[int] = []
        self._queued: set[int] = set()
        self._is_new = True
        for place, (members, is_cycle) in enumerate(plan.schedule):
            (name,) = members if len(members) == 1 else (None,)
            query, rule = plan.queries.get(name or ""), rules.get(name or "")
            if is_cycle or (query is None and rule is None):
                self._always.append(place)
            elif query is not None:
                self._add_query(place, query, calendars)
            elif rule is not None:
                self._add_rule(place, rule, plan)
        self._count_lacking()

    def _add_query(self, place: int, query: QueryPlan, calendars: Container[str | None]) -> None:
        if query.label is None or query.label in calendars:
            self._always.append(place)
            return
        self._labels.setdefault(query.label, Interest()).add(place, asked_of_events(query))

    def _add_rule(self, place: int, rule: RulePlan, plan: LanePlan) -> None:
        if rule.detections or any(leaf.source not in plan.queries for leaf in rule.leaves):
            self._always.append(place)
            return
        for leaf, order in zip(rule.leaves, rule.orders, strict=True):
            asked = asked_of_tuples(order.tests, leaf.sure)
            if asked is not None:
                own = next((old for old, new in leaf.names.items() if new == asked.column), asked.column)
                asked = replace(asked, column=own)
            self._leaves.setdefault(place, []).append((leaf.source, asked))
        for source in dict.fromkeys(leaf.source for leaf in rule.leaves):
            self._inputs.setdefault(source, Interest())
            self._readers.setdefault(source, []).append(place)

    def _count_lacking(self) -> None:
        """At first nothing holds anything; what many rules read is not minded, lest they all be told of it."""
        self._readers = {query: places for query, places in self._readers.items() if len(places) <= FEW_READERS}
        for place, leaves in self._leaves.items():
            self._lacking[place] = len({source for source, _ in leaves if source in self._readers})
            if not self._lacking[place]:
                self._wake(place)

    def _wake(self, place: int) -> None:
        for source, asked in self._leaves[place]:
            self._inputs[source].add(place, asked)

    # ---- a step --------------------------------------------------------------------------------------------

    def start(self, bound: int) -> None:
        """A step begins: what is always visited, and where something that waits happens by the bound."""
        if self._is_new:
            for query in self._readers:
                (self.emptied if self._histories[query].is_empty else self._fill)(query)
        self._queue = list(range(self._count)) if self._is_new else list({*self._always, *self._besides})
        self._is_new = False
        self._queued = set(self._queue)
        while self._due and self._due[0][0] <= bound:
            place = heappop(self._due)[1]
            self._first_due.pop(place, None)
            self._add(place)
        heapify(self._queue)

    def restart(self) -> None:
        """Everything is visited in the next step: what has happened meanwhile is not known."""
        self._is_new = True
        self._due, self._first_due = [], {}

    def visit(self, rules: Iterable[str]) -> None:
        """Some rules are visited in every step from now on, and those that were so far no longer."""
        self._besides = [self._places[rule] for rule in rules]

    def came(self, parts: Iterable[Events]) -> None:
        """Events were released or derived."""
        for part in parts:
            interest = self._labels.get(part.label)
            if interest is not None:
                for place in interest.of(in_events(part)):
                    self._add(place)

    def matched(self, query: str, batch: Batch) -> None:
        """A query has new tuples."""
        interest = self._inputs.get(query)
        if interest is not None:
            self._fill(query)
            for place in interest.of(in_batch(batch)):
                self._add(place)

    def _fill(self, query: str) -> None:
        """A query has something in its history: rules that lacked only that may find answers."""
        if query in self._filled or query not in self._readers:
            return
        self._filled.add(query)
        for place in self._readers[query]:
            self._lacking[place] -= 1
            if not self._lacking[place]:
                self._wake(place)

    def emptied(self, query: str) -> None:
        """Nothing is left in the history of a query."""
        if query not in self._filled:
            return
        self._filled.remove(query)
        for place in self._readers[query]:
            if not self._lacking[place]:
                for source, asked in self._leaves[place]:
                    self._inputs[source].remove(place, asked)
            self._lacking[place] += 1

    def waits(self, rule: str, due: int | None) -> None:
        """A rule was visited; the first of what waits there happens then."""
        if due is None:
            return
        place = self._places[rule]
        known = self._first_due.get(place)
        if known is None or due < known:
            self._first_due[place] = due
            heappush(self._due, (due, place))

    def _add(self, place: int) -> None:
        if place not in self._queued:
            self._queued.add(place)
            heappush(self._queue, place)

    def __iter__(self) -> Iterator[int]:
        """The places, in their order; more may be added behind the one that is visited."""
        while self._queue:
            yield heappop(self._queue)
