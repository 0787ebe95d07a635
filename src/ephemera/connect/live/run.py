"""This module says what a live run in one process is made with: programs, what they read and write, a checkpoint.

Round by round, what has come is decoded and goes through the engines, and what is certain then waits for the next
commit. A commit makes state, positions and answers safe at once, then the answers are put, then sources are told. So
nothing is lost by a crash, and nothing comes twice at targets that know the number of their last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from ephemera.base.errors import warned
from ephemera.connect.live.past import Past, PastStopped
from ephemera.connect.live.reads import Read
from ephemera.connect.live.report import LiveReport
from ephemera.connect.live.running import Running
from ephemera.connect.systems.live import Target
from ephemera.connect.written_places import Written
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.formats.json_events import BadEvent
from ephemera.rules.outcome import DeadLetter, LateEvent, World

PACE = 0.1
"""Seconds between two commits, if there is something to be committed."""


@dataclass(frozen=True, slots=True)
class LiveProgram:
    """A program of a run: its engine, and what that runs on."""

    engine: LiveEngine
    world: World
    lenient: bool = False


Letters = Callable[[int, Sequence[BadEvent], Sequence[LateEvent], Sequence[DeadLetter]], Sequence[Mapping[str, object]]]
"""What to write of that which could not be used, with the number of the program that could not."""


@dataclass(slots=True)
class LiveTotals:
    """What a run has done so far."""

    commits: int = 0
    answers: int = 0
    letters: int = 0
    known: int = 0
    """Events that were read live, and that the past had."""
    went_on: bool = False
    """Whether it goes on from a checkpoint."""


@dataclass(slots=True)
class LiveRun:
    """A run that can be started."""

    programs: Sequence[LiveProgram]
    reads: Sequence[Read]
    writes: Sequence[Written]
    checkpoint: str | None = None
    letters: Letters = lambda _program, _bad, _late, _dead: ()
    dead_letters: Target | None = None
    pace: float = PACE
    totals: LiveTotals = field(default_factory=LiveTotals)
    messages: Target | None = None
    """What delivers the messages among the answers, if they are delivered."""
    tell: Callable[[str], object] = warned
    """Tells people what they should know at once."""
    past: Sequence[Past] = ()
    """What is read first, all of it, unless an earlier start has."""
    tell_past: Callable[[], object] = lambda: None
    """Is called when that has been done."""
    watch: Callable[[LiveReport], object] | None = None
    """Is told about once a second what has been done so far, and in the end."""

    changed: Callable[[], Sequence[int]] = tuple
    """Is asked between two rounds which programs others have taken the place of, by their numbers."""

    def run(self, stop: Callable[[], bool], *, once: bool = False) -> LiveTotals:
        """Until somebody says stop; with `once`, until all that was there when it began has been read."""
        with ExitStack() as stack:
            running = Running(self, stack)
            try:
                running.begin(stop)
            except PastStopped:
                return self.totals
            while not stop() and not (once and running.has_caught_up()):
                for number in self.changed():
                    running.go_on_with(number)
                running.round()
            running.finish()
        return self.totals
