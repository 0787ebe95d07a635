"""This module shows which metrics a live query has, and that they are answered over HTTP."""

from __future__ import annotations

from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ephemera.connect.metrics import OTHERS, NoMetrics, address
from ephemera.spark.live.metrics import Prometheus
from ephemera.spark.live.report import BatchReport
from tests.unit.test_watching import REPORT


def samples(text: str) -> dict[str, float]:
    """Each sample by its name and labels."""
    return {
        sample.name + "".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_figure_of_the_reports_is_a_metric() -> None:
    metrics = Prometheus(["shop.eq"], clock=lambda: 0.0)
    metrics.add(BatchReport(40, 1.5, events=8, answers={(0, "overdue"): 1}, dead=4))
    metrics.add(REPORT)
    found = samples(metrics.text())
    durations = {name: value for name, value in found.items() if name.startswith("ephemera_batch_seconds_bucket")}
    assert {name: value for name, value in found.items() if name not in durations} == {
        "ephemera_batches_total": 2,
        "ephemera_events_total": 12_008,
        "ephemera_source_events_total source=": 0,
        "ephemera_source_events_total source=shop": 12_000,
        "ephemera_source_events_total source=trucks": 0,
        "ephemera_answers_total program=shop.eq rule=large": 1_200,
        "ephemera_answers_total program=shop.eq rule=overdue": 8,
        "ephemera_dead_letters_total reason=bad": 2,
        "ephemera_dead_letters_total reason=late": 1,
        "ephemera_dead_letters_total reason=undefined": 4,
        "ephemera_state_written_bytes_total kind=fresh": 40_000,
        "ephemera_state_written_bytes_total kind=merged": 9_000,
        "ephemera_batch_seconds_count": 2,
        "ephemera_batch_seconds_sum": 1.75,
        "ephemera_history_tuples history=order program=shop.eq": 48_211,
        "ephemera_history_tuples history=paid program=shop.eq": 0,
        "ephemera_history_bytes history=order program=shop.eq": 3_100_000,
        "ephemera_history_bytes history=paid program=shop.eq": 0,
        "ephemera_history_bound_seconds history=order program=shop.eq": 21_600,
        "ephemera_history_bound_seconds history=paid program=shop.eq": float("inf"),
        "ephemera_state_bytes": 3_300_000,
        "ephemera_state_segments": 17,
        "ephemera_waiting_events": 5,
        "ephemera_pending_tuples": 3,
        "ephemera_last_batch": 41,
        "ephemera_source_bound_seconds source=": 1_789_034_400,
        "ephemera_source_bound_seconds source=shop": 1_789_041_600.25,
        "ephemera_source_lag_seconds source=": 7_205,
        "ephemera_source_lag_seconds source=shop": 3.2,
        "ephemera_source_idle source=": 1,
        "ephemera_source_idle source=shop": 0,
        "ephemera_source_idle source=trucks": 0,
    }
    counts = list(durations.values())
    assert counts == sorted(counts)
    assert durations["ephemera_batch_seconds_bucket le=0.3"] == 1
    assert durations["ephemera_batch_seconds_bucket le=+Inf"] == 2


def test_before_the_first_batch_all_counts_are_zero() -> None:
    found = samples(Prometheus().text())
    assert found["ephemera_events_total"] == 0
    assert found["ephemera_batch_seconds_count"] == 0


def test_the_lag_grows_while_no_batch_is_done() -> None:
    now = 100.0
    metrics = Prometheus(clock=lambda: now)
    metrics.add(REPORT)
    now = 160.0
    assert samples(metrics.text())["ephemera_source_lag_seconds source=shop"] == pytest.approx(63.2)


def test_labels_from_data_do_not_make_series_without_end() -> None:
    metrics = Prometheus()
    metrics.add(BatchReport(0, 1.0, answers={(0, f"r{k}"): 1 for k in range(700)}))
    answers = {n: v for n, v in samples(metrics.text()).items() if n.startswith("ephemera_answers_total")}
    assert len(answers) == 501
    assert answers[f"ephemera_answers_total program={OTHERS} rule={OTHERS}"] == 200


def test_metrics_are_answered_over_http_until_they_are_stopped() -> None:
    metrics = Prometheus()
    metrics.add(REPORT)
    port, stop = metrics.serve(0)
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert samples(answer.read().decode())["ephemera_events_total"] == 12_000
        with pytest.raises(NoMetrics, match=f"cannot be offered at 127.0.0.1:{port}"):
            Prometheus().serve(port)
    finally:
        stop()


@pytest.mark.parametrize(
    ("text", "found"),
    [("9100", ("127.0.0.1", 9100)), ("0.0.0.0:9100", ("0.0.0.0", 9100)), ("[::1]:80", ("::1", 80))],
)
def test_without_a_host_only_this_machine_may_ask(text: str, found: tuple[str, int]) -> None:
    assert address(text) == found


@pytest.mark.parametrize("text", ["", "port", "host:", "70000", "-1", "²"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(NoMetrics, match="is no port"):
        address(text)
