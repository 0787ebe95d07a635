"""This module sets clocks back and ahead: no time goes back for it, and nothing stands still."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import ephemera
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.state.durable_files import Posix
from ephemera.engine.time.processing_time import MonotonicClock
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.live.sources import Ticking, set_ticks

SECOND = 1_000_000
HOUR = 3_600 * SECOND
OVERDUE = "EVENT order(id: string); EVENT shipped(id: string);"
OVERDUE += "late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);"
IDLE = "EVENT order(id: string); EVENT scan(id: string); STREAM shop CARRIES order; STREAM floor CARRIES scan IDLE 60;"
IDLE += "lost(id) <- o: order(id), w: extend(o, 10), while w: not scan(id);"


class Watch:
    """A clock that is set, in seconds."""

    def __init__(self, seconds: float = 100_000) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * SECOND)


def test_a_clock_goes_on_from_where_it_stood() -> None:
    watch = Watch()
    clock = MonotonicClock(watch)
    said = []
    for set_to in (100_000, 100_001, 96_400, 96_401, 96_402, 100_002, 100_003):
        watch.seconds = set_to
        said.append(clock() // SECOND)
    assert said == sorted(said)
    assert said[:5] == [100_000, 100_001, 100_001, 100_002, 100_003]
    clock.reach(200_000 * SECOND)
    assert clock() == 200_000 * SECOND
    watch.seconds += 1
    assert clock() == 200_001 * SECOND


def test_what_passes_is_told_by_a_clock_that_nobody_sets() -> None:
    watch, passed = Watch(), Watch(5)
    clock = MonotonicClock(watch, passed)
    for day, since in ((100_001, 6), (96_402, 7), (96_500, 105), (100_101, 106)):
        watch.seconds, passed.seconds = day, since
        assert clock() == (100_000 + since - 5) * SECOND
    watch.seconds = 200_000  # a stamp is a time of day: if that is ahead, so is the stamp
    assert clock() == 200_000 * SECOND


# ---- in this process ---------------------------------------------------------------------------------------


def sent(engine: Any, label: str, name: str) -> list[Any]:
    return [answer["data"] for answer in engine.send({"event": label, "data": [name]})]


def test_stamps_of_arrival_never_go_back_and_absence_is_told_in_time() -> None:
    watch = Watch()
    engine = ephemera.compile(OVERDUE).engine(stamp="arrival", now=watch)
    sent(engine, "order", "a")
    watch.seconds -= 3_600
    assert sent(engine, "order", "b") == []
    watch.seconds += 5
    assert sent(engine, "shipped", "b") == []
    watch.seconds += 2
    assert [answer["data"] for answer in engine.advance()] == [["a"]]
    assert not engine.late
    assert not engine.bad


def test_a_clock_that_stands_still_makes_nothing_late() -> None:
    engine = ephemera.compile(OVERDUE).engine(stamp="arrival", now=Watch())
    for name in "abc":
        sent(engine, "order", name)
    assert not engine.late


def test_stamps_go_on_behind_a_snapshot_though_the_clock_was_set_back_meanwhile() -> None:
    watch = Watch()
    program = ephemera.compile(OVERDUE)
    engine = program.engine(stamp="arrival", now=watch)
    sent(engine, "order", "a")
    taken = engine.snapshot()
    watch.seconds -= 3_600
    second = program.engine(stamp="arrival", now=watch).restore(taken)
    assert sent(second, "order", "b") == []
    assert not second.late
    watch.seconds += 7
    assert [answer["data"] for answer in second.advance()] == [["a"], ["b"]]


@pytest.mark.parametrize("leap", [-3_600, 3_600, -10_000_000])
def test_silence_does_not_depend_on_the_time_of_day(monkeypatch: pytest.MonkeyPatch, leap: int) -> None:
    watch, passed = Watch(), Watch(5)
    monkeypatch.setattr(time, "time_ns", lambda: 1_000 * watch())
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1_000 * passed())
    engine = ephemera.compile(IDLE).engine()
    engine.send_many([{"event": "scan", "time": 100, "data": ["x"]}, {"event": "order", "time": 100, "data": ["a"]}])
    engine.send({"event": "order", "time": 200, "data": ["b"]})
    watch.seconds += leap
    passed.seconds += 59
    assert engine.tick() == []
    assert engine.stats().bounds["floor"] == 100 * SECOND - 1
    passed.seconds += 12
    assert [answer["data"] for answer in engine.tick()] == [["a"]]
    assert engine.stats().bounds["floor"] == 111 * SECOND - 1


def test_an_injected_clock_that_goes_back_ends_no_silence_and_begins_none() -> None:
    watch = Watch()
    engine = ephemera.compile(IDLE).engine(now=watch)
    engine.send({"event": "scan", "time": 100, "data": ["x"]})
    stood = engine.stats().bounds["floor"]
    for leap, moved in ((50, 0), (-3_600, 0), (11, 1), (1, 2), (-50, 2), (3, 5)):
        watch.seconds += leap
        engine.tick()
        assert engine.stats().bounds["floor"] == stood + moved * SECOND


# ---- on Spark ----------------------------------------------------------------------------------------------


def ticking(folder: Path, passed: Watch) -> Ticking:
    ledger = Checkpoint(str(folder))
    ledger.open([], 1, 1)
    return Ticking(ledger, passed)


def test_the_time_of_a_live_query_counts_on_over_restarts(tmp_path: Path) -> None:
    passed = Watch(5)
    first = ticking(tmp_path, passed)
    began = first.at(0, {})
    passed.seconds += 2
    assert first.at(1, {}) == began + 2 * SECOND
    again = ticking(tmp_path, Watch(77))
    before = {0: Progress(now=began)}
    assert again.at(1, before) == began + 2 * SECOND  # the batch is done again, and sees the same time
    assert again.at(2, before) == began + 2 * SECOND
    third = ticking(tmp_path, Watch(3))  # a day later, or earlier: who knows
    assert third.at(3, {0: Progress(now=began + 9 * SECOND)}) == began + 9 * SECOND


@pytest.mark.parametrize(("made", "now", "set_to"), [(1_000, 400, 390), (1_000, 1_009, 999), (1_000, 1_010, 1_000)])
def test_ticks_go_on_from_the_last_one(tmp_path: Path, made: int, now: int, set_to: int) -> None:
    log = {"offsets/6": "v1\n{}\n-\n3", "offsets/7": 'v1\n{}\n{"logOffset":3}\n10\n4', "sources/0/0": "v1\n{}"}
    log |= {"sources/1/0": f"v1\n{made}000", "sources/1/.0.crc": "x", "sources/2/0": "v1\n{}", "commits/6": "v1\n{}"}
    for name, text in log.items():
        path = tmp_path / "spark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    set_ticks(Posix(), str(tmp_path), lambda: now * SECOND)
    assert (tmp_path / "spark/sources/1/0").read_text() == f"v1\n{set_to}000"
    assert (tmp_path / "spark/sources/1/.0.crc").exists() == (set_to == made)
    assert (tmp_path / "spark/sources/2/0").read_text() == "v1\n{}"


def test_there_are_no_ticks_to_set_in_a_new_checkpoint_or_a_broken_one(tmp_path: Path) -> None:
    set_ticks(Posix(), str(tmp_path))
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").write_bytes(b"\n")
    set_ticks(Posix(), str(tmp_path))
