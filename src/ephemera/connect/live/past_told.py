"""This module says of a past that was read before a live run what it was, and of what came again that it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ephemera.formats.json_events import write_time
from ephemera.rules.nodes import Catalogue

if TYPE_CHECKING:
    from ephemera.engine.hosts.live_host import LiveHost

ALREADY = "the past was read by an earlier start; this one goes on live"


def past_line(events: int, last: int | None, catalogue: Catalogue, *, as_numbers: bool) -> str:
    """What the past was, and where it ends."""
    if last is None:
        return "the past holds no events; all is read live"
    end = write_time(last, catalogue.unit, as_numbers=as_numbers)
    return f"the past: {events:,} events, the last of which ends at {end}; from there on they are read live"


def past_line_of(engines: Sequence[LiveHost]) -> str:
    """The same of the engines of this process that have read it."""
    events = max(engine.stats().received for engine in engines)
    last = max((end for engine in engines if (end := engine.last_end) is not None), default=None)
    return past_line(events, last, engines[0].catalogue, as_numbers=all(e.writes_numbers for e in engines))


def known_line(known: int) -> str:
    """What of the live input the past had, or is too late for it."""
    return f"passed over as known: {known:,} of what was read live, which ended by the time that the past covers"
