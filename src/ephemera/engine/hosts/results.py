"""This module holds what came of a run in this process or on Spark, and says what of it people should know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ephemera.base.span import Source
from ephemera.engine.hosts.live_engine import LateEvent
from ephemera.engine.never import Never
from ephemera.formats.json_events import BadEvent
from ephemera.rules.declare import head_label_span
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter
from ephemera.terms.values import Key

_MOST = 12
"""So many types or rules are named in a note."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: answers, messages, and all that could not be used."""

    answers: Any
    """JSON objects for events that came as such; for a table or a data frame one of its kind, messages included."""
    messages: list[dict[str, Any]]
    bad: list[BadEvent]
    """What is no event of the program, with the reason."""
    undefined: list[DeadLetter]
    """Heads that had no value."""
    output: list[tuple[Key, dict[str, Any]]] = field(default_factory=list)
    """Answers and messages together, by end, begin, event and data, each behind what it is sorted by; not of tables."""
    late: list[LateEvent] = field(default_factory=list)
    """Over a history all is known and nothing is late; live, `LiveEngine.late` has some."""
    read: int = 0
    """How many events came in, with those that are bad."""
    never: Never = field(default_factory=Never)
    said: tuple[str, ...] = ()
    """What is said of the input in any case, such as that times had no zone."""
    warnings: tuple[str, ...] = ()
    """What is likely wrong with the input as a whole, such as a key that was missing in every event of its type."""
    notes: tuple[str, ...] = ()
    """All that people should know of the run besides: what is said of the input, and probable mistakes in it."""

    @property
    def never_came(self) -> tuple[str, ...]:
        """Types of events, declared or asked for, of which none came."""
        return self.never.came

    @property
    def never_matched(self) -> tuple[int, ...]:
        """The numbers of the rules that gave nothing, counted from 1 in the order of the text."""
        return self.never.matched

    @property
    def complaint(self) -> str | None:
        """What could not be used, in a line; None if everything could."""
        told: list[str] = []
        if self.bad:
            first = f"{len(self.bad):,} of {self.read:,} events could not be used, the first: {self.bad[0].reason}"
            told.append(f"{first}; `run_all(…).bad` has them")
        if self.undefined:
            letter = self.undefined[0]
            first = f"{len(self.undefined):,} answers had no value, the first of rule {letter.rule}: {letter.reason}"
            told.append(f"{first}; `run_all(…).undefined` has them")
        return "; ".join(told) or None


def notes_of(never: Never, rules: Ruleset, source: Source) -> tuple[str, ...]:
    """What a run lacked, as people read it."""
    types = [f"`{label}`" for label in never.came]
    return tuple(
        f"{what}: {_some(names)}"
        for what, names in (
            ("never came", types),
            ("never matched", [_rule(number, rules, source) for number in never.matched]),
        )
        if names
    )


def _rule(number: int, rules: Ruleset, source: Source) -> str:
    head = rules.resolved.rules[number - 1].head
    label = emitted_label(head)
    line = source.place(head_label_span(head).start).line
    return f"rule {number}{f' `{label}`' if label is not None else ''} ({source.path}:{line})"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
