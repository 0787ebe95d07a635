"""This module shows when absolute timers occur, by hand and against a calendar that is counted minute by minute."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice
from typing import TypeAlias
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ephemera.base.errors import InternalError
from ephemera.base.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from ephemera.rules.calendar import FIELDS, impossible
from ephemera.rules.occurrences import FIELD_ORDER, instants, occurrences

FieldValue: TypeAlias = int | float | str
Wanted: TypeAlias = Mapping[str, FieldValue | Sequence[FieldValue] | None]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    """The instant of a moment, in UTC unless it says otherwise."""
    moment = datetime.fromisoformat(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def moments(wanted: Wanted, zone: str, first: str, last: str) -> list[str]:
    """When the timer occurs, in UTC, as short as possible."""
    found = [EPOCH + timedelta(microseconds=t) for t, _ in occurrences(wanted, zone, at(first), at(last))]
    return [moment.replace(tzinfo=None).isoformat(timespec="auto").removesuffix(":00") for moment in found]


# ---------------------------------------------------------------- fields


def test_figure_6_2_comes_out() -> None:
    wanted = {"time": "14:35", "date": "2008-07-31"}
    assert list(occurrences(wanted, BERLIN, at("2000-01-01"), at("2020-01-01"))) == [
        (
            at("2008-07-31T14:35+02:00"),
            {
                "year": 2008,
                "month": "July",
                "day-of-month": 31,
                "hour-of-day": 14,
                "minute": 35,
                "second": 0,
                "millisecond": 0,
                "week-of-year": 31,
                "week-of-month": 5,
                "day-of-year": 213,
                "day-of-week": "Thursday",
                "day-of-week-in-month": 5,
                "am-pm": "pm",
                "hour": 2,
                "zone-offset": 1,
                "dst-offset": 1,
                "date": "2008-07-31",
                "time": "14:35",
            },
        )
    ]


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 0), (BERLIN, 1)])
def test_time_begins_on_a_thursday(zone: str, hour: int) -> None:
    ((instant, fields),) = instants({"minute"}, zone, 0, 0)
    assert instant == 0
    assert fields == {
        "year": 1970,
        "month": "January",
        "day-of-month": 1,
        "hour-of-day": hour,
        "minute": 0,
        "second": 0,
        "millisecond": 0,
        "week-of-year": 1,
        "week-of-month": 1,
        "day-of-year": 1,
        "day-of-week": "Thursday",
        "day-of-week-in-month": 1,
        "am-pm": "am",
        "hour": hour,
        "zone-offset": hour,
        "dst-offset": 0,
        "date": "1970-01-01",
        "time": f"0{hour}:00",
    }


def test_every_field_has_its_place_in_the_order_or_is_an_offset() -> None:
    assert sorted((*FIELD_ORDER, "zone-offset", "dst-offset")) == sorted(FIELDS)
    assert (FIELD_ORDER[0], FIELD_ORDER[-1]) == ("year", "millisecond")


@pytest.mark.parametrize(
    ("zone", "moment", "zone_offset", "dst_offset"),
    [
        ("Asia/Kolkata", "2026-01-01", 5.5, 0),
        ("Asia/Kathmandu", "2026-01-01", 5.75, 0),
        ("America/St_Johns", "2026-07-01", -3.5, 1),
        ("Australia/Lord_Howe", "2026-01-01", 10.5, 0.5),
        ("America/New_York", "2026-01-01", -5, 0),
    ],
)
def test_offsets_are_hours_whole_ones_as_integers(
    zone: str, moment: str, zone_offset: float, dst_offset: float
) -> None:
    _, fields = next(instants({"minute"}, zone, at(moment), at(moment) + DAY))
    assert (fields["zone-offset"], fields["dst-offset"]) == (zone_offset, dst_offset)
    assert type(fields["zone-offset"]) is type(zone_offset)
    assert type(fields["dst-offset"]) is type(dst_offset)


@pytest.mark.parametrize(
    ("day", "week_of_year", "week_of_month", "day_of_year", "day_of_week_in_month"),
    [
        ("2026-01-01", 1, 1, 1, 1),
        ("2026-12-31", 53, 5, 365, 5),
        ("2027-01-01", 53, 1, 1, 1),
        ("2027-01-03", 53, 1, 3, 1),
        ("2027-01-04", 1, 2, 4, 1),
        ("2024-12-30", 1, 6, 365, 5),
        ("2024-12-31", 1, 6, 366, 5),
        ("2021-01-03", 53, 1, 3, 1),
        ("2000-02-29", 9, 5, 60, 5),
        ("2026-02-08", 6, 2, 39, 2),
    ],
)
def test_weeks_are_counted(
    day: str, week_of_year: int, week_of_month: int, day_of_year: int, day_of_week_in_month: int
) -> None:
    ((_, fields),) = occurrences({"date": day}, BERLIN, at("1999-01-01"), at("2030-01-01"))
    names = ("week-of-year", "week-of-month", "day-of-year", "day-of-week-in-month")
    assert [fields[name] for name in names] == [week_of_year, week_of_month, day_of_year, day_of_week_in_month]


@given(st.dates(), st.times(), st.sampled_from(["UTC", BERLIN, "Asia/Kathmandu"]))
def test_the_static_check_finds_possible_what_occurs(day: date, clock: time, zone: str) -> None:
    wanted: Wanted = {"date": day.isoformat(), "hour-of-day": clock.hour, "second": clock.second, "millisecond": None}
    occurring = occurrences(wanted, zone, at("0001-01-01") - DAY, at("9999-12-31") + 2 * DAY)
    for _, fields in islice(occurring, 3):
        assert impossible({name: value for name, value in fields.items() if not isinstance(value, float)}) is None


# ---------------------------------------------------------------- stretches


@pytest.mark.parametrize(
    ("wanted", "first", "last", "expected"),
    [
        ({"year": 2026}, "2020-01-01", "2030-01-01", ["2026-01-01T00:00"]),
        ({"year": None}, "2020-01-01T00:01", "2022-12-31", ["2021-01-01T00:00", "2022-01-01T00:00"]),
        ({"month": "July"}, "2025-01-01", "2026-12-31", ["2025-07-01T00:00", "2026-07-01T00:00"]),
        ({"week-of-year": 31}, "2025-01-01", "2026-12-31", ["2025-07-28T00:00", "2026-07-27T00:00"]),
        ({"week-of-year": 53}, "2021-01-01", "2032-12-31", ["2026-12-28T00:00", "2032-12-27T00:00"]),
        ({"week-of-year": 1}, "2025-06-01", "2026-06-01", ["2025-12-29T00:00"]),
        ({"week-of-year": 1, "year": 2026}, "2025-06-01", "2027-06-01", ["2026-01-01T00:00"]),
        ({"week-of-year": 1, "year": None}, "2025-06-01", "2026-06-01", ["2025-12-29T00:00", "2026-01-01T00:00"]),
        ({"week-of-month": 1}, "2026-01-01", "2026-02-28", ["2026-01-01T00:00", "2026-02-01T00:00"]),
        ({"week-of-month": 2}, "2026-01-01", "2026-02-28", ["2026-01-05T00:00", "2026-02-02T00:00"]),
        ({"day-of-week-in-month": 2}, "2026-01-01", "2026-02-28", ["2026-01-08T00:00", "2026-02-08T00:00"]),
        ({"day-of-week-in-month": 5}, "2026-01-01", "2026-03-01", ["2026-01-29T00:00"]),
        ({"day-of-week": "Tuesday"}, "2026-01-01", "2026-01-14", ["2026-01-06T00:00", "2026-01-13T00:00"]),
        ({"day-of-month": 31}, "2026-01-01", "2026-04-30", ["2026-01-31T00:00", "2026-03-31T00:00"]),
        ({"day-of-year": 366}, "2019-01-01", "2027-01-01", ["2020-12-31T00:00", "2024-12-31T00:00"]),
        ({"date": "2026-07-31"}, "1900-01-01", "2100-01-01", ["2026-07-31T00:00"]),
        ({"date": None}, "2026-07-30T00:01", "2026-08-01", ["2026-07-31T00:00", "2026-08-01T00:00"]),
        ({"am-pm": "pm"}, "2026-01-01", "2026-01-02", ["2026-01-01T12:00"]),
        ({"am-pm": None}, "2026-01-01", "2026-01-01T23:59", ["2026-01-01T00:00", "2026-01-01T12:00"]),
        ({"hour-of-day": 14}, "2026-01-01", "2026-01-03", ["2026-01-01T14:00", "2026-01-02T14:00"]),
        ({"hour": 3}, "2026-01-01", "2026-01-02", ["2026-01-01T03:00", "2026-01-01T15:00"]),
        ({"hour": 3, "am-pm": "pm"}, "2026-01-01", "2026-01-02", ["2026-01-01T15:00"]),
        ({"hour": None}, "2026-01-01T01:30", "2026-01-01T03:30", ["2026-01-01T02:00", "2026-01-01T03:00"]),
        ({"minute": 0}, "2026-01-01T00:30", "2026-01-01T02:00", ["2026-01-01T01:00", "2026-01-01T02:00"]),
        (
            {"minute": 5, "hour-of-day": 7, "month": "May", "day-of-month": 9, "year": 2026},
            "2000-01-01",
            "2030-01-01",
            ["2026-05-09T07:05"],
        ),
        ({"second": 0}, "2026-01-01T00:00:01", "2026-01-01T00:02", ["2026-01-01T00:01", "2026-01-01T00:02"]),
        ({"second": 0, "millisecond": 0}, "2026-01-01T00:00:01", "2026-01-01T00:01:59", ["2026-01-01T00:01"]),
        ({"second": 30, "hour-of-day": 1}, "2026-01-01", "2026-01-01T01:01", ["2026-01-01T01:00:30"]),
        ({"millisecond": 7}, "2026-01-01", "2026-01-01T00:00:01", ["2026-01-01T00:00:00.007000"]),
        (
            {"millisecond": None},
            "2026-01-01T00:00:00.0001",
            "2026-01-01T00:00:00.0021",
            ["2026-01-01T00:00:00.001000", "2026-01-01T00:00:00.002000"],
        ),
        (
            {"month": "February", "day-of-month": 29},
            "1896-01-01",
            "1908-01-01",
            ["1896-02-29T00:00", "1904-02-29T00:00"],
        ),
        ({"month": "February", "day-of-month": 29}, "1999-01-01", "2001-01-01", ["2000-02-29T00:00"]),
        ({"date": "2100-02-29"}, "2000-01-01", "2200-01-01", []),
        ({"date": "2008-12-24", "day-of-week": "Thursday"}, "2000-01-01", "2020-01-01", []),
        ({"year": 2026}, "2026-01-01T00:00:00.000001", "2026-12-31", []),
        ({"year": 2026}, "2026-01-01", "2026-01-01", ["2026-01-01T00:00"]),
        ({"year": 2026}, "2026-12-31", "2025-12-31", []),
    ],
)
def test_a_timer_occurs_once_at_the_begin_of_each_stretch(
    wanted: Wanted, first: str, last: str, expected: list[str]
) -> None:
    assert moments(wanted, "UTC", first, last) == expected


def test_the_second_tuesday_of_the_month_at_nine() -> None:
    wanted: Wanted = {"day-of-week": "Tuesday", "day-of-week-in-month": 2, "time": "9:00"}
    assert moments(wanted, BERLIN, "2026-01-01", "2026-04-30") == [
        *("2026-01-13T08:00", "2026-02-10T08:00", "2026-03-10T08:00", "2026-04-14T07:00")
    ]


def test_any_of_several_values_will_do() -> None:
    wanted: Wanted = {"day-of-week": ("Saturday", "Sunday"), "time": ["17:00", "9:00", "09:00"]}
    assert moments(wanted, "UTC", "2026-01-02", "2026-01-08") == [
        *("2026-01-03T09:00", "2026-01-03T17:00", "2026-01-04T09:00", "2026-01-04T17:00")
    ]
    assert moments({"minute": ()}, "UTC", "2026-01-02", "2026-01-08") == []


def test_a_timer_needs_fields_that_there_are() -> None:
    with pytest.raises(InternalError, match="nothing"):
        occurrences({}, "UTC", 0, 0)
    with pytest.raises(InternalError, match="data"):
        occurrences({"data": "2008-07-31"}, "UTC", 0, 0)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize("time", ["9:00", "09:00", "9:00:00", "09:00:00.000"])
def test_times_are_compared_by_value(time: str) -> None:
    assert moments({"time": time}, "UTC", "2026-01-01", "2026-01-02T09:00") == ["2026-01-01T09:00", "2026-01-02T09:00"]
    ((_, fields),) = occurrences({"time": time}, "UTC", 0, DAY)
    assert fields["time"] == "09:00"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"time": "9:00:30"}, ["2026-01-01T09:00:30"]),
        ({"time": "9:00:30.25"}, ["2026-01-01T09:00:30.250000"]),
        ({"time": "9:00", "second": 30}, ["2026-01-01T09:00:30"]),
        ({"time": "9:00", "second": 30, "millisecond": 500}, ["2026-01-01T09:00:30.500000"]),
        ({"time": "9:00:30", "millisecond": 500}, ["2026-01-01T09:00:30.500000"]),
        ({"time": "9:00", "second": (0, 59), "millisecond": 0}, ["2026-01-01T09:00", "2026-01-01T09:00:59"]),
        ({"time": "9:00", "minute": 0}, ["2026-01-01T09:00"]),
        ({"time": "9:00", "minute": 1}, []),
        ({"time": "9:00", "am-pm": "pm"}, []),
        ({"time": "9:00:30", "second": 31}, []),
        ({"time": "25:00"}, []),
        ({"time": "nine"}, []),
        ({"time": None, "hour-of-day": 9, "minute": 7}, ["2026-01-01T09:07"]),
    ],
)
def test_a_time_meets_other_fields(wanted: Wanted, expected: list[str]) -> None:
    assert moments(wanted, "UTC", "2026-01-01", "2026-01-01T23:59:59") == expected


@pytest.mark.parametrize(
    ("wanted", "zone", "expected"),
    [
        ({"time": "01:00+01:00"}, "UTC", ["2026-07-01T00:00", "2026-07-02T00:00"]),
        ({"time": "01:00+01:00"}, BERLIN, ["2026-07-01T00:00", "2026-07-02T00:00"]),
        ({"time": "01:00+01:00", "hour-of-day": 2}, BERLIN, ["2026-07-01T00:00", "2026-07-02T00:00"]),
        ({"time": "01:00+01:00", "hour-of-day": 1}, BERLIN, []),
        ({"time": "23:30Z"}, BERLIN, ["2026-07-01T23:30"]),
        ({"time": "23:30Z", "date": "2026-07-02"}, BERLIN, ["2026-07-01T23:30"]),
        ({"time": "20:30-03:30"}, "UTC", ["2026-07-01T00:00", "2026-07-02T00:00"]),
        ({"time": "12:00Z", "second": 30}, BERLIN, ["2026-07-01T12:00:30"]),
    ],
)
def test_a_time_with_an_offset_is_meant_on_the_clock_of_that_offset(
    wanted: Wanted, zone: str, expected: list[str]
) -> None:
    assert moments(wanted, zone, "2026-07-01", "2026-07-02T00:00") == expected


def test_a_time_with_an_offset_occurs_though_the_wall_clock_is_between_two_minutes() -> None:
    # Until 1893 Berlin was 53 minutes and 28 seconds ahead of UTC.
    ((instant, fields),) = occurrences({"time": "23:06Z"}, BERLIN, at("1850-01-01"), at("1850-01-02"))
    assert instant == at("1850-01-01T23:06")
    assert (fields["time"], fields["second"], fields["date"]) == ("23:59", 28, "1850-01-01")
    assert fields["zone-offset"] == pytest.approx((53 * 60 + 28) / 3600)
    assert moments({"time": "23:06Z", "minute": 59}, BERLIN, "1850-01-01", "1850-01-02") == ["1850-01-01T23:06"]
    seconds = occurrences({"time": "23:06Z", "second": None}, BERLIN, at("1850-01-01"), at("1850-01-02"))
    assert [instant for instant, _ in seconds] == [at("1850-01-01T23:06") + k * SECOND for k in range(60)]


# ---------------------------------------------------------------- daylight saving


@pytest.mark.parametrize(
    ("wanted", "zone", "day", "expected"),
    [
        ({"time": "2:30"}, BERLIN, "2026-03-29", []),
        ({"time": "2:30"}, BERLIN, "2026-10-25", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ({"time": "2:30", "dst-offset": 1}, BERLIN, "2026-10-25", ["2026-10-25T00:30"]),
        ({"time": "2:30", "dst-offset": 0}, BERLIN, "2026-10-25", ["2026-10-25T01:30"]),
        ({"time": "3:00"}, BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        ({"time": "2:00"}, BERLIN, "2026-03-29", []),
        ({"time": "1:59:59.999"}, BERLIN, "2026-03-29", ["2026-03-29T00:59:59.999000"]),
        ({"time": "3:00"}, BERLIN, "2026-10-25", ["2026-10-25T02:00"]),
        ({"hour-of-day": 2}, BERLIN, "2026-03-29", []),
        ({"hour-of-day": 2}, BERLIN, "2026-10-25", ["2026-10-25T00:00", "2026-10-25T01:00"]),
        ({"date": None}, BERLIN, "2026-10-25", ["2026-10-24T22:00"]),
        # Half an hour: 02:00 is 02:30, and 02:00 is 01:30.
        ({"time": "2:15"}, "Australia/Lord_Howe", "2026-10-04", []),
        ({"hour-of-day": 2}, "Australia/Lord_Howe", "2026-10-04", []),
        ({"time": "1:45"}, "Australia/Lord_Howe", "2026-04-05", ["2026-04-04T14:45", "2026-04-04T15:15"]),
        ({"hour-of-day": 1}, "Australia/Lord_Howe", "2026-04-05", ["2026-04-04T14:00"]),
        # A day without midnight, a day with two, and a day that never was.
        ({"day-of-week": "Sunday"}, "America/Sao_Paulo", "2018-11-04", []),
        ({"day-of-week": "Sunday", "hour-of-day": 1}, "America/Sao_Paulo", "2018-11-04", ["2018-11-04T03:00"]),
        ({"date": None}, "America/Havana", "2026-11-01", ["2026-11-01T04:00", "2026-11-01T05:00"]),
        ({"date": "2011-12-30"}, "Pacific/Apia", "2011-12-30", []),
        ({"date": "2011-12-30", "time": "12:00"}, "Pacific/Apia", "2011-12-30", []),
        ({"date": "2011-12-31"}, "Pacific/Apia", "2011-12-31", ["2011-12-30T10:00"]),
        # Zones that are not whole hours off.
        ({"time": "0:00"}, "Asia/Kolkata", "2026-01-01", ["2025-12-31T18:30"]),
        ({"time": "12:00"}, "Asia/Kathmandu", "2026-01-01", ["2026-01-01T06:15"]),
        ({"hour-of-day": 12}, "America/St_Johns", "2026-07-01", ["2026-07-01T14:30"]),
    ],
)
def test_a_skipped_time_does_not_occur_and_a_doubled_one_occurs_twice(
    wanted: Wanted, zone: str, day: str, expected: list[str]
) -> None:
    around = (at(day) - 2 * DAY, at(day) + 2 * DAY)
    found = [instant for instant, fields in occurrences(wanted, zone, *around) if fields["date"] == day]
    assert found == [at(moment) for moment in expected]


def test_a_doubled_hour_comes_in_the_order_of_time() -> None:
    found = list(occurrences({"minute": (0, 30)}, BERLIN, at("2026-10-25T00:00"), at("2026-10-25T02:00")))
    assert [(fields["time"], fields["dst-offset"]) for _, fields in found] == [
        *(("02:00", 1), ("02:30", 1), ("02:00", 0), ("02:30", 0), ("03:00", 0))
    ]


@given(
    st.datetimes(min_value=datetime(1850, 1, 1), max_value=datetime(2150, 1, 1)),  # noqa: DTZ001 — wall-clock times
    st.sampled_from([BERLIN, "America/Sao_Paulo", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia"]),
)
def test_a_wall_clock_time_occurs_at_its_instants(moment: datetime, zone: str) -> None:
    local = moment.replace(second=0, microsecond=0)
    folds = [local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)]
    expected = sorted({fold for fold in folds if fold.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local})
    wanted = {"date": local.date().isoformat(), "time": f"{local:%H:%M}"}
    found = occurrences(wanted, zone, at("1840-01-01"), at("2160-01-01"))
    assert [instant for instant, _ in found] == [(fold - EPOCH) // timedelta(microseconds=1) for fold in expected]


# ---------------------------------------------------------------- offsets


def test_an_offset_alone_occurs_where_it_changes() -> None:
    year = ("2026-01-01", "2027-01-01")
    assert moments({"dst-offset": None}, BERLIN, *year) == ["2026-03-29T01:00", "2026-10-25T01:00"]
    assert moments({"dst-offset": 1}, BERLIN, *year) == ["2026-03-29T01:00"]
    assert moments({"dst-offset": 1, "zone-offset": 1}, BERLIN, *year) == ["2026-03-29T01:00"]
    assert moments({"zone-offset": None}, BERLIN, *year) == []
    assert moments({"zone-offset": None}, "UTC", "0001-01-01", "0030-01-01") == []
    assert moments({"dst-offset": 1}, BERLIN, "2026-03-29T01:00", "2026-03-29T01:00") == ["2026-03-29T01:00"]
    assert moments({"dst-offset": 1}, BERLIN, "2026-03-29T01:00:00.000001", "2026-03-30") == []


def test_an_offset_beside_other_fields_only_chooses_among_their_instants() -> None:
    march = ("2026-03-21T12:00", "2026-04-06")
    assert moments({"dst-offset": 1, "day-of-week": "Sunday"}, BERLIN, *march) == ["2026-04-04T22:00"]
    assert moments({"dst-offset": 0, "day-of-week": "Sunday"}, BERLIN, *march) == [
        "2026-03-21T23:00",
        "2026-03-28T23:00",
    ]
    assert moments({"zone-offset": 5.5, "date": None}, "Asia/Kolkata", "2026-01-01", "2026-01-02") == [
        "2026-01-01T18:30"
    ]
    assert moments({"zone-offset": 5, "date": None}, "Asia/Kolkata", "2026-01-01", "2026-01-02") == []


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [
        ("Africa/Freetown", "1939-01-01", "1942-01-01"),
        (BERLIN, "1940-01-01", "1950-01-01"),
        ("Africa/Casablanca", "2010-01-01", "2020-01-01"),
        ("Europe/London", "1967-01-01", "1973-01-01"),
        ("Asia/Gaza", "2038-01-01", "2042-01-01"),
    ],
)
def test_no_change_of_an_offset_is_passed_over(zone: str, first: str, last: str) -> None:
    changes, offsets = [], None
    moment = datetime.fromisoformat(first).replace(tzinfo=UTC)
    while moment <= datetime.fromisoformat(last).replace(tzinfo=UTC):
        local = moment.astimezone(ZoneInfo(zone))
        if offsets not in (None, (local.utcoffset(), local.dst())):
            changes.append((moment - EPOCH) // timedelta(microseconds=1))
        offsets = local.utcoffset(), local.dst()
        moment += timedelta(minutes=20)
    found = [instant for instant, _ in instants({"zone-offset", "dst-offset"}, zone, at(first), at(last))]
    assert len(found) == len(changes) > 3
    assert all(changed - 20 * MINUTE < instant <= changed for instant, changed in zip(found, changes, strict=True))


# ---------------------------------------------------------------- ranges


def test_the_calendar_goes_back_before_1970() -> None:
    assert moments({"date": None}, "UTC", "1969-12-30", "1970-01-01") == [
        *("1969-12-30T00:00", "1969-12-31T00:00", "1970-01-01T00:00")
    ]
    ((instant, fields),) = occurrences({"date": "1582-10-15"}, "UTC", at("0001-01-01"), at("9999-12-31"))
    assert (instant, fields["day-of-week"]) == (-12219292800 * SECOND, "Friday")
    (last_millisecond,) = instants({"millisecond"}, "UTC", -1000, -1)
    assert last_millisecond[0] == -MILLISECOND
    assert last_millisecond[1]["millisecond"] == 999


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/New_York", "Pacific/Kiritimati"])
def test_the_calendar_reaches_from_year_1_to_year_9999(zone: str) -> None:
    everything = (-(2**62), 2**62)
    ((_, first),) = occurrences({"year": 1}, zone, *everything)
    ((_, last),) = occurrences({"date": "9999-12-31", "time": "23:59:59.999"}, zone, *everything)
    assert (first["date"], first["time"]) == ("0001-01-01", "00:00")
    assert (last["date"], last["millisecond"]) == ("9999-12-31", 999)
    assert list(occurrences({"year": 10000, "month": None}, zone, at("9998-01-01"), 2**62)) == []
    assert [fields["year"] for _, fields in instants({"year"}, zone, at("9997-06-01"), 2**62)] == [9998, 9999]


def test_the_calendar_is_read_lazily() -> None:
    found = islice(occurrences({"month": "February", "day-of-month": 29}, "UTC", 0, 2**62), 3)
    assert [fields["year"] for _, fields in found] == [1972, 1976, 1980]
    assert next(instants({"millisecond"}, "UTC", at("2026-01-01T23:59:59.9995"), 2**62))[0] == at("2026-01-02")


def test_the_finest_fields_are_found_in_a_long_range() -> None:
    found = list(
        occurrences({"minute": 59, "second": 59, "millisecond": 999}, BERLIN, at("2026-03-01"), at("2026-04-01"))
    )
    assert len(found) == 31 * 24
    assert {(instant + MILLISECOND) % HOUR for instant, _ in found} == {0}


# ---------------------------------------------------------------- minute by minute

WINDOWS = [
    (BERLIN, "2026-03-22"),
    (BERLIN, "2026-10-18"),
    (BERLIN, "1969-12-24"),
    ("America/New_York", "2020-12-24"),
    ("Asia/Kolkata", "2024-02-22"),
    ("Australia/Lord_Howe", "2026-03-29"),
    ("Australia/Lord_Howe", "2026-09-27"),
    ("America/Sao_Paulo", "2018-10-28"),
    ("America/Havana", "2026-10-25"),
    ("Asia/Kathmandu", "1985-12-26"),
    ("Pacific/Apia", "2011-12-24"),
    ("America/St_Johns", "2026-02-26"),
]
DAYS_OF_WINDOW = 13
OFFSETS = ("zone-offset", "dst-offset")
BY_THE_MINUTE = sorted(set(FIELDS) - {"second", "millisecond"})


@cache
def day_fields(day: date) -> dict[str, FieldValue]:
    """The fields of a day, mostly as the C library formats them."""
    weeks = calendar.Calendar(firstweekday=0).monthdayscalendar(day.year, day.month)
    same_weekdays = [week[day.weekday()] for week in weeks if week[day.weekday()]]
    numbers = {"year": "%Y", "day-of-month": "%d", "week-of-year": "%V", "day-of-year": "%j"}
    return {
        **{name: int(day.strftime(form)) for name, form in numbers.items()},
        "month": calendar.month_name[day.month],
        "day-of-week": calendar.day_name[day.weekday()],
        "week-of-month": 1 + next(k for k, week in enumerate(weeks) if day.day in week),
        "day-of-week-in-month": 1 + same_weekdays.index(day.day),
        "date": day.strftime("%Y-%m-%d"),
    }


@cache
def clock_fields(clock: time) -> dict[str, FieldValue]:
    """The fields of a time of day, as the C library formats them."""
    return {
        "hour-of-day": int(clock.strftime("%H")),
        "minute": int(clock.strftime("%M")),
        "am-pm": clock.strftime("%p").lower(),
        "hour": int(clock.strftime("%I")) % 12,
        "time": clock.strftime("%H:%M"),
    }


def shown(local: datetime, offset: timedelta, saving: timedelta) -> dict[str, FieldValue]:
    hour = timedelta(hours=1)
    offsets: dict[str, FieldValue] = {"zone-offset": (offset - saving) / hour, "dst-offset": saving / hour}
    return day_fields(local.date()) | clock_fields(local.time()) | offsets


@cache
def minutes_of(zone: str, begin: str) -> list[tuple[int, dict[str, FieldValue], dict[str, FieldValue]]]:
    """Every minute of a window: its instant, its fields, and those of one minute before on the wall clock."""
    found = []
    for k in range(DAYS_OF_WINDOW * 24 * 60):
        instant = at(begin) + k * MINUTE
        moment = (EPOCH + timedelta(microseconds=instant)).astimezone(ZoneInfo(zone))
        local, offset, saving = moment.replace(tzinfo=None, fold=0), moment.utcoffset(), moment.dst()
        assert offset is not None
        assert saving is not None
        before = shown(local - timedelta(minutes=1), offset, saving)
        found.append((instant, shown(local, offset, saving), before))
    return found


def time_in(offset: int, instant: int) -> str:
    """What a clock shows that is so many minutes ahead of UTC."""
    return (EPOCH + timedelta(microseconds=instant, minutes=offset)).strftime("%H:%M")


@given(st.data())
def test_a_time_with_an_offset_occurs_as_counted_minute_by_minute(data: st.DataObject) -> None:
    zone, begin = data.draw(st.sampled_from(WINDOWS))
    counted = minutes_of(zone, begin)
    offset = data.draw(st.sampled_from([-570, -60, 0, 60, 345]))
    some, model, _ = data.draw(st.sampled_from(counted))
    time = time_in(offset, some)
    sign = "-" if offset < 0 else "+"
    other = data.draw(st.sampled_from(["day-of-week", "date", "hour", "minute", "dst-offset"]))
    wanted = {"time": f"{time}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}", other: model[other]}
    found = occurrences(wanted, zone, at(begin), at(begin) + DAYS_OF_WINDOW * DAY - 1)
    assert [instant for instant, _ in found] == [
        instant for instant, fields, _ in counted if time_in(offset, instant) == time and fields[other] == model[other]
    ]


@given(st.data())
def test_a_timer_occurs_as_counted_minute_by_minute(data: st.DataObject) -> None:
    zone, begin = data.draw(st.sampled_from(WINDOWS))
    counted = minutes_of(zone, begin)
    named = data.draw(st.sets(st.sampled_from(BY_THE_MINUTE), min_size=1, max_size=4))
    if named <= set(OFFSETS):
        named.add("day-of-week")
    _, model, _ = data.draw(st.sampled_from(counted))
    wanted = {name: model[name] if data.draw(st.booleans()) else None for name in sorted(named)}
    first = at(begin) + data.draw(st.integers(0, DAYS_OF_WINDOW * DAY - 1))
    last = data.draw(st.integers(first, at(begin) + DAYS_OF_WINDOW * DAY - 1))
    if data.draw(st.booleans()):
        first, last = at(begin), at(begin) + DAYS_OF_WINDOW * DAY - 1

    expected = [
        (instant, fields)
        for instant, fields, before in counted
        if first <= instant <= last
        and all(value is None or fields[name] == value for name, value in wanted.items())
        and any(fields[name] != before[name] for name in named.difference(OFFSETS))
    ]
    found = list(occurrences(wanted, zone, first, last))
    assert found == [(instant, fields | {"second": 0, "millisecond": 0}) for instant, fields in expected]


@given(st.data())
def test_instants_are_those_of_all_constants_together(data: st.DataObject) -> None:
    zone, begin = data.draw(st.sampled_from(WINDOWS))
    named = data.draw(st.sets(st.sampled_from(BY_THE_MINUTE), min_size=1, max_size=3))
    first, last = at(begin), at(begin) + 3 * DAY
    found = list(instants(named, zone, first, last))
    assert [instant for instant, _ in found] == sorted({instant for instant, _ in found})
    if found:
        _, some = data.draw(st.sampled_from(found))
        constants = {name: some[name] for name in named}
        chosen = [(instant, fields) for instant, fields in found if constants.items() <= fields.items()]
        assert list(occurrences(constants, zone, first, last)) == chosen
