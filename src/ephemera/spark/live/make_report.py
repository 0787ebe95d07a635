"""This module makes the report of a live batch from what its places told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ephemera.engine.cluster.message import HEARD, READ, STATS, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress, lag_of, read_word
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import UNNAMED
from ephemera.spark.live.report import BatchReport, HistoryReport, SourceReport, StateReport
from ephemera.spark.read.route_rows import notes_of
from ephemera.spark.sinks.folder_sink import counts_of


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
    told = [(row.program, json.loads(bytes(row.load))) for row in rows if row.group == STATS]
    engines = [(program, engine) for program, words in told for engine in words["engines"]]
    return BatchReport(
        batch=batch,
        seconds=sum(seconds.values()),
        parts=dict(seconds),
        events=max(events_in(rows).values(), default=0),
        answers=counts.answers,
        came=frozenset((row.program, row.label) for row in rows if row.group == READ),
        matched=frozenset((program, number) for program, engine in engines for number in engine["matched"]),
        bad=counts.bad,
        late=counts.late,
        dead=counts.dead,
        sources=tuple(_sources(spreads, standings, _heard(rows), clock)),
        histories=tuple(_histories(engines)),
        state=_state([words["state"] for _, words in told if words["state"]]),
        waiting=sum(engine["waiting"] for _, engine in engines),
        pending=sum(engine["pending"] for _, engine in engines),
        notes=notes_of(row.load for row in rows if row.group == READ),
    )


def events_in(rows: Iterable[Shipment]) -> dict[int, int]:
    """How many events a batch had for each program."""
    read: dict[int, int] = {}
    for row in rows:
        if row.group == READ:
            read[row.program] = read.get(row.program, 0) + row.count
    return read


def _heard(rows: Iterable[Shipment]) -> dict[tuple[int, str], int]:
    """For each program and source how many events came."""
    found: dict[tuple[int, str], int] = {}
    for row in rows:
        if row.group == HEARD:
            for name, count in read_word(json.loads(bytes(row.load))).counts.items():
                found[row.program, name] = found.get((row.program, name), 0) + count
    return found


def _sources(
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


def _histories(engines: Sequence[tuple[int, dict[str, Any]]]) -> Iterable[HistoryReport]:
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


def _state(told: Sequence[dict[str, int]]) -> StateReport:
    return StateReport(
        live=sum(words["alive"] for words in told),
        fresh=sum(words["fresh"] for words in told),
        merged=sum(words["merged"] for words in told),
        segments=sum(words["segments"] for words in told),
        loads=sum(words["loads"] for words in told),
    )
