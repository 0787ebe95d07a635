"""This module reads events one by one as a program declares them, and gathers those of a run.

Keys of JSON objects vary from event to event, so one that is missing is null and no mistake. One that is missing in
every event of its type most likely is. Only events whose data is an object count; an array has all values by position.
Types that no rule uses do not count: they need not be read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

from ephemera.algebra.nodes import Points
from ephemera.base.suggest import meant_by
from ephemera.formats.check_columns import Offer
from ephemera.formats.decoded import Decoded
from ephemera.formats.json_events import (
    BadEvent,
    Message,
    decode_line,
    enveloped,
    given_time,
    interval_of,
    label_in,
    original_text,
    read_message,
    uses_text,
)
from ephemera.physical.plan import Compiled, PhysicalPlan
from ephemera.rules.nodes import Catalogue
from ephemera.terms.errors import BadMessage
from ephemera.terms.events import Event
from ephemera.terms.values import Term

Given: TypeAlias = Mapping[str, Any] | str | bytes | Message
"""An event as it is given: an object, a line of JSON, or such a line decoded."""

_MOST = 100
"""So many keys that nothing declares are remembered of a type, to guess which was meant."""


def read_event(given: Given, compiled: Compiled) -> Event | BadEvent | None:
    """An event from an object or a line of JSON, or what is wrong with it.

    One of a type that the program neither declares nor reads is never bad: whatever its data, it is an event with a
    time, or nothing at all if it has none.
    """
    message = given_message(given)
    catalogue = compiled.rules.resolved.catalogue
    assumed = catalogue.local.assumed
    event = read_message(message, catalogue)
    if isinstance(event, Event) and (complaint := compiled.limits.complaint(event)) is not None:
        event = BadEvent(original_text(message.original), complaint, event.term.label)
    if isinstance(event, Event):
        return event
    catalogue.local.assumed = assumed  # what is said of times is said of those that count
    label = _label(message, catalogue)
    return _bare(message, catalogue) if label is not None and compiled.is_unread(label) else event


def _bare(message: Message, catalogue: Catalogue) -> Event | None:
    """An event of which only its name and its time are looked at; None if it does not say when it was."""
    data = enveloped(message.data, catalogue)
    label = label_in(data, catalogue.namespaces)
    try:
        return Event(Term(label, ()), interval_of(given_time(data, label, catalogue), catalogue), positional=True)
    except BadMessage:
        return None


def _label(message: Message, catalogue: Catalogue) -> str | None:
    """The name of an event, whatever else is wrong with it."""
    data = enveloped(message.data, catalogue)
    is_named = isinstance(data, Mapping) and isinstance(data.get("event"), str)
    return label_in(data, catalogue.namespaces) if is_named else None


class Keys:
    """What the events of each type had so far."""

    def __init__(self, plan: PhysicalPlan) -> None:
        catalogue, used = plan.catalogue, plan.rewritten.columns
        declared = {label: set(schema.columns) for label, schema in catalogue.events.items() if schema.columns}
        from_outside = [label for label in declared if label not in catalogue.derived]
        self._lacking = {label: declared[label] for label in from_outside if used is None or label in used}
        self._declared = {label: frozenset(names) for label, names in self._lacking.items()}
        self._for = {
            label: {column: name for name, column in schema.renamed} for label, schema in catalogue.events.items()
        }
        self._counts = dict.fromkeys(self._lacking, 0)
        self._others: dict[str, dict[str, None]] = {label: {} for label in self._lacking}

    def note(self, event: Any) -> None:
        """An event, decoded, with its name."""
        label = event.get("event") if type(event) is dict or isinstance(event, Mapping) else None
        lacking = self._lacking.get(label) if isinstance(label, str) else None
        if not lacking or not isinstance(label, str):  # nothing is missing any more
            return
        data = event.get("data")
        if isinstance(data, Mapping):
            self._counts[label] += 1
            lacking.difference_update(data)
            if lacking and len(self._others[label]) < _MOST:
                self._others[label] |= dict.fromkeys(str(key) for key in data if key not in self._declared[label])
        elif isinstance(data, list | tuple):
            lacking.clear()

    def lacks(self, label: str) -> bool:
        """Whether a key of a type has not been seen yet."""
        return bool(self._lacking.get(label))

    def saw(self, label: str) -> None:
        """That events of a type had everything."""
        if label in self._lacking:
            self._lacking[label].clear()

    def told(self) -> dict[str, Any]:
        """The same as plain data, to be added to others."""
        return {
            label: [self._counts[label], sorted(names), list(self._others[label])]
            for label, names in self._lacking.items()
            if self._counts[label] or not names
        }

    def add(self, told: Mapping[str, Any]) -> None:
        """What was noted elsewhere; types that this does not know count nothing."""
        for label, (count, lacking, others) in told.items():
            if label not in self._counts:
                continue
            self._counts[label] += count
            self._lacking[label].intersection_update(lacking)
            self._others[label] |= dict.fromkeys(others)

    def notes(self) -> list[str]:
        """What to tell people: keys that were missing in all events of their type."""
        return [text for label in self._lacking if self._counts[label] for text in self._of_type(label)]

    def _of_type(self, label: str) -> Iterable[str]:
        events = f"all {self._counts[label]:,} events" if self._counts[label] > 1 else "the only event"
        for name in sorted(self._lacking[label]):
            meant = meant_by(name, list(self._others[label]))
            guess = f"; did you mean `{meant}`, which they have?" if meant is not None else ""
            attribute = self._for[label].get(name)
            shown = f"`{name}`" if attribute is None else f"`{name}` (for `{attribute}`)"
            yield f"{label}: {shown} was missing in {events}{guess}"


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
        catalogue = self.compiled.rules.resolved.catalogue
        if isinstance(event, Event):
            self.keys.note(enveloped(message.data, catalogue))
        self.take(event, as_text=uses_text(message.data, catalogue))

    def gather(self, decoded: Decoded) -> None:
        """The events of a batch, in the order of its rows."""
        good = [
            (row, event)
            for part, rows in zip(decoded.parts, decoded.rows, strict=True)
            for row, event in zip(rows.tolist(), part.events(), strict=True)
        ]
        self.events += [event for _, event in sorted(good, key=lambda one: one[0])]
        self.bad += decoded.bad_events

    def take(self, event: Event | BadEvent | None, *, as_text: bool) -> None:
        """One more that has been read, and whether its time was written as text."""
        if event is None:
            return
        if isinstance(event, BadEvent):
            self.bad.append(event)
            return
        if not self.events:  # the first good one decides
            self.as_numbers = not as_text
        self.events.append(event)


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
    points: Points | None
    allow_unbounded: bool
    lenient: bool
    deliver: bool | Mapping[str, Callable[[dict[str, Any]], object]]
    outbox: str | None


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
