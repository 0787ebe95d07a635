"""This module reads events one by one as a program declares them, and gathers those of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ephemera.formats.json_events import BadEvent, Message, decode_line, original_text, read_message, uses_text
from ephemera.formats.seen_keys import Keys
from ephemera.physical.plan import Compiled
from ephemera.terms.events import Event

if TYPE_CHECKING:
    from ephemera.formats.check_columns import Offer

Given: TypeAlias = Mapping[str, Any] | str | bytes | Message
"""An event as it is given: an object, a line of JSON, or such a line decoded."""


def read_event(given: Given, compiled: Compiled) -> Event | BadEvent:
    """An event from an object or a line of JSON, or what is wrong with it."""
    message = given_message(given)
    event = read_message(message, compiled.rules.resolved.catalogue)
    if isinstance(event, Event) and (complaint := compiled.limits.complaint(event)) is not None:
        return BadEvent(original_text(message.original), complaint, event.term.label)
    return event


class Reading:
    """The events of a run as one program reads them: what is good, what is bad, and whether times are numbers."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.events: list[Event] = []
        self.bad: list[BadEvent] = []
        self.as_numbers = True
        self.keys = Keys(compiled.physical)
        self.offers: list[Offer] = []
        """The files among what was read that have columns."""
        self.warnings: list[str] = []
        """What is likely wrong with the input as a whole, though nothing is wrong with any event."""
        self._assumed = compiled.rules.resolved.catalogue.local.assumed

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the input, once."""
        return self.compiled.rules.resolved.catalogue.local.note_since(self._assumed)

    def add(self, given: Given) -> None:
        """One more event."""
        message = given_message(given)
        event = read_event(message, self.compiled)
        if isinstance(event, Event):
            self.keys.note(message.data)
        self.take(event, as_text=uses_text(message.data, self.compiled.rules.resolved.catalogue))

    def take(self, event: Event | BadEvent, *, as_text: bool) -> None:
        """One more that has been read, and whether its time was written as text."""
        if isinstance(event, BadEvent):
            self.bad.append(event)
            return
        self.events.append(event)
        self.as_numbers = self.as_numbers and not as_text


def given_message(given: Given) -> Message:
    """What was given, decoded."""
    if isinstance(given, Message):
        return given
    return decode_line(given) if isinstance(given, str | bytes) else Message(given, given)
