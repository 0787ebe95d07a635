"""This module tells how far the sources of a live program have come, batch by batch.

The events of one batch arrive together. Several readers may read them, in any order; each says in a word what it has
seen, and the words of all of them say how far the sources have come. An event is late if it comes behind the bound that
its source had before the batch. Nothing here looks at a clock: what time it is stands in the words, too, so that
whoever hears the same words comes to the same bounds.

Where a source is read in partitions, as those of Kafka, each has a bound of its own, and the source has come as far as
the slowest of them. One that has not been heard of counts as long as there is more to read in it, for the sources whose
events may stand there; one that has been silent for the idle time of the source, since it was heard or since somebody
told the time, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, field, replace
from typing import Any

from ephemera.analysis.sources import UNNAMED
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.time.event_time import sources_of
from ephemera.engine.time.processing_time import IdleSources
from ephemera.kernels.history import FAR
from ephemera.rules.nodes import Catalogue

_REST = ""
"""What of a source with partitions comes otherwise."""


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
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The same as `latest` for each partition of sources that are read in some."""
    behind: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The partitions in which there is more to read than this batch has, and of which sources; None for any."""
    known: int = 0
    """How many events came that the past had, which was read before."""

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
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How far the partitions of sources have come that are read in some."""
    heard: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What time it was when each partition was last heard, if that was told."""
    past: Mapping[str, int] = field(default_factory=dict)
    """Until when the past of each source was read before it is read live: what comes of that is known."""

    def bound(self, source: str, partition: str | None = None) -> int:
        """How far a source has come, or a partition of it, which begins where the source stands."""
        own = self.parts.get(source, {}).get(partition, -FAR) if partition is not None else -FAR
        return max(own, self.bounds.get(source, -FAR))

    def renamed(self, now: Callable[[str], str | None]) -> Progress:
        """The same where partitions have other names, or are not read any more: then `now` has none for them."""

        def of(parts: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]]:
            found: dict[str, dict[str, int]] = {}
            for name, own in parts.items():
                named = ((p if p == _REST else now(p), time) for p, time in own.items())
                found[name] = {p: time for p, time in named if p is not None}
            return found

        return replace(self, parts=of(self.parts), heard=of(self.heard))

    def behind_the_past(self) -> Progress:
        """The same where all that has been read so far is the past of what is read live from now on."""
        return replace(self, past=dict(self.bounds))

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
    parted = _parted(before, heard, latest)
    now = _greatest([before.now, *(w.now for w in heard)])
    closes = _greatest([w.closes for w in heard])
    after = sources_of(catalogue)
    after.advance(before.bounds)
    after.restore(before.first, before.last)
    silent: Mapping[str, int] = {}
    idle = {source.name: source.idle for source in catalogue.sources if source.idle is not None}
    watermarks = after.watermarks
    own_parts = {
        name: {**before.parts.get(name, {}), **_reached(before, name, parted.get(name, {}), watermarks.get(name, 0))}
        for name in {**before.parts, **parted}
    }
    last_heard: dict[str, dict[str, int]] = {}
    if now is not None:  # one that was heard when nobody told the time is silent from now on
        for name, own in own_parts.items():
            first, again = dict.fromkeys(own, now), dict.fromkeys(parted.get(name, {}), now)
            last_heard[name] = {**first, **before.heard.get(name, {}), **again}
    behind = {partition: sources for word in heard for partition, sources in word.behind.items()}
    after.advance(_slowest(own_parts, behind, _silent_since(last_heard, idle, now)))
    if now is not None:
        waiting = IdleSources(idle, now, before.silent)
        waiting.heard({*latest, *parted}, now)
        after.let_pass(waiting.passed(now))
        silent = waiting.since
    after.advance({name: time - watermarks.get(name, 0) - 1 for name, time in latest.items()})
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
    parts = (own_parts, last_heard)
    return Progress(after.bounds, after.first, after.last, now, silent, until, texts, *parts, before.past)


def _parted(before: Progress, words: Iterable[PlaceProgress], latest: dict[str, int]) -> dict[str, dict[str, int]]:
    """The latest times of partitions; what else comes of a source that has some counts as one more of them."""
    found: dict[str, dict[str, int]] = {}
    for word in words:
        for name, own in word.parts.items():
            known = found.setdefault(name, {})
            for partition, time in own.items():
                known[partition] = max(time, known.get(partition, time))
    for name in [name for name in latest if name in found or name in before.parts]:
        found.setdefault(name, {})[_REST] = latest.pop(name)
    return found


def _reached(before: Progress, name: str, latest: Mapping[str, int], watermark: int) -> dict[str, int]:
    """How far partitions have come that were heard; none goes back."""
    return {p: max(time - watermark - 1, before.bound(name, p)) for p, time in latest.items()}


def _silent_since(
    heard: Mapping[str, Mapping[str, int]], idle: Mapping[str, int], now: int | None
) -> set[tuple[str, str]]:
    """The partitions that have been silent for the idle time of their source."""
    if now is None:
        return set()
    return {(name, p) for name in idle for p, time in heard.get(name, {}).items() if now > time + idle[name]}


def _slowest(
    parts: Mapping[str, Mapping[str, int]],
    behind: Mapping[str, Collection[str] | None],
    silent: Collection[tuple[str, str]],
) -> dict[str, int]:
    """How far sources have come that are read in partitions; if all are silent, as far as the first of them."""
    found: dict[str, int] = {}
    for name, own in parts.items():
        if own and all(p in own for p, sources in behind.items() if sources is None or name in sources):
            counted = [bound for p, bound in own.items() if (name, p) not in silent]
            found[name] = min(counted) if counted else max(own.values())
    return found


def _greatest(times: Iterable[int | None]) -> int | None:
    return max((t for t in times if t is not None), default=None)


def read_word(told: Mapping[str, Any]) -> PlaceProgress:
    """The word that was told."""
    behind = {p: None if sources is None else tuple(sources) for p, sources in told.get("behind", {}).items()}
    return PlaceProgress(**{**told, "behind": behind})


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
