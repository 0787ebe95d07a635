"""This module knows the fields of `timer:datetime` (thesis figure 6.2) and which of their values can meet.

Values that a query fixes are checked one by one, then together: against every day of the Gregorian calendar's
400 years, or of the year that is named. Local times skipped or doubled by daylight saving are left to run time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

RANGES = {
    "year": (1, 9999),
    "day-of-month": (1, 31),
    "hour-of-day": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "millisecond": (0, 999),
    "week-of-year": (1, 53),
    "week-of-month": (0, 6),
    "day-of-year": (1, 366),
    "day-of-week-in-month": (1, 5),
    "hour": (0, 11),
    "zone-offset": (-24, 24),
    "dst-offset": (-24, 24),
}
"""The fields that are numbers, with the least and the greatest."""

FRACTIONS = ("zone-offset", "dst-offset")
"""Those of them that need not be whole: some zones are half an hour off."""

WORDS = {"month": MONTHS, "day-of-week": WEEKDAYS, "am-pm": ("am", "pm")}
"""The fields that are words, with all of them."""

FIELDS = (*RANGES, *WORDS, "date", "time")

_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?")


def parse_time(text: str) -> tuple[int, int, int, int] | None:
    """Hour, minute, second and millisecond of ``"9:00"``, ``"23:59:30.5"``, ``"01:00+01:00"``; None if impossible."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    millisecond = int((match[4] or "0").ljust(3, "0")[:3])
    return (hour, minute, second, millisecond) if hour < 24 and minute < 60 and second < 60 else None


def parse_date(text: str) -> date | None:
    """A day of ``"2026-03-01"``; None if there is no such day."""
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None
    except ValueError:
        return None


def parse_moment(text: str) -> datetime | None:
    """A moment of ``"2026-09-18T09:00Z"``, with or without a zone; None if there is none."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def impossible(fields: Mapping[str, int | str]) -> str | None:
    """Why values that are each possible never meet, or None if they do."""
    return _impossible_time(fields) or _impossible_day(fields)


def _impossible_time(fields: Mapping[str, int | str]) -> str | None:
    known: dict[str, int | str] = {}
    clock = parse_time(str(fields["time"])) if "time" in fields else None
    if clock is not None:
        known["time"] = f"{clock[0]:02}:{clock[1]:02}"
        known["hour-of-day"], known["minute"] = clock[0], clock[1]
        if clock[2] or clock[3]:
            known["second"], known["millisecond"] = clock[2], clock[3]
    for name in ("hour-of-day", "minute", "second", "millisecond"):
        if name in fields and known.setdefault(name, fields[name]) != fields[name]:
            return f"{known['time']} is never in {name} {fields[name]}"
    if "hour-of-day" in known:
        hour = int(known["hour-of-day"])
        half = "am" if hour < 12 else "pm"
        if fields.get("am-pm", half) != half:
            return f"hour {hour} of the day is {half}, not {fields['am-pm']}"
        if fields.get("hour", hour % 12) != hour % 12:
            return f"hour {hour} of the day is hour {hour % 12} of its half, not {fields['hour']}"
    return None


_DAY_FIELDS: dict[str, Callable[[date], int | str]] = {
    "date": date.isoformat,
    "year": lambda d: d.year,
    "month": lambda d: MONTHS[d.month - 1],
    "day-of-month": lambda d: d.day,
    "day-of-year": lambda d: d.timetuple().tm_yday,
    "day-of-week": lambda d: WEEKDAYS[d.weekday()],
    "week-of-year": lambda d: d.isocalendar().week,
    "week-of-month": lambda d: (d.day + date(d.year, d.month, 1).weekday() - 1) // 7 + 1,
    "day-of-week-in-month": lambda d: (d.day - 1) // 7 + 1,
}


def _impossible_day(fields: Mapping[str, int | str]) -> str | None:
    wanted = tuple(sorted((name, fields[name]) for name in _DAY_FIELDS if name in fields))
    if len(wanted) < 2 or _some_day(wanted):
        return None
    day = parse_date(str(fields["date"])) if "date" in fields else None
    if day is not None:
        for name, value in wanted:
            actual = _DAY_FIELDS[name](day)
            if actual != value:
                return f"{day} has {name} {actual}, not {value}"
    return "there is no day with " + ", ".join(f"{name} {fields[name]}" for name in _DAY_FIELDS if name in fields)


@lru_cache(maxsize=1_000)
def _some_day(wanted: tuple[tuple[str, int | str], ...]) -> bool:
    fields = dict(wanted)
    tests = [(_DAY_FIELDS[name], value) for name, value in wanted]
    if "date" in fields:
        day = parse_date(str(fields["date"]))
        return day is not None and all(test(day) == value for test, value in tests)
    year = fields.get("year")
    first, last = (int(year), int(year)) if year is not None else (2000, 2399)
    day, end = date(first, 1, 1), date(last, 12, 31)
    while True:
        if all(test(day) == value for test, value in tests):
            return True
        if day == end:
            return False
        day += timedelta(days=1)
