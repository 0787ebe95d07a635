"""This module offers what a live run does as metrics for Prometheus, over HTTP, whatever it runs on.

Here is what all such pages are made of: families of metrics, under names that mean the same everywhere, and how they
are served. A page is made from plain data when somebody asks for it, in a thread of its own.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ephemera.base.errors import EphemeraError
from ephemera.connect.live.report import HistoryReport, LiveReport, SourceReport

LOCAL = "127.0.0.1"
OTHERS = "(others)"
_SERIES = 500
"""Labels may come from data: so many have counts of their own."""


class NoMetrics(EphemeraError):
    """Metrics cannot be offered where they should."""


def address(text: str) -> tuple[str, int]:
    """The host and port of a text such as `9100` or `0.0.0.0:9100`; without a host only this machine may ask."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise NoMetrics(f"`{text}` is no port; it is such as 9100 or 0.0.0.0:9100")
    return host.strip("[]") or LOCAL, int(port)


class Page(Collector):
    """All metrics of a run; `serve` answers whoever asks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @abstractmethod
    def collect(self) -> Iterable[Metric]:
        """What the library asks for; called by another thread."""

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


class Delivered(Protocol):
    """What became of messages since the start."""

    @property
    def waiting(self) -> int:
        """How many nobody has taken yet."""

    @property
    def sent(self) -> int:
        """How many were taken."""

    @property
    def failed(self) -> int:
        """How many could not be delivered."""

    @property
    def oldest(self) -> float:
        """Seconds that the oldest has been waiting."""

    @property
    def down(self) -> Sized:
        """Who does not answer."""


class LiveMetrics(Page):
    """The metrics of a run in one process: `add` takes in each report."""

    def __init__(self, programs: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """`programs` are the names of the programs by their numbers."""
        self._programs = programs
        self._clock = clock
        self._last = LiveReport(), clock()
        self.messages: Callable[[], Delivered] | None = None
        """Says, in any thread, what became of messages, if they are delivered."""
        super().__init__()

    def add(self, report: LiveReport) -> None:
        """What the run has done so far."""
        self._last = report, self._clock()  # at once, for the thread that reads it

    def collect(self) -> Iterable[Metric]:
        report, told = self._last
        yield CounterMetricFamily("ephemera_commits", "Commits that are done.", report.commits)
        yield from counts_of_events(report.events, {source.name: source.events for source in report.sources})
        yield counts_of_answers(report.answers, self._programs)
        yield counts_of_letters(bad=report.bad, late=report.late, dead=report.dead)
        yield from state_of_histories(report.histories, self._programs)
        yield from what_waits(report.waiting, report.pending)
        yield from state_of_sources(report.sources, self._clock() - told)
        if self.messages is not None:
            yield from state_of_messages(self.messages())


# ---- families --------------------------------------------------------------------------------------------------


def counts_of_events(events: int, read: Mapping[str, int]) -> Iterator[Metric]:
    """Events, in all and by their sources."""
    yield CounterMetricFamily("ephemera_events", "Events that were read.", events)
    by_source = CounterMetricFamily("ephemera_source_events", "Events that were read of a source.", labels=["source"])
    for name, count in sorted(read.items()):
        by_source.add_metric([name], count)
    yield by_source


def counts_of_answers(answers: Mapping[tuple[int, str], int], programs: Sequence[str]) -> Metric:
    """Answers by program and label; the first of very many have counts of their own."""
    found = CounterMetricFamily("ephemera_answers", "Answers by rule.", labels=["program", "rule"])
    listed = list(answers.items())
    for (number, label), count in sorted(listed[:_SERIES]):
        found.add_metric([_name(programs, number), label], count)
    if len(listed) > _SERIES:
        found.add_metric([OTHERS, OTHERS], sum(count for _, count in listed[_SERIES:]))
    return found


def counts_of_letters(*, bad: int, late: int, dead: int) -> Metric:
    """What was set aside."""
    letters = CounterMetricFamily("ephemera_dead_letters", "Events and answers that were set aside.", labels=["reason"])
    for reason, count in (("bad", bad), ("late", late), ("undefined", dead)):
        letters.add_metric([reason], count)
    return letters


def state_of_histories(histories: Iterable[HistoryReport], programs: Sequence[str]) -> Iterator[Metric]:
    """What histories hold, and for how long that matters."""
    labels = ["program", "history"]
    tuples = GaugeMetricFamily("ephemera_history_tuples", "Tuples that a history holds.", labels=labels)
    sizes = GaugeMetricFamily("ephemera_history_bytes", "Bytes that a history holds.", labels=labels)
    bounds = GaugeMetricFamily("ephemera_history_bound_seconds", "For how long a tuple matters.", labels=labels)
    for history in histories:
        names = [_name(programs, history.program), history.name]
        tuples.add_metric(names, history.tuples)
        sizes.add_metric(names, history.bytes)
        bounds.add_metric(names, float("inf") if history.reach is None else history.reach / 1e6)
    yield from (tuples, sizes, bounds)


def what_waits(events: int, tuples: int) -> Iterator[Metric]:
    """What is ahead of the bounds, and what waits for a timer."""
    yield GaugeMetricFamily("ephemera_waiting_events", "Events ahead of the bounds.", events)
    yield GaugeMetricFamily("ephemera_pending_tuples", "Tuples whose timers have not ended.", tuples)


def state_of_sources(sources: Iterable[SourceReport], since: float) -> Iterator[Metric]:
    """How far sources have come, so many seconds after that was told."""
    bounds = GaugeMetricFamily("ephemera_source_bound_seconds", "The bound, since 1970.", labels=["source"])
    lags = GaugeMetricFamily("ephemera_source_lag_seconds", "How far the bound is behind.", labels=["source"])
    idle = GaugeMetricFamily("ephemera_source_idle", "1 if the source is silent.", labels=["source"])
    for source in sources:
        if source.bound is not None:
            bounds.add_metric([source.name], source.bound / 1e6)
        if source.lag is not None:
            lags.add_metric([source.name], source.lag / 1e6 + since)
        idle.add_metric([source.name], source.is_idle)
    yield from (bounds, lags, idle)


def state_of_messages(told: Delivered) -> Iterator[Metric]:
    """What became of messages."""
    yield GaugeMetricFamily("ephemera_messages_waiting", "Messages that nobody has taken yet.", told.waiting)
    yield CounterMetricFamily("ephemera_messages_sent", "Messages that were taken.", told.sent)
    yield CounterMetricFamily("ephemera_messages_failed", "Messages that could not be delivered.", told.failed)
    yield GaugeMetricFamily("ephemera_messages_oldest_seconds", "How long the oldest has been waiting.", told.oldest)
    yield GaugeMetricFamily("ephemera_recipients_down", "Recipients that do not answer.", len(told.down))


def _name(programs: Sequence[str], number: int) -> str:
    return programs[number] if number < len(programs) else str(number)
