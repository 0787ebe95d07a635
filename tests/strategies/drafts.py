"""This module holds a program and its stream while they are being made together.

Every rule is built around a witness: facts that exist already, or are put into the stream for it, and that the rule
will find. What a rule adds to its body holds for the witness, and a near miss, an event that fails just there, is put
into the stream beside it, so that the addition makes a difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time, Value, equal

from .marks import mark, render
from .streams import LATEST, MOST_EVENTS, SPANS, Dice, Shape, moved, shape, span, term

Span = tuple[int, int]
UNITS = {"": 1_000_000, "TIME UNIT 1 min;": 60_000_000, "TIME UNIT 1 hour;": 3_600_000_000}
BASE = ("a", "b", "c")


def literal(value: Value) -> str:
    """A value as programs write it."""
    return json.dumps(value)


def _has_time(value: Value) -> bool:
    """Whether a time is among its children, as in a derived event; in a line nothing tells it from a text or number."""
    return isinstance(value, Time) or (isinstance(value, Term) and any(map(_has_time, value.children)))


class Draft:
    """A program in the making: what is declared, the stream so far, and the facts that rules derive from it."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.declares_unit = dice.weighed(dict.fromkeys(UNITS, 1))
        self.unit = UNITS[self.declares_unit]
        self.is_closed = dice.chance(22)
        self.shapes: dict[str, Shape] = {label: shape(dice, label, declared=self.is_closed) for label in BASE}
        self.stream: list[Event] = []
        self.derived: list[Event] = []
        self.tables: dict[str, list[Term]] = {}
        self.rules: list[str] = []
        self.room = MOST_EVENTS
        self._marks = 0

    def fork(self) -> Draft:
        """A draft to go on with, while this one stays as it is."""
        other = copy(self)
        other.stream, other.derived, other.rules = list(self.stream), list(self.derived), list(self.rules)
        other.tables = {name: list(rows) for name, rows in self.tables.items()}
        return other

    def name(self, feature: str) -> str:
        """A name for marks that belong together."""
        self._marks += 1
        return f"{feature}#{self._marks}"

    def mark(self, feature: str, text: str, instead: str = "") -> str:
        return mark(self.name(feature), text, instead)

    # ---- the stream ----------------------------------------------------------------------------------------

    def add(self, event: Event) -> bool:
        """Puts an event into the stream, if there is room, its shape is the declared one, and a line can say it."""
        if event in self.stream:
            return True
        if len(self.stream) >= self.room or not self._is_declared(event.term) or _has_time(event.term):
            return False
        self.stream.append(event)
        return True

    def _is_declared(self, made: Term) -> bool:
        known = self.shapes.get(made.label)
        if known is None or known.kind != "declared":
            return True
        names = [child.label for child in made.children if isinstance(child, Term)]
        return len(names) == len(set(names)) and set(names) <= set(("k", "v")[: known.arity])

    def has_room(self, count: int = 1) -> bool:
        return len(self.stream) + count <= self.room

    def at(self, made: Term, times: Span) -> Event:
        return Event(made, Interval(times[0] * self.unit, times[1] * self.unit), positional=self._is_flat(made))

    def _is_flat(self, made: Term) -> bool:
        known = self.shapes.get(made.label)
        return known is None or known.kind != "tree"

    def fact(self, label: str | None = None, times: Span | None = None, values: Sequence[Value] = ()) -> Event | None:
        """A new event in the stream, or none if it is full."""
        chosen = self.shapes[label if label is not None else self.dice.pick(BASE)]
        event = self.at(term(self.dice, chosen, values), times if times is not None else span(self.dice))
        return event if self.add(event) else None

    def times(self, event: Event) -> Span:
        return event.time.begin // self.unit, event.time.end // self.unit


class Body:
    """The body of a rule in the making, with the witness that satisfies it."""

    def __init__(self, draft: Draft, known: Sequence[Event], *, arrow: bool) -> None:
        self.draft = draft
        self.dice = draft.dice
        self.arrow = arrow
        self.derived = [e for e in known if e not in draft.stream]
        self.items: list[str] = []
        self.conditions: list[str] = []
        self.having: list[str] = []
        self.head: list[str] = []
        self.facts: dict[str, Event] = {}
        self.times: dict[str, Span] = {}
        self.variables: dict[str, Value] = {}
        self.collected: dict[str, Value] = {}
        self.optional: list[str] = []
        self.drops: list[tuple[str, int, frozenset[str]]] = []
        self.anchors: dict[str, str] = {}
        self.collects = 0
        self.in_branch = False
        self.is_fancy = False
        self.deferred: list[Term] | None = None
        """Near misses that wait until it is known when they have to be."""
        self.shown: list[str] = []
        self.wishes: Sequence[str] = ()
        """The features that the body is being given, the most important first."""
        self.counts_all = False
        self._fresh = 0

    def chosen(self, options: Mapping[str, int]) -> str:
        """The feature that is wished for most, if one of the options is, or one by the dice."""
        return next((w for w in self.wishes if w in options), None) or self.dice.weighed(options)

    def wants(self, feature: str, percent: int) -> bool:
        """Whether a feature is wished for, or else comes by chance."""
        return feature in self.wishes or self.dice.chance(percent)

    # ---- names ---------------------------------------------------------------------------------------------

    def fresh(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh}"

    def var(self, name: str) -> str:
        """A variable as this form of rule writes it outside terms."""
        return name if self.arrow else f"var {name}"

    def sharing(self, value: Value) -> list[str]:
        """The variables that have a value."""
        return [n for n, v in self.variables.items() if equal(v, value)]

    def numbers(self) -> list[str]:
        return [n for n, v in self.variables.items() if isinstance(v, int)]

    # ---- facts ---------------------------------------------------------------------------------------------

    @property
    def known(self) -> list[Event]:
        """What the rule can find: the stream, and what the rules below derive."""
        return [*self.draft.stream, *self.derived]

    def any_fact(self, percent_new: int = 50) -> Event:
        """A fact for another atom: a new event, a derived one, or one of those there are."""
        if not self.known or self.dice.chance(percent_new):
            made = self.draft.fact(values=self._joining())
            if made is not None:
                return made
        return self.dice.pick(self.derived if self.derived and self.dice.chance(60) else self.known)

    def _joining(self) -> list[Value]:
        values = [v for v in self.variables.values() if not isinstance(v, Term)]
        return [self.dice.pick(values)] if values and self.dice.chance(70) else []

    def fact_at(self, times: Span) -> Event | None:
        """A fact at a time: one of those there are, or a new one."""
        there = [e for e in self.known if self.draft.times(e) == times]
        if there and self.dice.chance(40):
            return self.dice.pick(there)
        made = self.draft.fact(times=times, values=self._joining())
        return made or (there[0] if there else None)

    def miss_time(self, identifier: str, fails: Callable[[Span], bool]) -> None:
        """Puts an event beside the witness that is like it and fails for its time."""
        event = self.facts.get(identifier)
        if event is None:
            return
        begin, end = self.draft.times(event)
        length = end - begin
        spans = [s for s in SPANS if fails(s)]
        alike = [s for s in spans if s[1] - s[0] == length]
        if spans:
            self.draft.add(moved(event, self.dice.pick(alike or spans), self.draft.unit))

    def miss_longer(self, identifier: str, length: int) -> bool:
        """Makes the witness's event long enough to be shortened; the short one stays as a near miss."""
        begin, _ = self.times[identifier]
        span = (min(begin, LATEST - length - 1), min(begin, LATEST - length - 1) + length + 1)
        longer = moved(self.facts[identifier], span, self.draft.unit)
        if not self.draft.add(longer):
            return False
        self.facts[identifier], self.times[identifier] = longer, span
        return True

    def miss_value(self, identifier: str, old: Value, new: Value, *, last: bool = False) -> None:
        """Puts an event beside the witness that has another value, in the last place only if so wished."""
        event = self.facts.get(identifier)
        if event is not None:
            places = _count(event.term, old)
            made = _exchanged(event.term, old, new, skip=places - 1 if last else 0)[0]
            self.miss(event, made)

    def miss(self, event: Event, made: Term) -> None:
        """Puts an event beside the witness's, mostly at another time, so that an answer with it would show."""
        if self.deferred is not None:
            self.deferred.append(made)
            return
        times = self.draft.times(event)
        if not self.conditions and self.dice.chance(75):
            shifts = [s for s in range(-LATEST, LATEST + 1) if s and times[0] + s >= 0 and times[1] + s <= LATEST]
            shift = self.dice.pick(shifts or [0])
            times = (times[0] + shift, times[1] + shift)
        self.draft.add(replace(self.draft.at(made, times), positional=event.positional))

    def miss_variable(self, name: str, new: Value) -> None:
        """Puts an event beside that of the witness which gives a variable its value, with another value."""
        value = self.variables[name]
        for identifier, event in self.facts.items():
            if _count(event.term, value):
                self.miss_value(identifier, value, new)
                return

    def like(self, event: Event, old: Value, new: Value) -> Event:
        """An event with another value."""
        return replace(event, term=_exchanged(event.term, old, new)[0])

    def show(self, name: str) -> None:
        """Has the head show a variable."""
        if name not in self.shown:
            self.shown.append(name)

    def place(self, item: str, feature: str) -> None:
        """Adds an item that can be left out together with all that speaks of what only it gives."""
        before = {word for text in self.items for word in _words(text)}
        words = frozenset(w for w in _words(item) if re.fullmatch(r"[exw][0-9]+", w) and w not in before)
        self.drops.append((self.draft.name(feature), len(self.items), words))
        self.items.append(item)

    def condition(self, text: str) -> None:
        self.conditions.append(text)

    # ---- the text ------------------------------------------------------------------------------------------

    def assembled(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """Items, conditions, `having` and head, with what goes together marked together."""
        items, conditions, having, head = list(self.items), self.conditions, self.having, self.head
        for name, position, words in self.drops:
            items = [
                mark(name, text) if k == position or _speaks(text, words) else text for k, text in enumerate(items)
            ]
            conditions = [mark(name, text) if _speaks(text, words) else text for text in conditions]
            having = [mark(name, text) if _speaks(text, words) else text for text in having]
            head = [mark(name, text, "0") if _speaks(text, words) else text for text in head]
        return items, conditions, having, head


def _speaks(text: str, words: frozenset[str]) -> bool:
    return any(word in words for word in _words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", render(text))


def _count(value: Value, wanted: Value) -> int:
    if value == wanted:
        return 1
    return sum(_count(child, wanted) for child in value.children) if isinstance(value, Term) else 0


def _exchanged(made: Term, old: Value, new: Value, skip: int = 0) -> tuple[Term, int]:
    """The term with a value exchanged, except in its first places; and how many are still to skip."""
    children: list[Value] = []
    for child in made.children:
        if child == old:
            children.append(child if skip else new)
            skip = max(skip - 1, 0)
        elif isinstance(child, Term):
            inner, skip = _exchanged(child, old, new, skip)
            children.append(inner)
        else:
            children.append(child)
    attributes = tuple((n, new if v == old else v) for n, v in made.attributes)
    return Term(made.label, tuple(children), made.ordered, attributes), skip
