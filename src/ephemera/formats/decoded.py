"""This module defines what decoders make of a piece of input: events by columns, and what is no event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ephemera.formats.json_events import BadEvent
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import END, Events, flat_values, of_events
from ephemera.rules.nodes import Catalogue
from ephemera.terms.events import Event


@dataclass(slots=True)
class Decoded:
    """The events of a piece of input, label by label, each with the row that it comes from."""

    count: int = 0
    """How many rows there were, with those that are bad."""
    parts: list[Events] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)
    """For each part the rows that it comes from, counted from 0."""
    bad: list[tuple[int, BadEvent]] = field(default_factory=list)
    forms: list[bool] = field(default_factory=list)
    """For each part whether its events write their times as numbers."""

    def add(self, events: Events, rows: Ints, *, as_numbers: bool) -> None:
        """Some events by columns, all of which write their times alike."""
        if len(events):
            self.parts.append(events)
            self.rows.append(rows)
            self.forms.append(as_numbers)

    def add_each(self, events: Sequence[tuple[int, Event, bool]], catalogue: Catalogue) -> None:
        """Some events one by one: the row of each, and whether its time is a number."""
        groups: dict[tuple[str, int | None, bool], list[tuple[int, Event]]] = {}
        for row, event, as_numbers in events:
            values = flat_values(event.term, catalogue.attributes(event.term.label))
            shape = (event.term.label, None if values is None else len(values), as_numbers)
            groups.setdefault(shape, []).append((row, event))
        for (_, _, as_numbers), found in groups.items():
            (part,) = of_events([event for _, event in found], catalogue.attributes)
            self.add(part, np.array([row for row, _ in found], dtype=np.int64), as_numbers=as_numbers)

    def leave_out(self, rows: Collection[int]) -> None:
        """Some rows are read otherwise."""
        unwanted = np.array(sorted(rows), dtype=np.int64)
        for k, own in enumerate(self.rows if len(unwanted) else ()):
            kept = ~np.isin(own, unwanted)
            self.parts[k], self.rows[k] = self.parts[k].take(kept), own[kept]
        held = [k for k, own in enumerate(self.rows) if len(own)]  # a type of which nothing is left has not come
        self.parts, self.rows = [self.parts[k] for k in held], [self.rows[k] for k in held]
        self.forms = [self.forms[k] for k in held]

    def place_bad(self, place: Callable[[int], str]) -> None:
        """The reasons why events are bad name the place of their row."""
        self.bad = [(row, BadEvent(b.original, f"{place(row)}: {b.reason}", b.label)) for row, b in self.bad]

    @property
    def as_numbers(self) -> bool | None:
        """Whether the first good event writes its time as a number; None if there is none."""
        first = [(int(rows.min()), form) for rows, form in zip(self.rows, self.forms, strict=True) if len(rows)]
        return min(first)[1] if first else None

    @property
    def bad_events(self) -> list[BadEvent]:
        """What is no event, in the order of the input."""
        return [event for _, event in sorted(self.bad, key=lambda one: one[0])]

    @property
    def ends(self) -> tuple[int, int] | None:
        """When the first and the last of them ends."""
        return span_of(self.parts)


def span_of(parts: Iterable[Events]) -> tuple[int, int] | None:
    """The earliest and the latest end of some events; None if there are none."""
    ends = [part.batch[END] for part in parts if len(part)]
    return (min(int(e.min()) for e in ends), max(int(e.max()) for e in ends)) if ends else None
