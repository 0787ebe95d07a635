"""This module runs programs on Spark from the command line: what goes in, what comes out, and what is told of it.

Spark is loaded when a run asks for it, and not before.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import click

from ephemera.algebra.nodes import Points
from ephemera.base.errors import EphemeraError
from ephemera.base.installed import lacking_spark
from ephemera.cli.deliver import NOT_DELIVERED, DeliverWanted, delivering
from ephemera.cli.files import FAILED, WRONG_COMMAND, WRONG_PROGRAM, tell, utf_8, write_out_bytes
from ephemera.cli.inputs import Given, file_source, spooled
from ephemera.cli.progress import Shown, note_lines, shown_stages, summary_lines, tell_notes, tell_unused, tell_warnings
from ephemera.cli.signals import exit_code, heed_again, was_stopped
from ephemera.connect.atomic_files import layout, write_file
from ephemera.connect.file_source import CannotRead
from ephemera.connect.found_files import GZIP, ZSTANDARD, is_packed, literal
from ephemera.connect.written_places import Written
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode_csv import BadFile
from ephemera.program import Program

if TYPE_CHECKING:
    from ephemera.spark.batch.job import Job
    from ephemera.spark.batch.job_output import Computed
    from ephemera.spark.batch.run_output import RunOutput

Rows: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of each table of a program."""
_MASTER = re.compile(r"local|local\[(\d+|\*)(,\s*\d+)?\]|local-cluster\[.*\]|yarn|(spark|k8s)://.+")
_HOST = re.compile(r"(?:spark://)?([^:,/]+):(\d+)")
_PAUSE = 0.5
"""Seconds after which what does not stop is told again."""
_PATIENCE = 5.0
"""Seconds in which a master answers, or does not."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is asked for besides its programs and its input."""

    output: str | None
    emit: tuple[str, ...]
    dead_letter: Path | None
    names: Sequence[dict[str, str]]
    """What the dead letters of each program say of where they come from."""
    master: str | None
    debug: bool
    progress: bool
    lenient: bool = False
    """Whether declared attributes that are no columns of the input are null."""
    strict: bool = False
    """Whether notes on the input make the command fail, behind the answers."""
    until: float | str | None = None
    """At least until when the clock runs, over a history."""
    points: Points | None = None
    """Whether no joins are stored, or all of them, if the planner is not to choose."""
    delivery: DeliverWanted = NOT_DELIVERED
    """Whether messages are sent."""


def run_on_spark(
    programs: Sequence[Program],
    tables: Sequence[Rows],
    given: Sequence[Given],
    wanted: Wanted,
    *,
    systems: Sequence[Written] = (),
) -> None:
    """A run from its input to its output, or to systems; ends the command if it fails."""
    check_spark("run with --engine local")
    check_master(wanted.master)
    with told(debug=wanted.debug), spooled(given) as stored, shown_stages(wanted=wanted.progress) as shown:
        # Only who runs on Spark needs it, and it takes a while to load.
        from ephemera.spark.runtime.session import is_local, session

        shown.say("starting Spark")
        is_short = not systems and _is_short(stored, wanted)
        length: Literal["short", "long"] = "short" if is_short else "long"
        spark = session(wanted.master, debug=wanted.debug, length=length, may_archive=True, is_alone=True)
        heed_again()
        both = list(zip(programs, tables, strict=True))
        run = _run_small if is_short and is_local(spark) else partial(_run, systems=systems)
        _interruptible(lambda: run(spark, both, stored, wanted, shown), spark.sparkContext.cancelAllJobs)


def _spark_paths(given: Given) -> tuple[str, ...]:
    """Paths as Spark finds them."""
    if (
        other := next((p for p in given.paths if is_packed(p) and not p.endswith((GZIP, ZSTANDARD))), None)
    ) is not None:
        _fail(f"Spark unpacks what ends in .gz or .zst, in small letters; rename {other}, or run with --engine local")
    return given.paths if given.is_remote else tuple(map(literal, given.paths))


def _is_short(given: Sequence[Given], wanted: Wanted) -> bool:
    """Whether one task is enough for a run; folders of answers are written by several."""
    from ephemera.spark.batch.one_task import is_small

    if (
        wanted.delivery.is_wanted
        or any(one.is_remote for one in given)
        or not (wanted.output is None or layout(wanted.output) == "file")
    ):
        return False
    return (wanted.master or "local").startswith("local") and is_small([file_source(one) for one in given])


def _interruptible(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Works in a thread of its own: so Ctrl-C finds this one idle, and can have the work cancelled in good order."""
    with ThreadPoolExecutor(1, "ephemera-run") as pool:
        done = pool.submit(work)
        try:
            done.result()
        except KeyboardInterrupt:
            while not done.done():
                cancel()
                wait([done], timeout=_PAUSE)
            raise


def _run_small(
    spark: Any,
    programs: Sequence[tuple[Program, Rows]],
    given: Sequence[Given],
    wanted: Wanted,
    shown: Shown,
) -> None:
    """All of a run in one task."""
    from ephemera.base.scratch import scratch
    from ephemera.spark.batch.job_progress import JobStages, watched
    from ephemera.spark.batch.one_task import SmallRun

    began = time.monotonic()
    inputs = [(replace(file_source(one), paths=_absolute(one.paths)), one.readers) for one in given]
    with scratch("run") as folder, watched(spark, JobStages(("one task",), 1), shown.see):
        run = SmallRun(spark, _jobs(programs, wanted), inputs, folder, lenient=wanted.lenient)
        _give(run, partial(_write_lines, run, wanted, shown), wanted)
    _tell(run, programs, wanted, shown, began)


def _absolute(paths: Sequence[str]) -> tuple[str, ...]:
    """Workers may be at work elsewhere."""
    return tuple(str(Path(path).absolute()) for path in paths)


def _run(
    spark: Any,
    programs: Sequence[tuple[Program, Rows]],
    given: Sequence[Given],
    wanted: Wanted,
    shown: Shown,
    *,
    systems: Sequence[Written] = (),
) -> None:
    from ephemera.spark.batch.job import start
    from ephemera.spark.batch.job_output import Computed
    from ephemera.spark.batch.job_progress import stages_of, watched
    from ephemera.spark.read.scan import Input

    began = time.monotonic()
    shown.say("looking at the input")
    there = [one for one in given if one.paths]
    inputs = [Input(_spark_paths(one), one.format, one.only, one.programs) for one in there]
    if not inputs:
        inputs = [Input(spark.createDataFrame([], "event string, time bigint"))]
    jobs = _jobs(programs, wanted)
    started = start(spark, jobs, inputs, lenient=wanted.lenient)
    with watched(spark, stages_of(started, len(inputs)), shown.see):
        computed = Computed(started)
        with delivering([job.compiled for job in jobs], wanted.delivery) as delivery:
            if delivery is not None:  # before the answers: a crash between the two loses none
                given_out = {"as_numbers": started.as_numbers}
                found = computed.messages_by_columns()
                delivery.put([m for n, part, to in found for m in delivery.outgoing(part, to, program=n, **given_out)])
            write = partial(computed.put, systems) if systems else partial(_write, computed, wanted, shown)
            _give(computed, write, wanted)
    _tell(computed, programs, wanted, shown, began)


def _jobs(programs: Sequence[tuple[Program, Rows]], wanted: Wanted) -> list[Job]:
    from ephemera.spark.batch.job import Job

    return [
        Job(program._planned(wanted.emit, wanted.points), program._world(rows, until=wanted.until))
        for program, rows in programs
    ]


def _give(run: RunOutput, write: Callable[[], None], wanted: Wanted) -> None:
    """Writes answers and dead letters."""
    try:
        if wanted.dead_letter is not None:
            _bury(run, wanted)
        write()  # answers last: a run that fails leaves none
        if wanted.dead_letter is None:
            _bury(run, wanted)
    finally:
        run.close()


def _tell(run: RunOutput, programs: Sequence[tuple[Program, Rows]], wanted: Wanted, shown: Shown, began: float) -> None:
    """What there is to say of a run that is over."""
    tell_notes(run.summary.notes)
    lacking = [program.notes(run.never(number)) for number, (program, _) in enumerate(programs)]
    lines = summary_lines(run.summary, wanted.names, time.monotonic() - began)
    shown.end([*lines, *note_lines(lacking, wanted.names)])
    tell_warnings(run.summary.warnings, strict=wanted.strict)


def _write(computed: Computed, wanted: Wanted, shown: Shown) -> None:
    from ephemera.spark.batch.job_output import write_folder

    form = "file" if wanted.output is None else layout(wanted.output)
    match form:
        case "file":
            _write_lines(computed, wanted, shown)
        case "json":
            write_folder(computed.lines(), Path(wanted.output or ""), form)
        case _:
            write_folder(computed.columns(), Path(wanted.output or ""), form)


def _write_lines(run: RunOutput, wanted: Wanted, shown: Shown) -> None:
    """One file, or standard output."""
    if wanted.output is not None:
        write_file(run.lines_in_order(), Path(wanted.output))
        return
    with shown.aside():
        for lines in run.lines_in_order():
            write_out_bytes(lines)


def _bury(run: RunOutput, wanted: Wanted) -> None:
    count = run.summary.bad + run.summary.dead
    if wanted.dead_letter is not None:
        letters = ({**letter, **wanted.names[number]} for number, letter in run.letters())
        write_file((utf_8(json.dumps(one, ensure_ascii=False) + "\n") for one in letters), wanted.dead_letter)
    elif count:
        _, first = next(run.letters())
        tell_unused(count, first)


# ---- what may go wrong ---------------------------------------------------------------------------------------


def check_spark(instead: str = "", *, who: str = "the engine `spark`") -> None:
    """Ends the command if Spark is not installed; `instead` says what does without it."""
    lack = lacking_spark(instead, who=who)
    if lack is not None:
        _fail(str(lack))


def check_master(master: str | None) -> None:
    """Ends the command if there is no such master, rather than have Spark try for a minute."""
    if master is None:
        return
    if _MASTER.fullmatch(master) is None:
        _fail(
            f"there is no master `{master}`; there are local, local[4], local[*], spark://host:7077, yarn and k8s://…"
        )
    if not master.startswith("spark://"):
        return
    hosts = _HOST.findall(master)
    if not hosts:
        _fail(f"`{master}` names no host and port; a master is such as spark://host:7077")
    if not any(_answers(host, int(port)) for host, port in hosts):
        _fail(f"no master answers at `{master}`", FAILED)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False


@contextmanager
def told(*, debug: bool) -> Iterator[None]:
    """Says in one line what went wrong; `debug` lets it through as it is."""
    if not debug and not logging.root.handlers:
        logging.root.addHandler(logging.NullHandler())  # where py4j writes what we tell in our own words
    try:
        yield
    except KeyboardInterrupt:
        tell("stopped")
        raise click.exceptions.Exit(exit_code(is_live=False)) from None
    except click.exceptions.Exit:
        raise
    except Exception as error:
        if was_stopped():  # what goes wrong then does so since somebody ended it
            tell("stopped")
            raise click.exceptions.Exit(exit_code(is_live=False)) from None
        if debug:
            raise
        code, line = _line(error)
        _fail(line, code)


def _line(error: Exception) -> tuple[int, str]:
    """The exit code and the line for what went wrong."""
    if isinstance(error, WrongColumns | BadFile):
        return WRONG_PROGRAM, str(error)
    if isinstance(error, CannotRead):
        return WRONG_COMMAND, str(error)
    if isinstance(error, EphemeraError):
        return FAILED, str(error)
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return FAILED, f"cannot write {error.filename or 'temporary files'}: {error.strerror or error}"
    from ephemera.spark.runtime.failures import failure, is_absent, is_input

    code = WRONG_COMMAND if is_absent(error) else WRONG_PROGRAM if is_input(error) else FAILED
    return code, str(failure(error))


def _fail(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    tell(message)
    raise click.exceptions.Exit(code)
