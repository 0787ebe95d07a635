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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import typer

from ephemera.base.errors import EphemeraError
from ephemera.cli.files import FAILED, WRONG_COMMAND, WRONG_PROGRAM, tell, write_out
from ephemera.cli.inputs import Given, literal, spooled
from ephemera.cli.progress import Shown, note_lines, shown_stages, summary_lines, tell_notes, tell_unused, tell_warnings
from ephemera.cli.signals import exit_code, heed_again, was_stopped
from ephemera.connect.atomic_files import layout
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode_csv import BadFile
from ephemera.pipeline import Program

if TYPE_CHECKING:
    from ephemera.spark.batch.job_output import Computed

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


def run_on_spark(
    programs: Sequence[Program],
    tables: Sequence[Rows],
    given: Sequence[Given],
    wanted: Wanted,
) -> None:
    """A run from its input to its output; ends the command if it fails."""
    check_master(wanted.master)
    with told(debug=wanted.debug), spooled(given) as stored, shown_stages(wanted=wanted.progress) as shown:
        # Only who runs on Spark needs it, and it takes a while to load.
        from ephemera.spark.runtime.session import session  # noqa: PLC0415

        shown.say("starting Spark")
        spark = session(wanted.master, debug=wanted.debug)
        heed_again()
        both = list(zip(programs, tables, strict=True))
        _interruptible(lambda: _run(spark, both, stored, wanted, shown), spark.sparkContext.cancelAllJobs)


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


def _run(
    spark: Any,
    programs: Sequence[tuple[Program, Rows]],
    given: Sequence[Given],
    wanted: Wanted,
    shown: Shown,
) -> None:
    from ephemera.spark.batch.job import Job, start  # noqa: PLC0415
    from ephemera.spark.batch.job_output import Computed  # noqa: PLC0415
    from ephemera.spark.batch.job_progress import stages_of, watched  # noqa: PLC0415
    from ephemera.spark.read.scan import Input  # noqa: PLC0415

    began = time.monotonic()
    shown.say("looking at the input")
    emit = frozenset(wanted.emit)
    jobs = [Job(program.compiled, program.world(rows), emit) for program, rows in programs]
    inputs = [Input(g.paths if g.is_remote else tuple(map(literal, g.paths)), g.format) for g in given if g.paths]
    if not inputs:
        inputs = [Input(spark.createDataFrame([], "event string, time bigint"))]
    started = start(spark, jobs, inputs, lenient=wanted.lenient)
    with watched(spark, stages_of(started, len(inputs)), shown.see):
        computed = Computed(started)
        try:
            if wanted.dead_letter is not None:
                _bury(computed, wanted)
            _write(computed, wanted, shown)  # answers last: a run that fails leaves none
            if wanted.dead_letter is None:
                _bury(computed, wanted)
        finally:
            computed.close()
    tell_notes(computed.summary.notes)
    lacking = [program.notes(computed.never(number)) for number, (program, _) in enumerate(programs)]
    lines = summary_lines(computed.summary, wanted.names, time.monotonic() - began)
    shown.end([*lines, *note_lines(lacking, wanted.names)])
    tell_warnings(computed.summary.warnings, strict=wanted.strict)


def _write(computed: Computed, wanted: Wanted, shown: Shown) -> None:
    from ephemera.spark.batch.job_output import write_file, write_folder  # noqa: PLC0415

    if wanted.output is None:
        with shown.aside():
            for text in computed.texts():
                write_out(text)
        return
    target = Path(wanted.output)
    form = layout(wanted.output)
    match form:
        case "file":
            write_file(computed.texts(), target)
        case "json":
            write_folder(computed.lines(), target, form)
        case _:
            write_folder(computed.columns(), target, form)


def _bury(computed: Computed, wanted: Wanted) -> None:
    from ephemera.spark.batch.job_output import write_file  # noqa: PLC0415

    count = computed.summary.bad + computed.summary.dead
    if wanted.dead_letter is not None:
        letters = ({**letter, **wanted.names[number]} for number, letter in computed.letters())
        write_file((json.dumps(letter, ensure_ascii=False) + "\n" for letter in letters), wanted.dead_letter)
    elif count:
        _, first = next(computed.letters())
        tell_unused(count, first)


# ---- what may go wrong ---------------------------------------------------------------------------------------


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
        raise typer.Exit(exit_code(is_live=False)) from None
    except typer.Exit:
        raise
    except Exception as error:
        if was_stopped():  # what goes wrong then does so since somebody ended it
            tell("stopped")
            raise typer.Exit(exit_code(is_live=False)) from None
        if debug:
            raise
        code, line = _line(error)
        _fail(line, code)


def _line(error: Exception) -> tuple[int, str]:
    """The exit code and the line for what went wrong."""
    if isinstance(error, WrongColumns | BadFile):
        return WRONG_PROGRAM, str(error)
    if isinstance(error, EphemeraError):
        return FAILED, str(error)
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return FAILED, f"cannot write {error.filename or 'temporary files'}: {error.strerror or error}"
    from ephemera.spark.runtime.failures import failure, is_absent, is_input  # noqa: PLC0415

    code = WRONG_COMMAND if is_absent(error) else WRONG_PROGRAM if is_input(error) else FAILED
    return code, str(failure(error))


def _fail(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    tell(message)
    raise typer.Exit(code)
