"""This module is the clock of a program that runs: the events of absolute timers, and the days of calendars.

Time passes from the earliest end of the input to the latest. A history has both from the start. Live the earliest may
turn out to be earlier, and there is a latest only when the input has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ephemera.engine.time.calendars import Days
from ephemera.engine.time.watermarks import Watermarks
from ephemera.kernels.history import FAR
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.clock import Clock as Calendar
from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern


class Clock:
    """Tells the time as far as the sources say."""

    def __init__(self, plan: PhysicalPlan, calendars: Mapping[str, Iterable[Event]], sources: Watermarks) -> None:
        self._plan = plan
        self._sources = sources
        self.days = Days(calendars)

    def timers(self, pattern: Pattern, after: int, until: int) -> Sequence[Event]:
        """The events of `timer:datetime` that a pattern asks for, after one time and until another.

        Before the first bound there are those that answers behind it may need, or behind the beginning of the input.
        """
        began, ended = self._sources.first, self._sources.ended
        last = until if ended is None else min(until, ended)
        begins = last + 1 if began is None else min(began, last + 1)
        first = after + 1 if after > -FAR else begins - self._plan.reach
        return Calendar(self._plan.catalogue.zone, first, last).events(pattern) if first <= last < FAR else ()

    def asks_for(self, rule: int | None, end: int) -> bool:
        """Whether an answer of a rule that ends then is asked for: by the clock only while there is input."""
        if rule not in self._plan.clocked:
            return True
        began, ended = self._sources.first, self._sources.ended
        return (began is None or end >= began) and (ended is None or end <= ended)
