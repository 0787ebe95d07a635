"""This module runs a program over a finite history in one process, and holds what came of that, here or on Spark.

Everything is known, so the order of the input means nothing and nothing is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ephemera.base.span import Source
from ephemera.engine.driver import SLICE, drive
from ephemera.engine.engine import Engine, Found, Never, never, split
from ephemera.formats.json_events import BadEvent, write_event
from ephemera.formats.reading import Reading
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import END, Events, of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rules.declare import head_label_span
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter, LateEvent, Message, Outcome, World
from ephemera.syntax.nodes import Raise
from ephemera.terms.events import Event
from ephemera.terms.values import Key

Evaluate: TypeAlias = Callable[[list[Event], World], Outcome]
"""What evaluates events in place of the engine."""
_MOST = 12
"""So many types or rules are named in a note."""


class BatchRun:
    """A run over a finite history, which is given event by event or by columns."""

    def __init__(self, compiled: Compiled, events: Sequence[Event], world: World, parts: Sequence[Events] = ()) -> None:
        self._rules = compiled.rules
        self._parts = [*of_events(events, compiled.physical.catalogue.attributes), *parts]
        self._ends = np.concatenate([p.batch[END] for p in self._parts]) if self._parts else np.empty(0, np.int64)
        self.engine = Engine(compiled.physical, world)
        self.engine.sources.limit(*span(self._ends, world))
        self.outcome = Outcome()

    def slices(self) -> list[int]:
        """Times at which the history is cut."""
        return [int(time) for time in np.sort(self._ends)[SLICE::SLICE]]

    def run(self, cuts: Sequence[int], progress: Callable[[float], None] = lambda _part: None) -> Outcome:
        """Through the whole history, with a stop at some times; `progress` is told the part that is done."""
        bounds = dict.fromkeys(self.engine.sources.names, FAR)
        progress(0.0)
        for number, found in enumerate(drive(self.engine, self._sliced(cuts), bounds, size=0), 1):
            self.take(found)
            progress(number / (len(cuts) + 1))
        progress(1.0)
        return self.finish()

    def _sliced(self, cuts: Sequence[int]) -> Iterator[tuple[int, list[Events]]]:
        first, rest = -FAR, self._parts
        for cut in cuts:
            ended, rest = split(rest, cut)
            yield first, ended
            first = cut + 1
        yield first, rest

    def take(self, found: Found) -> None:
        """Adds what is certain after a step."""
        self.outcome.events += found.few
        self.outcome.events += [event for part in found.events for event in part.events()]
        for number, part in found.messages:
            head = self._rules.resolved.rules[number - 1].head
            if isinstance(head, Raise):
                self.outcome.messages += [Message(e, head.recipient, head.transport) for e in part.events()]

    def finish(self) -> Outcome:
        """All that was found, in order. All rules come to a bound together, so a step gives no event of one before."""
        outcome = self.outcome
        outcome.events.sort(key=lambda e: e.key)
        messages = dict.fromkeys(outcome.messages)  # several rules may send the same to the same
        outcome.messages = sorted(messages, key=lambda m: (m.event.key, m.recipient, m.transport))
        outcome.dead_letters = self.engine.take_dead_letters()
        outcome.matched = self.engine.matched
        return outcome


def span(ends: Sequence[int] | Ints, world: World) -> tuple[int, int]:
    """The earliest and the latest end of a history: between them time passes."""
    limits = [int(np.min(ends)), int(np.max(ends))] if len(ends) else []
    passed = [world.until] if world.until is not None else []
    return min(limits or passed or [0]), max([*limits, *passed], default=-1)


# ---- what comes of it --------------------------------------------------------------------------------------


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


def run_reading(
    reading: Reading,
    world: World,
    emit: frozenset[str] = frozenset(),
    evaluate: Evaluate | None = None,
    progress: Callable[[float], None] = lambda _part: None,
) -> Run:
    """All that comes of events that have been read; `progress` is told the part that is done."""
    compiled = reading.compiled
    if evaluate is not None:
        outcome = evaluate(reading.events, world)
    else:
        batch = BatchRun(compiled, reading.events, world)
        outcome = batch.run(batch.slices(), progress)
    outcome.only(emit)
    catalogue = compiled.rules.resolved.catalogue
    answers = [write_event(e, catalogue, as_numbers=reading.as_numbers) for e in outcome.events]
    messages = written_messages(outcome, compiled, as_numbers=reading.as_numbers)
    keys = [e.key for e in outcome.events] + [m.event.key for m in outcome.messages]
    labels = {e.term.label for e in reading.events}
    read = len(reading.events) + len(reading.bad)
    found = run_of(compiled, answers, messages, outcome, reading.bad, labels, read, emit)
    output = sorted(zip(keys, answers + messages, strict=True), key=lambda line: line[0])
    return replace(found, output=output, said=reading.notes, warnings=(*reading.warnings, *reading.keys.notes()))


def written_messages(outcome: Outcome, compiled: Compiled, *, as_numbers: bool) -> list[dict[str, Any]]:
    """Messages as JSON has them."""
    written = partial(write_event, catalogue=compiled.rules.resolved.catalogue, as_numbers=as_numbers)
    return [{**written(m.event), "recipient": m.recipient, "transport": m.transport} for m in outcome.messages]


def run_of(  # noqa: PLR0913, PLR0917 - all that is known of a run
    compiled: Compiled,
    answers: Any,
    messages: list[dict[str, Any]],
    outcome: Outcome,
    bad: Sequence[BadEvent],
    labels: Iterable[str],
    read: int,
    emit: frozenset[str],
) -> Run:
    """A run, with what it lacked."""
    missing = compiled.physical.awaited.difference(labels, (b.label for b in bad))
    lacking = never(compiled.rules, compiled.plan, missing, outcome.matched, emit)
    return Run(answers, messages, list(bad), outcome.dead_letters, read=read, never=lacking)


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
