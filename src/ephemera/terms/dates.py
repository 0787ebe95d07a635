"""This module writes times by patterns of letters, as clocks of a zone show them: `yyyy-MM-dd HH:mm`.

A run of one letter is a field; texts between single quotes, and all that is no letter, stand for themselves, and two
quotes are one. Names of months and days are English.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from ephemera.terms.values import Time
from ephemera.terms.zones import EPOCH

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


class BadPattern(ValueError):
    """A pattern that writes no time."""


def local_moment(time: Time, zone: str) -> datetime:
    """What a calendar and a clock of a zone show at a time; `OverflowError` where calendars end."""
    moment = EPOCH + timedelta(microseconds=time.microseconds)
    return moment if zone == "UTC" else moment.astimezone(ZoneInfo(zone))


def written_date(local: datetime, pattern: str) -> str:
    """A time as a pattern writes it.

    >>> written_date(datetime(2026, 3, 1, 9, 5, tzinfo=UTC), "EEE d MMM yyyy 'at' HH:mm XXX")
    'Sun 1 Mar 2026 at 09:05 +00:00'
    """
    return "".join(piece(local) for piece in _pieces(pattern))


def check_pattern(pattern: str) -> None:
    """Raises `BadPattern` for one with letters that mean nothing."""
    _pieces(pattern)


def _offset(local: datetime) -> str:
    away = local.utcoffset() or timedelta()
    hours, minutes = divmod(abs(away) // timedelta(minutes=1), 60)
    return f"{'-' if away < timedelta() else '+'}{hours:02}:{minutes:02}"


_Piece = Callable[[datetime], str]
_TOKEN = re.compile(r"''|'(?P<quoted>(?:[^']|'')+)'|(?P<field>([A-Za-z])\3*)|(?P<other>[^A-Za-z'])|(?P<open>')")
_FIELDS: dict[str, _Piece] = {
    "yyyy": lambda t: f"{t.year:04}",
    "yy": lambda t: f"{t.year % 100:02}",
    "M": lambda t: str(t.month),
    "MM": lambda t: f"{t.month:02}",
    "MMM": lambda t: _MONTHS[t.month - 1][:3],
    "MMMM": lambda t: _MONTHS[t.month - 1],
    "d": lambda t: str(t.day),
    "dd": lambda t: f"{t.day:02}",
    "EEE": lambda t: _DAYS[t.weekday()][:3],
    "EEEE": lambda t: _DAYS[t.weekday()],
    "H": lambda t: str(t.hour),
    "HH": lambda t: f"{t.hour:02}",
    "m": lambda t: str(t.minute),
    "mm": lambda t: f"{t.minute:02}",
    "s": lambda t: str(t.second),
    "ss": lambda t: f"{t.second:02}",
    "SSS": lambda t: f"{t.microsecond // 1_000:03}",
    "SSSSSS": lambda t: f"{t.microsecond:06}",
    "XXX": _offset,
}


@lru_cache(256)
def _pieces(pattern: str) -> tuple[_Piece, ...]:
    found: list[_Piece] = []
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            raise BadPattern("a quote in the pattern is not closed")
        if field := token["field"]:
            if field not in _FIELDS:
                raise BadPattern(
                    f"`{field}` is no field of a date; the fields are {', '.join(_FIELDS)}, and texts stand in '…'"
                )
            found.append(_FIELDS[field])
        else:
            found.append(_constant((token["quoted"] or token["other"] or "'").replace("''", "'")))
    return tuple(found)


def _constant(text: str) -> _Piece:
    return lambda _: text
