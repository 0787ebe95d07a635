"""This module compares the engine with the oracle on external calendars: who sees their days, and when."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term

HOUR = 3_600_000_000
SHIFTS = [Event(Term("cal:shift"), Interval(a * HOUR, b * HOUR)) for a, b in ((0, 8), (8, 16))]
ORDERS = [{"event": "order", "time": t, "data": [name]} for t, name in ((1, "a"), (7, "b"), (9, "c"), (20, "d"))]
STRANGER = {"event": "cal:shift", "time": [2, 8], "data": []}


@pytest.mark.parametrize("stranger", [False, True], ids=["", "with an event of that name from outside"])
@pytest.mark.parametrize(
    ("rules", "count"),
    [
        ('DETECT seen { name { var L } } ON event e: var L {{ }} where { var L != "seen" } END', None),
        ("busy(count(i)) <- d: cal:shift(), while d: collect order(i);", 2),
        ("next(1) <- d: cal:shift(), e: cal:shift(), d != e, {d, e} within 16;", 1),
        ("then(x) <- e: algebra ((cal:shift() ; order(x))[12]);", 2),
        (
            "EVENT order(i: string); STREAM s CARRIES order; n(1) <- d: cal:shift(), while d: not order(_);",
            0,
        ),
    ],
    ids=["any label", "collected", "two days", "algebra", "a stream of its own"],
)
def test_only_patterns_by_its_name_see_a_calendar(rules: str, count: int | None, *, stranger: bool) -> None:
    program = ephemera.compile(f"TIME UNIT 1 hour; {rules}")
    events: list[dict[str, Any]] = [*ORDERS[:2], *([STRANGER] if stranger else []), *ORDERS[2:]]
    calendars = {"cal:shift": SHIFTS}
    expected = program.run(events, engine="oracle", calendars=calendars)
    engine = program.engine(calendars=calendars, allow_unbounded=True)
    live = [answer for event in events for answer in engine.send(event)]
    assert program.run(events, calendars=calendars, allow_unbounded=True) == expected
    assert live + engine.finish() == expected
    assert len(expected) == (len(events) if count is None else count)
    assert engine.stats().received == len(events)


def test_the_days_of_a_calendar_wait_for_no_source() -> None:
    program = ephemera.compile(
        "TIME UNIT 1 hour; EVENT order(i: string); STREAM s CARRIES order;"
        "busy(count(i)) <- d: cal:shift(), while d: collect order(i);"
    )
    engine = program.engine(calendars={"cal:shift": SHIFTS}, allow_unbounded=True)
    assert [len(engine.send(event)) for event in ORDERS] == [0, 0, 1, 1]


def test_days_are_told_once_across_a_snapshot() -> None:
    program = ephemera.compile("TIME UNIT 1 hour; busy(count(i)) <- d: cal:shift(), while d: collect order(i);")
    calendars = {"cal:shift": SHIFTS}
    first = program.engine(calendars=calendars, allow_unbounded=True)
    answers = first.send_many(ORDERS[:3])
    second = program.engine(calendars=calendars, allow_unbounded=True).restore(first.snapshot())
    expected = program.run(ORDERS, calendars=calendars, allow_unbounded=True)
    assert answers + second.send_many(ORDERS[3:]) + second.finish() == expected


CLOCKED = """
TIME UNIT 1 hour;
EVENT order(i: string);
EVENT paid(i: string);
STREAM shop CARRIES order WATERMARK 3;
noon(count(i)) <- t: timer:datetime(hour-of-day: 12), w: from-end-backward(t, 12), while w: collect order(i);
tick() <- t: timer:datetime(minute: 30), w: from-end-backward(t, 1), while w: not paid(_);
"""


@given(
    times=st.lists(st.tuples(st.sampled_from(["order", "paid"]), st.integers(0, 2)), max_size=30),
    cuts=st.lists(st.integers(1, 12), max_size=8),
    table=st.booleans(),
)
def test_how_events_are_cut_makes_no_difference_to_the_clock(
    times: list[tuple[str, int]], cuts: list[int], *, table: bool
) -> None:
    at, events = 5, []
    for label, step in times:
        at += step
        events.append({"event": label, "time": at, "i": "x"})
    program = ephemera.compile(CLOCKED)
    one, other = program.engine(), program.engine()
    singly = [answer for e in events for answer in one.send(as_object(e))] + one.finish()
    found: list[dict[str, Any]] = []
    for size in [*cuts, len(events)]:
        part, events = events[:size], events[size:]
        if part:
            found += other.send_many(pa.Table.from_pylist(part) if table else map(as_object, part))
    found += other.finish()
    assert sorted(map(str, found)) == sorted(map(str, singly))


def as_object(event: dict[str, Any]) -> dict[str, Any]:
    return {"event": event["event"], "time": event["time"], "data": [event["i"]]}
