"""This module changes the programs of a live query, or into how many shards its state is cut, between two batches.

The state of all shards after the last batch is read, changed in one process, and written beside the old, in the folder
of another version. Then one file says that this version counts, with what it is of. Whoever is killed before that has
changed nothing, and whoever comes later goes on with the new version.

Spark may have planned a batch that was not done. If nobody has begun it, it is done by the new version. Else it has to
be finished by the version that began it: that is refused, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ephemera.algebra.fingerprint import digest
from ephemera.engine.change.archive import ReadOnce
from ephemera.engine.change.change import Change, Ways, earlier_form, form_of, replanned
from ephemera.engine.change.starts import LookBack
from ephemera.engine.cluster.change_spread import Spread, changed_spread, live_form, respread
from ephemera.engine.cluster.moved_shards import StoredEngines, write_shards
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.state.durable_files import files_of
from ephemera.engine.state.identity import compared, program_of
from ephemera.engine.state.segment_store import Store
from ephemera.engine.state.segments import Origin
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import World
from ephemera.spark.batch.job import Job
from ephemera.spark.live.checkpoint import (
    FORMS,
    SOURCES,
    Checkpoint,
    OtherLayout,
    ToldSource,
    WrongCheckpoint,
    layout_of,
    state_folder,
)
from ephemera.spark.live.fault_points import mark

_WAYS = Ways(planned=lambda compiled: compiled)


def planned_as(compiled: Compiled, ledger: Checkpoint, number: int) -> Compiled:
    """A program as the checkpoint has it planned, if a change has chosen that."""
    forms = ledger.forms()
    return compiled if forms is None or number >= len(forms) else planned_by(compiled, forms[number])


def planned_by(compiled: Compiled, form: Sequence[str]) -> Compiled:
    """A program as it is planned by some rewrites, by their names."""
    return replanned(compiled, form, _WAYS)


def opened(
    jobs: Sequence[Job], ledger: Checkpoint, shards: int | None = None, default: int = 1
) -> tuple[DistributedProgram, ...]:
    """The programs of a checkpoint in as many places as that has shards."""
    compiled = [planned_as(job.compiled, ledger, number) for number, job in enumerate(jobs)]
    told = [told_source(job) for job in jobs]
    one = _in_one_place(jobs, compiled)
    try:
        places = ledger.open(one, shards, default, told)
    except OtherLayout:
        forms = [earlier_form(form_of(own)) for own in compiled]
        one = _in_one_place(jobs, [planned_by(own, form) for own, form in zip(compiled, forms, strict=True)])
        places = ledger.open(one, shards, default, told)
        ledger.keep_forms(forms)
    return tuple(in_places(spread, places) for spread in one)


def _in_one_place(jobs: Sequence[Job], compiled: Sequence[Compiled]) -> list[DistributedProgram]:
    return [
        DistributedProgram(live_form(own), job.world, number, 1, -FAR, FAR)
        for number, (job, own) in enumerate(zip(jobs, compiled, strict=True))
    ]


def in_places(spread: DistributedProgram, places: int) -> DistributedProgram:
    """A program in so many places."""
    return DistributedProgram(spread.compiled, spread.world, spread.number, places, -FAR, FAR)


def told_source(job: Job) -> ToldSource | None:
    """What a checkpoint keeps of the text of a program."""
    if job.source is None:
        return None
    physical = job.compiled.physical
    asked = {"emit": sorted(physical.emit), "calendars": sorted(physical.calendars), "form": form_of(job.compiled)}
    return {"path": job.source.path, "text": job.source.text, **asked}


def changed_programs(  # noqa: PLR0913 - two queries, and how one becomes the other
    ledger: Checkpoint,
    old: Sequence[DistributedProgram],
    new: Sequence[tuple[Compiled, World, ToldSource | None]],
    look_backs: Sequence[LookBack | ReadOnce],
    *,
    shards: int | None = None,
    dry_run: bool = False,
) -> list[Change]:
    """What becomes of the rules of each program; from then on the checkpoint is of the new ones."""
    if len(old) != len(new):
        raise WrongCheckpoint(f"the checkpoint is of {len(old)} programs, and these are {len(new)}")
    ledger.see_that_all_is_done(old)
    standings = ledger.after_last()
    spreads = [
        changed_spread(
            spread,
            compiled,
            world,
            standings.get(spread.number, Progress()),
            _engines(ledger, spread),
            look_back,
            shards,
        )
        for spread, (compiled, world, _), look_back in zip(old, new, look_backs, strict=True)
    ]
    if not dry_run:
        sources = [source for _, _, source in new]
        known = [source for source in sources if source is not None]
        _go_on(ledger, old, spreads, {SOURCES: known if len(known) == len(sources) else []})
    return [_told(one) for one in spreads]


def cut_otherwise(ledger: Checkpoint, old: Sequence[DistributedProgram], shards: int) -> None:
    """The same programs with another number of shards."""
    ledger.see_that_all_is_done(old)
    standings = ledger.after_last()
    spreads = [
        respread(spread, standings.get(spread.number, Progress()), _engines(ledger, spread), shards) for spread in old
    ]
    _go_on(ledger, old, spreads, {})


def _told(spread: Spread) -> Change:
    done = spread.done
    if done is None:
        return Change((), (), (), {})
    return done.told(done.compiled.rules.resolved.catalogue.unit, as_numbers=not spread.standing.texts)


# ---- state -----------------------------------------------------------------------------------------------------


def _engines(ledger: Checkpoint, spread: DistributedProgram) -> StoredEngines:
    last = ledger.last
    stores = _Stores(ledger, ledger.version, ledger.programs, spread.places)
    return StoredEngines(spread, stores, last if last >= 0 else None)


class _Stores:
    """Where the shards of a version have their state."""

    def __init__(self, ledger: Checkpoint, version: int, programs: str, places: int) -> None:
        self._ledger, self._version = ledger, version
        self._origin = Origin(ledger.query, programs, places=places)

    def __call__(self, level: int, place: int) -> Store:
        files, folder = files_of(f"{self._ledger.root}/{state_folder(self._version)}")
        origin = replace(self._origin, level=level, place=place)
        return Store(files, f"{folder}/{level}-{place}", mark, origin=origin)


def _go_on(
    ledger: Checkpoint, old: Sequence[DistributedProgram], spreads: Sequence[Spread], more: Mapping[str, Any]
) -> None:
    """Writes the state of a new version, and says that it counts."""
    new = [one.program for one in spreads]
    told = [program_of(one.compiled, one.world) for one in new]
    programs = digest([compared(program) for program in told])
    version = ledger.version + 1
    mark("change begins")
    ledger.clear_state(version, new)  # of an attempt that was killed
    if ledger.version:
        ledger.clear_state(ledger.version - 1, old)  # of a change that was killed when it counted
    if ledger.last >= 0:
        write_shards(spreads, _Stores(ledger, version, programs, new[0].places), ledger.last)
    content = {
        "shards": new[0].places,
        "programs": told,
        "layouts": [layout_of(one) for one in new],
        FORMS: [form_of(one.compiled) for one in new],
        **more,
    }
    standings = {one.program.number: one.standing for one in spreads}
    ledger.go_on_with(content, standings, old)
    ledger.programs = programs
