"""This module shows the engine that people send events to: bounds, late events, quiet input, and what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.engine.state.snapshot import WrongSnapshot, load

OVERDUE = """
TIME UNIT 1 hour;
EVENT order(id: string);
EVENT shipped(id: string);
overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
"""

TWO_SOURCES = """
TIME UNIT 1 sec;
EVENT order(id: string, kind: string);
EVENT paid(id: string);
EVENT scan(id: string);
STREAM shop CARRIES order, paid WATERMARK 3 sec;
STREAM floor CARRIES scan WATERMARK 5 sec;
ready(id) <- o: order(id, _), p: paid(id), {o, p} within 20;
stuck(id) <- s: scan(id), w: extend(s, 10), while w: not ready(id);
rush(id) <- o: order(id, "express"), w: extend(o, 4), while w: not paid(id);
"""


def event(label: str, time: object, *values: object) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(values)}


def test_absence_is_reported_when_time_passes() -> None:
    engine = ephemera.compile(OVERDUE).engine()
    assert engine.send(event("order", 1, "a")) == []
    assert engine.send(event("order", 6, "b")) == []
    assert engine.advance(6.999) == []
    assert engine.advance(7) == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]
    assert engine.send(event("shipped", 12, "b")) == []
    assert engine.finish() == []


def test_equal_stamps_are_never_late_and_earlier_ones_are() -> None:
    engine = ephemera.compile(OVERDUE).engine()
    engine.send(event("order", 5, "a"))
    engine.send(event("shipped", 5, "a"))
    engine.send(event("order", 4, "b"))
    assert [late.event.term.label for late in engine.late] == ["order"]
    assert engine.finish() == []


def test_what_is_wrong_is_kept_with_the_reason() -> None:
    engine = ephemera.compile(OVERDUE).engine()
    engine.send_many([event("order", 1, 7, 8), "no json", {"event": "order", "time": [3, 2], "data": ["a"]}])
    assert len(engine.bad) == 3
    assert all(bad.reason for bad in engine.bad)
    assert engine.stats().received == 3


def stream(seed: int, count: int) -> list[dict[str, Any]]:
    """Orders, payments and scans with a little disorder, no more than the watermarks allow."""
    dice = Random(seed)
    events: list[tuple[float, dict[str, Any]]] = []
    for k in range(count):
        identity = f"id-{dice.randrange(max(count // 3, 1))}"
        at = k + dice.randrange(3)
        label = dice.choice(["order", "paid", "scan"])
        values = [identity, dice.choice(["express", "slow"])] if label == "order" else [identity]
        delay = dice.random() * (5 if label == "scan" else 3)
        events.append((at + delay, event(label, at, *values)))
    return [e for _, e in sorted(events, key=lambda pair: pair[0])]


def cut(events: list[dict[str, Any]], sizes: list[int]) -> list[list[dict[str, Any]]]:
    parts: list[list[dict[str, Any]]] = []
    for size in sizes:
        parts.append(events[:size])
        events = events[size:]
    return [*parts, events]


@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(0, 9), max_size=20))
def test_cuts_and_arrival_orders_within_the_bounds_change_no_byte(seed: int, sizes: list[int]) -> None:
    program = ephemera.compile(TWO_SOURCES)
    events = stream(seed, 40)
    engine = program.engine()
    answers = [a for part in cut(events, sizes) for a in engine.send_many(part)] + engine.finish()
    assert not engine.late
    expected = program.run(sorted(events, key=lambda e: (e["time"], e["event"])), engine="oracle")
    assert sorted(map(json.dumps, answers)) == sorted(map(json.dumps, expected))
    for label in ("ready", "stuck", "rush"):
        times = [a["time"][-1] if isinstance(a["time"], list) else a["time"] for a in answers if a["event"] == label]
        assert times == sorted(times)


def test_a_slow_source_holds_back_only_those_who_need_it() -> None:
    engine = ephemera.compile(TWO_SOURCES).engine()
    found = engine.send_many([event("order", 1, "a", "express"), event("order", 30, "b", "slow")])
    assert [a["event"] for a in found] == ["rush"]
    found = engine.send_many([event("scan", 2, "a"), event("scan", 40, "c")])
    assert [a["event"] for a in found] == ["stuck"]


def test_memory_follows_relevance_and_not_the_length_of_the_stream() -> None:
    engine = ephemera.compile(TWO_SOURCES).engine()
    sizes = []
    for part in range(12):
        shift = part * 200
        engine.send_many([{**e, "time": e["time"] + shift} for e in stream(part, 200)])
        sizes.append(engine.stats().stored)
    assert max(sizes[6:]) <= max(sizes[:6]) * 1.1
    stats = engine.stats()
    assert all(h.relevant is not None for h in stats.histories)
    assert sum(h.collected for h in stats.histories) > 10 * stats.stored


def test_instances_of_an_expression_are_forgotten_too() -> None:
    program = "TIME UNIT 1 sec; EVENT a(x: int); EVENT b(x: int); EVENT c(x: int);"
    engine = ephemera.compile(program + "p(x) <- e: algebra ((a(x); b(x))[5]), k: c(x), e before[0, 3] k;").engine()
    sizes = []
    for t in range(0, 400, 4):
        engine.send_many([event("a", t, 1), event("b", t + 1, 1), event("c", t + 2, 1)])
        sizes.append(engine.stats().stored)
    assert max(sizes[50:]) <= max(sizes[:50])


def test_a_head_without_a_value_is_told_and_not_kept() -> None:
    engine = ephemera.compile("TIME UNIT 1 sec; EVENT a(x: int); p(1 / x) <- i: a(x);").engine()
    assert [a["data"] for a in engine.send_many([event("a", 1, 2), event("a", 2, 0), event("a", 3, 1)])] == [[0.5]]
    (letter,) = engine.take_dead_letters()
    assert (letter.rule, letter.variables) == (1, {"x": 0})
    assert engine.take_dead_letters() == []


def test_every_event_is_exactly_one_of_waiting_kept_collected_duplicate_unused_late_or_bad() -> None:
    engine = ephemera.compile(OVERDUE).engine()
    sent = [event("order", t, f"id-{t % 40}") for t in range(100)] + [event("order", 99, "id-19")] * 3
    sent += [event("noise", 100 + t, 1) for t in range(7)] + [event("order", 50, "late"), event("order", 200)]
    engine.send_many([*sent, "no json"])
    stats = engine.stats()
    (lane,) = stats.lanes
    assert stats.received == len(sent) + 1
    assert stats.received == lane.received + stats.late + stats.bad
    assert lane.received == lane.waiting + lane.duplicate + lane.unused + lane.kept + lane.collected
    assert (stats.late, stats.bad, lane.duplicate, lane.unused, lane.waiting) == (1, 2, 3, 6, 1)
    assert lane.collected > 80


def test_events_stamped_on_arrival_close_each_instant() -> None:
    now = 0
    engine = ephemera.compile(OVERDUE).engine(stamp="arrival", now=lambda: now)
    now = 3_600_000_000
    assert engine.send({"event": "order", "data": ["a"]}) == []
    now = 7 * 3_600_000_000
    assert [a["event"] for a in engine.advance()] == ["overdue"]


def test_a_background_clock_reports_absence_on_quiet_input() -> None:
    times = iter(range(0, 100 * 3_600_000_000, 3_600_000_000))
    engine = ephemera.compile(OVERDUE).engine(stamp="arrival", now=lambda: next(times))
    engine.send({"event": "order", "data": ["a"]})
    told: list[Any] = []
    heard = threading.Event()

    def deliver(answers: Any) -> None:
        told.extend(answers)
        heard.set()

    with engine.start(deliver, every=0.001):
        assert heard.wait(30)
    assert [a["data"] for a in told] == [["a"]]


def test_only_an_engine_that_stamps_has_a_clock() -> None:
    with pytest.raises(ValueError, match="arrival"):
        ephemera.compile(OVERDUE).engine().start(print)


def test_an_engine_goes_on_in_another_process_from_files(tmp_path: Path) -> None:
    program = ephemera.compile(TWO_SOURCES)
    events = stream(3, 120)
    whole = program.engine()
    expected = whole.send_many(events) + whole.finish()
    engine = program.engine()
    answers = engine.send_many(events[:50])
    first = engine.snapshot()
    first.save(tmp_path)
    answers += engine.send_many(events[50:80])
    second = engine.snapshot(since=first)
    assert set(second.segments) <= second.names
    second.save(tmp_path)
    script = (
        "import json, sys, ephemera; from pathlib import Path; from ephemera.engine.state.snapshot import load;"
        "program, rest = json.load(sys.stdin);"
        "engine = ephemera.compile(program).engine().restore(load(Path(sys.argv[1])));"
        "print(json.dumps(engine.send_many(rest) + engine.finish()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        input=json.dumps([TWO_SOURCES, events[80:]]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(map(json.dumps, answers + json.loads(done.stdout))) == sorted(map(json.dumps, expected))


def test_a_snapshot_has_only_what_an_earlier_one_lacks() -> None:
    engine = ephemera.compile(TWO_SOURCES).engine()
    engine.send_many(stream(1, 200))
    first = engine.snapshot()
    second = engine.snapshot(since=first)
    runs = {name for name in second.segments if name.startswith("run-")}
    assert not runs
    assert {name for name in first.segments if name.startswith("run-")}


def test_a_snapshot_of_another_program_is_refused_with_what_differs() -> None:
    taken = ephemera.compile(OVERDUE).engine().snapshot()
    other = ephemera.compile(OVERDUE.replace("extend(o, 6)", "extend(o, 7)")).engine()
    with pytest.raises(WrongSnapshot, match="7h"):
        other.restore(taken)


def test_a_folder_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongSnapshot, match="no snapshot"):
        load(tmp_path)


ODD = 'TIME UNIT 1 hour; TIME ZONE "UTC"; EVENT a(x: int); EVENT b(x: int); EVENT c(x: int) LASTS AT MOST 3;'
ODD += "EVENT d(x: int) LASTS ANY; EVENT s(x: int) LASTS AT MOST 9 ARRIVES AT BEGIN;\n"


@pytest.mark.parametrize(
    ("rules", "events"),
    [
        (
            'q(x) <- i: d(x), w: from-end-backward(i, 5), while w: not t: timer:datetime {{ time { "09:00" } }};',
            [event("d", [0, 10], 1), event("a", 20, 1)],
        ),
        (
            "p(x) <- o: a(x), w: extend(o, 6); q(x) <- i: p(x), j: b(x), {i, j} within 10, i before j;",
            [event("p", 1, 1), event("b", 10, 1)],
        ),
        (
            "q(x) <- e: algebra restricted (d(x) | (a(x); b(x))[2]), not {e} within 3, {e} within 9;",
            [event("a", 4, 1), event("d", [0, 5], 1), event("b", 5, 1), event("a", 30, 1)],
        ),
        ("q(x) <- i: b(x), j: s(x), i during j;", [event("s", [1, 4], 1), event("b", 2, 1), event("a", 9, 1)]),
        (
            "q(x) <- i: c(x), w: extend(i, 3), while w: not n: c(x) where { i overlaps n };",
            [event("c", [1, 3], 1), event("c", [2, 4], 1), event("a", 20, 1)],
        ),
    ],
    ids=["timers before the input", "shorter from outside", "rivals", "known at begin", "absence with a relation"],
)
def test_what_a_review_found_stays_mended(rules: str, events: list[dict[str, Any]]) -> None:
    program = ephemera.compile(ODD + rules)
    expected = program.run(events, engine="oracle")
    engine = program.engine()
    live = [answer for one in events for answer in engine.send(one)] + engine.finish()
    assert program.run(events) == expected
    assert live == expected
    assert not engine.late


def test_a_rule_for_any_label_sees_what_no_stream_carries() -> None:
    program = ephemera.compile("EVENT a(x: int); STREAM s CARRIES a; DETECT y { var L } ON event e: var L {{ }} END")
    events = [event("a", 1, 1), event("b", 2, 1), event("a", 3, 1)]
    expected = program.run(events, engine="oracle")
    engine = program.engine()
    assert program.run(events) == expected
    assert engine.send_many(events) + engine.finish() == expected
