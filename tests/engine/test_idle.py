"""This module shows sources that fall silent: by the clock, after their idle time, they hold no one back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.formats.json_events import read_object
from ephemera.semantics.arrival import Arrival, late_arrivals
from ephemera.terms.events import Event

SECOND = 1_000_000
PROGRAM = """
EVENT order(id: string);
EVENT scan(id: string);
STREAM shop CARRIES order WATERMARK 2 sec;
STREAM floor CARRIES scan WATERMARK 5 sec IDLE 60 sec;
lost(id) <- o: order(id), w: extend(o, 10), while w: not scan(id);
"""


def event(label: str, time: object, *values: object) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(values)}


class Watch:
    """A clock that stands still until it is set, in seconds."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> int:
        return int(self.seconds * SECOND)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def engine(watch: Watch) -> LiveEngine:
    return ephemera.compile(PROGRAM).engine(now=watch)


def bounds(engine: LiveEngine) -> dict[str, float]:
    return {name: bound / SECOND for name, bound in engine.stats().bounds.items()}


def data(answers: Sequence[dict[str, Any]]) -> list[Any]:
    return [answer["data"] for answer in answers]


def test_a_silent_source_moves_at_the_speed_of_the_clock_from_where_it_stood(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 105, "x"))
    stood = bounds(engine)["floor"]
    watch.seconds = 1_060
    assert engine.tick() == []
    assert bounds(engine)["floor"] == stood
    watch.seconds = 1_061
    engine.tick()
    assert bounds(engine)["floor"] == stood + 1
    watch.seconds = 1_075.5
    engine.tick()
    assert bounds(engine)["floor"] == stood + 15.5


def test_it_holds_back_no_one_then(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    assert engine.send_many([event("order", 100, "a"), event("order", 200, "b")]) == []
    watch.seconds = 1_060 + 15
    assert engine.tick() == []
    watch.seconds += 0.000_001
    assert data(engine.tick()) == [["a"]]


def test_every_call_looks_at_the_clock(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    engine.send_many([event("order", 100, "a"), event("order", 200, "b")])
    watch.seconds = 1_100
    assert data(engine.send(event("order", 200, "c"))) == [["a"]]


def test_what_arrives_behind_the_bound_of_a_silent_source_is_late(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    watch.seconds = 1_060 + 20
    bound = 100 - 5 - 0.000_001 + 20
    engine.send_many([event("scan", bound, "behind"), event("scan", bound + 0.000_001, "just in time")])
    assert [late.event.term.children[0].children for late in engine.late] == [("behind",)]  # type: ignore[union-attr]
    assert engine.stats().late == 1


def test_a_source_that_wakes_has_its_watermark_again(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    watch.seconds = 1_080
    engine.send(event("scan", 200, "awake"))
    assert bounds(engine)["floor"] == 200 - 5 - 0.000_001
    watch.seconds = 1_140
    engine.send(event("scan", 195, "within the watermark"))
    assert not engine.late
    watch.seconds = 1_200
    engine.tick()
    assert bounds(engine)["floor"] == 200 - 5 - 0.000_001


def test_a_late_event_ends_the_silence_too(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    watch.seconds = 1_070
    engine.send(event("scan", 50, "late"))
    stood = bounds(engine)["floor"]
    watch.seconds = 1_130
    engine.tick()
    assert bounds(engine)["floor"] == stood


def test_a_source_that_was_never_heard_begins_where_the_slowest_other_stands(engine: LiveEngine, watch: Watch) -> None:
    engine.send_many([event("order", 100, "a"), event("order", 200, "b")])
    watch.seconds = 1_060
    assert engine.tick() == []
    watch.seconds = 1_060.5
    assert data(engine.tick()) == [["a"]]
    assert bounds(engine)["floor"] == bounds(engine)["shop"]


def test_a_source_without_an_idle_time_waits_for_ever(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("order", 100, "a"))
    stood = bounds(engine)["shop"]
    watch.seconds = 100_000
    engine.tick()
    assert bounds(engine)["shop"] == stood


def test_nothing_is_idle_in_batch() -> None:
    program = ephemera.compile(PROGRAM)
    events = [event("order", 1_000_000, "a"), event("scan", 1, "x"), event("scan", 1_000_005, "a")]
    assert program.run(events) == program.run(events, engine="oracle") == []


def test_a_restored_engine_counts_the_silence_anew(engine: LiveEngine, watch: Watch) -> None:
    engine.send(event("scan", 100, "x"))
    taken = engine.snapshot()
    watch.seconds = 5_000
    second = ephemera.compile(PROGRAM).engine(now=watch).restore(taken)
    stood = bounds(second)["floor"]
    watch.seconds = 5_060
    second.tick()
    assert bounds(second)["floor"] == stood
    watch.seconds = 5_061
    second.tick()
    assert bounds(second)["floor"] == stood + 1


def test_a_background_clock_watches_the_silence() -> None:
    times = iter(range(0, 10_000 * SECOND, 10 * SECOND))
    engine = ephemera.compile(PROGRAM).engine(now=lambda: next(times))
    engine.send(event("scan", 100, "x"))
    engine.send_many([event("order", 100, "a"), event("order", 200, "b")])
    told: list[Any] = []
    heard = threading.Event()

    def deliver(answers: Any) -> None:
        told.extend(answers)
        heard.set()

    with engine.start(deliver, every=0.001):
        assert heard.wait(30)
    assert data(told) == [["a"]]


SOURCES = """
EVENT a(x: int); EVENT b(x: int); EVENT c(x: int) LASTS AT MOST 5; EVENT s(x: int) LASTS AT MOST 5 ARRIVES AT BEGIN;
STREAM one CARRIES a WATERMARK 2 IDLE 3;
STREAM two CARRIES b IDLE 5;
STREAM three CARRIES c, s WATERMARK 1;
p(x, y) <- i: a(x), j: b(y), {i, j} within 4;
q(x) <- i: a(x), w: extend(i, 2), while w: not c(x);
r(x) <- i: b(x), j: s(x), i during j;
"""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "s", "advance", "tick"]),
        st.integers(0, 20),
        st.sampled_from([0, 0, 1, 4]),
        st.integers(0, 4),
        st.integers(0, 1),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_what_is_late_is_what_the_definition_calls_so(steps: list[tuple[str, int, int, int, int]]) -> None:
    program = ephemera.compile(SOURCES)
    watch = Watch()
    engine = program.engine(now=watch)
    arrivals = [Arrival(now=watch())]
    sent: list[dict[str, Any] | None] = [None]
    answers: list[dict[str, Any]] = []
    for label, begin, length, pause, value in steps:
        watch.seconds += pause
        one = event(label, [begin, begin + (length if label in "cs" else 0)], value) if len(label) == 1 else None
        read = read_object(one, program.catalogue) if one is not None else None
        closes = begin * SECOND if label == "advance" else None
        arrivals.append(Arrival(read if isinstance(read, Event) else None, closes, watch()))
        sent.append(one)
        answers += engine.send(one) if one is not None else engine.tick()
        answers += engine.advance(begin) if closes is not None else []
    answers += engine.finish()
    late = late_arrivals(arrivals, program.catalogue)
    assert Counter(one.event for one in engine.late) == Counter(arrivals[k].event for k in late)
    in_time = [one for k, one in enumerate(sent) if one is not None and k not in late]
    expected = program.run(in_time, engine="oracle")
    assert sorted(map(str, answers)) == sorted(map(str, expected))
