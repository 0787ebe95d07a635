"""This module runs a program over all that was given: a list of events, what was read from files, or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from ephemera.engine.hosts import batch
from ephemera.engine.hosts.results import Run
from ephemera.engine.hosts.tables import is_table, run_table
from ephemera.engine.never import never
from ephemera.formats.compiled import Compiled, Reading, several
from ephemera.formats.decode_arrow import bad_events
from ephemera.formats.json_events import BadEvent, write_event
from ephemera.rules.outcome import Outcome, World
from ephemera.terms.events import Event

Evaluate: TypeAlias = Callable[[list[Event], World], Outcome]
"""What evaluates events in place of the engine."""


def run_given(  # noqa: PLR0913 - what a run needs, most of it optional
    compiled: Compiled,
    events: Any,
    world: World,
    emit: frozenset[str] = frozenset(),
    evaluate: Evaluate | None = None,
    *,
    lenient: bool = False,
) -> Run:
    """All that comes of events, or of the rows of a table."""
    if not is_table(events):
        reading = Reading(compiled)
        for event in several(events):
            reading.add(event)
        return run_reading(reading, world, emit, evaluate)
    table = run_table(compiled, events, world, evaluate, emit, lenient=lenient)
    bad = bad_events(table.bad, table.given)
    labels = [part.label for part in table.read.parts]
    messages = _messages(table.outcome, compiled, as_numbers=table.read.numbers)
    found = _run(compiled, table.answers, messages, table.outcome, bad, labels, table.given.num_rows, emit)
    return replace(found, said=table.said)


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
        outcome = batch.run(compiled, reading.events, world, progress)
    outcome.only(emit)
    catalogue = compiled.rules.resolved.catalogue
    answers = [write_event(e, catalogue, as_numbers=reading.as_numbers) for e in outcome.events]
    messages = _messages(outcome, compiled, as_numbers=reading.as_numbers)
    keys = [e.key for e in outcome.events] + [m.event.key for m in outcome.messages]
    labels = {e.term.label for e in reading.events}
    read = len(reading.events) + len(reading.bad)
    found = _run(compiled, answers, messages, outcome, reading.bad, labels, read, emit)
    output = sorted(zip(keys, answers + messages, strict=True), key=lambda line: line[0])
    return replace(found, output=output, said=reading.notes, warnings=(*reading.warnings, *reading.keys.notes()))


def _messages(outcome: Outcome, compiled: Compiled, *, as_numbers: bool) -> list[dict[str, Any]]:
    written = partial(write_event, catalogue=compiled.rules.resolved.catalogue, as_numbers=as_numbers)
    return [{**written(m.event), "recipient": m.recipient, "transport": m.transport} for m in outcome.messages]


def _run(  # noqa: PLR0913, PLR0917 - all that is known of a run
    compiled: Compiled,
    answers: Any,
    messages: list[dict[str, Any]],
    outcome: Outcome,
    bad: Sequence[BadEvent],
    labels: Iterable[str],
    read: int,
    emit: frozenset[str],
) -> Run:
    missing = compiled.physical.awaited.difference(labels, (b.label for b in bad))
    lacking = never(compiled.rules, compiled.plan, missing, outcome.matched, emit)
    return Run(answers, messages, list(bad), outcome.dead_letters, read=read, never=lacking)
