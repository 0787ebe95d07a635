"""This module says from when on a live program answers by the clock: from its first bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ephemera.algebra.nodes import Point
from ephemera.engine.sources import Sources
from ephemera.kernels.history import FAR
from ephemera.rules.clock import Clock
from ephemera.rules.nodes import Catalogue
from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern


@dataclass(slots=True)
class Beginning:
    """The clock of a live program, and which of its answers by the clock are asked for."""

    catalogue: Catalogue
    reach: int
    """How far before an answer an absolute timer of it may lie."""
    clocked: frozenset[int]
    """The rules that ask the clock."""
    sources: Sources

    def clock(self, pattern: Pattern, after: int, until: int) -> Sequence[Event]:
        """The events of `timer:datetime` after one time and until another."""
        since = self.sources.first
        first = (until if since is None else since) - self.reach if after <= -FAR else after + 1
        return Clock(self.catalogue.zone, first, until).events(pattern) if first <= until < FAR else ()

    def is_wanted(self, point: Point, end: int) -> bool:
        """Answers that ask the clock are given from the first bound on, until the input ends."""
        if point.rule not in self.clocked:
            return True
        first, ended = self.sources.first, self.sources.ended
        return (first is None or end >= first) and (ended is None or end <= ended)
