"""This module says what a live query does: a report for each batch, and totals of all since the start.

A report is plain data, made in the driver when a batch is done. From it come the progress that Spark tells its
listeners, the metrics, and the view on the terminal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ephemera.formats.json_events import write_time

BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Upper limits in seconds by which durations of batches are counted; longer ones come last."""
RECENT = 60
"""The durations of so many batches are kept."""

_FAR = 253_402_300_800_000_000
"""The year 10000."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """How far a source has come."""

    name: str
    bound: int | None
    """In microseconds; None before its first event."""
    lag: int | None
    """How far the bound is behind the clock, in microseconds."""
    events: int = 0
    """How many came in this batch."""
    is_idle: bool = False
    """Whether it is silent, so that its bound moves with the clock."""


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What is kept of some events, in all shards together."""

    program: int
    name: str
    tuples: int
    bytes: int
    reach: int | None
    """For how long a tuple matters after its end, in microseconds; None is forever."""


@dataclass(frozen=True, slots=True)
class StateReport:
    """The stored state of all shards."""

    live: int = 0
    """Bytes that the next batch needs."""
    fresh: int = 0
    """Bytes that this batch wrote for what is new in it."""
    merged: int = 0
    """Bytes that it wrote again, to have fewer segments."""
    segments: int = 0
    loads: int = 0
    """Shards that read their whole state, since their process did not know it: those of the first batch of a start."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one batch did."""

    batch: int
    seconds: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """The seconds that each part of it took."""
    in_one_task: bool = False
    """Whether it was small enough to be done without an exchange."""
    events: int = 0
    answers: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """By program and label."""
    came: frozenset[tuple[int, str]] = frozenset()
    """By program, the types of which events came."""
    matched: frozenset[tuple[int, int]] = frozenset()
    """By program, the rules that have given something since a shard was opened."""
    bad: int = 0
    late: int = 0
    dead: int = 0
    """Heads that had no value."""
    sources: tuple[SourceReport, ...] = ()
    histories: tuple[HistoryReport, ...] = ()
    state: StateReport = StateReport()
    waiting: int = 0
    """Events that are ahead of the bounds."""
    pending: int = 0
    """Tuples whose timers have not ended yet."""
    notes: tuple[str, ...] = ()
    """What is to be said of the input."""

    @property
    def rate(self) -> float:
        """Events for each second of work."""
        return self.events / self.seconds if self.seconds > 0 else 0.0

    @property
    def given(self) -> int:
        """All answers."""
        return sum(self.answers.values())


@dataclass(slots=True)
class Totals:
    """What all batches since the start did; `last` is the report of the last one."""

    batches: int = 0
    events: int = 0
    seconds: float = 0.0
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    came: set[tuple[int, str]] = field(default_factory=set)
    matched: set[tuple[int, int]] = field(default_factory=set)
    bad: int = 0
    late: int = 0
    dead: int = 0
    read: Counter[str] = field(default_factory=Counter)
    """Events by their sources."""
    fresh: int = 0
    merged: int = 0
    """Bytes of state that were written."""
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """How many batches took how long, by `BUCKETS`."""
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    last: BatchReport | None = None
    notes: dict[str, None] = field(default_factory=dict)
    """What is to be said of the input, each once."""

    def add(self, report: BatchReport) -> None:
        """One more batch."""
        self.batches += 1
        self.events += report.events
        self.seconds += report.seconds
        self.answers.update(report.answers)
        self.came |= report.came
        self.matched |= report.matched
        self.bad += report.bad
        self.late += report.late
        self.dead += report.dead
        self.read.update({source.name: source.events for source in report.sources})
        self.fresh += report.state.fresh
        self.merged += report.state.merged
        self.durations[bisect_left(BUCKETS, report.seconds)] += 1
        self.recent.append(report.seconds)
        self.last = report
        self.notes |= dict.fromkeys(report.notes)


def as_progress(report: BatchReport) -> dict[str, Any]:
    """A report as JSON holds it."""
    return {
        "batch": report.batch,
        "seconds": round(report.seconds, 6),
        "parts": {name: round(seconds, 6) for name, seconds in report.parts.items()},
        "in_one_task": report.in_one_task,
        "events": report.events,
        "rate": round(report.rate, 1),
        "answers": [{"program": p, "event": e, "count": n} for (p, e), n in sorted(report.answers.items())],
        "dead_letters": {"bad": report.bad, "late": report.late, "undefined": report.dead},
        "sources": [_source(source) for source in report.sources],
        "histories": [_history(history) for history in report.histories],
        "state": {
            "live_bytes": report.state.live,
            "fresh_bytes": report.state.fresh,
            "merged_bytes": report.state.merged,
            "segments": report.state.segments,
            "loads": report.state.loads,
        },
        "waiting": report.waiting,
        "pending": report.pending,
    }


def bound_text(bound: int | None) -> str | None:
    """A bound as people read it; that of a source that is over lies beyond all times."""
    if bound is None:
        return None
    return "end" if bound >= _FAR else str(write_time(bound, 1, as_numbers=False))


def _source(source: SourceReport) -> dict[str, Any]:
    return {
        "source": source.name,
        "bound": bound_text(source.bound),
        "lag_seconds": _seconds(source.lag),
        "events": source.events,
        "idle": source.is_idle,
    }


def _history(history: HistoryReport) -> dict[str, Any]:
    return {
        "program": history.program,
        "history": history.name,
        "tuples": history.tuples,
        "bytes": history.bytes,
        "reach_seconds": _seconds(history.reach),
    }


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000
