"""This module is the engine in one process: sources with bounds, events that wait for them, and lanes of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.engine.events import END, Events, of_events
from ephemera.engine.lanes import Lane, World
from ephemera.kernels.history import FAR
from ephemera.terms.events import Event


@dataclass(slots=True)
class Found:
    """What a step derived: events, and messages by the rule that sends them."""

    events: list[Event] = field(default_factory=list)
    messages: dict[str, list[Event]] = field(default_factory=dict)


class Engine:
    """A program at work."""

    def __init__(self, plan: Plan, facts: Facts, world: World) -> None:
        self._plan = plan
        self._lanes = [
            Lane(plan, facts, rules, world) for rules in [[n for n, p in plan.points.items() if p.kind == "rule"]]
        ]
        self._waiting: list[list[Events]] = [[] for _ in self._lanes]

    def send(self, events: Sequence[Event]) -> None:
        """Events that wait for the bound to pass them."""
        parts = of_events(events, self._plan.catalogue.attributes)
        for waiting in self._waiting:
            waiting.extend(parts)

    def advance(self, bound: int = FAR, calendar_until: int | None = None) -> dict[str, list[Events]]:
        """What is certain by a bound; without one the input has ended."""
        found: dict[str, list[Events]] = {}
        for number, lane in enumerate(self._lanes):
            released: list[Events] = []
            kept: list[Events] = []
            for part in self._waiting[number]:
                ready = part.batch[END] <= bound
                released += [part.take(ready)] if ready.any() else []
                kept += [part.take(~ready)] if not ready.all() else []
            self._waiting[number] = kept
            until = bound if calendar_until is None else calendar_until
            for name, events in lane.step(released, bound, until).items():
                found.setdefault(name, []).extend(events)
        return found
