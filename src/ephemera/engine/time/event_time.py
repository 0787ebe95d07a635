"""This module is the time of events: how far each source has come, and what the clock of a program tells by then.

An event that ends at t moves the bound of its source to just before t less its watermark, so that equal stamps are
never late. What then arrives at or behind the bound is late. Events are judged in the order in which they arrive, so
it makes no difference how they are cut into batches. No clock of the machine is known here: that time passes for a
silent source is told from outside.

Time passes from the earliest end of the input to the latest. A history has both from the start. Live the earliest may
turn out to be earlier, and there is a latest only when the input has ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from ephemera.analysis.sources import UNNAMED
from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import Ints, Mask
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.clock import Clock as Calendar
from ephemera.rules.nodes import Catalogue
from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern


@dataclass(slots=True)
class Watermarks:
    """The bounds of a program's sources: none of them ever goes back."""

    watermarks: Mapping[str, int]
    carried_by: Mapping[str, str]
    """For each label the source that it is read from."""
    bounds: dict[str, int] = field(default_factory=dict)
    first: int | None = None
    """The earliest end of all events that were not late, and of all instants that were closed."""
    last: int = -FAR
    """The latest of them, or how far time has passed for a silent source."""
    ended: int | None = None
    """The latest time of all when the input ended, if it has: clocks go no further."""

    @property
    def names(self) -> set[str]:
        """All of them."""
        return {*self.watermarks, *self.carried_by.values(), UNNAMED}

    def source(self, label: str) -> str:
        return self.carried_by.get(label, UNNAMED)

    def bound(self, names: frozenset[str]) -> int:
        """The bound of what depends on some sources: that of the slowest."""
        return min([self.bounds.get(name, -FAR) for name in names], default=-FAR)

    def fastest(self, names: frozenset[str]) -> int:
        """The bound of the fastest of some sources."""
        return max((self.bounds.get(name, -FAR) for name in names), default=-FAR)

    def are_behind(self, bounds: Mapping[str, int]) -> bool:
        """Whether some source has not come so far."""
        return any(bound > self.bounds.get(name, -FAR) for name, bound in bounds.items())

    def copy(self) -> Watermarks:
        """Where they stand now, for later."""
        return replace(self, bounds=dict(self.bounds))

    # ---- events arrive -------------------------------------------------------------------------------------

    def arrive(self, name: str, times: Ints, ends: Ints) -> Mask:
        """Which events of a source come in time, given by when they arrive, in that order; its bound moves on.

        That is when they end, or when they begin where they are known from then on.
        """
        before = self.bounds.get(name, -FAR)
        reached = np.maximum.accumulate(times) - (self.watermarks.get(name, 0) + 1)
        known = np.maximum(np.concatenate([[before], reached[:-1]]), before)
        self.bounds[name] = max(before, int(reached[-1]))
        in_time = np.asarray(times > known, dtype=np.bool_)
        if in_time.any():
            self.span(int(ends[in_time].min()), int(ends[in_time].max()))
        return in_time

    def arrive_one(self, name: str, time: int, end: int) -> bool:
        """The same for one event."""
        before = self.bounds.get(name, -FAR)
        self.bounds[name] = max(before, time - self.watermarks.get(name, 0) - 1)
        if time > before:
            self.span(end, end)
        return time > before

    def span(self, first: int, last: int) -> None:
        """There are ends between these two, both included."""
        self.first = first if self.first is None else min(first, self.first)
        self.last = max(last, self.last)

    # ---- time passes ---------------------------------------------------------------------------------------

    def advance(self, bounds: Mapping[str, int]) -> None:
        """The sources have come so far."""
        for name, bound in bounds.items():
            self.bounds[name] = max(self.bounds.get(name, -FAR), bound)

    def close(self, until: int) -> None:
        """Everything that ends by then is here, whatever the source."""
        if until < FAR:
            self.span(until, until)
        self.advance(dict.fromkeys(self.names, until))

    def let_pass(self, silent: Mapping[str, int]) -> None:
        """So much time has passed for silent sources; one never heard of begins where the slowest other stands."""
        for name, time in silent.items():
            bound = self.bounds.get(name, -FAR)
            others = [b for b in self.bounds.values() if b > -FAR]
            if bound > -FAR:
                self.bounds[name] = min(bound + time, FAR)
            elif others:
                self.bounds[name] = min(others)
            self.last = max(self.last, self.bounds.get(name, -FAR))

    def limit(self, first: int | None, ended: int | None) -> None:
        """When the input begins and when it has ended is known from elsewhere."""
        self.first, self.ended = first, ended

    def finish(self) -> None:
        """The input has ended."""
        self.ended = self.last
        self.close(FAR)

    def restore(self, first: int | None, last: int) -> None:
        """Others have seen these as the earliest and the latest end, of which this goes on."""
        self.first, self.last = first, last


def sources_of(catalogue: Catalogue) -> Watermarks:
    """The sources that a program declares."""
    return Watermarks(
        {source.name: source.watermark for source in catalogue.sources},
        {label: source.name for source in catalogue.sources for label in source.carries},
    )


class Clock:
    """The clock of a program that runs: absolute timers, and the days of calendars, as far as its sources say.

    Only patterns with the name of a calendar, such as `cal:workday`, see its days; those of any label do not, as the
    days are no events of the input. An event from outside that has such a name is seen by the patterns of any label
    alone.
    """

    def __init__(self, plan: PhysicalPlan, calendars: Mapping[str, Iterable[Event]], sources: Watermarks) -> None:
        self._plan = plan
        self._sources = sources
        self.calendars = {name: tuple(days) for name, days in calendars.items()}
        self._days = {name: sorted(days, key=lambda day: day.key) for name, days in self.calendars.items()}
        self._ends = {name: [day.time.end for day in days] for name, days in self._days.items()}

    def days(self, calendar: str, after: int, until: int) -> Sequence[Event]:
        """The days of a calendar that end after one time, until another."""
        ends = self._ends[calendar]
        return self._days[calendar][bisect_right(ends, after) : bisect_right(ends, until)]

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

    def asked(self, rule: int | None, parts: Sequence[Events]) -> list[Events]:
        """Those answers of a rule that are asked for."""
        if rule not in self._plan.clocked:
            return list(parts)
        first = -FAR if self._sources.first is None else self._sources.first
        last = FAR if self._sources.ended is None else self._sources.ended
        inside = [(first <= part.batch[END]) & (part.batch[END] <= last) for part in parts]
        return [part.take(rows) for part, rows in zip(parts, inside, strict=True) if rows.any()]
