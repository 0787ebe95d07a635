"""This module says what a live query goes on with when its programs change: others, on what those before ran on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypedDict

from ephemera.base.span import Source
from ephemera.connect.declared_tables import read_world
from ephemera.engine.change.archive import Archive
from ephemera.engine.change.starts import LookBack
from ephemera.physical.plan import Compiled
from ephemera.spark.batch.job import Job


class ChangingProgram(Protocol):
    """A program that a live query can go on with."""

    def planned_spread(self, emit: Iterable[str], *, allowed: bool) -> tuple[Compiled, Source]:
        """The program as it runs in several places, if it may run live, and its text."""

    def archive(self, given: Any, *, lenient: bool) -> Archive:
        """Where rules that are added find their past."""


class ChangeOptions(TypedDict, total=False):
    """How programs are changed."""

    look_back: LookBack | Any
    tables: Mapping[str, Any] | None
    allow_unbounded: bool
    dry_run: bool


def changed_jobs(
    before: Sequence[Job],
    programs: Sequence[ChangingProgram],
    tables: Mapping[str, Any],
    *,
    allowed: bool,
    lenient: bool,
) -> list[Job]:
    """Other programs with what those before run on, and some tables more."""
    if len(programs) != len(before):
        raise ValueError(f"the query runs {len(before)} programs, and {len(programs)} are given: give all of them")
    found = []
    for job, program in zip(before, programs, strict=True):
        planned, text = program.planned_spread(job.compiled.physical.emit, allowed=allowed)
        catalogue, world = planned.rules.resolved.catalogue, job.world
        given = {label: rows for label, rows in tables.items() if label in catalogue.tables}
        own = {label: rows for label, rows in world.tables.items() if label in catalogue.tables}
        read = read_world(catalogue, given, {}, None, lenient=lenient).tables
        found.append(Job(planned.beside(world.calendars), replace(world, tables={**own, **read}), text))
    return found
