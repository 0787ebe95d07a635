"""This module makes the events of `timer:datetime`: those a pattern asks for, as far as the input reaches.

The calendar is infinite; between the limits it has an event at each instant at which all fields that the pattern
names hold, with every field of figure 6.2 as a child. For periodic timers and windows it has one for each interval
that ends between the limits, which holds nothing.
"""

from __future__ import annotations

from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.dates import datetime_fields
from ephemera.rules.occurrences import occurrences
from ephemera.rules.periods import periods
from ephemera.terms.events import Event, Interval
from ephemera.terms.nodes import Pattern, Periodic
from ephemera.terms.values import Term

_INTERVAL = Term("timer:datetime", ordered=False)


@dataclass(frozen=True, slots=True)
class Clock:
    """The calendar between two limits, in a zone."""

    zone: str
    first: int
    last: int

    def events(self, pattern: Pattern) -> list[Event]:
        if isinstance(pattern, Periodic):
            return [Event(_INTERVAL, time) for time in periods(pattern, self.zone).ending(self.first, self.last)]
        wanted = {name: None if value is None else value.value for name, _, value in datetime_fields(pattern)}
        return [
            Event(_term({**fields, **_as_written(wanted)}), Interval(instant, instant))
            for instant, fields in occurrences(wanted, self.zone, self.first, self.last)
        ]


def _as_written(wanted: dict[str, str | int | float | None]) -> dict[str, str | int | float]:
    """Times are equal by value ("9:00" is "09:00"), so the event has the time as the pattern writes it."""
    return {name: value for name, value in wanted.items() if name == "time" and value is not None}


def _term(fields: dict[str, str | int | float]) -> Term:
    return Term("timer:datetime", tuple(Term(name, (value,)) for name, value in fields.items()), ordered=False)
