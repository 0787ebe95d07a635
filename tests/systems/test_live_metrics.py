"""A live run in one process says what it does: in reports for whoever watches, and as metrics over HTTP."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.base import installed
from ephemera.base.time import DAY, HOUR, SECOND
from ephemera.cli.main import app
from ephemera.connect.live.meter import EVERY, Meter
from ephemera.connect.live.reads import Read
from ephemera.connect.live.report import HistoryReport, LiveReport, SourceReport
from ephemera.connect.live.run import LiveProgram, LiveRun
from ephemera.connect.metrics import LiveMetrics
from ephemera.deliver.sender import DeliveryStats
from ephemera.formats.decoded import Decoded
from tests.systems.delta_tables import add
from tests.systems.test_live_run import Given
from tests.unit.test_metrics import samples

PROGRAM = """EVENT a(x: int); EVENT c(x: int); STREAM s CARRIES a WATERMARK 1 sec; STREAM t CARRIES c;
b(x) <- i: a(x); j(x) <- i: a(x), k: c(x), {i, k} within 1h; dead(1 / x) <- i: a(x);"""
BEGIN = 1_772_323_200
"""The first of March 2026."""
PATIENCE = 120


def event(x: int, label: str = "a", *, second: int | None = None) -> dict[str, Any]:
    clock = time.gmtime(BEGIN + (x if second is None else second))
    return {"event": label, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", clock), "data": [x]}


def live(events: Sequence[Any], *texts: str, **more: Any) -> list[LiveReport]:
    """The reports of a run that takes what is there."""
    reports: list[LiveReport] = []
    programs = [ephemera.compile(text) for text in texts]
    own = [LiveProgram(program.engine(), program._world()) for program in programs]
    LiveRun(own, [Read(Given(events))], [], watch=reports.append, **more).run(lambda: False, once=True)
    return reports


def test_a_report_counts_what_came_and_what_came_of_it() -> None:
    given = [*(event(x) for x in range(4)), event(9, second=10), event(7, second=0)]
    given += [event(2, "c"), event(5, "c", second=11)]
    last = live([*given, {"event": "a", "time": 1}], PROGRAM)[-1]
    assert (last.commits, last.events) == (1, 9)
    assert last.answers == {(0, "b"): 4, (0, "j"): 1, (0, "dead"): 3}
    assert (last.bad, last.late, last.dead) == (1, 1, 1)
    s, t = last.sources
    assert (s.name, s.bound, s.events, s.is_idle) == ("s", (BEGIN + 9) * SECOND - 1, 6, False)
    assert (t.name, t.bound, t.events, t.is_idle) == ("t", (BEGIN + 11) * SECOND - 1, 2, False)
    assert s.lag is not None
    assert t.lag is not None
    assert s.lag - t.lag == 2 * SECOND
    assert last.waiting == 2
    assert {one.reach for one in last.histories} == {HOUR}
    assert sum(one.tuples for one in last.histories) == 5


def test_an_event_that_two_programs_read_has_come_once_to_the_source_of_each() -> None:
    other = PROGRAM.replace("STREAM s", "STREAM other")
    last = live([event(x) for x in range(3)], PROGRAM, other, PROGRAM)[-1]
    assert last.events == 3
    assert {one.name: one.events for one in last.sources} == {"other": 3, "s": 3, "t": 0}
    assert last.answers[0, "b"] == last.answers[2, "b"] == 1


def test_a_source_whose_times_count_from_anywhere_has_a_bound_and_no_lag() -> None:
    (_, last) = live([{"event": "a", "time": 5, "data": [1]}], PROGRAM.replace("EVENT", "TIME UNIT 1 sec; EVENT", 1))
    assert last.sources == (SourceReport("s", 4 * SECOND - 1, None, 1), SourceReport("t", None, None))


def test_a_silent_source_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("ephemera.connect.live.running.passing", lambda: now)
    rounds = iter(range(3))

    def stop() -> bool:
        nonlocal now
        now += DAY
        return next(rounds, None) is None

    program = ephemera.compile(PROGRAM.replace("WATERMARK 1 sec", "IDLE 1 min"))
    reports: list[LiveReport] = []
    own = LiveProgram(program.engine(), program._world())
    LiveRun([own], [Read(Given([event(1)]))], [], watch=reports.append).run(stop)
    assert [one.is_idle for one in reports[0].sources] == [False, False]
    assert [one.is_idle for one in reports[-1].sources] == [True, False]


def test_counts_begin_anew_with_each_start(tmp_path: Path) -> None:
    source = Given([event(x) for x in range(3)])
    found: list[LiveReport] = []
    for _ in range(2):
        program = ephemera.compile(PROGRAM)
        run = LiveRun([LiveProgram(program.engine(), program._world())], [Read(source)], [], str(tmp_path / "state"))
        run.watch = found.append
        run.run(lambda: False, once=True)
        source.events = [*source.events, event(8)]
    assert [found[0].events, found[-1].events] == [3, 1]
    assert found[-1].sources[0].bound == (BEGIN + 7) * SECOND - 1


def test_nothing_is_counted_or_looked_at_if_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("ephemera.connect.live.running.Meter", never)
    monkeypatch.setattr("ephemera.engine.hosts.live_engine.LiveEngine.held", never)
    program = ephemera.compile(PROGRAM)
    own = LiveProgram(program.engine(), program._world())
    run = LiveRun([own], [Read(Given([event(x) for x in range(3)]))], [])
    assert run.run(lambda: False, once=True).answers


def test_reports_are_a_second_apart() -> None:
    now = 10.0
    meter = Meter(lambda _: None, clock=lambda: now)
    assert meter.is_due()
    meter.tell(0, [], [])
    now += EVERY / 2
    assert not meter.is_due()
    now += EVERY / 2
    assert meter.is_due()


def test_pieces_of_one_round_are_counted_apart_and_those_of_several_programs_once() -> None:
    reports: list[LiveReport] = []
    meter = Meter(reports.append)
    for pieces in ((0, 1, 1), (0,)):
        for piece in pieces:
            meter.read(piece, Decoded(5), str)
        meter.end_round()
    meter.tell(0, [], [])
    assert reports[0].events == 15


# ---- metrics ---------------------------------------------------------------------------------------------------

REPORT = LiveReport(
    commits=3,
    events=12,
    answers={(0, "b"): 4, (1, "j"): 5},
    bad=1,
    late=2,
    dead=3,
    sources=(
        SourceReport("s", BEGIN * SECOND, 3 * SECOND, 11),
        SourceReport("idle", BEGIN * SECOND, None, 1, is_idle=True),
        SourceReport("t", None, None),
    ),
    histories=(HistoryReport(0, "a", 7, 700, HOUR), HistoryReport(1, "c", 8, 800, None)),
    waiting=6,
    pending=9,
)


def test_every_figure_of_a_report_is_a_metric_and_the_lag_grows() -> None:
    now = 100.0
    metrics = LiveMetrics(["p.eq"], clock=lambda: now)
    metrics.add(REPORT)
    now = 160.0
    told = {
        "ephemera_commits_total": 3,
        "ephemera_events_total": 12,
        "ephemera_source_events_total source=idle": 1,
        "ephemera_source_events_total source=s": 11,
        "ephemera_source_events_total source=t": 0,
        "ephemera_answers_total program=p.eq rule=b": 4,
        "ephemera_answers_total program=1 rule=j": 5,
        "ephemera_dead_letters_total reason=bad": 1,
        "ephemera_dead_letters_total reason=late": 2,
        "ephemera_dead_letters_total reason=undefined": 3,
        "ephemera_history_tuples history=a program=p.eq": 7,
        "ephemera_history_tuples history=c program=1": 8,
        "ephemera_history_bytes history=a program=p.eq": 700,
        "ephemera_history_bytes history=c program=1": 800,
        "ephemera_history_bound_seconds history=a program=p.eq": 3_600,
        "ephemera_history_bound_seconds history=c program=1": float("inf"),
        "ephemera_waiting_events": 6,
        "ephemera_pending_tuples": 9,
        "ephemera_source_bound_seconds source=idle": BEGIN,
        "ephemera_source_bound_seconds source=s": BEGIN,
        "ephemera_source_lag_seconds source=s": 63,
        "ephemera_source_idle source=idle": 1,
        "ephemera_source_idle source=s": 0,
        "ephemera_source_idle source=t": 0,
    }
    assert samples(metrics.text()) == told
    metrics.messages = lambda: DeliveryStats(4, 5, 6, 7.5, ((("her", "smtp"), "away"),))
    assert samples(metrics.text()) == told | {
        "ephemera_messages_waiting": 4,
        "ephemera_messages_sent_total": 5,
        "ephemera_messages_failed_total": 6,
        "ephemera_messages_oldest_seconds": 7.5,
        "ephemera_recipients_down": 1,
    }


def test_before_the_first_report_all_counts_are_zero() -> None:
    found = samples(LiveMetrics().text())
    assert found["ephemera_events_total"] == found["ephemera_commits_total"] == 0


# ---- the command line ------------------------------------------------------------------------------------------

RAISING = """EVENT order(id: string, qty: int);
STREAM shop CARRIES order WATERMARK 1 sec;
big(id, qty) <- o: order(id, qty), qty > 2;
RAISE to(recipient="BOX", transport="file") { seen { id { var I } } }
ON event o: order {{ id { var I }, qty { var Q } }} where { var Q > 0 } END
"""


def until(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def page(where: str) -> dict[str, float]:
    with urlopen(where) as answer:
        return samples(answer.read().decode())


def test_a_run_between_systems_offers_metrics_while_it_runs(tmp_path: Path) -> None:
    program = tmp_path / "p.eq"
    program.write_text(RAISING.replace("BOX", str(tmp_path / "box.jsonl")))
    command = [sys.executable, "-m", "ephemera", "run", program, "--mode", "stream", "--metrics", "0"]
    command += ["--input", add(tmp_path, 1, 3, 4) + "?every=0.1", "--checkpoint", tmp_path / "state"]
    command += ["--output", tmp_path / "out.jsonl", "--dead-letter", tmp_path / "dead.jsonl"]
    with subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        where = re.fullmatch(r"metrics at (http://127.0.0.1:\d+/metrics)\n", line)
        assert where is not None, line
        until(lambda: page(where[1]).get("ephemera_messages_sent_total") == 2, process)
        add(tmp_path, 2)  # which is late
        add(tmp_path, 5)
        until(lambda: page(where[1])["ephemera_events_total"] == 5, process)
        until(lambda: page(where[1])["ephemera_messages_sent_total"] == 3, process)
        found = page(where[1])
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    assert found["ephemera_answers_total program= rule=big"] == 2
    assert found["ephemera_answers_total program= rule=seen"] == 3
    assert found["ephemera_source_events_total source=shop"] == 5
    assert found["ephemera_dead_letters_total reason=late"] == 1
    assert found["ephemera_waiting_events"] == 1
    assert found["ephemera_source_bound_seconds source=shop"] == pytest.approx(BEGIN + 5 * 3600 - 1, abs=0.01)
    assert found["ephemera_source_lag_seconds source=shop"] > 0
    assert found["ephemera_commits_total"] >= 2
    assert found["ephemera_messages_waiting"] == found["ephemera_recipients_down"] == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 5


def refused(folder: Path, metrics: str) -> str:
    (folder / "p.eq").write_text(PROGRAM)
    done = CliRunner().invoke(
        app, ["run", str(folder / "p.eq"), "--mode", "stream", "--input", add(folder, 1), "--metrics", metrics]
    )
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


def test_what_is_no_port_is_told_before_anything_is_read(tmp_path: Path) -> None:
    assert refused(tmp_path, "x").splitlines()[-1] == "`x` is no port; it is such as 9100 or 0.0.0.0:9100"


def test_metrics_in_one_process_need_a_package_and_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == "prometheus_client" else object())
    lack = "--metrics needs prometheus_client, which is not installed: pip install 'ephemera-cep[metrics]'\n"
    assert refused(tmp_path, "0") == lack
