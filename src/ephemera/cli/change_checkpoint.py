"""This module holds the command that changes the programs of a live run that is stopped: `change`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ephemera import pipeline
from ephemera.analysis.unbounded import unbounded_in
from ephemera.base.errors import EphemeraError
from ephemera.base.span import Source
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, write_out
from ephemera.cli.programs import compile_all
from ephemera.cli.run_checks import declared_tables
from ephemera.cli.spark import check_spark, told
from ephemera.cli.watched import past_by
from ephemera.connect.live.change_checkpoint import change_checkpoint, is_of_one_process
from ephemera.engine.change.archive import ReadOnce
from ephemera.engine.change.change import Change
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.state.checkpoint_lock import hold
from ephemera.engine.state.identity import ChangedData
from ephemera.program import Program

if TYPE_CHECKING:
    from ephemera.spark.batch.job import Job


def change_command(
    folder: str,
    paths: Sequence[Path],
    *,
    look_back: str,
    dry_run: bool,
    lenient: bool,
    allow_unbounded: bool,
    debug: bool,
) -> None:
    """Changes a checkpoint to other programs, and prints what becomes of each rule."""
    programs = compile_all(paths, unbounded_in("live", allowed=allow_unbounded))
    tables = [declared_tables(one, path.parent, lenient=lenient) for one, path in zip(programs, paths, strict=True)]
    with told(debug=debug):
        try:
            pasts = [past_by(look_back, k, programs, paths, lenient=lenient) for k in range(len(programs))]
            if is_of_one_process(folder):
                done: Sequence[Change] = change_checkpoint(
                    folder, programs, dry_run=dry_run, tables=tables, pasts=pasts
                )
            else:
                done = _changed_on_spark(folder, programs, tables, pasts, dry_run=dry_run)
        except ChangeRefused as refused:
            click.echo(f"the checkpoint stays as it is: {refused}", err=True)
            raise click.exceptions.Exit(WRONG_PROGRAM) from None
    lines = [str(change) for change in done]
    write_out("\n".join(lines) + "\n")
    if dry_run:
        click.echo("nothing was changed; leave out --dry-run to do so", err=True)
    else:
        click.echo(f"go on with --checkpoint {folder} and the new program", err=True)


def _changed_on_spark(
    folder: str, programs: Sequence[Program], tables: Sequence[Any], pasts: Sequence[Any], *, dry_run: bool
) -> Sequence[Change]:
    check_spark("change the program in Python, by `engine.change(…)`", who="the checkpoint of a live run on Spark")
    from ephemera.spark.batch.job import Job
    from ephemera.spark.live.change_checkpoint import changed_programs, opened, told_source
    from ephemera.spark.live.checkpoint import SOURCES, Checkpoint

    if not Checkpoint(folder).is_there:
        _fail(f"there is no checkpoint of a live run in `{folder}`; name the folder that `--checkpoint` named")
    with hold(folder):
        ledger = Checkpoint(folder)
        sources = ledger.content.get(SOURCES)
        if not sources:
            raise EphemeraError(
                f"the checkpoint `{folder}` does not say by which text its program was written, as it is of a version "
                "before, or of tables of Spark: start that program once more with this version, and change it then"
            )
        before = [_as_it_was(source, folder) for source in sources]
        new = [
            Job(
                program._planned(source["emit"]),
                program._world(own),
                program._source,
            )
            for program, own, source in zip(programs, tables, sources, strict=False)
        ]
        if len(programs) != len(before):
            _fail(f"the checkpoint is of {len(before)} programs, and {len(programs)} are given: give all of them")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ChangedData)  # the rows of the program before mean nothing any more
            spreads = opened(before, ledger)
        jobs = [(job.compiled, job.world, told_source(job)) for job in new]
        ways: list[Any] = [past if isinstance(past, str) else ReadOnce(past) for past in pasts]
        return changed_programs(ledger, spreads, jobs, ways, dry_run=dry_run)


def _as_it_was(told_by: Any, folder: str) -> Job:
    """A program as the checkpoint has it."""
    from ephemera.spark.batch.job import Job
    from ephemera.spark.live.change_checkpoint import planned_by

    if told_by["calendars"]:
        _fail(
            f"the program of `{folder}` runs with calendars, which a command cannot give it: change it in Python, by "
            "`query.change(…)`"
        )
    program = Program(pipeline.check(Source(told_by["path"], told_by["text"])))
    return Job(planned_by(program._planned(told_by["emit"]), told_by["form"]), program._world(), program._source)


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)
