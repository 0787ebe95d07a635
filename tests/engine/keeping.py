"""This module runs a relation over a stream in an engine, and counts what the engine holds beside what it must.

It is counted when an instant is closed: all that arrives then was sent, and the bound has passed it. What is held are
the events that wait, that are in a history, or that are in a tuple that is to happen. Each event counts once, wherever
it is held; `rows` counts every row, so that an event of several tuples counts several times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ephemera
from ephemera.engine.engine import Engine
from tests.strategies.lifetimes import SECOND, Lasting, Setting

EVENTS = {"a": "i", "b": "j"}
"""The labels of what the rule calls so."""


@dataclass(slots=True)
class Kept:
    """What was held and what had to be, added up over all instants; and the answers."""

    held: int = 0
    needed: int = 0
    rows: int = 0
    pairs: int = 0
    """Those of the rows that are tuples which are to happen."""
    repeated: int = 0
    """Rows that say again what another says: an event that waits or is in a history, or a tuple that is to happen."""
    missing: int = 0
    """Events that had to be held, and were not."""
    answers: set[tuple[int, int, int]] = field(default_factory=set)

    @property
    def ratio(self) -> float:
        return self.held / self.needed if self.needed else float(self.held > 0)


def kept(setting: Setting, events: list[Lasting], at_once: int = 1) -> Kept:
    """Sends the events of a stream, so many at once, and closes each instant."""
    found = Kept()
    until = np.array(setting.needed_until(events))
    arrivals = [event.arrival(at_begin=setting.at_begin) for event in events]
    engine = ephemera.compile(setting.program).engine(allow_unbounded=True)
    first = 0
    while first < len(events):
        last = min(first + at_once, len(events))
        if at_once > 1:  # whole instants
            while last < len(events) and arrivals[last] == arrivals[last - 1]:
                last += 1
        told = [written(event) for event in events[first:last]]
        found.answers |= answers(engine.send_many(told) if len(told) > 1 else engine.send(told[0]))
        first = last
        if last < len(events) and arrivals[last] == arrivals[last - 1]:
            continue
        found.answers |= answers(engine.advance(arrivals[last - 1]))
        held = held_by(engine._engine)
        needed = {
            event for event, time in zip(events[:last], until, strict=False) if time > arrivals[last - 1] * SECOND
        }
        found.held += len(held)
        found.needed += len(needed)
        found.missing += len(needed - held)
        rows, pairs = rows_of(engine._engine)
        found.rows += len(rows) + len(pairs)
        found.pairs += len(pairs)
        found.repeated += len(rows) - len(set(rows)) + len(pairs) - len(set(pairs))
    found.answers |= answers(engine.finish())
    return found


def written(event: Lasting) -> dict[str, Any]:
    return {"event": event.label, "time": [event.begin, event.end], "data": [event.key]}


def answers(given: list[dict[str, Any]]) -> set[tuple[int, int, int]]:
    """Key, begin and end of answers."""
    found: set[tuple[int, int, int]] = set()
    for one in given:
        begin, end = one["time"] if isinstance(one["time"], list) else (one["time"], one["time"])
        found.add((one["data"][0], begin, end))
    return found


def held_by(engine: Engine) -> set[Lasting]:
    """The events that an engine holds anywhere."""
    rows, pairs = rows_of(engine)
    return {*rows, *(event for pair in pairs for event in pair)}


def rows_of(engine: Engine) -> tuple[list[Lasting], list[tuple[Lasting, ...]]]:
    """The rows that an engine holds: of events that wait or are in histories, and of tuples that are to happen."""
    rows: list[Lasting] = []
    pairs: list[tuple[Lasting, ...]] = []
    for parts in engine.waiting_parts.values():
        for part in parts:
            rows += [Lasting(e.term.label, _key(e), *_seconds(e.time.begin, e.time.end)) for e in part.events()]
    for lane in engine.lanes.values():
        for name, history in lane.histories.items():
            label = str(lane.plan.queries[name].label)
            for batch in history.batches():
                variable = next(c for c in batch.columns if not c.startswith("$"))
                rows += [Lasting(label, row[variable], *_seconds(row["$.s"], row["$.e"])) for row in batch.rows()]
        for rule in lane.rules.values():
            for run in rule.pending.checkpoint():
                pairs += [
                    tuple(
                        Lasting(label, row["x"], *_seconds(row[f"{name}.s"], row[f"{name}.e"]))
                        for name, label in EVENTS.items()
                    )
                    for row in run.batch.rows()
                ]
    return rows, pairs


def _seconds(begin: int, end: int) -> tuple[int, int]:
    return begin // SECOND, end // SECOND


def _key(event: Any) -> int:
    return int(event.term.children[0].children[0])
