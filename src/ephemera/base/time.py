"""This module holds whole-microsecond time arithmetic on durations; there are no floats in time.

A duration is a list of parts, largest unit first (thesis 6.7). A part may have a fraction as long as the whole
comes to a whole number of microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

UNITS = {
    "week": WEEK,
    "day": DAY,
    "hour": HOUR,
    "min": MINUTE,
    "sec": SECOND,
    "ms": MILLISECOND,
    "us": MICROSECOND,
}
"""The units by their one canonical name, largest first."""

SHORT = {"week": "w", "day": "d", "hour": "h", "min": "m", "sec": "s", "ms": "ms", "us": "us"}

SPELLINGS = (
    {word: unit for unit, word in SHORT.items()}
    | {unit: unit for unit in UNITS}
    | {f"{unit}s": unit for unit in ("week", "day", "hour")}
    | {"minute": "min", "minutes": "min", "second": "sec", "seconds": "sec"}
    | {"millisecond": "ms", "milliseconds": "ms", "microsecond": "us", "microseconds": "us"}
)
"""All the ways to write a unit."""

UNIT_ALIASES = {
    **dict.fromkeys(("hr", "hrs", "std"), "hours"),
    **dict.fromkeys(("mins", "minuts"), "min"),
    **dict.fromkeys(("secs",), "sec"),
    **dict.fromkeys(("wk", "wks"), "weeks"),
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros", "µs"), "us"),
}
"""What else people write for a unit."""

LONGEST = 2**62
"""No duration may be longer, so that sums of a time point and a duration stay within 64 bits."""
LATEST = 2**61
"""No time is further from 1970, about 73,000 years, so that differences and sums with durations stay within 64 bits."""
TOO_FAR = "the time is too far from 1970: more than 2^61 microseconds, about 73,000 years"


def microseconds(parts: Iterable[tuple[Decimal, str]], unit: int) -> int | None:
    """The length of a duration, `unit` being what a bare number counts; None unless whole and in range.

    >>> microseconds([(Decimal(1), "hour"), (Decimal("0.5"), "min")], SECOND)
    3630000000
    """
    total = sum((amount * (UNITS[name] if name else unit) for amount, name in parts), start=Decimal(0))
    if total > LONGEST or total != total.to_integral_value():
        return None
    return int(total)


def describe(length: int) -> str:
    """A length in microseconds as people write it, shortest form: ``1h30m``.

    >>> describe(5_400_000_000)
    '1h30m'
    """
    return "".join(f"{count}{SHORT[unit]}" for count, unit in split(length))


def split(length: int) -> list[tuple[int, str]]:
    """A length in microseconds as counts of units, largest first.

    >>> split(5_400_000_000)
    [(1, 'hour'), (30, 'min')]
    """
    parts: list[tuple[int, str]] = []
    for unit, size in UNITS.items():
        count, length = divmod(length, size)
        if count:
            parts.append((count, unit))
    return parts or [(0, "sec")]
