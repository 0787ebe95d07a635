"""This module runs a program over a finite history in one process, and holds what came of that, here or on Spark.

Everything is known, so the order of the input means nothing and nothing is late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ephemera.base.span import Source
from ephemera.engine.driver import SLICE, drive
from ephemera.engine.engine import Engine, Found
from ephemera.engine.lacking import Never, never
from ephemera.engine.observe import planned_for
from ephemera.formats.addresses import by_address, fixed_address
from ephemera.formats.answer_list import letters_of
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.json_events import BadEvent, bad_of_close, write_event
from ephemera.formats.reading import Reading
from ephemera.kernels.columns import Batch, Ints
from ephemera.kernels.event_columns import END, Events, distinct, of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rules.declare import head_label_span
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter, LateEvent, Message, Outcome, World
from ephemera.terms.atoms import Names
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
        self.engine = Engine(planned_for(compiled, self._parts).physical, world)
        self.engine.sources.limit(*span(self._ends, world))
        self.answers: list[AnswerPart] = []
        """All that was found, by columns."""

    def slices(self) -> list[int]:
        """Times at which the history is cut."""
        return [int(time) for time in np.sort(self._ends)[SLICE::SLICE]]

    def run(self, cuts: Sequence[int], progress: Callable[[float], None] = lambda _part: None) -> Outcome:
        """Through the whole history, with a stop at some times; `progress` is told the part that is done."""
        self.go_through(cuts, progress)
        return self.finish()

    def go_through(self, cuts: Sequence[int], progress: Callable[[float], None] = lambda _part: None) -> None:
        """The same; what was found stays by columns."""
        bounds = dict.fromkeys(self.engine.sources.names, FAR)
        progress(0.0)
        for number, found in enumerate(drive(self.engine, self._sliced(cuts), bounds, size=0), 1):
            self.take(found)
            progress(number / (len(cuts) + 1))
        progress(1.0)

    def _sliced(self, cuts: Sequence[int]) -> Iterator[tuple[int, list[Events]]]:
        if not cuts:
            yield -FAR, self._parts
            return
        parts = [_by_end(part) for part in self._parts]
        first, starts = -FAR, [0] * len(parts)
        for cut in (*cuts, FAR):
            stops = [int(np.searchsorted(part.batch[END], cut, side="right")) for part in parts]
            ended = zip(parts, starts, stops, strict=True)
            yield first, [replace(p, batch=p.batch.cut(start, stop)) for p, start, stop in ended if stop > start]
            first, starts = cut + 1, stops

    def take(self, found: Found) -> None:
        """Adds what is certain after a step."""
        self.answers += [part for part, _ in answer_parts(found, self._rules)]

    def finish(self) -> Outcome:
        """All that was found, in order. All rules come to a bound together, so a step gives no event of one before."""
        outcome = self.rest()
        for part in self.answers:
            if part.message is None:
                outcome.events += part.events.events()
            else:
                outcome.messages += [Message(event, *part.message) for event in part.events.events()]
        outcome.events.sort(key=lambda e: e.key)
        outcome.messages.sort(key=lambda m: (m.event.key, m.recipient, m.transport))
        return outcome

    def rest(self) -> Outcome:
        """What came of the run besides its answers."""
        letters, close = self.engine.take_dead_letters(), self.engine.take_close()
        return Outcome(dead_letters=letters, matched=self.engine.matched, close=close)


def _by_end(events: Events) -> Events:
    """The same in the order of their ends."""
    ends: Ints = events.batch[END]
    is_sorted = bool((ends[1:] >= ends[:-1]).all())
    rows = np.arange(len(ends)) if is_sorted else np.argsort(ends, kind="stable")
    is_plain = is_sorted and type(events.batch) is Batch
    return events if is_plain else events.take(rows)


def answer_parts(found: Found, rules: Ruleset, program: int = 0) -> list[tuple[AnswerPart, int]]:
    """What is certain after a step, each once; with messages comes the number of a rule that sends them, else 0."""
    few = of_events(found.few, rules.resolved.catalogue.attributes) if found.few else []
    given = [(AnswerPart(part, None, program), 0) for part in (*found.events, *few)]
    sent: dict[tuple[str, str], list[tuple[int, Events]]] = {}
    for number, part in found.messages:
        for to, own in by_address(part, fixed_address(rules.resolved.rules[number - 1].head)):
            sent.setdefault(to, []).append((number, own))
    for message, several in sent.items():  # several rules may send the same to the same
        number = several[0][0]
        given += [(AnswerPart(part, message, program), number) for part in distinct([part for _, part in several])]
    return given


def parts_of(outcome: Outcome, attributes: Callable[[str], Names]) -> list[AnswerPart]:
    """The answers of a whole run by columns."""
    parts = [AnswerPart(part) for part in of_events(outcome.events, attributes)]
    sent: dict[tuple[str, str], list[Event]] = {}
    for message in outcome.messages:
        sent.setdefault((message.recipient, message.transport), []).append(message.event)
    return parts + [AnswerPart(part, to) for to, own in sent.items() for part in of_events(own, attributes)]


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
    as_numbers: bool = True
    """Whether times are numbers, as in the input."""
    notes: tuple[str, ...] = ()
    """All that people should know of the run besides: what is said of the input, and probable mistakes in it."""

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """All that could not be used: bad events first, then heads that had no value."""
        return letters_of(self.bad, self.undefined)

    def __repr__(self) -> str:
        told = f"{len(self.answers):,} answers" if isinstance(self.answers, list) else "answers in a table"
        counts = {"messages": len(self.messages), "bad": len(self.bad), "undefined": len(self.undefined)}
        return f"<Run: {', '.join([told, *(f'{count:,} {name}' for name, count in counts.items() if count)])}>"

    @property
    def never_came(self) -> tuple[str, ...]:
        """Types of events, declared or asked for, of which none came."""
        return self.never.came

    @property
    def never_matched(self) -> tuple[int, ...]:
        """The numbers of the rules that gave nothing, counted from 1 in the order of the text."""
        return self.never.matched

    @property
    def never_run(self) -> tuple[int, ...]:
        """The numbers of the rules that were not run, since nobody asked for what they derive."""
        return self.never.run

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
    outcome.only(compiled.physical.emit)
    catalogue = compiled.rules.resolved.catalogue
    answers = [write_event(e, catalogue, as_numbers=reading.as_numbers) for e in outcome.events]
    messages = written_messages(outcome, compiled, as_numbers=reading.as_numbers)
    keys = [e.key for e in outcome.events] + [m.event.key for m in outcome.messages]
    labels = {e.term.label for e in reading.events}
    read = len(reading.events) + len(reading.bad)
    bad = [*reading.bad, *bad_of_close(outcome.close, catalogue, as_numbers=reading.as_numbers)]
    found = run_of(compiled, answers, messages, outcome, bad, labels, read)
    output = sorted(zip(keys, answers + messages, strict=True), key=lambda line: line[0])
    warnings = (*reading.warnings, *reading.keys.notes(), *found.never.warnings)
    return replace(found, output=output, said=reading.notes, warnings=warnings, as_numbers=reading.as_numbers)


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
    labels: Collection[str],
    read: int,
) -> Run:
    """A run, with what it lacked."""
    missing = compiled.physical.awaited.difference(labels, (b.label for b in bad))
    lacking = never(compiled, missing, outcome.matched, unread=labels)
    return Run(answers, messages, list(bad), outcome.dead_letters, read=read, never=lacking)


def notes_of(never: Never, rules: Ruleset, source: Source) -> tuple[str, ...]:
    """What a run lacked, as people read it."""
    types = [f"`{label}`" for label in never.came]
    unasked = list(dict.fromkeys(f"`{emitted_label(rules.resolved.rules[number - 1].head)}`" for number in never.run))
    dropped = "1 rule was" if len(never.run) == 1 else f"{len(never.run):,} rules were"
    return tuple(
        f"{what}: {_some(names)}"
        for what, names in (
            ("never came", types),
            ("never matched", [_rule(number, rules, source) for number in never.matched]),
        )
        if names
    ) + ((f"{dropped} not run: nobody asked for {_some(unasked)}",) if unasked else ())


def _rule(number: int, rules: Ruleset, source: Source) -> str:
    head = rules.resolved.rules[number - 1].head
    label = emitted_label(head)
    begin = head_label_span(head).start
    file, line = source.file_at(begin)[0], source.place(begin).line
    return f"rule {number}{f' `{label}`' if label is not None else ''} ({file.path}:{line})"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
