"""This module says when `timer:datetime` occurs and which values its fields have then (thesis 6.3 and 9.4.3).

The calendar is one of wall-clock time. A stretch is a longest run of wall-clock time in which every named field keeps
its value, and the timer occurs whenever the wall clock of the zone shows the first instant of such a stretch; every
field finer than the finest named is then at its minimum. So:

- A wall-clock time that daylight saving skips does not occur and one that it doubles occurs twice, whatever is named:
  a day without midnight has no `{date}`, and a doubled 02:00 is twice an `{hour-of-day: 2}`.
- Coarse fields begin together with whichever comes true last: `{week-of-year: 1, year: 2026}` on 1 January 2026, a
  Thursday. Alone, a week begins on Monday, or with the month if it is a `week-of-month`; `{day-of-week-in-month: 2}`
  begins on the 8th.
- A time holds for its minute, or for its second or millisecond if that is not 0; `"9:00:00"` is `"9:00"`. With an
  offset it is meant on the clock of that offset and occurs when that clock first shows it; all other fields, the
  date too, are those of the zone.
- `zone-offset` and `dst-offset` belong to the zone, not to the clock, and are neither fine nor coarse. Beside other
  fields they only choose among the instants of those; alone they occur where they change, and so never in a zone
  that never changed. Both count hours, `zone-offset` without daylight saving.

The years are 1 to 9999 by the clock of the zone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from heapq import merge
from itertools import product
from typing import TypeAlias
from zoneinfo import ZoneInfo

from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from ephemera.rules.calendar import FIELDS, MONTHS, WEEKDAYS, parse_date, parse_time

FieldValue: TypeAlias = int | float | str
Occurrence: TypeAlias = tuple[int, dict[str, FieldValue]]

_CLOCK_FIELDS = {
    "am-pm": 12 * HOUR,
    "hour-of-day": HOUR,
    "hour": HOUR,
    "time": MINUTE,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": MILLISECOND,
}
"""The fields that change within a day, with how long each keeps a value."""
_OFFSET_FIELDS = ("zone-offset", "dst-offset")

FIELD_ORDER = (
    *("year", "month", "week-of-year", "week-of-month", "day-of-week-in-month"),
    *("date", "day-of-month", "day-of-year", "day-of-week"),
    *_CLOCK_FIELDS,
)
"""The fields from coarse to fine; the two offsets are neither."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})$")


def instants(named: Collection[str], zone: str, first: int, last: int) -> Iterator[Occurrence]:
    """The instants from `first` to `last` at which a stretch of the named fields begins, with all fields, ascending.

    >>> [fields["date"] for _, fields in instants({"month"}, "UTC", 0, 60 * DAY)]
    ['1970-01-01', '1970-02-01', '1970-03-01']
    """
    return occurrences(dict.fromkeys(named), zone, first, last)


def occurrences(
    wanted: Mapping[str, FieldValue | Sequence[FieldValue] | None], zone: str, first: int, last: int
) -> Iterator[Occurrence]:
    """The instants from `first` to `last` at which the timer with these fields occurs, with all fields, ascending.

    A field is wanted with one value, with any one of a sequence of values, or, by None, with whatever value it has.

    >>> second_tuesday = {"day-of-week": "Tuesday", "day-of-week-in-month": 2, "time": "9:00"}
    >>> [fields["date"] for _, fields in occurrences(second_tuesday, "Europe/Berlin", 0, 60 * DAY)]
    ['1970-01-13', '1970-02-10']
    """
    if not wanted or not set(wanted) <= set(FIELDS):
        raise InternalError("semantics", f"timer:datetime cannot name {', '.join(wanted) or 'nothing'}")
    choices = [(each,) if each is None or isinstance(each, int | float | str) else each for each in wanted.values()]
    timers = [_timer(dict(zip(wanted, choice, strict=True))) for choice in product(*choices)]
    streams = [_occurrences(timer, ZoneInfo(zone), first, last) for timer in timers if timer is not None]
    return _distinct(merge(*streams, key=lambda occurrence: occurrence[0]))


def _distinct(ascending: Iterator[Occurrence]) -> Iterator[Occurrence]:
    latest = None
    for instant, fields in ascending:
        if instant != latest:
            yield instant, fields
        latest = instant


# ---------------------------------------------------------------- the timer


@dataclass(frozen=True, slots=True)
class _ClockTime:
    """The part of every day in which a `time` holds, on the wall clock unless it has an offset of its own."""

    begin: int
    length: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class _Timer:
    """The fields that a timer names, the constants among them, and apart from these its `time` if it is constant."""

    named: frozenset[str]
    constants: Mapping[str, FieldValue]
    time: _ClockTime | None

    @property
    def finest(self) -> int:
        """How long the finest field other than a constant time keeps a value; days and all that is coarser are one."""
        named = self.named if self.time is None else self.named - {"time"}
        return min((_CLOCK_FIELDS.get(name, DAY) for name in named), default=DAY)

    def admits(self, fields: Mapping[str, FieldValue]) -> bool:
        return all(self.constants.get(name, value) == value for name, value in fields.items())


def _timer(wanted: Mapping[str, FieldValue | None]) -> _Timer | None:
    """The timer, or None if its time is impossible."""
    constants = {name: value for name, value in wanted.items() if value is not None and name != "time"}
    text = wanted.get("time")
    time = None if text is None else _clock_time(str(text))
    return _Timer(frozenset(wanted), constants, time) if time or text is None else None


def _clock_time(text: str) -> _ClockTime | None:
    parts = parse_time(text)
    if parts is None:
        return None
    hour, minute, second, millisecond = parts
    begin = hour * HOUR + minute * MINUTE + second * SECOND + millisecond * MILLISECOND
    length = MILLISECOND if millisecond else SECOND if second else MINUTE
    written = _OFFSET.search(text)
    if written is None:
        return _ClockTime(begin, length, 0 if text.endswith("Z") else None)
    offset = int(written[2]) * HOUR + int(written[3]) * MINUTE
    return _ClockTime(begin, length, -offset if written[1] == "-" else offset)


def _occurrences(timer: _Timer, zone: ZoneInfo, first: int, last: int) -> Iterator[Occurrence]:
    for smooth in _smooth_pieces(zone, *_narrowed(timer, first, last)):
        starts = _changes(timer, zone, smooth) if timer.named <= set(_OFFSET_FIELDS) else _starts(timer, smooth)
        for local in starts:
            fields = _fields(local, smooth)
            if smooth.first <= local - smooth.offset <= smooth.last and timer.admits(fields):
                yield local - smooth.offset, fields


def _narrowed(timer: _Timer, first: int, last: int) -> tuple[int, int]:
    """Keep to the wanted date or year, and to the years that there are."""
    begin, end = date.min, date.max
    day, year = timer.constants.get("date"), timer.constants.get("year")
    if day is not None:
        begin, end = parse_date(str(day)) or date.max, parse_date(str(day)) or date.min
    elif isinstance(year, int) and date.min.year <= year <= date.max.year:
        begin, end = date(year, 1, 1), date(year, 12, 31)
    # No wall clock is as much as a day off.
    return max(first, _midnight(begin) - DAY), min(last, _midnight(end) + 2 * DAY)


# ---------------------------------------------------------------- the zone


@dataclass(frozen=True, slots=True)
class _Smooth:
    """A piece of time in which the zone's offsets stay the same, so that its wall clock runs smoothly."""

    first: int
    last: int
    offset: int
    """How far the wall clock is ahead of UTC, daylight saving included."""
    saving: int
    """How much of that is daylight saving."""


def _smooth_pieces(zone: ZoneInfo, first: int, last: int) -> Iterator[_Smooth]:
    """Cut the time from `first` to `last` into smooth pieces, none longer than a day.

    In the whole database of zones no two changes of a zone are less than three days apart. So a day with the same
    offsets at both ends has them throughout, and any other day has one change.
    """
    while first <= last:
        offsets, end = _offsets(zone, first), min(first + DAY - 1, last)
        if _offsets(zone, end) != offsets:
            end = _first_change(zone, first, end) - 1
        yield _Smooth(first, end, *offsets)
        first = end + 1


def _first_change(zone: ZoneInfo, first: int, last: int) -> int:
    offsets = _offsets(zone, first)
    return first + bisect_left(range(first, last), True, key=lambda instant: _offsets(zone, instant) != offsets)


def _offsets(zone: ZoneInfo, instant: int) -> tuple[int, int]:
    """Offset and daylight saving, as in a smooth piece."""
    # At both ends of the years the wall clock may show one that Python does not have; no zone changes there.
    within = min(max(instant, _midnight(date.min) + DAY), _midnight(date.max) - DAY)
    local = (_EPOCH + within * _MICROSECOND).astimezone(zone)
    return (local.utcoffset() or timedelta()) // _MICROSECOND, (local.dst() or timedelta()) // _MICROSECOND


def _changes(timer: _Timer, zone: ZoneInfo, smooth: _Smooth) -> Iterator[int]:
    """The wall-clock time at which a smooth piece begins, if it begins with a change of what the timer names."""
    before = _Smooth(smooth.first - 1, smooth.first - 1, *_offsets(zone, smooth.first - 1))
    if any(_offset_fields(before)[name] != _offset_fields(smooth)[name] for name in timer.named):
        yield smooth.first + smooth.offset


# ---------------------------------------------------------------- the wall clock

# A wall-clock time is counted like an instant: in microseconds, as if the wall clock showed UTC.


def _midnight(day: date) -> int:
    return (day - _EPOCH.date()) // _MICROSECOND


def _starts(timer: _Timer, smooth: _Smooth) -> Iterator[int]:
    """The wall-clock times at which a stretch begins on the days of a smooth piece, and perhaps some others."""
    of_days = _Timer(timer.named, {n: v for n, v in timer.constants.items() if n not in _CLOCK_FIELDS}, None)
    first = max(smooth.first + smooth.offset, _midnight(date.min)) // DAY
    last = min(smooth.last + smooth.offset, _midnight(date.max)) // DAY
    for midnight in range(first * DAY, (last + 1) * DAY, DAY):
        if of_days.admits(_fields(midnight, smooth)):
            if timer.time is None and timer.finest == DAY:
                yield from _starts_with_day(timer, midnight, smooth)
            else:
                yield from _starts_within_day(timer, midnight, smooth)


def _starts_with_day(timer: _Timer, midnight: int, smooth: _Smooth) -> Iterator[int]:
    if midnight > _midnight(date.min):
        today, yesterday = _fields(midnight, smooth), _fields(midnight - DAY, smooth)
        if all(today[name] == yesterday[name] for name in timer.named):
            return
    yield midnight


def _starts_within_day(timer: _Timer, midnight: int, smooth: _Smooth) -> Iterator[int]:
    """Every unit of the finest field begins a stretch, for in the next unit that field has another value."""
    first, last, time = smooth.first + smooth.offset, smooth.last + smooth.offset, timer.time
    begin = 0
    if time is not None:
        begin = (time.begin if time.offset is None else time.begin - time.offset + smooth.offset) % DAY
        if time.length <= timer.finest:
            yield midnight + begin
            return

    def is_near(at: int, length: int) -> bool:
        if at > last or at + length <= first:
            return False
        return time is None or (begin - at) % DAY < length or (at - begin) % DAY < time.length

    hours = [hour for hour in _steps(timer, HOUR, 24) if timer.admits(_hour_fields(hour))]
    minutes = [minute for minute in _steps(timer, MINUTE, 60) if timer.admits({"minute": minute})]
    seconds = [second for second in _steps(timer, SECOND, 60) if timer.admits({"second": second})]
    thousandths = [each for each in _steps(timer, MILLISECOND, 1000) if timer.admits({"millisecond": each})]
    units = [(HOUR, hours), (MINUTE, minutes), (SECOND, seconds), (MILLISECOND, thousandths)]
    yield from _combined(midnight, units, is_near)


def _steps(timer: _Timer, unit: int, count: int) -> range:
    """The values of a unit at which the timer may occur: only 0 if the unit is finer than all that is named."""
    return range(0, count, max(1, timer.finest // unit))


def _combined(
    begin: int, units: Sequence[tuple[int, Sequence[int]]], is_near: Callable[[int, int], bool]
) -> Iterator[int]:
    """Every way to count each unit from `begin` on, ascending, coarse units first; what is not near is passed over."""
    if not units:
        yield begin
        return
    (length, counts), *finer = units
    for count in counts:
        at = begin + count * length
        if is_near(at, length):
            yield from _combined(at, finer, is_near)


# ---------------------------------------------------------------- the fields


def _fields(local: int, smooth: _Smooth) -> dict[str, FieldValue]:
    """All fields of figure 6.2 at a wall-clock time."""
    day = _EPOCH.date() + timedelta(days=local // DAY)
    hour, minute = local % DAY // HOUR, local % HOUR // MINUTE
    first_weekday = day.replace(day=1).weekday()
    return {
        "year": day.year,
        "month": MONTHS[day.month - 1],
        "day-of-month": day.day,
        "hour-of-day": hour,
        "minute": minute,
        "second": local % MINUTE // SECOND,
        "millisecond": local % SECOND // MILLISECOND,
        "week-of-year": day.isocalendar().week,
        "week-of-month": (day.day - 1 + first_weekday) // 7 + 1,  # the week of the 1st, however short, is the first
        "day-of-year": day.timetuple().tm_yday,
        "day-of-week": WEEKDAYS[day.weekday()],
        "day-of-week-in-month": (day.day - 1) // 7 + 1,
        **_hour_fields(hour),
        **_offset_fields(smooth),
        "date": day.isoformat(),
        "time": f"{hour:02}:{minute:02}",
    }


def _hour_fields(hour: int) -> dict[str, FieldValue]:
    return {"hour-of-day": hour, "am-pm": "am" if hour < 12 else "pm", "hour": hour % 12}


def _offset_fields(smooth: _Smooth) -> dict[str, FieldValue]:
    return {"zone-offset": _in_hours(smooth.offset - smooth.saving), "dst-offset": _in_hours(smooth.saving)}


def _in_hours(length: int) -> int | float:
    return length / HOUR if length % HOUR else length // HOUR
