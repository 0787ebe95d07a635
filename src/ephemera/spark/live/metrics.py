"""This module offers what a live query does as metrics for Prometheus.

Metrics are made from the totals when somebody asks. So the lag of a source goes on growing when no batch is done any
more, and there is one place where anything is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ephemera.connect.metrics import (
    Page,
    counts_of_answers,
    counts_of_events,
    counts_of_letters,
    state_of_histories,
    state_of_messages,
    state_of_sources,
    what_waits,
)
from ephemera.spark.live.report import BUCKETS, BatchReport, StateReport, Totals


class Prometheus(Page):
    """The metrics of a query; `add` takes in each report."""

    def __init__(self, programs: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """`programs` are the names of the programs by their numbers."""
        self._programs = programs
        self._clock = clock
        self._lock = Lock()
        self._totals = Totals()
        self._told = clock()
        super().__init__()

    def add(self, report: BatchReport) -> None:
        """One more batch."""
        with self._lock:
            self._totals.add(report)
            self._told = self._clock()

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            totals = self._totals
            yield CounterMetricFamily("ephemera_batches", "Batches that are done.", totals.batches)
            yield from counts_of_events(totals.events, totals.read)
            yield counts_of_answers(totals.answers, self._programs)
            yield counts_of_letters(bad=totals.bad, late=totals.late, dead=totals.dead)
            yield _written(totals)
            yield _durations(totals)
            last = totals.last
            if last is None:
                return
            yield from state_of_histories(last.histories, self._programs)
            yield from _stored(last.state)
            yield from what_waits(last.waiting, last.pending)
            yield GaugeMetricFamily("ephemera_last_batch", "The number of the last batch.", last.batch)
            yield from state_of_sources(last.sources, self._clock() - self._told)
            if last.delivery is not None:
                yield from state_of_messages(last.delivery)


def _written(totals: Totals) -> Metric:
    written = CounterMetricFamily("ephemera_state_written_bytes", "State that was written.", labels=["kind"])
    for kind, count in (("fresh", totals.fresh), ("merged", totals.merged)):
        written.add_metric([kind], count)
    return written


def _durations(totals: Totals) -> Metric:
    limits = [*map(str, BUCKETS), "+Inf"]
    counts = list(zip(limits, accumulate(totals.durations), strict=True))
    return HistogramMetricFamily("ephemera_batch_seconds", "How long batches took.", counts, totals.seconds)


def _stored(state: StateReport) -> Iterator[Metric]:
    yield GaugeMetricFamily("ephemera_state_bytes", "Bytes of state that the next batch needs.", state.live)
    yield GaugeMetricFamily("ephemera_state_segments", "Segments that the state consists of.", state.segments)
