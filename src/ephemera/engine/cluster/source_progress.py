"""This module tells how far the sources of a live program have come, batch by batch.

The events of one batch arrive together. Several readers may read them, in any order; each says in a word what it has
seen, and the words of all of them say how far the sources have come. An event is late if it comes behind the bound that
its source had before the batch. Nothing here looks at a clock: what time it is stands in the words, too, so that
whoever hears the same words comes to the same bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from typing import Any

from ephemera.analysis.sources import UNNAMED
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.time.event_time import sources_of
from ephemera.engine.time.processing_time import IdleSources
from ephemera.kernels.history import FAR
from ephemera.rules.nodes import Catalogue


@dataclass(frozen=True, slots=True)
class PlaceProgress:
    """What a reader has seen of a batch."""

    latest: Mapping[str, int] = field(default_factory=dict)
    """For each source that was heard the latest time at which an event of it arrives."""
    first: int | None = None
    """The earliest end of an event that was not late."""
    last: int | None = None
    """The latest of them."""
    now: int | None = None
    """The time of day, if the reader was told."""
    closes: int | None = None
    """Until when everything is here, if the reader was told."""
    ends: bool = False
    """Whether the input has ended."""
    texts: bool = False
    """Whether some event wrote its time as text."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """For each source that was heard how many of its events came, late ones too."""

    def told(self) -> dict[str, Any]:
        """The word as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the sources of a program have come."""

    bounds: Mapping[str, int] = field(default_factory=dict)
    first: int | None = None
    """The earliest end of all events that were not late, and of all instants that were closed."""
    last: int = -FAR
    """The latest of them, or how far time has passed for a silent source."""
    now: int | None = None
    """What time it was when that was last told."""
    silent: Mapping[str, int] = field(default_factory=dict)
    """For each source with an idle time from when on it moves by the clock, if nothing is heard of it."""
    until: int | None = None
    """The latest time of all when the input ended, if it has: clocks and calendars go no further."""
    texts: bool = False
    """Whether some event wrote its time as text; answers do so then."""

    def bound(self, source: str) -> int:
        return self.bounds.get(source, -FAR)

    def told(self) -> dict[str, Any]:
        """The standing as JSON has it."""
        return asdict(self)


def moved(before: Progress, words: Iterable[PlaceProgress], catalogue: Catalogue) -> Progress:
    """How far the sources have come after a batch."""
    heard = list(words)
    latest: dict[str, int] = {}
    for word in heard:
        for name, time in word.latest.items():
            latest[name] = max(time, latest.get(name, time))
    now = _greatest([before.now, *(w.now for w in heard)])
    closes = _greatest([w.closes for w in heard])
    after = sources_of(catalogue)
    after.advance(before.bounds)
    after.restore(before.first, before.last)
    silent: Mapping[str, int] = {}
    if now is not None:
        idle = {source.name: source.idle for source in catalogue.sources if source.idle is not None}
        waiting = IdleSources(idle, now, before.silent)
        waiting.heard(latest, now)
        after.let_pass(waiting.passed(now))
        silent = waiting.since
    after.advance({name: time - after.watermarks.get(name, 0) - 1 for name, time in latest.items()})
    for word in heard:
        if word.first is not None and word.last is not None:
            after.span(word.first, word.last)
    if closes is not None:
        after.close(closes)
    until = before.until
    if any(w.ends for w in heard) and until is None:
        after.finish()
        until = after.ended
    texts = before.texts or any(w.texts for w in heard)
    return Progress(after.bounds, after.first, after.last, now, silent, until, texts)


def _greatest(times: Iterable[int | None]) -> int | None:
    return max((t for t in times if t is not None), default=None)


def read_word(told: Mapping[str, Any]) -> PlaceProgress:
    """The word that was told."""
    return PlaceProgress(**told)


def read_standing(told: Mapping[str, Any]) -> Progress:
    """The standing that was told."""
    return Progress(**told)


def lag_of(standing: Progress, name: str = UNNAMED, clock: int | None = None) -> int | None:
    """How far a source is behind the time of day, if both are known; `clock` says it to those who write such times.

    Otherwise what counts is the time that was told. It means nothing to a program whose events count theirs from
    anywhere.
    """
    now = clock if clock is not None and standing.texts else standing.now
    bound = standing.bound(name)
    return None if now is None or bound <= -FAR else now - bound
