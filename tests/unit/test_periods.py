"""This module shows when periodic timers and windows occur: they tile time, and days are days of their zone."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.base.time import DAY, HOUR
from ephemera.rules.periods import Periods
from ephemera.terms.events import Interval


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


@given(
    length=st.integers(1, 60),
    period=st.integers(1, 30),
    origin=st.integers(-40, 40),
    first=st.integers(-100, 100),
    wide=st.integers(0, 80),
)
def test_the_intervals_are_those_that_end_between_the_limits(
    length: int, period: int, origin: int, first: int, wide: int
) -> None:
    last = first + wide
    begins = (origin + k * period for k in range(-400, 401))
    expected = [Interval(b, b + length - 1) for b in begins if first <= b + length - 1 <= last]
    assert list(Periods(length, period, origin, "UTC").ending(first, last)) == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia"])
@pytest.mark.parametrize("days", [1, 7])
def test_days_and_weeks_of_any_zone_follow_each_other_without_a_gap(zone: str, days: int) -> None:
    found = list(
        Periods(days * DAY, days * DAY, -3 * DAY, zone).ending(at("2011-01-01T00:00Z"), at("2019-01-01T00:00Z"))
    )
    assert len(found) > 2900 // days
    assert all(after.begin == before.end + 1 for before, after in pairwise(found))


def test_a_day_that_a_zone_leaves_out_begins_no_window() -> None:
    found = Periods(DAY, DAY, 0, "Pacific/Apia").ending(at("2011-12-30T00:00Z"), at("2012-01-01T12:00Z"))
    assert [time.begin for time in found] == [at("2011-12-29T10:00Z"), at("2011-12-30T10:00Z"), at("2011-12-31T10:00Z")]


def test_a_day_begins_with_its_first_instant_where_midnight_is_skipped() -> None:
    (day,) = Periods(DAY, DAY, 0, "America/Sao_Paulo").ending(at("2018-11-05T01:00Z"), at("2018-11-05T03:00Z"))
    assert day == Interval(at("2018-11-04T03:00Z"), at("2018-11-05T02:00Z") - 1)


def test_a_window_of_some_hours_every_day_begins_by_the_wall_clock_and_is_as_long_as_ever() -> None:
    found = Periods(6 * HOUR, DAY, 0, "Europe/Berlin").ending(at("2026-03-28T12:00Z"), at("2026-03-30T12:00Z"))
    assert [(time.begin, time.end - time.begin + 1) for time in found] == [
        (at("2026-03-28T23:00Z"), 6 * HOUR),
        (at("2026-03-29T22:00Z"), 6 * HOUR),
    ]


def test_words_of_periodic_timers_are_names_elsewhere() -> None:
    text = "every(x, offset) <- window: window(x), offset: every(x, offset), every: p(x), x > every;\n"
    text = text.replace(", x > every", "")
    assert ephemera.format(text) == text
    program = "a(end(t)) <- t: every 10 sec offset 3 sec;\nb(end(w)) <- w: window 1w every 1d, w during w;\n"
    assert ephemera.format(program) == program.replace("10 sec offset 3 sec", "10s offset 3s")


def test_what_lies_in_a_window_is_kept_as_long_as_the_window_lasts() -> None:
    program = ephemera.compile("EVENT b(x: int); n(count(*)) <- w: window 10 min every 1 min, while w: collect b(_);")
    told = program.explain("relevance").splitlines()
    assert "  b: kept while begin >= now - 9m59s999ms999us" in told
    assert "  timer:datetime as w: kept while w.s >= now - 9m59s999ms999us" in told
