"""This module defines events: a term, and the closed interval of time in which it occurred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ephemera.terms.values import Key, Term, merged


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
    """Something that happened; events with equal terms and times are one event.

    `positional` says how it is written, by the positions of its values; it makes no difference to what it is.
    """

    term: Term
    time: Interval
    positional: bool = False
    _key: Key | None = field(init=False, repr=False, default=None)

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


def event_of_both(a: Event, b: Event) -> Event:
    """What two equal events become where they meet: one, with integers for doubles."""
    term = merged(a.term, b.term)
    return a if term is a.term else replace(a, term=term)  # type: ignore[arg-type]
