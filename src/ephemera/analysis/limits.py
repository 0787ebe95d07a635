"""This module says how long an event from outside may last whose type rules derive, too, and no declaration names.

The analysis takes it that such events are no longer than those the rules derive; that must then be so. An event that
is longer is refused, with what would help, and never silently given a wrong answer.
"""

from __future__ import annotations

from ephemera.algebra.nodes import Input, Match, Plan
from ephemera.analysis.nodes import Facts
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import describe
from ephemera.base.tree import find
from ephemera.terms.atoms import match_event
from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern


@dataclass(frozen=True, slots=True)
class _Limit:
    longest: int
    patterns: tuple[Pattern, ...]
    """What reads the events; others do not mind."""


class Limits:
    """The limits of a program's undeclared derived events."""

    def __init__(self, plan: Plan, facts: Facts) -> None:
        self._attributes = plan.catalogue.attributes
        self._limits: dict[str, list[_Limit]] = {}
        patterns: dict[str, list[Pattern]] = {}
        for point in plan.points.values():
            for m in find(point.expression, Match):
                if isinstance(m.input, Input):
                    patterns.setdefault(m.input.point, []).append(m.pattern)
        for name, point in plan.points.items():
            if point.kind == "stream" and point.label is not None and point.label not in plan.catalogue.events:
                longest = facts.longest(name)
                if longest is not None:
                    limit = _Limit(longest, tuple(patterns.get(name, ())))
                    self._limits.setdefault(point.label, []).append(limit)

    def has(self, label: str) -> bool:
        """Whether there is a limit for a type."""
        return label in self._limits

    def complaint(self, event: Event) -> str | None:
        """Why an event cannot be taken, or None."""
        label, length = event.term.label, event.time.end - event.time.begin
        for limit in self._limits.get(label, ()):
            if length > limit.longest and any(match_event(p, event, {}, self._attributes) for p in limit.patterns):
                return (
                    f"it lasts {describe(length)}, and the rules that derive {label} make it last at most "
                    f"{describe(limit.longest)}; declare `EVENT {label}(…) LASTS ANY;` to take longer ones"
                )
        return None
