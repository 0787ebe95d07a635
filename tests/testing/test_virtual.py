"""This module shows what an engine on virtual time does: time moves only when it is moved, and mistakes are raised."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import ephemera
from ephemera.testing.virtual import VirtualEngine, length_of

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
overdue(id) <- o: order(id, qty), w: extend(o, 6), while w: not shipped(id), qty < 10;
"""


def engine(text: str = SHOP, **options: Any) -> VirtualEngine:
    return VirtualEngine(ephemera.compile(text), **options)


def overdue(begin: Any, end: Any, who: str = "a") -> dict[str, Any]:
    return {"event": "overdue", "time": [begin, end], "data": [who]}


def test_absence_is_known_when_the_window_ends_and_not_before() -> None:
    shop = engine()
    shop.send("order", "a", 3)
    shop.advance("5h 59 min 59 sec")
    assert shop.answers == []
    shop.advance("1 sec")
    assert shop.answers == [overdue(0, 6)]


def test_an_instant_stays_open_until_answers_are_asked_for() -> None:
    shop = engine()
    shop.send("order", "a", 3).advance("6h").send("shipped", "a").advance("1 week")
    assert shop.answers == []


def test_nothing_happens_at_an_instant_that_is_over() -> None:
    shop = engine().send("order", "a", 3).advance("6h")
    assert shop.answers == [overdue(0, 6)]
    with pytest.raises(ValueError, match="nothing more can happen at 6: answers were asked for"):
        shop.send("shipped", "a")
    assert shop.advance("1 ms").send("order", "b", 3).advance("6h").take() == [overdue(0, 6), *shop.answers[1:]]


@pytest.mark.parametrize("by", ["90 min", 1.5, timedelta(minutes=90), "1h30m", "1.50"])
def test_time_moves_by_a_duration(by: Any) -> None:
    assert engine().advance(by).now == 1.5


@pytest.mark.parametrize("by", ["soon", "6 fortnights", "6h x", "", "1 min 6h", "0.1 us"])
def test_what_is_no_duration_is_told(by: str) -> None:
    with pytest.raises(ValueError, match="is no duration such as `6h`"):
        engine().advance(by)


def test_time_does_not_go_back() -> None:
    shop = engine().advance_to(3)
    with pytest.raises(ValueError, match="time does not go back: it is 3, and 2 is over"):
        shop.advance_to(2)
    with pytest.raises(ValueError, match="time does not go back"):
        shop.advance(-1)


def test_times_that_are_no_whole_units_are_exact() -> None:
    shop = engine().advance("20 min").send("order", "a", 3).advance("6h")
    (answer,) = shop.answers
    assert answer["time"] == pytest.approx([1 / 3, 6 + 1 / 3])
    assert shop.engine.stats().late == 0
    for k in range(60):  # each minute is a fraction of an hour without an end
        shop.advance("1 min").send("order", f"b{k}", 3)
    assert len(shop.advance("6h").take()) == 61


def test_times_are_texts_where_the_start_is_one() -> None:
    shop = engine(start="2026-03-01T09:00Z").send("order", "a", 3).advance("1 day")
    assert shop.now == "2026-03-02T09:00:00Z"
    assert shop.answers == [overdue("2026-03-01T09:00:00Z", "2026-03-01T15:00:00Z")]


def test_values_are_given_by_position_by_name_or_as_an_object() -> None:
    shop = engine().send("order", "a", 3).send("order", id="b", qty=3)
    shop.send({"event": "order", "data": ["c", 3]}).send({"event": "order", "time": 0, "data": ["d", 3]})
    assert [answer["data"][0] for answer in shop.advance("6h").answers] == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="by position or by name, and not both"):
        shop.send("order", "a", qty=3)
    with pytest.raises(ValueError, match="an event that is an object has its values in it"):
        shop.send({"event": "order"}, "a")


def test_events_may_have_a_time_of_their_own_that_is_not_to_come() -> None:
    lasting = SHOP.replace("qty: int)", "qty: int) LASTS AT MOST 5 hours")
    shop = engine(lasting).advance("3h").send("order", "a", 3, time=[1, 3])
    with pytest.raises(ValueError, match=r"4 is still to come: it is 3; `advance` first"):
        shop.send("order", "b", 3, time=4)
    assert shop.advance("6h").answers == [overdue(1, 9)]
    shop.send("shipped", "a", time=7)
    assert [one.event.term.label for one in shop.late] == ["shipped"]


def test_what_is_no_event_of_the_program_is_raised_unless_it_may_be() -> None:
    with pytest.raises(ephemera.EphemeraError, match=r"is no event of the program: .*qty"):
        engine().send("order", "a", "three")
    shop = engine(allow_bad=True).send("order", "a", "three")
    assert len(shop.bad) == 1


def test_answers_without_a_value_are_told() -> None:
    shop = engine("EVENT a(x: int); b(1 / x) <- i: a(x);").send("a", 0).advance("1 sec")
    assert (shop.answers, [one.rule for one in shop.undefined]) == ([], [1])


def test_sources_fall_silent_on_virtual_time() -> None:
    text = SHOP + "STREAM shop CARRIES order; STREAM floor CARRIES shipped IDLE 1 hour;"
    assert engine(text).send("order", "a", 3).advance("7h").answers == [overdue(0, 6)]


def test_what_is_asked_for_and_tables_are_given_as_to_any_engine() -> None:
    text = "EVENT a(x: int); TABLE t(x: int); p(x) <- i: a(x), t(x); q(x) <- i: a(x);"
    asked = engine(text, emit=["p"], tables={"t": [{"x": 1}]})
    assert [one["event"] for one in asked.send("a", 1).send("a", 2).answers] == ["p"]


def test_a_length_counts_the_programs_unit_where_it_names_none() -> None:
    assert length_of("2", 3) == 6
