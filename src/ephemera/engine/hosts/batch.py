"""This module runs a program over a finite history in one process: the history is sorted, and time passes through it.

Everything is known, so the order of the input means nothing and nothing is late. The events are taken in slices of
time, so that what is irrelevant is forgotten on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ephemera.engine.engine import Engine, Found
from ephemera.kernels.event_columns import END, of_events
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import Message, Outcome, World
from ephemera.syntax.nodes import Raise
from ephemera.terms.events import Event

SLICE = 100_000
"""About how many events are taken at a time."""


def run(
    compiled: Compiled,
    events: Sequence[Event],
    world: World,
    progress: Callable[[float], None] = lambda _part: None,
) -> Outcome:
    """All that a program derives from some events; `progress` is told the part that is done."""
    batch = BatchRun(compiled, events, world)
    cuts = batch.slices()
    batch.start()
    for number, cut in enumerate(cuts):
        progress(number / (len(cuts) + 1))
        batch.advance(cut)
    found = batch.finish()
    progress(1.0)
    return found


class BatchRun:
    """A run over a finite history."""

    def __init__(self, compiled: Compiled, events: Sequence[Event], world: World) -> None:
        self._rules = compiled.rules
        self._parts = of_events(list(events), compiled.physical.catalogue.attributes)
        self._first, self._last = span(events, world)
        self.engine = Engine(compiled.physical, world)
        self._found = Outcome()

    def slices(self) -> list[int]:
        """Times at which the history is cut."""
        ends = np.sort(np.concatenate([p.batch[END] for p in self._parts])) if self._parts else np.empty(0)
        return [int(t) for t in ends[SLICE::SLICE]]

    def run(self, cuts: Sequence[int]) -> Outcome:
        """Through the whole history, with a stop at some times."""
        self.start()
        for cut in cuts:
            self.advance(cut)
        return self.finish()

    def start(self) -> None:
        """The events begin to wait."""
        self.engine.begin(self._first, self._last)
        self.engine.load(self._parts)

    def advance(self, cut: int) -> None:
        """Time passes until a cut."""
        self._take(self.engine.pass_to(cut))

    def finish(self) -> Outcome:
        """All that was found, once the history has ended."""
        self._take(self.engine.finish(self._last))
        found = self._found
        found.events = sorted(dict.fromkeys(found.events), key=lambda e: e.key)
        found.messages = sorted(dict.fromkeys(found.messages), key=lambda m: (m.event.key, m.recipient, m.transport))
        found.dead_letters = self.engine.take_dead_letters()
        found.matched = self.engine.matched
        return found

    def _take(self, found: Found) -> None:
        self._found.events += found.few
        self._found.events += [event for part in found.events for event in part.events()]
        for number, part in found.messages:
            head = self._rules.resolved.rules[number - 1].head
            if isinstance(head, Raise):
                self._found.messages += [Message(e, head.recipient, head.transport) for e in part.events()]


def span(events: Sequence[Event], world: World) -> tuple[int, int]:
    """The earliest and the latest end of a history: between them time passes."""
    ends = [e.time.end for e in events]
    passed = [world.until] if world.until is not None else []
    return min(ends or passed or [0]), max([*ends, *passed], default=-1)
