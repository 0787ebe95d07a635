"""This module holds the days of external calendars, such as `cal:workday`, and tells those of a stretch of time.

Only patterns with the name of a calendar see its days; those of any label do not, as the days are no events of the
input. An event from outside that has such a name is seen by the patterns of any label alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ephemera.terms.events import Event


class Days:
    """The days of some calendars, by their ends."""

    def __init__(self, calendars: Mapping[str, Iterable[Event]]) -> None:
        self.calendars = {name: tuple(days) for name, days in calendars.items()}
        self._days = {name: sorted(days, key=lambda day: day.key) for name, days in self.calendars.items()}
        self._ends = {name: [day.time.end for day in days] for name, days in self._days.items()}

    def __call__(self, name: str, after: int, until: int) -> Sequence[Event]:
        """The days of a calendar that end after one time, until another."""
        ends = self._ends[name]
        return self._days[name][bisect_right(ends, after) : bisect_right(ends, until)]
