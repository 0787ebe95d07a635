"""This module feeds a stream to the local engine batch by batch, and measures what that takes.

Only the engine is measured: reading a batch, and adding up its answers, are not. Time passes just behind the last
event of each batch, and the input ends after the last.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ephemera
from bench.data import Stream, load, size
from bench.process import peak
from bench.queries import Case
from bench.reference import Answers
from ephemera.algebra.attributes import position
from ephemera.engine.engine import Engine, Found
from ephemera.engine.stats import stats_of
from ephemera.kernels.columns import Batch, ints
from ephemera.kernels.event_columns import BEGIN, END, Events, of_events
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World

MICROSECONDS = 1_000
"""In a millisecond."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run took."""

    answers: Answers
    seconds: float
    """CPU of the whole run."""
    batches: tuple[tuple[int, float], ...]
    """For each batch how many events it had and its CPU seconds, without the end of the input."""
    peak: float
    """How many MB the process grew beyond what it had when the engine was new."""
    stored: int
    """Tuples in the histories before the input ended."""
    bound: float
    """How many of them lie within the times for which they are relevant: that time, times the rate."""
    pending: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def engine(program: str) -> Engine:
    """An engine for a program that gives all it finds."""
    return Engine(ephemera.compile(program, "bench.eq")._compiled.physical, World())


def parts(stream: Stream, columns: int) -> list[Events]:
    """Events as the engine takes them, one part for each type."""
    names = ("id", "x", "v")[:columns]
    found: list[Events] = []
    for number, letter in enumerate(stream.types):
        rows = np.flatnonzero(stream.kind == number)
        values = {position(k): ints(getattr(stream, name)[rows]) for k, name in enumerate(names)}
        times = {BEGIN: ints(stream.begin[rows] * MICROSECONDS), END: ints(stream.end[rows] * MICROSECONDS)}
        found.append(Events(letter, Batch({**times, **values}, len(rows)), columns, names))
    return found


def run(case: Case, folder: Path, batch: int) -> Measured:
    """Runs a query over a saved stream."""
    events = size(folder)
    if not case.keys:
        batch = min(batch, events // 20)
    tally = _Tally(case.query)
    at_work = engine(case.program)
    before = peak()
    taken: list[tuple[int, float]] = []
    last = 0
    for first in range(0, events, batch):
        stream = load(folder, first, batch)
        given = parts(stream, case.columns)
        last = int(stream.end.max()) * MICROSECONDS
        start = time.process_time()
        at_work.load(given)
        found = at_work.advance(last - 1)
        taken.append((len(stream), time.process_time() - start))
        tally.take(found)
    stored, bound, pending = _held(at_work, last)
    start = time.process_time()
    found = at_work.advance(FAR)
    rest = time.process_time() - start
    tally.take(found)
    seconds = rest + sum(cpu for _, cpu in taken)
    return Measured(tally.answers, seconds, tuple(taken), peak() - before, stored, bound, pending)


def _held(at_work: Engine, span: int) -> tuple[int, float, int]:
    """What is stored, what has to be, and what is pending."""
    stats = stats_of(at_work, 0, 0)
    bound = sum((h.tuples + h.collected) / max(span, 1) * min(h.relevant or 0, span) for h in stats.histories)
    return stats.stored, bound, stats.pending


class _Tally:
    """Adds up answers."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._count = self._ids = 0
        self._averages = 0.0

    def take(self, found: Found) -> None:
        for part in (*found.events, *of_events(found.few, lambda _label: None)):
            if part.label != self._label:
                continue
            self._count += len(part)
            for k in range(part.arity or 0):
                values = part.batch.columns[position(k)]
                if values.kind == "float":
                    self._averages += float(values.values.sum())
                else:
                    self._ids += int(values.values.sum())

    @property
    def answers(self) -> Answers:
        return Answers(self._count, self._ids, self._averages)
