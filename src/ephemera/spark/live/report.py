"""This module says what a live query does: a report for each batch, and totals of all since the start.

A report is plain data, made in the driver from what the places told when a batch is done. From it come the progress
that Spark tells its listeners, the metrics, and the view on the terminal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ephemera.analysis.sources import UNNAMED
from ephemera.connect.live.report import HistoryReport, SourceReport
from ephemera.deliver.sender import DeliveryStats
from ephemera.engine.cluster.live_slices import Loads
from ephemera.engine.cluster.message import EngineStats, ReadCount, Shipment, SourceProgress
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress, lag_of
from ephemera.formats.json_events import write_time
from ephemera.kernels.history import FAR
from ephemera.spark.read.route_rows import notes_of
from ephemera.spark.sinks.folder_sink import counts_of

BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Upper limits in seconds by which durations of batches are counted; longer ones come last."""
RECENT = 60
"""The durations of so many batches are kept."""

_YEAR_10000 = 253_402_300_800_000_000


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
    slices: int = 1
    """Into how many slices of time that was cut which was cut most."""
    delivery: DeliveryStats | None = None
    """What became of messages until then, if they are delivered."""
    busy: float = 0.0
    """Seconds that processors were at work in engines."""
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
    known: int = 0
    """Events that the past had, which was read before."""
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
    known: int = 0
    """Events that the past had, which was read before."""
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
        self.known += report.known
        self.read.update({source.name: source.events for source in report.sources})
        self.fresh += report.state.fresh
        self.merged += report.state.merged
        self.durations[bisect_left(BUCKETS, report.seconds)] += 1
        self.recent.append(report.seconds)
        self.last = report
        self.notes |= dict.fromkeys(report.notes)

    def going_on(self) -> Totals:
        """Those of what follows: which types have come, and which rules have given something, is known already."""
        return Totals(came=set(self.came), matched=set(self.matched), notes=dict(self.notes))


# ---- making one ------------------------------------------------------------------------------------------------


def report_of(  # noqa: PLR0913, PLR0917 - all that is known of a batch
    batch: int,
    seconds: Mapping[str, float],
    rows: Sequence[Shipment],
    spreads: Sequence[DistributedProgram],
    standings: Mapping[int, Progress],
    clock: int | None = None,
) -> BatchReport:
    """What a batch did; its seconds are told part by part. `clock` is the time of day."""
    counts = counts_of(rows)
    told = [row for row in rows if isinstance(row, EngineStats)]
    engines = [(one.program, engine) for one in told for engine in one.stats["engines"]]
    return BatchReport(
        batch=batch,
        seconds=sum(seconds.values()),
        parts=dict(seconds),
        busy=sum(loads_in(rows).values()),
        events=max(events_in(rows).values(), default=0),
        answers=counts.answers,
        came=frozenset((row.program, row.label) for row in rows if isinstance(row, ReadCount)),
        matched=frozenset((program, number) for program, engine in engines for number in engine["matched"]),
        bad=counts.bad,
        late=counts.late,
        dead=counts.dead,
        known=max(_known_in(rows).values(), default=0),
        sources=tuple(_source_reports(spreads, standings, _heard(rows), clock)),
        histories=tuple(_history_reports(engines)),
        state=_state_report([one.stats["state"] for one in told if one.stats["state"]]),
        waiting=sum(engine["waiting"] for _, engine in engines),
        pending=sum(engine["pending"] for _, engine in engines),
        notes=notes_of(rows),
    )


def loads_in(rows: Iterable[Shipment]) -> Loads:
    """How long processors were busy with what is at home in each place, of each group of each program."""
    found: dict[tuple[int, int, int], float] = {}
    for row in rows:
        for one in row.stats["engines"] if isinstance(row, EngineStats) else ():
            at = (row.program, one["group"], one["home"])
            found[at] = found.get(at, 0.0) + one["cpu"]
    return found


def events_in(rows: Iterable[Shipment]) -> dict[int, int]:
    """How many events a batch had for each program."""
    read: dict[int, int] = {}
    for row in rows:
        if isinstance(row, ReadCount):
            read[row.program] = read.get(row.program, 0) + row.count
    return read


def _known_in(rows: Iterable[Shipment]) -> dict[int, int]:
    """How many events of a batch the past had, for each program."""
    found: dict[int, int] = {}
    for row in rows:
        if isinstance(row, SourceProgress):
            found[row.program] = found.get(row.program, 0) + row.seen.known
    return found


def _heard(rows: Iterable[Shipment]) -> dict[tuple[int, str], int]:
    """For each program and source how many events came."""
    found: dict[tuple[int, str], int] = {}
    for row in rows:
        if isinstance(row, SourceProgress):
            for name, count in row.seen.counts.items():
                found[row.program, name] = found.get((row.program, name), 0) + count
    return found


def _source_reports(
    spreads: Sequence[DistributedProgram],
    standings: Mapping[int, Progress],
    heard: Mapping[tuple[int, str], int],
    clock: int | None,
) -> Iterable[SourceReport]:
    seen: set[str] = set()
    for spread in spreads:
        standing = standings.get(spread.number, Progress())
        idle = {source.name: source.idle for source in spread.plan.catalogue.sources}
        for name in sorted({*idle, *standing.bounds}):
            bound = standing.bound(name)
            if name in seen or (name == UNNAMED and bound <= -FAR):
                continue
            seen.add(name)
            is_idle = standing.now is not None and standing.silent.get(name, FAR) <= standing.now
            lag = lag_of(standing, name, clock)
            count = heard.get((spread.number, name), 0)
            yield SourceReport(name, bound if bound > -FAR else None, lag, count, is_idle)


def _history_reports(engines: Sequence[tuple[int, dict[str, Any]]]) -> Iterable[HistoryReport]:
    found: dict[tuple[int, str], HistoryReport] = {}
    for program, engine in engines:
        for name, (tuples, size, reach) in engine["histories"].items():
            own = HistoryReport(program, name, tuples, size, reach)
            before = found.get((program, name))
            found[program, name] = own if before is None else _both(before, own)
    return found.values()


def _both(a: HistoryReport, b: HistoryReport) -> HistoryReport:
    """A history that two engines hold; it matters for as long as one of them needs it."""
    reach = None if a.reach is None or b.reach is None else max(a.reach, b.reach)
    return HistoryReport(a.program, a.name, a.tuples + b.tuples, a.bytes + b.bytes, reach)


def _state_report(told: Sequence[dict[str, int]]) -> StateReport:
    return StateReport(
        live=sum(words["alive"] for words in told),
        fresh=sum(words["fresh"] for words in told),
        merged=sum(words["merged"] for words in told),
        segments=sum(words["segments"] for words in told),
        loads=sum(words["loads"] for words in told),
    )


# ---- as people and tools read it -------------------------------------------------------------------------------


def as_progress(report: BatchReport) -> dict[str, Any]:
    """A report as JSON holds it."""
    return {
        "batch": report.batch,
        "seconds": round(report.seconds, 6),
        "parts": {name: round(seconds, 6) for name, seconds in report.parts.items()},
        "in_one_task": report.in_one_task,
        "slices": report.slices,
        "busy_seconds": round(report.busy, 6),
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
        **({} if report.delivery is None else {"messages": _messages(report.delivery)}),
    }


def _messages(stats: DeliveryStats) -> dict[str, Any]:
    down = [{"recipient": to, "transport": by, "reason": reason} for (to, by), reason in stats.down]
    told = {"waiting": stats.waiting, "sent": stats.sent, "failed": stats.failed}
    return {**told, "oldest_seconds": round(stats.oldest, 3), "down": down}


def bound_text(bound: int | None) -> str | None:
    """A bound as people read it; that of a source that is over lies beyond all times."""
    if bound is None:
        return None
    return "end" if bound >= _YEAR_10000 else str(write_time(bound, 1, as_numbers=False))


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
