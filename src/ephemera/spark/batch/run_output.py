"""This module holds what came of a run, wherever its answers are: how much of what, and what it lacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ephemera.engine.cluster.message import Answers, BadInput, EngineStats, ReadCount, UndefinedHead
from ephemera.engine.lacking import Never
from ephemera.spark.runtime.exchange import kind_of


@dataclass(frozen=True, slots=True)
class HistoryPeak:
    """What the rules of a program keep of some events: the most tuples in one place, and for how long each counts."""

    program: int
    name: str
    peak: int
    reach: int | None
    """In microseconds; None is forever."""


@dataclass(slots=True)
class RunSummary:
    """What there is to tell of a run."""

    read: dict[int, int] = field(default_factory=dict)
    """For each program how many events were read for it."""
    came: dict[int, set[str]] = field(default_factory=dict)
    """For each program the types of which events came."""
    matched: dict[int, set[int]] = field(default_factory=dict)
    """For each program the rules that gave something."""
    answers: dict[tuple[int, str], int] = field(default_factory=dict)
    dead: int = 0
    bad: int = 0
    histories: list[HistoryPeak] = field(default_factory=list)
    busy: int = 0
    """In how many places engines had something to do."""
    notes: tuple[str, ...] = ()
    """What is to be said of the input."""
    warnings: tuple[str, ...] = ()
    """What is likely wrong with it: keys that were missing in every event of their type."""

    @property
    def total(self) -> int:
        return sum(self.answers.values())


class RunOutput(Protocol):
    """What came of a run, wherever it is."""

    @property
    def summary(self) -> RunSummary:
        """What there is to tell of it."""

    def lines_in_order(self) -> Iterator[bytes]:
        """The answers as lines of JSON in their order, some at a time."""

    def letters(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The dead letters with the numbers of their programs: bad events first, then heads without a value."""

    def never(self, number: int = 0) -> Never:
        """What a program lacked."""

    def close(self) -> None:
        """Forgets it."""


def summarized(counted: Sequence[Mapping[str, Any]], told: Sequence[EngineStats]) -> RunSummary:
    """What was counted by kind, program and label, and what engines told."""
    summary = RunSummary()
    for row in counted:
        program, label, count = row["program"], row["label"], row["count"]
        kind = kind_of(row)
        if kind is Answers:
            summary.answers[program, label] = summary.answers.get((program, label), 0) + count
        elif kind is ReadCount:
            summary.read[program] = summary.read.get(program, 0) + count
            summary.came.setdefault(program, set()).add(label)
        elif kind is BadInput:
            summary.bad += count
        elif kind is UndefinedHead:
            summary.dead += count
    peaks: dict[tuple[int, str], HistoryPeak] = {}
    for stats in told:
        summary.matched.setdefault(stats.program, set()).update(stats.stats["matched"])
        for name, (peak, reach) in stats.stats["histories"].items():
            key = (stats.program, name)
            if key not in peaks or peak > peaks[key].peak:
                peaks[key] = HistoryPeak(stats.program, name, peak, reach)
    summary.histories = [peaks[key] for key in sorted(peaks)]
    summary.busy = len({stats.place for stats in told if stats.stats["events"]})
    return summary
