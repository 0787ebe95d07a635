"""This module reads times as texts and as Python's own, and puts those without a zone into the program's zone.

A time without a zone that no clock of the zone ever shows, since it was put forward, is refused; one that clocks show
twice is the earlier one. Where a program declares no zone it is UTC, and `assumed` counts how often that was needed, so
that a run can say so.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.errors import BadMessage, excerpt

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
NO_ZONE = 'times without a zone were read as UTC; declare their zone, such as `TIME ZONE "Europe/Berlin";`'
"""What a run says once."""


@dataclass(slots=True, eq=False)
class LocalTime:
    """What a time without a zone means in a program."""

    zone: str = "UTC"
    is_declared: bool = False
    assumed: int = field(default=0, repr=False)
    """How many times without a zone were read though none is declared."""

    @property
    def is_utc(self) -> bool:
        return self.zone == "UTC"

    def assume(self, count: int = 1) -> None:
        """So many times without a zone were read."""
        self.assumed += 0 if self.is_declared else count

    def note_since(self, before: int) -> tuple[str, ...]:
        """What is to be said of the times that were read since `assumed` had some value."""
        return (NO_ZONE,) if self.assumed > before else ()

    def read(self, text: str) -> int:
        """The instant of a text in ISO 8601, in microseconds; what is finer is cut off.

        >>> LocalTime("Europe/Berlin").read("2026-03-01T09:00") == LocalTime().read("2026-03-01T08:00Z")
        True
        """
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadMessage(f"{excerpt(text)} is no time such as 2026-03-01T09:00:00Z") from None
        return self.instant(moment)

    def instant(self, moment: date) -> int:
        """The instant of a date, or of a date and time, in microseconds."""
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - the zone comes next
        if moment.utcoffset() is not None:
            return _since_epoch(moment)
        self.assume()
        plain = moment.replace(tzinfo=None, fold=0)
        if self.is_utc:
            return _since_epoch(plain.replace(tzinfo=UTC))
        try:
            found = plain.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)
            is_there = found.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None, fold=0) == plain
        except OverflowError:
            raise BadMessage(f"`{plain.isoformat()}` is too far from 1970 to be in a zone") from None
        if not is_there:
            raise BadMessage(
                f"`{plain.isoformat()}` does not exist in {self.zone}, whose clocks were put forward; give it a zone"
            )
        return _since_epoch(found)


def _since_epoch(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def plain_datetime(value: Any) -> date | None:
    """A time of Python, or of a library whose times are Python's, as a plain one; None if it is the time that is none.

    What a library adds below a microsecond is cut off.
    """
    if not isinstance(value, datetime):
        return value  # type: ignore[no-any-return]
    if value != value:  # noqa: PLR0124 - so are the times of pandas that are none
        return None
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return datetime(*parts, tzinfo=value.tzinfo, fold=value.fold)
