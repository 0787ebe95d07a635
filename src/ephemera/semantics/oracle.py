"""This module is the oracle: program and finite history in, all derived events out, straight from the definitions.

For each stratum in turn the rules are applied until nothing new appears (thesis 10.2, 10.3). A rule is applied by
going through all ways to give its positive literals events (τ) and its variables values (Σ), as in figure 9.1. From
the second time on one of the events is new. Nothing else is optimized: a reader can check it line by line.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from ephemera.base.time import LATEST, TOO_FAR
from ephemera.base.tree import find
from ephemera.rules.clock import Clock
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter, Message, Outcome, World
from ephemera.rules.patterns import pattern_label
from ephemera.rules.periods import periods
from ephemera.rules.scope import plain_variables
from ephemera.rules.series import series_of
from ephemera.semantics.answers import Answer, Reader, answers
from ephemera.semantics.apart import judged
from ephemera.semantics.conditions import holds, microseconds
from ephemera.semantics.facts import Facts
from ephemera.syntax.nodes import Derive, Detect, Raise, Rule
from ephemera.syntax.nodes import Event as EventQuery
from ephemera.terms.addresses import Address, address
from ephemera.terms.compute import Scope
from ephemera.terms.construct import Origin, Row, construct, partition, value_of
from ephemera.terms.events import Event, event_of_both
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import ConstructTerm, Duration, Periodic
from ephemera.terms.values import Term

PORTION = 16
"""So many new events are used at a time where recursion may grow."""


def look_back(rules: Ruleset) -> int:
    """No absolute timer can take part in an answer that ends this long after it: all durations and lengths together.

    Where there is no such limit the program is refused before it comes here.
    """
    events = rules.resolved.catalogue.events
    labels = [pattern_label(e.pattern) for rule in rules.resolved.rules for e in find(rule.body, EventQuery)]
    lengths = [events[str(label)].longest or 0 for label in labels if label is not None and str(label) in events]
    intervals = [t for rule in rules.resolved.rules for t in find(rule.body, Periodic)]
    lengths += [periods(timer, rules.resolved.catalogue.zone).longest for timer in intervals]
    return sum(lengths) + sum(microseconds(d) for rule in rules.resolved.rules for d in find(rule, Duration))


def evaluate(
    rules: Ruleset, events: Iterable[Event], world: World | None = None, *, running: Container[int] | None = None
) -> Outcome:
    """The intended model of a program under a finite stream, without the stream itself.

    `running` has the numbers of the rules that are run, if that is not all of them.
    """
    return _Evaluation(rules, list(events), world or World(), running).run(running)


def _read(rules: Ruleset, running: Container[int] | None) -> frozenset[str] | None:
    """The types that the rules that are run read; None if they may read any."""
    asked = [own for n, own in enumerate(rules.dependencies, 1) if running is None or n in running]
    labels = {one.label for own in asked for one in own}
    return None if None in labels else frozenset(label for label in labels if label is not None)


class _Evaluation:
    def __init__(self, rules: Ruleset, events: list[Event], world: World, running: Container[int] | None) -> None:
        self._rules = rules
        self._world = world
        ends = [e.time.end for e in events] or ([world.until] if world.until is not None else [])
        self._first, self._last = (min(ends), max(ends)) if ends else (0, -1)
        if world.until is not None:
            self._last = max(self._last, world.until)
        clock = Clock(rules.resolved.catalogue.zone, self._first - look_back(rules), self._last)
        self._reader = Reader(rules.resolved.catalogue, world.tables, world.calendars, clock)
        self._facts = self._facts_of(())
        self._forms: dict[Event, Event] = {}
        """Events that came in several forms (`1` and `1.0`), in the one that they make together."""
        self._formed = 0
        good, self._close = judged(events, rules.resolved.catalogue, _read(rules, running))
        for event in good:
            self._add(event)
        if self._forms:
            self._facts = self._facts_of(self._forms.get(e, e) for e in self._facts)
        self._series = series_of(rules.growth)
        self._derived: dict[Event, Event] = {}
        self._messages: dict[tuple[Event, str, str], Message] = {}
        self._dead: dict[tuple[int, str], DeadLetter] = {}
        self._matched: set[int] = set()
        self._clocked = self._rules_by_the_clock()

    def run(self, running: Container[int] | None) -> Outcome:
        run = [(n, s) for n, s in enumerate(self._rules.strata, 1) if running is None or n in running]
        for stratum in sorted({s for _, s in run}):
            self._in_one_form([n for n, s in run if s == stratum])
        given = [e for e in self._derived.values() if e.time.end >= self._first]
        sent = [m for m in self._messages.values() if m.event.time.end >= self._first]
        return Outcome(
            sorted(given, key=lambda e: e.key),
            sorted(sent, key=lambda m: (m.event.key, m.recipient, m.transport)),
            list(self._dead.values()),
            self._matched,
            self._close,
        )

    def _in_one_form(self, members: list[int]) -> None:
        """A stratum again, as long as an event was used in it before it had the form that it has at last."""
        facts, derived, messages, dead = list(self._facts), dict(self._derived), dict(self._messages), dict(self._dead)
        while True:
            formed = self._formed
            self._fixpoint(members)
            if self._formed == formed:
                return
            self._facts = self._facts_of(self._forms.get(e, e) for e in facts)
            self._series = series_of(self._rules.growth)
            self._derived, self._messages, self._dead = dict(derived), dict(messages), dict(dead)

    def _facts_of(self, events: Iterable[Event]) -> Facts:
        return Facts(events, self._rules.resolved.catalogue.attributes)

    def _add(self, event: Event) -> Event | None:
        """One more fact, in the form that it has if it is new; it may equal one in another form."""
        form = event_of_both(self._forms[event], event) if event in self._forms else event
        if self._facts.add(form):
            return form
        known = self._facts.known(form)
        both = event_of_both(known, form)
        if both is not known:
            self._forms[both] = both
            self._formed += 1
        return None

    def _fixpoint(self, members: list[int]) -> None:
        """The rules of a stratum, again and again until nothing is new; each time for what the last time was new."""
        # What does not end shows early if a few events are followed to their last answer before the others.
        most = PORTION if self._series.keys() & set(members) else sys.maxsize
        new: Facts | None = None
        waiting: list[Event] = []
        while new is None or len(new):
            found = [event for number in members for event in self._apply(number, new)]
            waiting += [form for event in found if (form := self._add(event)) is not None]
            waiting, taken = waiting[:-most], waiting[-most:]
            new = self._facts_of(taken)

    def _apply(self, number: int, new: Facts | None) -> list[Event]:
        """What a rule derives from the facts, or from those of them that are new and the others."""
        rule = self._rules.resolved.rules[number - 1]
        found: list[Event] = []
        for answer in answers(rule.body, self._facts, self._reader, new):
            if number in self._clocked and answer.time.end > self._last:
                continue
            scope = self._reader.scope(answer.trace)
            for group in partition(answer.rows, plain_variables(rule.head)):
                found += self._derive(number, rule, answer, group, scope)
        return found

    def _derive(self, number: int, rule: Rule, answer: Answer, group: list[Row], scope: Scope) -> Iterator[Event]:
        try:
            if not self._passes(rule, answer, group, scope):
                return
            if answer.time.end > LATEST or answer.time.begin < -LATEST:
                raise Undefined(TOO_FAR)
            built = _build(rule, group, answer.origin, scope, self._reader)
            to = _address(rule, group, answer.origin, scope)
        except Undefined as undefined:
            self._matched.add(number)
            letter = DeadLetter(number, dict(group[0].variables), str(undefined))
            self._dead.setdefault((number, repr(sorted(letter.variables.items(), key=lambda v: v[0]))), letter)
            return
        for term in built:
            self._matched.add(number)
            event = Event(term, answer.time, positional=isinstance(rule.head, Derive))
            if number in self._series:
                self._series[number].add((answer.time.begin, answer.time.end), group[0].variables, term)
            if to is not None:
                message = Message(event, *to)
                known = self._messages.get((event, message.recipient, message.transport))
                if known is not None:
                    message = replace(known, event=event_of_both(known.event, event))
                self._messages[event, message.recipient, message.transport] = message
            else:
                self._derived[event] = event_of_both(self._derived.get(event, event), event)
                yield event

    def _passes(self, rule: Rule, answer: Answer, group: list[Row], scope: Scope) -> bool:
        """`having`: conditions on the group, after aggregation."""
        grouped = replace(scope, aggregate=lambda a: value_of(a, group, answer.origin, scope))
        variables = group[0].variables
        return all(holds(c, variables, answer.trace, grouped, self._world.calendars) for c in rule.having)

    def _rules_by_the_clock(self) -> frozenset[int]:
        """The rules that absolute timers or calendars take part in, directly or through what they ask for."""
        found: set[int] = set()
        while True:
            more = {
                n
                for n, rule in enumerate(self._rules.resolved.rules, 1)
                if n not in found and (_asks_the_clock(rule, self._world) or self._needs(n) & found)
            }
            if not more:
                return frozenset(found)
            found |= more

    def _needs(self, number: int) -> set[int]:
        return {n for d in self._rules.dependencies[number - 1] for n in d.rules}


def _asks_the_clock(rule: Rule, world: World) -> bool:
    labels = [pattern_label(e.pattern) for e in find(rule.body, EventQuery)]
    return any(str(label) == "timer:datetime" or str(label) in world.calendars for label in labels if label is not None)


def _build(rule: Rule, group: list[Row], origin: Origin, scope: Scope, reader: Reader) -> list[Term]:
    match rule.head:
        case Derive(label, arguments):
            values = tuple(value_of(a, group, origin, scope) for a in arguments)
            return [reader.positional(str(label), values)]
        case Detect(term) | Raise(_, _, term):
            return _terms(term, group, origin, scope)


def _address(rule: Rule, group: list[Row], origin: Origin, scope: Scope) -> Address | None:
    """Where a message goes; None if the rule sends none."""
    head = rule.head
    return address(head.recipient, head.transport, group, origin, scope) if isinstance(head, Raise) else None


def _terms(term: ConstructTerm, group: list[Row], origin: Origin, scope: Scope) -> list[Term]:
    built = construct(term, group, origin, scope)
    if any(not isinstance(v, Term) for v in built):
        raise Undefined("an event is an element, not a value")
    return [v for v in built if isinstance(v, Term)]
