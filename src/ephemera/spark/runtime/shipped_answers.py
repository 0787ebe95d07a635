"""This module makes of shipped answers what any sink takes, and puts those of a history to systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ephemera.connect.several_sinks import Several, ToSystem
from ephemera.connect.written_places import Written
from ephemera.engine.cluster.message import Answers, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Found
from ephemera.engine.hosts.batch import answer_parts
from ephemera.formats.answers import AnswerBatch, AnswerForm
from ephemera.formats.encode_typed_arrow import Counting


def put_history(
    writes: Sequence[Written], shipments: Iterable[Answers], spreads: Sequence[DistributedProgram], *, as_numbers: bool
) -> None:
    """All answers of a run over history in their order, to each place in one commit, one place after the other.

    If one cannot take them, those before it have theirs, and a run that is repeated writes these again.
    """
    answers = answer_batch(list(shipments), spreads, [as_numbers] * len(spreads))
    sink = Several([(ToSystem(one.target), one.names) for one in writes]).open()
    try:
        sink.write(answers)
        sink.commit()
    finally:
        sink.abort()  # what has been committed stays


def answer_batch(
    shipments: Sequence[Answers], spreads: Sequence[DistributedProgram], counts: Sequence[bool]
) -> AnswerBatch:
    """Answers that engines have shipped; `counts` says of each program whether its answers write times as numbers."""
    found = {spread.number: Found() for spread in spreads}
    for one in shipments:
        events = unpack(one.events, spreads[one.program].plan.catalogue)
        if one.rule:
            found[one.program].messages.append((one.rule, events))
        else:
            found[one.program].events.append(events)
    pairs = [pair for s in spreads for pair in answer_parts(found[s.number], s.compiled.rules, s.number)]
    days = tuple(tuple(d for own in s.world.calendars.values() for d in own) for s in spreads)
    emit = frozenset(name for spread in spreads for name in spread.compiled.physical.emit)
    programs = tuple(spread.compiled.rules for spread in spreads)
    form = AnswerForm(programs, tuple(Counting(one, one) for one in counts), days, emit)
    return AnswerBatch(form, [part for part, _ in pairs], [rule for _, rule in pairs])
