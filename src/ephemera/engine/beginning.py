"""This module says from when on a live program answers by the clock: from the earliest end of its input.

An event may come that ends before all that came before it, from a source that was silent or is slow. Then answers by
the clock are asked for that end before those others did. Rules that do not wait for its source may have passed that
time. No event takes part in what they have missed, as none ended by then, so it is found without any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ephemera.algebra.nodes import Point
from ephemera.engine.calendars import Days
from ephemera.engine.compiled import Compiled
from ephemera.engine.local import Engine, Found, Part
from ephemera.engine.sources import Sources, sources_of
from ephemera.engine.surroundings import Surroundings
from ephemera.kernels.history import FAR
from ephemera.rules.clock import Clock
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The clock of a live program, and which of its answers by the clock are asked for."""

    catalogue: Catalogue
    reach: int
    """How far before an answer an absolute timer of it may lie."""
    clocked: frozenset[int]
    """The rules that ask the clock."""
    sources: Sources

    def clock(self, pattern: Pattern, after: int, until: int) -> Sequence[Event]:
        """The events of `timer:datetime` after one time and until another.

        Before the first bound there are those that answers behind it may need, or behind the beginning of the input.
        """
        since = self.sources.first
        first = (until + 1 if since is None else min(since, until + 1)) - self.reach if after <= -FAR else after + 1
        return Clock(self.catalogue.zone, first, until).events(pattern) if first <= until < FAR else ()

    def is_wanted(self, point: Point, end: int) -> bool:
        """Answers that ask the clock are given from the earliest end on, until the input ends."""
        if point.rule not in self.clocked:
            return True
        first, ended = self.sources.first, self.sources.ended
        return (first is None or end >= first) and (ended is None or end <= ended)


def live_engine(compiled: Compiled, world: World, part: Part | None = None) -> Engine:
    """An engine that runs from the beginning of its input on, for ever."""
    sources = sources_of(compiled.plan.catalogue)
    calendars = {name: list(days) for name, days in world.calendars.items()}
    beginning = _Beginning(compiled.plan.catalogue, compiled.facts.reach, compiled.physical.clocked, sources)
    surroundings = Surroundings(world.tables, calendars, beginning.clock, Days(calendars))
    return Engine(compiled.physical, surroundings, beginning.is_wanted, part, sources)


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a live program began, and how far its sources have come, at some time."""

    first: int | None
    bounds: Mapping[str, int]


def reached(sources: Sources) -> Reached:
    """Where it stands now."""
    return Reached(sources.first, dict(sources.bounds))


def missed(compiled: Compiled, world: World, before: Reached, first: int | None) -> tuple[Found, Engine] | None:
    """What was not asked for before, and is now that the input begins earlier, with the engine that gives it."""
    if first is None or before.first is None or first >= before.first:
        return None
    passed = {name: min(bound, before.first - 1) for name, bound in before.bounds.items()}
    if max(passed.values(), default=-FAR) < first or not compiled.physical.clocked:
        return None
    engine = live_engine(compiled, world)
    engine.sources.first = first
    return engine.reach(passed), engine
