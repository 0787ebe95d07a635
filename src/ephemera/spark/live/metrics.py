"""This module offers what a live query does as metrics for Prometheus, over HTTP.

Metrics are made from the totals when somebody asks. So the lag of a source goes on growing when no batch is done any
more, and there is one place where anything is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from threading import Lock

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ephemera.base.errors import EphemeraError
from ephemera.spark.live.report import BUCKETS, BatchReport, Totals

LOCAL = "127.0.0.1"
OTHERS = "(others)"
_SERIES = 500
"""Labels may come from data: so many have counts of their own."""


class NoMetrics(EphemeraError):
    """Metrics cannot be offered where they should."""


class Prometheus(Collector):
    """The metrics of a query; `add` takes in each report, `serve` answers whoever asks."""

    def __init__(self, programs: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """`programs` are the names of the programs by their numbers."""
        self._programs = programs
        self._clock = clock
        self._lock = Lock()
        self._totals = Totals()
        self._told = clock()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def add(self, report: BatchReport) -> None:
        """One more batch."""
        with self._lock:
            self._totals.add(report)
            self._told = self._clock()

    def text(self) -> str:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry).decode()

    def serve(self, port: int, host: str = LOCAL) -> tuple[int, Callable[[], None]]:
        """Answers at `/metrics`; gives the port, which is a free one if none was named, and what stops it."""
        try:
            server, thread = start_http_server(port, host, self.registry)
        except (OSError, OverflowError) as error:
            raise NoMetrics(f"metrics cannot be offered at {host}:{port}: {error}") from None

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return server.server_port, stop

    def collect(self) -> Iterable[Metric]:
        """What the library asks for; called by another thread."""
        with self._lock:
            totals = self._totals
            yield from _counted(totals, self._program)
            yield _durations(totals)
            if totals.last is not None:
                yield from _state(totals.last, self._program)
                yield from _sources(totals.last, self._clock() - self._told)

    def _program(self, number: int) -> str:
        return self._programs[number] if number < len(self._programs) else str(number)


def address(text: str) -> tuple[str, int]:
    """The host and port of a text such as `9100` or `0.0.0.0:9100`; without a host only this machine may ask."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise NoMetrics(f"`{text}` is no port; it is such as 9100 or 0.0.0.0:9100")
    return host.strip("[]") or LOCAL, int(port)


def _counted(totals: Totals, program: Callable[[int], str]) -> Iterator[Metric]:
    yield CounterMetricFamily("ephemera_batches", "Batches that are done.", totals.batches)
    yield CounterMetricFamily("ephemera_events", "Events that were read.", totals.events)
    read = CounterMetricFamily("ephemera_source_events", "Events that were read of a source.", labels=["source"])
    for name, count in sorted(totals.read.items()):
        read.add_metric([name], count)
    yield read
    answers = CounterMetricFamily("ephemera_answers", "Answers by rule.", labels=["program", "rule"])
    listed = list(totals.answers.items())
    for (number, label), count in sorted(listed[:_SERIES]):
        answers.add_metric([program(number), label], count)
    if len(listed) > _SERIES:
        answers.add_metric([OTHERS, OTHERS], sum(count for _, count in listed[_SERIES:]))
    yield answers
    letters = CounterMetricFamily("ephemera_dead_letters", "Events and answers that were set aside.", labels=["reason"])
    for reason, count in (("bad", totals.bad), ("late", totals.late), ("undefined", totals.dead)):
        letters.add_metric([reason], count)
    yield letters
    written = CounterMetricFamily("ephemera_state_written_bytes", "State that was written.", labels=["kind"])
    for kind, count in (("fresh", totals.fresh), ("merged", totals.merged)):
        written.add_metric([kind], count)
    yield written


def _durations(totals: Totals) -> Metric:
    limits = [*map(str, BUCKETS), "+Inf"]
    counts = list(zip(limits, accumulate(totals.durations), strict=True))
    return HistogramMetricFamily("ephemera_batch_seconds", "How long batches took.", counts, totals.seconds)


def _state(last: BatchReport, program: Callable[[int], str]) -> Iterator[Metric]:
    labels = ["program", "history"]
    tuples = GaugeMetricFamily("ephemera_history_tuples", "Tuples that a history holds.", labels=labels)
    sizes = GaugeMetricFamily("ephemera_history_bytes", "Bytes that a history holds.", labels=labels)
    bounds = GaugeMetricFamily("ephemera_history_bound_seconds", "For how long a tuple matters.", labels=labels)
    for history in last.histories:
        names = [program(history.program), history.name]
        tuples.add_metric(names, history.tuples)
        sizes.add_metric(names, history.bytes)
        bounds.add_metric(names, float("inf") if history.reach is None else history.reach / 1e6)
    yield from (tuples, sizes, bounds)
    yield GaugeMetricFamily("ephemera_state_bytes", "Bytes of state that the next batch needs.", last.state.live)
    yield GaugeMetricFamily("ephemera_state_segments", "Segments that the state consists of.", last.state.segments)
    yield GaugeMetricFamily("ephemera_waiting_events", "Events ahead of the bounds.", last.waiting)
    yield GaugeMetricFamily("ephemera_pending_tuples", "Tuples whose timers have not ended.", last.pending)
    yield GaugeMetricFamily("ephemera_last_batch", "The number of the last batch.", last.batch)


def _sources(last: BatchReport, since: float) -> Iterator[Metric]:
    bounds = GaugeMetricFamily("ephemera_source_bound_seconds", "The bound, since 1970.", labels=["source"])
    lags = GaugeMetricFamily("ephemera_source_lag_seconds", "How far the bound is behind.", labels=["source"])
    idle = GaugeMetricFamily("ephemera_source_idle", "1 if the source is silent.", labels=["source"])
    for source in last.sources:
        if source.bound is not None:
            bounds.add_metric([source.name], source.bound / 1e6)
        if source.lag is not None:
            lags.add_metric([source.name], source.lag / 1e6 + since)
        idle.add_metric([source.name], source.is_idle)
    yield from (bounds, lags, idle)
