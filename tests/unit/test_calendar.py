"""This module shows which dates and times can be, checked against the calendar of the standard library."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ephemera.rules.calendar import MONTHS, WEEKDAYS, impossible, parse_date, parse_moment, parse_time


@pytest.mark.parametrize(
    ("fields", "possible"),
    [
        ({"date": "2008-07-31", "day-of-week": "Thursday"}, True),
        ({"date": "2008-12-24", "day-of-week": "Thursday"}, False),
        ({"month": "February", "day-of-month": 29}, True),
        ({"month": "February", "day-of-month": 29, "year": 2100}, False),
        ({"month": "February", "day-of-month": 30}, False),
        ({"month": "April", "day-of-month": 31}, False),
        ({"day-of-year": 366, "year": 2024}, True),
        ({"day-of-year": 366, "year": 2026}, False),
        ({"week-of-year": 53, "year": 2026}, True),
        ({"week-of-year": 53, "year": 2025, "month": "June"}, False),
        ({"day-of-week-in-month": 5, "day-of-month": 28}, False),
        ({"day-of-week-in-month": 5, "day-of-month": 29}, True),
        ({"time": "9:00", "hour-of-day": 9}, True),
        ({"time": "9:00", "hour-of-day": 10}, False),
        ({"time": "9:30", "minute": 30}, True),
        ({"time": "14:35", "am-pm": "am"}, False),
        ({"hour-of-day": 14, "hour": 2, "am-pm": "pm"}, True),
        ({"hour-of-day": 14, "hour": 3}, False),
        ({"time": "9:00", "second": 30}, True),
        ({"time": "9:00:15", "second": 30}, False),
    ],
)
def test_fields_meet_or_do_not(fields: dict[str, int | str], possible: bool) -> None:
    assert (impossible(fields) is None) is possible


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2399, 12, 31)))
def test_a_day_agrees_with_all_its_own_fields(day: date) -> None:
    iso = day.isocalendar()
    fields: dict[str, int | str] = {
        "date": day.isoformat(),
        "year": day.year,
        "month": MONTHS[day.month - 1],
        "day-of-month": day.day,
        "day-of-week": WEEKDAYS[day.weekday()],
        "day-of-year": (day - date(day.year, 1, 1)).days + 1,
        "week-of-year": iso.week,
        "day-of-week-in-month": sum((day - timedelta(weeks=k)).month == day.month for k in range(day.day // 7 + 1)),
    }
    assert impossible(fields) is None
    other = WEEKDAYS[(day.weekday() + 1) % 7]
    assert impossible({"date": day.isoformat(), "day-of-week": other}) is not None


def test_times_and_dates_are_read_or_refused() -> None:
    assert parse_time("9:00") == parse_time("09:00") == (9, 0, 0, 0)
    assert parse_time("23:59:30.5") == (23, 59, 30, 500)
    assert parse_time("01:00+01:00") == (1, 0, 0, 0)
    assert all(parse_time(text) is None for text in ("24:00", "9:60", "9:00:60", "nine", "9", ""))
    assert parse_date("2024-02-29") == date(2024, 2, 29)
    assert all(parse_date(text) is None for text in ("2100-02-29", "2026-13-01", "20260101", "tomorrow"))
    assert parse_moment("2026-09-18T09:00Z") is not None
    assert parse_moment("2026-09-18T09:00") is not None
    assert all(parse_moment(text) is None for text in ("2026-09-31T09:00Z", "2026-09-18T09:00:60Z", "soon"))
