"""This module says when periodic timers and windows occur: `every 10 sec`, `window 1 hour every 5 min offset 30 sec`.

An interval is closed, and the next one of a timer begins a microsecond behind it, so that every instant lies in just
one. Periods count from 1970-01-01T00:00Z, and an offset moves all of them on.

Whole days are days of the program's zone, whatever daylight saving makes of them: if the period has so many of them
then intervals begin by the wall clock, and if the length has, they end by it, too. Whole weeks count from a Monday.
A wall-clock time that is skipped is the one that clocks would have shown without that, and of one that is doubled it is
the earlier. A day that a zone leaves out begins no interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import DAY, WEEK
from ephemera.terms.events import Interval
from ephemera.terms.nodes import Duration, Periodic

_MONDAY = -3 * DAY
"""1 January 1970 was a Thursday."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Periods:
    """A periodic timer in microseconds: how long it lasts, how often it begins, and where one of them begins."""

    length: int
    period: int
    origin: int
    zone: str

    @property
    def begins_by_wall_clock(self) -> bool:
        return self.zone != "UTC" and not self.period % DAY

    @property
    def ends_by_wall_clock(self) -> bool:
        return self.begins_by_wall_clock and not self.length % DAY

    @property
    def shortest(self) -> int:
        """From the first to the last instant of the shortest interval."""
        return 0 if self.ends_by_wall_clock else self.length - 1

    @property
    def longest(self) -> int:
        """Of the longest: no clock is ever put back by more than a day."""
        return self.length - 1 + (DAY if self.ends_by_wall_clock else 0)

    def ending(self, first: int, last: int) -> Iterator[Interval]:
        """The intervals that end from one time to another, both included, in their order.

        >>> [time.begin for time in Periods(10, 5, 0, "UTC").ending(0, 20)]
        [-5, 0, 5, 10]
        """
        # No wall clock is as much as a day off.
        around = DAY if self.begins_by_wall_clock else 0
        least = -((self.origin + self.length - 1 - (first - around)) // self.period)
        most = (last + around - (self.origin + self.length - 1)) // self.period
        for begin in range(self.origin + least * self.period, self.origin + most * self.period + 1, self.period):
            time = self._beginning(begin)
            if time is not None and first <= time.end <= last:
                yield time

    def _beginning(self, begin: int) -> Interval | None:
        if not self.begins_by_wall_clock:
            return Interval(begin, begin + self.length - 1)
        instant = _instant(begin, self.zone)
        if instant == _instant(begin + DAY, self.zone):
            return None
        return (
            Interval(instant, _instant(begin + self.length, self.zone) - 1)
            if self.ends_by_wall_clock
            else (Interval(instant, instant + self.length - 1))
        )


def periods(timer: Periodic, zone: str) -> Periods:
    """A timer whose durations are in microseconds, in a zone."""
    period = timer.period or timer.length
    if period is None:
        raise InternalError("rules", "a periodic timer without a period")
    every, offset = _microseconds(period), 0 if timer.offset is None else _microseconds(timer.offset)
    origin = _MONDAY if not every % WEEK else 0
    return Periods(_microseconds(timer.length or period), every, origin + offset, zone)


def _microseconds(duration: Duration) -> int:
    return int(sum((part.amount for part in duration.parts), start=Decimal(0)))


def _instant(local: int, zone: str) -> int:
    """When the wall clock of a zone shows a time, which is counted as if it showed UTC."""
    # Python has only some years; at both ends of them no zone changes.
    within = min(max(local, _midnight(date.min) + DAY), _midnight(date.max) - DAY)
    shown = (_EPOCH + within * _MICROSECOND).replace(tzinfo=ZoneInfo(zone))
    return local - (shown.utcoffset() or timedelta()) // _MICROSECOND


def _midnight(day: date) -> int:
    return (day - _EPOCH.date()) // _MICROSECOND
