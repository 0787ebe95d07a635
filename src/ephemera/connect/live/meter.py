"""This module counts what a live run in one process does, and tells somebody who watches about once a second.

It works in the run's own thread, which alone may look at the engines; what it tells is plain data. A run that nobody
watches has none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ephemera.analysis.sources import UNNAMED
from ephemera.connect.live.partitions import Partitions
from ephemera.connect.live.report import HistoryReport, LiveReport, SourceReport
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.engine.time.processing_time import wall_clock
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.decoded import Decoded
from ephemera.kernels.history import FAR

EVERY = 1.0
"""Seconds between two reports, at least."""


class Meter:
    """Counts since the start of a run."""

    def __init__(
        self,
        watch: Callable[[LiveReport], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = wall_clock,
    ) -> None:
        """`clock` says in seconds what has passed, and `now` what time of day it is, in microseconds."""
        self._watch = watch
        self._clock = clock
        self._now = now
        self._told: float | None = None
        self._pieces: dict[int, tuple[int, Counter[str]]] = {}
        """What each piece holds that came in this round, in all and by sources."""
        self._events = 0
        self._read: Counter[str] = Counter()
        self._answers: Counter[tuple[int, str]] = Counter()
        self._bad = self._late = self._dead = 0

    def read(self, piece: int, decoded: Decoded, source: Callable[[str], str]) -> None:
        """A program has read a piece of this round; one that several programs read has come once."""
        own: Counter[str] = Counter()
        for part in decoded.parts:
            own[source(part.label)] += len(part)
        count, before = self._pieces.get(piece, (0, Counter[str]()))
        self._pieces[piece] = max(count, decoded.count), before | own

    def gave(self, parts: Iterable[AnswerPart]) -> None:
        """Some answers are certain."""
        for part in parts:
            self._answers[part.program, part.events.label] += len(part.events)

    def buried(self, *, bad: int, late: int, dead: int) -> None:
        """Some events and heads were set aside."""
        self._bad += bad
        self._late += late
        self._dead += dead

    def end_round(self) -> None:
        """All that came in this round has been read."""
        for count, own in self._pieces.values():
            self._events += count
            self._read += own
        self._pieces.clear()

    def is_due(self) -> bool:
        """Whether the last report was long enough ago."""
        return self._told is None or self._clock() - self._told >= EVERY

    def tell(self, commits: int, engines: Sequence[LiveEngine], partitions: Sequence[Partitions]) -> None:
        """Makes a report, and gives it to who watches."""
        held = [engine.held() for engine in engines]
        histories = (
            HistoryReport(number, name, *figures)
            for number, one in enumerate(held)
            for name, figures in one.histories.items()
        )
        self._watch(
            LiveReport(
                commits,
                self._events,
                dict(self._answers),
                self._bad,
                self._late,
                self._dead,
                tuple(self._sources(engines, partitions)),
                tuple(histories),
                sum(one.waiting for one in held),
                sum(one.pending for one in held),
            )
        )
        self._told = self._clock()

    def _sources(self, engines: Sequence[LiveEngine], partitions: Sequence[Partitions]) -> Iterator[SourceReport]:
        """Each source once, as the first program has it that knows it."""
        seen: set[str] = set()
        now = self._now()
        for engine, own in zip(engines, partitions, strict=True):
            for name in sorted({source.name for source in engine.catalogue.sources} | own.bounds.keys()):
                bound = own.bounds.get(name, -FAR)
                if name in seen or (name == UNNAMED and bound <= -FAR):
                    continue
                seen.add(name)
                is_known = bound > -FAR
                lag = now - bound if is_known and not engine.writes_numbers else None  # numbers count from anywhere
                yield SourceReport(name, bound if is_known else None, lag, self._read[name], name in own.silent)
