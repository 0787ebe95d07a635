"""This module runs programs over stored events on Spark, from the input to answers that are there all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.base.span import Source
from ephemera.engine.cluster.cut_along_time import cut_along_time, cut_at
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.time_slices import WORTHWHILE, Slicing
from ephemera.engine.observe import observed
from ephemera.formats.check_columns import check_columns
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rewrite.pushdown import Asked, constants
from ephemera.rules.outcome import World
from ephemera.spark.read.flat_events import ANY, END, REST, Form, ScannedEvents
from ephemera.spark.read.parquet import GroupsOfRows, groups_of_rows
from ephemera.spark.read.route_rows import FromLines, FromSource, numbered
from ephemera.spark.read.sample_events import Sampled, sample_events
from ephemera.spark.read.scan import Input, apart, format_of, read, read_rest
from ephemera.spark.read.system_stretches import SystemStretches, system_at, system_stretches
from ephemera.spark.read.text_files import TextFiles, text_files
from ephemera.spark.read.time_form import counts, messages_there
from ephemera.spark.runtime.connect_session import connect_cores, is_connect
from ephemera.spark.runtime.exchange import SCHEMA, Programs, run_levels
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.ship_package import ship
from ephemera.terms.events import Event

_ByPython: TypeAlias = GroupsOfRows | TextFiles | SystemStretches
"""What Python reads by itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run, as it is planned for what is asked for, and what it runs on besides events."""

    compiled: Compiled
    world: World = field(default_factory=World)
    source: Source | None = None
    """The text that it was compiled from, if that is known: a checkpoint keeps it for those who change the program."""

    @property
    def asks_the_clock(self) -> bool:
        return bool(self.compiled.physical.clocked)


@dataclass(frozen=True, slots=True)
class Started:
    """A run that has been planned: nothing is computed before somebody reads its frame."""

    shipped: DataFrame
    spreads: tuple[DistributedProgram, ...]
    as_numbers: bool
    places: int
    notes: tuple[str, ...] = ()
    """What is to be said of the input, as far as its columns tell."""
    filtered: frozenset[str] = frozenset()
    """Types of which only those events were read that have constants for which rules ask."""


def places_of(spark: SparkSession) -> int:
    """In how many places engines run: two for each core, so that one that is done early has more to do."""
    return 2 * cores_of(spark)


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at once."""
    return connect_cores(spark) if is_connect(spark) else int(spark.sparkContext.defaultParallelism)


def start(  # noqa: PLR0913 - what a run needs
    spark: SparkSession,
    jobs: Sequence[Job],
    inputs: Sequence[Input],
    places: int | None = None,
    *,
    lenient: bool = False,
    slicing: Slicing | None = WORTHWHILE,
) -> Started:
    """Programs over the same input, each in its own namespace; `lenient` reads columns that are missing as null.

    Rules without a key, and places with more than their share, are cut along time where that is worth it; rules that
    leave a choice are joined as is best for what there is. To know that, some of the input is read at once; without
    `slicing` nothing is.
    """
    ship(spark)
    count = places or places_of(spark)
    frames: list[DataFrame] = []
    spreads: list[DistributedProgram] = []
    numbers = True
    notes: list[str] = []
    filtered: set[str] = set()
    for same in declaring_alike(jobs, inputs):
        catalogue = jobs[same[0]].compiled.rules.resolved.catalogue
        alike = [jobs[n] for n in same]
        found = [(given, _by_python(spark, given, alike, lenient=lenient)) for given in inputs if given.is_for(same[0])]
        here = [files for _, files in found if files is not None]
        asked = (catalogue, wanted_columns(alike), _constants(alike))
        assumed = catalogue.local.assumed
        by_spark = read(spark, [given for given, files in found if files is None], *asked)
        offers = [source.offer for source in by_spark if source.offer is not None]
        offers += [offer for files in here for offer in files.offers()]
        for job in alike:
            check_columns(offers, job.compiled.rules.resolved.catalogue, lenient=lenient)
        asks_the_clock = any(job.asks_the_clock for job in alike)  # then Spark looks for the first and last ends
        are_files = [given for given, files in found if files is not None and not isinstance(files, SystemStretches)]
        others = read(spark, are_files if asks_the_clock else [], *asked)
        systems = [files for files in here if isinstance(files, SystemStretches)]
        seen = _looked_at(alike, here, count) if slicing is not None else None
        planned = alike if slicing is None else _planned_for(alike, seen or [], slicing)
        pairs = zip(same, planned, strict=True)
        own = [_spread(spark, n, job, [*by_spark, *others, *systems], count) for n, job in pairs]
        left = [*([] if seen else here), *by_spark]
        own = _cut_along_time(own, left, seen or [], wanted_columns(alike), cores_of(spark), slicing)
        spreads += own
        notes += catalogue.local.note_since(assumed)
        filtered |= set(_constants(alike)) if any(source.form in ("rows", "cells") for source in by_spark) else set()
        frames += [files.routed(spark, own, wanted_columns(alike)) for files in here]
        frames += [_routed(source, own) for source in by_spark]
        numbers = numbers and all(_has_numbers(spark, source, jobs[n]) for source in by_spark for n in same)
        numbers = numbers and all(files.counts(jobs[n].compiled) for files in here for n in same)
    routed = reduce(DataFrame.unionAll, frames or [empty(spark)])
    spreads.sort(key=lambda spread: spread.number)
    shipped = run_levels(routed, spreads, Programs(spreads), count)
    return Started(shipped, tuple(spreads), numbers, count, tuple(dict.fromkeys(notes)), frozenset(filtered))


def empty(spark: SparkSession) -> DataFrame:
    """What is on its way where there is nothing to read."""
    return spark.createDataFrame([], SCHEMA)


def _by_python(spark: SparkSession, given: Input, jobs: Sequence[Job], *, lenient: bool) -> _ByPython | None:
    """What Python reads of an input by itself, for programs that read it alike: systems, and files of this machine."""
    if given.is_system:
        catalogues = [job.compiled.rules.resolved.catalogue for job in jobs]
        return system_stretches(system_at(given.paths[0], given.only, catalogues), lenient=lenient)
    form = given.format or (format_of(given.paths[0]) if given.paths else None)
    match form:
        case "parquet":
            return groups_of_rows(spark, given.paths, given.only)
        case "json" | "csv":
            return text_files(spark, given.paths, form, given.only, len(jobs))
        case _:
            return None


def declaring_alike(jobs: Sequence[Job], inputs: Sequence[Input] = ()) -> list[list[int]]:
    """The programs by what they declare and read: those that do the same read the input once."""
    found: list[tuple[object, list[int]]] = []
    for number, job in enumerate(jobs):
        catalogue = job.compiled.rules.resolved.catalogue
        stamps = [(source.carries, source.time) for source in catalogue.sources]
        when = stamps if any(time for _, time in stamps) else []
        read_by = [given.is_for(number) for given in inputs]
        declared = (catalogue.unit, catalogue.zone, dict(catalogue.events), when, read_by)
        same = next((numbers for other, numbers in found if other == declared), None)
        if same is None:
            found.append((declared, [number]))
        else:
            same.append(number)
    return [numbers for _, numbers in found]


def _spread(
    spark: SparkSession, number: int, job: Job, sources: Sequence[ScannedEvents | SystemStretches], places: int
) -> DistributedProgram:
    return DistributedProgram(job.compiled, job.world, number, places, *_span(spark, sources, job))


def _looked_at(jobs: Sequence[Job], sources: Sequence[_ByPython], places: int) -> Sampled | None:
    """Some events of files that programs read, where these leave a choice of how to join; else nobody looks."""
    if not any(job.compiled.physical.has_choice for job in jobs):
        return None
    reading = DistributedProgram(jobs[0].compiled, jobs[0].world, 0, places, -FAR, FAR)
    return [some for source in sources for some in sample_events(source, reading, wanted_columns(jobs))]


def _planned_for(jobs: Sequence[Job], sampled: Sampled, slicing: Slicing) -> list[Job]:
    """Programs over the same input as they are to run over what some of it shows."""
    if sum(len(part) * weight for part, weight in sampled) < max(slicing.least, 1):
        return list(jobs)
    seen = observed([part for part, _ in sampled], [weight for _, weight in sampled])
    return [
        replace(job, compiled=job.compiled.seen(seen)) if seen and job.compiled.physical.has_choice else job
        for job in jobs
    ]


def _cut_along_time(  # noqa: PLR0913, PLR0917 - programs, what they read, and when it is worth it
    spreads: list[DistributedProgram],
    sources: Sequence[_ByPython | ScannedEvents],
    sampled: Sampled,
    wanted: Mapping[str, frozenset[str]],
    cores: int,
    slicing: Slicing | None,
) -> list[DistributedProgram]:
    """Programs over the same input with their slices of time; the input is only looked at if some may have any.

    Of sources that are not among these some events are known already.
    """
    if (
        slicing is None
        or not any(spread.look_backs for spread in spreads)
        or not slicing.may_help(spreads[0].places, cores)
    ):
        return spreads
    have_keys = [spread.has_keys(group) for spread in spreads for group in spread.look_backs]
    columns = wanted if any(have_keys) else dict.fromkeys(wanted, frozenset[str]())
    found = spreads
    for at_a_glance in (True, False) if all(have_keys) else (False,):  # mostly keys do spread
        looks = [sample_events(source, spreads[0], columns, at_a_glance=at_a_glance) for source in sources]
        every = [*sampled, *(some for one in looks for some in one)]
        found = [cut_along_time(spread, every, cores, slicing) for spread in spreads]
        if not any(spread.slices for spread in found):
            break
    return found


def start_lines(  # noqa: PLR0913, PLR0917 - what a run needs
    spark: SparkSession,
    jobs: Sequence[Job],
    given: Sequence[Sequence[str]],
    spans: Sequence[tuple[int, int]],
    places: int,
    limits: Sequence[Sequence[int]] = (),
) -> Started:
    """Programs each over lines of its own, all in one go; the spans are the first and last ends of their events.

    Limits say of each program where it is cut along time.
    """
    ship(spark)
    spreads = tuple(
        DistributedProgram(job.compiled, job.world, number, places, *span)
        for number, (job, span) in enumerate(zip(jobs, spans, strict=True))
    )
    if limits:
        spreads = tuple(cut_at(spread, own) for spread, own in zip(spreads, limits, strict=True))
    rows = [(number, line.encode()) for number, lines in enumerate(given) for line in lines]
    frame = spark.createDataFrame(rows, "program int, line binary").repartition(places)
    programs = Programs(spreads)
    routed = map_in_arrow(frame, FromLines(programs), SCHEMA)
    return Started(run_levels(routed, spreads, programs, places), spreads, True, places)


def wanted_columns(jobs: Sequence[Job], *, every_event: bool = False) -> Mapping[str, frozenset[str]]:
    """What is read of which types: the attributes that rules use, or all of them if they may use any.

    Of other types nothing is read over history, unless the clock is asked, since any event may be the first or last.
    `every_event` says that of each it is to be known that there was one and when, which moves the bounds of sources.
    """
    catalogue = jobs[0].compiled.rules.resolved.catalogue
    asked = [job.compiled.physical.rewritten.columns for job in jobs]
    if None in asked or (not every_event and any(job.asks_the_clock for job in jobs)):
        return {**{label: frozenset(catalogue.attributes(label) or ()) for label in catalogue.events}, ANY: frozenset()}
    columns: dict[str, frozenset[str]] = dict.fromkeys(catalogue.events, frozenset()) if every_event else {}
    for label, names in (pair for one in asked if one is not None for pair in one.items()):
        if label in columns or not every_event:
            columns[label] = columns.get(label, frozenset()) | names
    return {**columns, ANY: frozenset()} if every_event else columns


def _constants(jobs: Sequence[Job]) -> Mapping[str, tuple[Asked, ...]]:
    """By which constants columns are filtered; where the clock is asked, any event may be the first or last."""
    if any(job.asks_the_clock for job in jobs):
        return {}
    plans = [job.compiled.physical for job in jobs]
    return constants([plan.rewritten.reading or plan.logical for plan in plans])


def _routed(source: ScannedEvents, spreads: Sequence[DistributedProgram]) -> DataFrame:
    labels = sorted(spreads[0].compiled.rules.resolved.catalogue.events)
    reader = FromSource(spreads, source.form, dict(source.held), labels, source.only)
    return map_in_arrow(numbered(source, labels), reader, SCHEMA)


# ---- what must be known before ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ends:
    """The first and the last end of the events of a source."""

    compiled: Compiled
    form: Form

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            vouched, rest = apart(batch, self.form)
            ends = [e.time.end for e in read_rest(self.compiled, self.form, rest) if isinstance(e, Event)]
            if vouched.num_rows:
                both = pc.min_max(vouched.column(END)).as_py()
                ends += [both["min"], both["max"]]
            if ends:
                yield pa.RecordBatch.from_pydict({"first": [min(ends)], "last": [max(ends)]})


def _span(spark: SparkSession, sources: Sequence[ScannedEvents | SystemStretches], job: Job) -> tuple[int, int]:
    """The earliest and the latest end of all events; it only matters where the clock is asked."""
    if not job.asks_the_clock:
        return -FAR, FAR
    until = [] if job.world.until is None else [job.world.until]
    ends: list[int] = []
    for source in sources:
        if isinstance(source, SystemStretches):
            ends += source.ends(spark, job.compiled)
            continue
        used = [END, REST] if source.has_columns else [REST]
        ends_of = _Ends(job.compiled.carrying(source.only), source.form)
        found = map_in_arrow(source.frame.select(*used), ends_of, "first bigint, last bigint")
        row = found.agg(f.min("first"), f.max("last")).first()
        ends += [int(v) for v in (row or ()) if v is not None]
    return min(ends or until or [0]), max([*ends, *until], default=-1)


def _has_numbers(spark: SparkSession, source: ScannedEvents, job: Job) -> bool:
    """Whether a source writes its times as numbers, so that answers do."""
    if source.form == "rows":
        return source.counts
    compiled = job.compiled.carrying(source.only)
    found = messages_there(spark, source.files, source.form, compiled.rules.resolved.catalogue)
    return counts(found, compiled)
