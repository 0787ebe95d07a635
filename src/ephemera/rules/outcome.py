"""This module defines what programs run on besides events, and what comes of it, whichever engine runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.events import Event
from ephemera.terms.text import iso, to_text
from ephemera.terms.values import Term, Time, Value


class Endless(EphemeraError):
    """A recursion that does not come to an end."""


def _plain(value: Value) -> object:
    match value:
        case Term():
            return to_text(value)
        case Time():
            return iso(value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Message:
    """What a RAISE rule sends: an event that no rule can see, and where it goes."""

    event: Event
    recipient: str
    transport: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What could not be used, and why: a head that had no value, with its rule and what was bound, or a bad event.

    >>> import ephemera
    >>> program = ephemera.compile("EVENT a(x: int); half(x, 1 / x) <- i: a(x);")
    >>> program.run_all(
    ...     [{"event": "a", "time": 1, "data": [0]}, {"event": "a", "time": 2, "data": ["one"]}]
    ... ).dead_letters
    [<DeadLetter bad event: `x` is int, and "one" is not>, <DeadLetter rule 1: division by zero>]
    """

    rule: int
    """Its number, from 1 in the order of the text; 0 for a bad event."""
    variables: Mapping[str, Value]
    reason: str
    event: str | None = None
    """The input as it came, if it was no event of the program."""

    def __repr__(self) -> str:
        return f"<DeadLetter {f'rule {self.rule}' if self.rule else 'bad event'}: {self.reason}>"

    def told(self) -> dict[str, Any]:
        """A head that had no value as JSON has it: terms are texts, times ISO 8601."""
        bound = {name: _plain(value) for name, value in self.variables.items()}
        return {"reason": self.reason, "rule": self.rule, "variables": bound}


@dataclass(frozen=True, slots=True)
class CloseEvent:
    """An event that is bad since it is too close to another of its type, and the reason in words."""

    event: Event
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
    close: list[CloseEvent] = field(default_factory=list)
    """Events that came too close to others of their type."""

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
