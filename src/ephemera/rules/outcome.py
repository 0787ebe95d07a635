"""This module defines what programs run on besides events, and what comes of it, whichever engine runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ephemera.base.errors import EphemeraError
from ephemera.terms.events import Event
from ephemera.terms.values import Term, Value


class Endless(EphemeraError):
    """A recursion that does not come to an end."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a RAISE rule sends: an event that no rule can see, and where it goes."""

    event: Event
    recipient: str
    transport: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A head that had no value: the rule, what was bound, and why."""

    rule: int
    variables: Mapping[str, Value]
    reason: str


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that came behind the bound of its source, and the input that it was."""

    event: Event
    original: str


@dataclass(slots=True)
class Outcome:
    """All that a program derives: events and messages, each once, and what came to nothing."""

    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    matched: set[int] = field(default_factory=set)
    """The numbers of the rules that gave something, or a head without a value."""

    def only(self, emit: Collection[str]) -> None:
        """Leaves what is not asked for out; no names at all ask for everything."""
        if emit:
            self.events = [event for event in self.events if event.term.label in emit]
            self.messages = [message for message in self.messages if message.event.term.label in emit]


@dataclass(frozen=True, slots=True)
class World:
    """What a program runs on besides its events: tables, calendars, and the limits for absolute timers."""

    tables: Mapping[str, Sequence[Term]] = field(default_factory=dict)
    calendars: Mapping[str, Iterable[Event]] = field(default_factory=dict)
    until: int | None = None
    """Time passes at least until then."""
