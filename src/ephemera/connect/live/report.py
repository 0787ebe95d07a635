"""This module says what a live run does, for whoever watches: plain data, which any thread may read.

How far sources have come and what histories hold is said alike of runs on Spark and of those in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceReport:
    """How far a source has come."""

    name: str
    bound: int | None
    """In microseconds; None before its first event."""
    lag: int | None
    """How far the bound is behind the clock, in microseconds."""
    events: int = 0
    """How many came: in this batch, or since the start of a run that reports all since then."""
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
class LiveReport:
    """What a live run in one process has done since it began, and what it holds."""

    commits: int = 0
    events: int = 0
    answers: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """By program and label."""
    bad: int = 0
    late: int = 0
    dead: int = 0
    """Heads that had no value."""
    sources: tuple[SourceReport, ...] = ()
    histories: tuple[HistoryReport, ...] = ()
    waiting: int = 0
    """Events that are ahead of the bounds."""
    pending: int = 0
    """Tuples whose timers have not ended yet."""
