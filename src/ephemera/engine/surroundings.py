"""This module holds what rules run on besides events: tables, calendars and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ephemera.terms.events import Event
from ephemera.terms.nodes import Pattern
from ephemera.terms.values import Term

Clock = Callable[[Pattern, int, int], Sequence[Event]]
"""The events of `timer:datetime` that a pattern asks for, after one time and until another."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What rules run on besides events."""

    tables: Mapping[str, Sequence[Term]] = field(default_factory=dict)
    calendars: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    clock: Clock = lambda _pattern, _after, _until: ()
    days: Callable[[str, int, int], Sequence[Event]] = lambda _calendar, _after, _until: ()
    """The days of a calendar that end after one time, until another."""
