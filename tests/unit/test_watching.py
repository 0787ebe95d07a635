"""This module shows what is told of live queries: as progress, line by line, and as a view."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console

from ephemera.base.time import DAY, HOUR, SECOND
from ephemera.cli.watch import line, shown_batches, view
from ephemera.connect.live.report import HistoryReport, SourceReport
from ephemera.spark.live.report import (
    BUCKETS,
    RECENT,
    BatchReport,
    StateReport,
    Totals,
    as_progress,
)

NOON = 1_789_041_600 * SECOND
REPORT = BatchReport(
    batch=41,
    seconds=0.25,
    parts={"read": 0.05, "engines": 0.15, "write": 0.05},
    events=12_000,
    answers={(0, "overdue"): 7, (0, "large"): 1_200},
    bad=2,
    late=1,
    dead=0,
    sources=(
        SourceReport("shop", NOON + 250_000, 3 * SECOND + 200_000, 12_000),
        SourceReport("", NOON - 2 * HOUR, 2 * HOUR + 5 * SECOND, 0, is_idle=True),
        SourceReport("trucks", None, None),
    ),
    histories=(
        HistoryReport(0, "order", 48_211, 3_100_000, 6 * HOUR),
        HistoryReport(0, "paid", 0, 0, None),
    ),
    state=StateReport(3_300_000, 40_000, 9_000, 17),
    waiting=5,
    pending=3,
)


def totals_of(*reports: BatchReport) -> Totals:
    totals = Totals()
    for report in reports:
        totals.add(report)
    return totals


def rendered(totals: Totals, *programs: str, width: int = 100) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(view(totals, programs))
    return [text.rstrip() for text in out.getvalue().splitlines()]


# ---- figures -------------------------------------------------------------------------------------------------


def test_totals_are_the_sums_of_reports() -> None:
    totals = totals_of(REPORT, BatchReport(42, 2.0, events=8, answers={(0, "overdue"): 1}, dead=4))
    assert (totals.batches, totals.events, totals.seconds) == (2, 12_008, 2.25)
    assert totals.answers == {(0, "overdue"): 8, (0, "large"): 1_200}
    assert (totals.bad, totals.late, totals.dead) == (2, 1, 4)
    assert totals.read == {"shop": 12_000, "": 0, "trucks": 0}
    assert (totals.fresh, totals.merged) == (40_000, 9_000)
    assert totals.last is not None
    assert totals.last.batch == 42


def test_durations_are_counted_by_their_upper_limits() -> None:
    totals = totals_of(*(BatchReport(k, s) for k, s in enumerate([0.0, 0.05, 0.051, 60.0, 61.0])))
    assert {limit: n for limit, n in zip([*BUCKETS, None], totals.durations, strict=True) if n} == {
        0.05: 2,
        0.1: 1,
        60.0: 1,
        None: 1,
    }


def test_only_recent_durations_are_kept() -> None:
    totals = totals_of(*(BatchReport(k, float(k)) for k in range(RECENT + 10)))
    assert list(totals.recent) == [float(k) for k in range(10, RECENT + 10)]


def test_a_batch_that_took_no_time_has_no_rate() -> None:
    assert (REPORT.rate, BatchReport(0, 0.0, events=5).rate) == (48_000.0, 0.0)


def test_progress_is_json() -> None:
    told = json.loads(json.dumps(as_progress(REPORT)))
    assert told["answers"] == [
        {"program": 0, "event": "large", "count": 1_200},
        {"program": 0, "event": "overdue", "count": 7},
    ]
    assert told["sources"][0] == {
        "source": "shop",
        "bound": "2026-09-10T12:00:00.25Z",
        "lag_seconds": 3.2,
        "events": 12_000,
        "idle": False,
    }
    assert [source["bound"] for source in told["sources"][1:]] == ["2026-09-10T10:00:00Z", None]
    assert [h["reach_seconds"] for h in told["histories"]] == [21_600.0, None]
    assert told["dead_letters"] == {"bad": 2, "late": 1, "undefined": 0}
    sizes = {"live_bytes": 3_300_000, "fresh_bytes": 40_000, "merged_bytes": 9_000, "segments": 17}
    assert told["state"] == {**sizes, "loads": 0}
    assert (told["batch"], told["rate"], told["waiting"], told["pending"]) == (41, 48_000.0, 5, 3)


def test_the_bound_of_a_source_that_is_over_is_the_end() -> None:
    told = as_progress(BatchReport(0, 1.0, sources=(SourceReport("s", 2**62, -5),)))
    assert told["sources"][0]["bound"] == "end"


# ---- what people see -----------------------------------------------------------------------------------------


def test_a_batch_is_told_in_a_line() -> None:
    assert line(REPORT) == (
        "batch 41: 12,000 events in 250 ms (48,000/s), 1,207 answers, 3 dead letters, "
        "shop 3.2s behind, (no stream) 2h behind, state 3.3 MB"
    )
    assert line(BatchReport(1, 2.0)) == "batch 1: 0 events in 2.0 s (0/s), 0 answers"


def test_where_there_is_no_terminal_each_batch_is_a_line() -> None:
    out = io.StringIO()
    with shown_batches(out=out) as tell:
        tell(BatchReport(1, 0.5, events=10))
        tell(BatchReport(2, 0.5))
    assert out.getvalue().splitlines() == [
        "batch 1: 10 events in 500 ms (20/s), 0 answers",
        "batch 2: 0 events in 500 ms (0/s), 0 answers",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_view_stays_in_place() -> None:
    out = Terminal()
    with shown_batches(out=out) as tell:
        tell(BatchReport(1, 0.5, events=10))
        tell(BatchReport(2, 0.5, events=10))
    assert "batch 2   20 events" in out.getvalue()


def test_what_is_printed_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    with shown_batches(out=Terminal()) as tell:
        tell(BatchReport(1, 0.5, events=10))
        sys.stdout.write("an answer\n")
    assert printed.getvalue() == "an answer\n"


def test_the_view_shows_sources_histories_answers_letters_and_durations() -> None:
    assert rendered(totals_of(BatchReport(40, 1.5), REPORT)) == [
        "batch 41   12,000 events   48,000/s   state 3.3 MB in 17 segments   5 waiting   3 pending",
        "",
        "source                            bound    lag   events/s",
        "shop               2026-09-10T12:00:00Z   3.2s     48,000",
        "(no stream)        2026-09-10T10:00:00Z     2h          0   idle",
        "trucks                                –      –          0",
        "",
        "history            tuples     size   matters for",
        "order              48,211   3.1 MB            6h",
        "paid                    0      0 B          ever",
        "",
        "rule               answers   in this batch",
        "large                1,200           1,200",
        "overdue                  7               7",
        "",
        "dead letters: 2 bad, 1 late",
        "batches: 250 ms, median 875 ms, most 1.5 s  █▂",
        "         read 50 ms, engines 150 ms, write 50 ms",
        "",
    ]


def test_before_the_first_batch_there_is_nothing_to_see() -> None:
    assert rendered(Totals()) == ["waiting for the first batch"]


def test_the_view_shows_the_largest_and_counts_the_rest() -> None:
    histories = tuple(HistoryReport(k % 2, f"h{k}", k, 10**k, DAY) for k in range(13))
    answers = {(0, f"[bold]r{k}"): k + 1 for k in range(9)}
    shown = rendered(totals_of(BatchReport(0, 0.0, histories=histories, answers=answers)), "a.eq", "b.eq")
    assert shown[3].split() == ["h12", "of", "a.eq", "12", "1.0", "TB", "1d"]
    assert "and 5 more" in shown
    assert "and 1 more" in shown
    assert any(text.startswith("[bold]r8 of a.eq") for text in shown)


def test_the_view_fits_a_narrow_terminal() -> None:
    assert all(len(text) <= 40 for text in rendered(totals_of(REPORT), width=40))
