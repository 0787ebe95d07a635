"""This module runs programs from the command line between systems such as Kafka, PostgreSQL and Delta Lake.

Such runs are in this process. Live, they go on until a signal comes, and from a checkpoint where the last one stopped;
over history, they read to the end that there is now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ephemera.base.errors import EphemeraError
from ephemera.base.installed import WITH_METRICS, NotInstalled
from ephemera.cli.deliver import delivering
from ephemera.cli.files import (
    FAILED,
    WRONG_COMMAND,
    WRONG_PROGRAM,
    bad_letter,
    tell,
    undefined_letter,
    write_out_bytes,
)
from ephemera.cli.metrics import check_metrics, offered
from ephemera.cli.progress import counted, is_shown, letters_line, note_lines, tell_notes, tell_warnings
from ephemera.cli.signals import exit_code, noted
from ephemera.connect.atomic_files import CannotWrite, NotEmpty
from ephemera.connect.live.past import Past
from ephemera.connect.live.past_told import known_line, past_line_of
from ephemera.connect.live.reads import Read
from ephemera.connect.live.run import PACE, LiveProgram, LiveRun, LiveTotals
from ephemera.connect.systems.address import WrongAddress
from ephemera.connect.systems.delta_source import DeltaSource
from ephemera.connect.systems.file_target import FileTarget, FunctionTarget
from ephemera.connect.systems.live import LiveSource, Target
from ephemera.connect.systems.postgres_source import PostgresSource
from ephemera.connect.systems.registry import AnySource, declared_columns, in_stretches, is_system, source_at, target_at
from ephemera.connect.written_places import Destination, Written
from ephemera.deliver.target import MessageTarget
from ephemera.engine.state.checkpoint_lock import CheckpointHeld, hold
from ephemera.engine.state.durable_files import WrongPlace
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode_csv import BadFile
from ephemera.program import Program
from ephemera.rules.outcome import DeadLetter, LateEvent
from ephemera.terms.errors import excerpt

if TYPE_CHECKING:
    from ephemera.cli.inputs import LiveInput
    from ephemera.cli.live import LiveWanted
    from ephemera.cli.spark import Rows, Wanted
    from ephemera.cli.watched import Watching
    from ephemera.connect.metrics import LiveMetrics
    from ephemera.engine.hosts.live_engine import LiveEngine
    from ephemera.formats.json_events import BadEvent

_PATIENT = 2
"""So many signals wait for the end of a commit; one more breaks off even that, as a crash would: it is gone on with."""
_SHOWN = 200
"""Characters of a bad event, and of the reason, which may quote it, that people are shown."""
_LATE = "it came behind the bound of its source"


def system_source(name: str, only: str | None, programs: Sequence[Program]) -> AnySource:
    """The source at an address; ends the command if there is none."""
    with told_systems():
        return source_at(name, only, declared_columns(program.catalogue for program in programs))


def check_stretches(name: str, only: str | None) -> None:
    """Ends the command if what is at an address cannot be read by many machines, before these are asked."""
    with told_systems():
        in_stretches(name, only)


def system_rows(name: str) -> Any:
    """The rows of a declared table that is read from a system, as it is now; ends the command if it cannot be."""
    with told_systems():
        found = source_at(name)
        if not isinstance(found, PostgresSource | DeltaSource):
            _refuse(f"a table is read from a file, from postgresql://… or from delta:…, and `{name}` is none of these")
        return found.table()


def system_target(name: str) -> Target:
    """The target at an address; ends the command if there is none."""
    with told_systems():
        return target_at(name)


def run_systems(
    programs: Sequence[Program],
    tables: Sequence[Rows],
    given: Sequence[LiveInput],
    wanted: Wanted,
    asked: LiveWanted,
    *,
    places: Sequence[Destination],
    past: Sequence[Past] = (),
    watching: Watching,
) -> None:
    """A live run between systems, behind its past if it has one; ends the command when it has ended."""
    _check_asked(asked, given)
    once, pace = _pace(asked.trigger)
    reads = [Read(_live(one, programs), one.readers(len(programs))) for one in given]
    writes = [Written(any_target(place.location), place.names) for place in places]
    if asked.checkpoint is None and not once:
        tell("without --checkpoint nothing is kept for another start")
    worlds = [program._world(own, lenient=wanted.lenient) for program, own in zip(programs, tables, strict=True)]
    engines = [
        program._engine(wanted.emit, world, points=wanted.points, lenient=wanted.lenient)
        for program, world in zip(programs, worlds, strict=True)
    ]
    run = LiveRun(
        [LiveProgram(engine, world, wanted.lenient) for engine, world in zip(engines, worlds, strict=True)],
        reads,
        writes,
        asked.checkpoint,
        _Letters(wanted.names),
        None if wanted.dead_letter is None else FileTarget(wanted.dead_letter),
        pace,
        tell=tell,
        past=past,
        tell_past=lambda: tell(past_line_of(engines)),
    )
    with told_systems(), ExitStack() as stack:
        page = stack.enter_context(_metrics(asked.metrics, wanted.names))
        if asked.checkpoint is not None:
            stack.enter_context(hold(asked.checkpoint))
        outbox = None if asked.checkpoint is None else f"{asked.checkpoint}/outbox"
        delivery = stack.enter_context(delivering([engine.compiled for engine in engines], wanted.delivery, outbox))
        run.messages = None if delivery is None else MessageTarget(delivery)
        if page is not None:
            run.watch = page.add
            page.messages = None if delivery is None else delivery.stats
        with watching.of(engines) as changed, noted(most=_PATIENT) as signals:
            run.changed = changed or run.changed
            totals = run.run(lambda: bool(signals), once=once)
        stopped = bool(signals)
    _tell(watching.programs, engines, totals, wanted, asked, stopped=stopped)


def _live(one: LiveInput, programs: Sequence[Program]) -> LiveSource:
    if not is_system(one.name):
        _refuse(f"`{one.name}` is no system, and this run reads from one; a run does one or the other")
    found = system_source(one.name, one.only, programs)
    if not isinstance(found, LiveSource):
        _refuse(f"`{one.name}` cannot be read live")
    return found


def systems_of(places: Sequence[Destination]) -> tuple[Written, ...]:
    """The systems that answers go to, and standard output beside them; none if there is no system."""
    if not any(place.location is not None and is_system(place.location) for place in places):
        return ()
    return tuple(Written(any_target(place.location), place.names) for place in places)


def any_target(location: str | None) -> Target:
    """The target at a place: a system, a file, or standard output."""
    if location is None:
        return FunctionTarget(write_out_bytes)
    return system_target(location) if is_system(location) else FileTarget(Path(location))


def _check_asked(asked: LiveWanted, given: Sequence[LiveInput]) -> None:
    if asked.shards is not None:
        _refuse(f"--shards is for live runs on Spark; `{given[0].name}` is read in this process")
    check_metrics(asked.metrics, WITH_METRICS)


@contextmanager
def _metrics(where: str | None, names: Sequence[Mapping[str, str]]) -> Iterator[LiveMetrics | None]:
    """The page of metrics at a port, if there is to be one, until the run and its delivery have ended."""
    if where is None:
        yield None
        return
    from ephemera.connect.metrics import LiveMetrics

    page = LiveMetrics([name.get("program", "") for name in names])
    with offered(where, page):
        yield page


def _pace(trigger: str | None) -> tuple[bool, float]:
    """Whether the run takes what is there, and how many seconds lie between two commits."""
    from ephemera.cli.live import ONCE, pace_of

    if trigger is None or trigger == ONCE:
        return trigger == ONCE, PACE
    return False, int((pace_of(trigger) or "0").split()[0]) / 1000


@dataclass(slots=True)
class _Letters:
    """What is written of that which could not be used; of the first bad event people are told at once."""

    names: Sequence[Mapping[str, str]]
    has_told: bool = False

    def __call__(
        self, number: int, bad: Sequence[BadEvent], late: Sequence[LateEvent], dead: Sequence[DeadLetter]
    ) -> list[dict[str, Any]]:
        if bad and not self.has_told:
            self.has_told = True
            reason = bad[0].reason if len(bad[0].reason) <= _SHOWN else f"{bad[0].reason[:_SHOWN]}…"
            tell(f"the first bad event: {reason}; it is {excerpt(bad[0].original, _SHOWN)}")
        found = [*map(bad_letter, bad), *({"reason": _LATE, "event": one.original} for one in late)]
        return [{**one, **self.names[number]} for one in [*found, *map(undefined_letter, dead)]]


def _tell(
    programs: Sequence[Program],
    engines: Sequence[LiveEngine],
    totals: LiveTotals,
    wanted: Wanted,
    asked: LiveWanted,
    *,
    stopped: bool,
) -> None:
    stats = [engine.stats() for engine in engines]
    bad, late = sum(s.bad for s in stats), sum(s.late for s in stats)
    undefined = max(0, totals.letters - bad - late)
    is_told = is_shown(wanted=wanted.progress)
    if is_told or totals.letters:
        received = max((s.received for s in stats), default=0)
        tell(letters_line(received, bad, late, undefined, kept=wanted.dead_letter is not None))
    if totals.known:
        tell(known_line(totals.known))
    if is_told:
        lacking = [program.notes(engine.never()) for program, engine in zip(programs, engines, strict=True)]
        for line in note_lines(lacking, wanted.names):
            tell(line)
    tell_notes(note for engine in engines for note in engine.said)
    tell_warnings((note for engine in engines for note in engine.warnings), strict=False)
    if stopped:
        on = f"; go on with --checkpoint {asked.checkpoint}" if asked.checkpoint is not None else ""
        tell(f"stopped after {counted(totals.commits, 'commit')}{on}")
        raise click.exceptions.Exit(exit_code(is_live=True))
    if wanted.strict and any(engine.warnings for engine in engines):
        raise click.exceptions.Exit(WRONG_PROGRAM)


@contextmanager
def told_systems() -> Iterator[None]:
    """Ends the command with a line if an address is wrong, something is missing, or a system does not answer."""
    try:
        yield
    except NotEmpty as error:
        _refuse(str(error))
    except CannotWrite:
        raise
    except (WrongAddress, NotInstalled, CheckpointHeld, WrongPlace) as error:
        _refuse(str(error))
    except (WrongColumns, BadFile) as error:
        _refuse(str(error), WRONG_PROGRAM)
    except EphemeraError as error:
        _refuse(str(error), FAILED)


def _refuse(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
