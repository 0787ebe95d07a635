"""This module defines events: a term, and the closed interval of time in which it occurred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.text import iso, to_text
from ephemera.terms.values import Key, Term, Time, Value, merged

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """The closed interval [begin, end], in microseconds."""

    begin: int
    end: int

    def covers(self, other: Interval) -> bool:
        return self.begin <= other.begin and other.end <= self.end


def covering(intervals: Iterable[Interval]) -> Interval:
    """The least interval that covers them all."""
    every = list(intervals)
    return Interval(min(i.begin for i in every), max(i.end for i in every))


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Something that happened; events with equal terms and times are one event. The days of calendars are such.

    `positional` says how it is written, by the positions of its values; it makes no difference to what it is.

    >>> import ephemera
    >>> from datetime import UTC, datetime
    >>> ephemera.Event.of("holiday", datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 1, 23, 59, 59, tzinfo=UTC))
    <Event holiday { } from 2026-05-01T00:00:00Z to 2026-05-01T23:59:59Z>
    """

    term: Term
    time: Interval
    positional: bool = False
    _key: Key | None = field(init=False, repr=False, default=None)

    @classmethod
    def of(cls, label: str, begin: datetime, end: datetime | None = None, values: Iterable[Value] = ()) -> Event:
        """An event by its times, which need a zone, and the values at its positions; without an end it is a point."""
        first = _microseconds(begin)
        return cls(Term(label, tuple(values)), Interval(first, first if end is None else _microseconds(end)), True)

    def __repr__(self) -> str:
        begin, end = iso(Time(self.time.begin)), iso(Time(self.time.end))
        return f"<Event {to_text(self.term)} {f'at {begin}' if begin == end else f'from {begin} to {end}'}>"

    @property
    def key(self) -> Key:
        """What it is compared by and sorted by; made when it is first asked for."""
        if self._key is None:
            object.__setattr__(self, "_key", (self.time.end, self.time.begin, self.term.label, self.term.key))
        return self._key  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _microseconds(stamp: datetime) -> int:
    if stamp.tzinfo is None:
        raise ValueError(f"{stamp} has no zone; give it one, such as `tzinfo=datetime.UTC`")
    return (stamp - _EPOCH) // timedelta(microseconds=1)


def event_of_both(a: Event, b: Event) -> Event:
    """What two equal events become where they meet: one, with integers for doubles, by positions if either is."""
    term = merged(a.term, b.term)
    positional = a.positional or b.positional
    if term is a.term and positional == a.positional:
        return a
    return replace(a, term=term, positional=positional)  # type: ignore[arg-type]
