"""This module runs one program from a source to a sink, or to objects, as Python asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from time import process_time
from typing import Any

from ephemera.algebra.nodes import Base
from ephemera.base.suggest import suggestion
from ephemera.base.tree import find
from ephemera.connect.atomic_files import CannotWrite
from ephemera.connect.file_sink import File
from ephemera.connect.file_source import Files
from ephemera.connect.found_files import found_files
from ephemera.connect.live_sink import Batches, Folder
from ephemera.connect.live_sink import Table as SparkTable
from ephemera.connect.local_run import LetterSink, ProgramRun, RunFailed, run_local
from ephemera.connect.overwriting import Kept, Target, clash_among, inputs_kept, program_kept
from ephemera.connect.several_sinks import ToSystem
from ephemera.connect.sink import Memory, Nowhere, Sink
from ephemera.connect.source import Memory as Listed
from ephemera.connect.source import Source, Table
from ephemera.connect.systems.address import WrongAddress
from ephemera.connect.systems.fed_back import fed_back
from ephemera.connect.systems.registry import knowing
from ephemera.engine.hosts.batch import Run
from ephemera.engine.hosts.tables import is_table
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import several
from ephemera.physical.explain_analysis import Seen
from ephemera.physical.plan import Compiled, PhysicalPlan
from ephemera.rules.outcome import DeadLetter, World

_SINKS = "sinks.File, sinks.Memory, sinks.Callback or sinks.Console"


def are_sources(events: Any) -> bool:
    """Whether something is a source, or a list of sources."""
    if isinstance(events, list | tuple) and events:
        return any(isinstance(one, Source) for one in events)
    return isinstance(events, Source)


def sources_of(events: Any) -> list[Source]:
    """Where events come from: one source or several, or one for a table or a list."""
    if isinstance(events, Source):
        return [events]
    if not are_sources(events):
        return [Table(events) if is_table(events) else Listed(several(events))]
    wrong = next((one for one in events if not isinstance(one, Source)), None)
    if wrong is not None:
        raise TypeError(f"a list of sources holds nothing else, and one thing in it is a {type(wrong).__name__}")
    return list(events)


def run_sources(  # noqa: PLR0913 - what a run needs
    compiled: Compiled,
    sources: Sequence[Source],
    world: World,
    sink: Sink | None,
    *,
    path: Path,
    lenient: bool = False,
    around: Callable[[Sink], Sink] = lambda sink: sink,
) -> Run:
    """All that comes of some sources; where there is a sink, answers and messages go there and nowhere else.

    `path` is that of the program, if it comes from a file; `around` lets somebody see what goes to the sink.
    """
    if sink is not None:
        _check_sink(sink)
    sources = [knowing(source, compiled.plan.catalogue) for source in sources]
    for source in sources:
        _check_type(source, compiled)
    if isinstance(sink, File):
        _check_target(sink, sources, program_kept(path, compiled.plan.catalogue) if path.is_file() else ())
    wrong = fed_back([sink.target.name], [source.name for source in sources]) if isinstance(sink, ToSystem) else None
    if wrong is not None:
        raise WrongAddress(wrong)
    memory, letters = Memory(), _Letters()
    program = ProgramRun(compiled, world)
    try:
        (done,) = run_local(
            [program], sources, around(memory if sink is None else sink), letters.begun, lenient=lenient
        )
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
        as_numbers=done.as_numbers,
        said=done.said,
        warnings=(*(f"there are no files in {name}" for name in _empty(sources)), *done.warnings),
    )


def analyze_sources(
    compiled: Compiled,
    sources: Sequence[Source],
    world: World,
    *,
    readers: Sequence[Mapping[int, str | None] | None] | None = None,
) -> tuple[PhysicalPlan, Seen]:
    """How a program ran over some sources, and what was seen; its answers are only counted."""
    began = process_time()
    program = ProgramRun(compiled, world)
    try:
        (done,) = run_local([program], sources, Nowhere(), readers=readers, is_measured=True)
    except RunFailed as failed:
        raise failed.error from None
    given = sum(done.answers.values())
    seen = Seen(done.events, done.span, given, done.by_rule, done.kept, done.examined, process_time() - began)
    return done.compiled.physical, seen


def _check_sink(sink: object) -> None:
    """Raises a `TypeError` for what is no sink of a run over a history."""
    if isinstance(sink, str | PathLike):
        raise TypeError(f'answers go to one of `sinks`, and this is a path; write sinks.File("{sink}")')
    if isinstance(sink, Folder | SparkTable | Batches):
        raise TypeError(
            f"sinks.{type(sink).__name__} is for live queries on Spark; a run over a history takes {_SINKS}"
        )
    if isinstance(sink, type) or not isinstance(sink, Sink):
        what = f"the class {sink.__name__} itself" if isinstance(sink, type) else f"a {type(sink).__name__}"
        raise TypeError(f"answers go to {_SINKS}, or what has the methods of sinks.Sink, and this is {what}")


def _check_type(source: Source, compiled: Compiled) -> None:
    """Raises a `ValueError` where all events of a source are said to be of a type that the program does not know."""
    asked = [base.label for p in compiled.plan.points.values() for base in find(p.expression, Base)]
    catalogue = compiled.plan.catalogue
    known = {label for label in asked if label is not None} | {*catalogue.events, *catalogue.derived}
    if source.only is None or None in asked or source.only in known:
        return
    meant = suggestion(source.only, known)
    guess = f"; did you mean `{meant}`?" if meant is not None else ""
    raise ValueError(f"{source.name} is said to hold only `{source.only}`, which the program does not know{guess}")


def _check_target(sink: File, sources: Sequence[Source], program: Iterable[Kept]) -> None:
    """Raises what would be written over: what is read, the program, or what it declares."""
    names = [name for source in sources for name in _read_by(source)]
    clash = clash_among([Target("the sink", str(sink.path), is_folder=False)], [*program, *inputs_kept(names)])
    if clash is not None:
        raise CannotWrite(clash)


def _read_by(source: Source) -> tuple[str, ...]:
    """The files that a source reads, as far as it is known: a list of lines may be an open file."""
    if isinstance(source, Files):
        return source.names
    name = getattr(source.events, "name", None) if isinstance(source, Listed) else None
    return (name,) if isinstance(name, str) else ()


def _empty(sources: Sequence[Source]) -> list[str]:
    """The folders in which there is nothing to read."""
    return [name for one in sources if isinstance(one, Files) for name in one.names if found_files(name) == []]


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
