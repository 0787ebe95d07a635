"""This module says which events are late, straight from the definition of bounds: plainly, one arrival after another.

A source's bound b says that everything that ends by b is here. An event that ends at t moves it to t, less the
watermark, less a microsecond; `advance` closes an instant for every source. After its idle time a silent source's bound
moves as the clock does, from where it stood; one that was never heard begins where the slowest other stands. What
arrives at or behind the bound of its source is late.
"""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.nodes import Catalogue, Source
from ephemera.terms.events import Event


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that arrives, or (None) none; what instant is closed, if any; and what the clock says then."""

    event: Event | None = None
    closes: int | None = None
    now: int = 0


def late_arrivals(arrivals: Sequence[Arrival], catalogue: Catalogue) -> list[int]:
    """Which events, by their place from 0, come behind the bound of their source."""
    bounds: dict[str, int] = {}
    last = arrivals[0].now if arrivals else 0
    heard = {source.name: last for source in catalogue.sources}
    late: list[int] = []
    for place, arrival in enumerate(arrivals):
        for source in catalogue.sources:
            _move_by_the_clock(source, bounds, heard[source.name], last, arrival.now)
        last = arrival.now
        if arrival.closes is not None:
            names = ["", *(source.name for source in catalogue.sources)]
            bounds.update({n: max(bounds.get(n, arrival.closes), arrival.closes) for n in names})
        if arrival.event is not None:
            name, watermark = _source(arrival.event, catalogue)
            known = _known(arrival.event, catalogue)
            if name in bounds and known <= bounds[name]:
                late.append(place)
            reached = known - watermark - 1
            bounds[name] = max(bounds.get(name, reached), reached)
            heard[name] = arrival.now
    return late


def _source(event: Event, catalogue: Catalogue) -> tuple[str, int]:
    """Where an event comes from, and how late it may be; what no stream carries has a source without a name."""
    found = [(s.name, s.watermark) for s in catalogue.sources if event.term.label in s.carries]
    return found[0] if found else ("", 0)


def _known(event: Event, catalogue: Catalogue) -> int:
    """When an event is known: at its end, or at its begin if its type is declared so."""
    return event.time.begin if catalogue.arrives_at_begin(event.term.label) else event.time.end


def _move_by_the_clock(source: Source, bounds: dict[str, int], heard: int, last: int, now: int) -> None:
    """The bound of a silent source, after the clock went on from `last` to `now`."""
    if source.idle is None or now <= heard + source.idle:
        return
    if source.name in bounds:
        bounds[source.name] += now - max(last, heard + source.idle)
    elif bounds:
        bounds[source.name] = min(bounds.values())
