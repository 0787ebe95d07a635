"""This module reads events one by one as a program declares them, and gathers those of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

from ephemera.formats.check_columns import Keys, Offer
from ephemera.formats.json_events import BadEvent, Message, decode_line, original_text, read_message, uses_text
from ephemera.physical.plan import Compiled
from ephemera.terms.events import Event

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


# ---- as Python gives them ------------------------------------------------------------------------------------------


class Options(TypedDict, total=False):
    """What a run over a history may be told besides its events."""

    engine: str
    tables: Mapping[str, Iterable[Mapping[str, Any]]] | None
    calendars: Mapping[str, Iterable[Event]] | None
    until: int | float | str | None
    emit: Iterable[str]
    allow_unbounded: bool
    lenient: bool


def is_spark_frame(given: object) -> bool:
    """Whether something is a data frame of Spark, which need not be installed."""
    return any(c.__name__ == "DataFrame" and c.__module__.startswith("pyspark.sql.") for c in type(given).__mro__)


def several(events: Any) -> Iterable[Given]:
    """Events one after the other; what holds none, or is one event itself, is refused."""
    kind = type(events).__name__
    if isinstance(events, Mapping | Message):
        raise TypeError(f"events come as a list or a table, and this is one event (a {kind}); give [event]")
    if isinstance(events, str | bytes):
        raise TypeError(
            f"events come as a list or a table, and this is a text (a {kind}); give its lines, such as "
            "`text.splitlines()`, or for the name of a file `open(name)`"
        )
    if not isinstance(events, Iterable):
        raise TypeError(
            f"events come as a list of objects or lines of JSON, or as a table of Arrow, pandas, Polars, DuckDB or "
            f"Spark, and this is a {kind}"
        )
    return events


def one(event: Any) -> Given:
    """One event; several are refused."""
    if type(event) is not dict and not isinstance(event, Mapping | str | bytes | Message):
        raise TypeError(
            f"an event is an object or a line of JSON, and this is a {type(event).__name__}; "
            "for several, or a table, there is `send_many`"
        )
    return event
