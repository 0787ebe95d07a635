"""This module runs one program from a source to a sink, or to objects, as Python asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ephemera.connect.file_sink import File
from ephemera.connect.file_source import Files
from ephemera.connect.local_run import LetterSink, ProgramRun, RunFailed, run_local
from ephemera.connect.sink import Memory, Sink
from ephemera.connect.source import Memory as Listed
from ephemera.connect.source import Source, Table
from ephemera.engine.hosts.batch import Run
from ephemera.engine.hosts.tables import is_table
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import several
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import DeadLetter, World


def source_of(events: Any) -> Source:
    """Where events come from: a source, or one for a table or a list."""
    if isinstance(events, Source):
        return events
    return Table(events) if is_table(events) else Listed(several(events))


def run_source(  # noqa: PLR0913 - what a run needs
    compiled: Compiled, source: Source, world: World, emit: frozenset[str], sink: Sink | None, *, lenient: bool = False
) -> Run:
    """All that comes of a source; where there is a sink, answers and messages go there and nowhere else."""
    _check_target(source, sink)
    memory, letters = Memory(), _Letters()
    program = ProgramRun(compiled, world, emit)
    try:
        (done,) = run_local([program], [source], memory if sink is None else sink, letters.begun, lenient=lenient)
    except RunFailed as failed:
        raise failed.error from None
    return Run(
        [answer for answer in memory.answers if "recipient" not in answer],
        [answer for answer in memory.answers if "recipient" in answer],
        letters.bad,
        letters.undefined,
        output=[((number,), answer) for number, answer in enumerate(memory.answers)],
        read=done.read,
        never=done.never,
        said=done.said,
        warnings=done.warnings,
    )


def _check_target(source: Source, sink: Sink | None) -> None:
    """Raises a `ValueError` where answers would be written over the events that they come from."""
    if not isinstance(sink, File) or not isinstance(source, Files):
        return
    target = Path(sink.path)
    for path in source.paths:
        if target.is_file() and Path(path).is_file() and target.samefile(path):
            raise ValueError(f"`{sink.path}` is what the events are read from; write the answers somewhere else")


@dataclass(slots=True)
class _Letters(LetterSink):
    """Keeps what could not be used."""

    bad: list[BadEvent] = field(default_factory=list)
    undefined: list[DeadLetter] = field(default_factory=list)

    def begun(self) -> _Letters:
        """The same for another attempt, without what the last one had."""
        self.abort()
        return self

    def bury(self, program: int, bad: Sequence[BadEvent], undefined: Sequence[DeadLetter]) -> None:
        del program
        self.bad += bad
        self.undefined += undefined

    def abort(self) -> None:
        self.bad.clear()
        self.undefined.clear()
