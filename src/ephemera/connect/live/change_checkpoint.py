"""This module changes the programs of a live run in one process while it does not run: its checkpoint, at rest.

The engines of the last commit are changed as those of a run would be, and take the place of what they were in one
step. All else of the commit stays: how far the sources have been read, and the answers that are still to be put.
Whoever is killed before that step has changed nothing; what he has written is of no use to anybody, and goes with the
next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from ephemera.base.errors import EphemeraError
from ephemera.connect.live.checkpoint import COMMIT, Checkpoint, Commit, ToldProgram
from ephemera.connect.live.partitions import Partitions
from ephemera.connect.live.running import told_programs
from ephemera.engine.change.change import Change
from ephemera.engine.hosts.live_engine import Changing, LiveEngine
from ephemera.engine.state.checkpoint_lock import hold
from ephemera.engine.state.durable_files import Broken, files_of
from ephemera.rules.nodes import Catalogue

Tables = Mapping[str, Any]
"""The rows of declared tables."""
_ATTEMPTS = 3
"""So often a commit is read that a run replaces meanwhile."""


class ChangingProgram(Changing, Protocol):
    """A program that takes the place of another."""

    @property
    def catalogue(self) -> Catalogue:
        """What it declares."""

    def engine_of(self, told: ToldProgram, tables: Tables) -> LiveEngine:
        """An engine of the program before."""


def is_of_one_process(folder: str) -> bool:
    """Whether a folder is the checkpoint of a live run in one process."""
    files, path = files_of(folder)
    return COMMIT in files.names(path)


def change_checkpoint(  # noqa: PLR0913 - all but two named
    folder: str,
    programs: Sequence[ChangingProgram],
    look_back: Any = "refuse",
    *,
    dry_run: bool = False,
    tables: Sequence[Tables] = (),
    pasts: Sequence[Any] = (),
) -> list[Change]:
    """What becomes of the rules of each program; the run goes on with these, unless it is only asked.

    `look_back` and `tables` are those of `engine.change`; `pasts` has another `look_back` for each program. Nothing is
    touched that is only asked for, so then the run may be at work.
    """
    if not is_of_one_process(folder):
        raise EphemeraError(f"`{folder}` is not the checkpoint of a live run in one process: there is no {COMMIT}")
    rows = _rows(programs, tables)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(hold(folder))
        checkpoint, last = _last(folder, attempts=_ATTEMPTS if dry_run else 1)
        _check(folder, last, programs)
        engines: list[LiveEngine] = []
        stands: list[Mapping[str, Any]] = []
        changes: list[Change] = []
        hows = pasts or [look_back for _ in programs]
        stored = zip(programs, last.programs or (), last.engines, last.partitions, rows, hows, strict=True)
        for program, told, snapshot, stood, own, past in stored:
            engine = program.engine_of(told, own).restore(snapshot)
            partitions = Partitions(engine.catalogue, engine.sources, 0)
            partitions.restore(stood)
            changes.append(engine.change(program, look_back=past, tables=own))
            partitions.go_on(engine.catalogue, engine.sources)
            engines.append(engine)
            stands.append(partitions.checkpoint())
        if not dry_run:
            checkpoint.replace([engine.snapshot() for engine in engines], stands, told_programs(engines) or ())
    return changes


def _rows(programs: Sequence[ChangingProgram], tables: Sequence[Tables]) -> Sequence[Tables]:
    found = tables or [{} for _ in programs]
    for program, rows in zip(programs, found, strict=True):
        lacking = sorted(program.catalogue.tables.keys() - rows.keys())
        if lacking:
            raise EphemeraError(
                f"the rows of `TABLE {lacking[0]}` are needed, to see what rules make of them: `tables`"
            )
    return found


def _last(folder: str, attempts: int) -> tuple[Checkpoint, Commit]:
    while True:
        attempts -= 1
        try:
            checkpoint = Checkpoint(folder)
            last = checkpoint.last()
        except Broken:
            if not attempts:
                raise
            continue
        if last is None:
            raise EphemeraError(f"there is no commit in the checkpoint `{folder}` any more")
        return checkpoint, last


def _check(folder: str, last: Commit, programs: Sequence[ChangingProgram]) -> None:
    if len(programs) != len(last.engines):
        raise EphemeraError(
            f"the checkpoint `{folder}` is of {len(last.engines)} programs, and these are {len(programs)}; "
            "name as many, in the same order"
        )
    if last.programs is None:
        raise EphemeraError(
            f"the checkpoint `{folder}` was written by a version that did not keep the text of programs: start its run "
            "once more with the programs that it has, by `--trigger once`, and change them then"
        )
    if any("past" in one and one["past"] is None for one in last.partitions):
        raise EphemeraError(
            f"the past of the checkpoint `{folder}` has not been read to its end: start its run once more as before, "
            "and change the programs then"
        )
