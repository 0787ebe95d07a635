"""This module judges which events come too close to others of their type, one after the other in the order of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ephemera.rules.apart import told_apart_by, too_close
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import CloseEvent
from ephemera.terms.events import Event


def judged(
    events: Iterable[Event], catalogue: Catalogue, read: Collection[str] | None
) -> tuple[list[Event], list[CloseEvent]]:
    """The good events, and those that end too soon after the last good one of their type and values.

    Only types that rules read are judged; None is all of them. Equal events are one.
    """
    good: list[Event] = []
    close: list[CloseEvent] = []
    last: dict[object, Event] = {}
    for event in sorted(events, key=lambda e: e.key):
        schema = catalogue.events.get(event.term.label)
        apart = schema.apart if schema is not None else None
        values = told_apart_by(event, apart.per) if apart is not None else None
        if apart is None or values is None or (read is not None and event.term.label not in read):
            good.append(event)
            continue
        before = last.get((event.term.label, values))
        if before is None or before == event or event.time.end - before.time.end >= apart.distance:
            good.append(event)
            last[event.term.label, values] = event
        elif not close or close[-1].event != event:
            close.append(CloseEvent(event, too_close(event, before, apart)))
    return good, close
