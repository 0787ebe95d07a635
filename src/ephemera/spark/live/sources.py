"""This module opens what a live query reads: folders in which files arrive, sockets, systems, streaming data frames.

Several inputs become one frame, since a query has one: each has a column of its own. Where a source is declared idle
after some silence, a clock is one of them. Spark writes down which rows of it belong to a batch, as of any other
source, so a batch that is repeated sees the same time.

How much time has passed is measured in the driver, by a clock that nobody sets, and counts on from what the checkpoint
has seen: whether the time of day is set back or ahead, or the query was down for a day, no source seems silent for it.
What a batch was told is written down before it begins, so that it sees the same if it is done again.

The ticks are rows of Spark's rate source, one for each second since it was made. It goes by the time of day, and fails
at a start if that has been set back behind its last tick. So its beginning is set back, too, then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamReader

from ephemera.base.errors import EphemeraError
from ephemera.connect.systems.source_names import source_key
from ephemera.connect.systems.stretches import InStretches
from ephemera.engine.state.durable_files import Files
from ephemera.engine.time.processing_time import passing, wall_clock
from ephemera.formats.check_columns import Offer, check_columns
from ephemera.rules.nodes import Catalogue
from ephemera.spark.batch.job import Job, cores_of, declaring_alike, wanted_columns
from ephemera.spark.live.checkpoint import Checkpoint, Standings
from ephemera.spark.live.intake import FromFiles, FromFrame, Heartbeat, SourceReader, column_of
from ephemera.spark.live.system_intake import FromSystems, SystemReader, shares
from ephemera.spark.read.csv_columns import open_csv
from ephemera.spark.read.flat_events import Form
from ephemera.spark.read.parquet import is_flat_here, units
from ephemera.spark.read.parquet import offers as parquet_offers
from ephemera.spark.read.route_rows import numbered
from ephemera.spark.read.scan import Input, format_of, offer_of_sheets, source_of
from ephemera.spark.read.system_stretches import SystemPlace, system_at

SOCKET = re.compile(r"(?:socket|tcp)://(\[[^\]]+\]|[^:/]+):(\d+)/?")
_FILES = "path string, modificationTime timestamp, length bigint, content binary"
_READ_HERE, _READ_FROM_SYSTEMS, _READ_BY_SPARK = 4_000_000, 200_000, 40_000
"""So many events, divided by the cores, make a batch large: where Python reads files or systems, and where Spark reads.

On two cores one task was sooner done with two million events of files than two tasks; with more cores these gain. Spark
needs longer to read, and does it in several tasks. See docs/decisions/0010.
"""
_MADE = re.compile(rb"v1\n(\d+)\s*")
"""The file in which the rate source remembers when it was made, in milliseconds."""


class NoInput(EphemeraError):
    """Something that cannot be read as a stream."""


@dataclass(frozen=True, slots=True)
class LiveSource:
    """What a live query reads: one frame, and readers for its columns."""

    frame: DataFrame
    readers: tuple[SourceReader, ...]
    small: int
    """Batches of fewer events are sooner done in one task."""
    systems: Mapping[int, SystemPlace] = field(default_factory=dict)
    """The systems among the inputs, by their numbers."""


def open_inlets(  # noqa: PLR0913 - most of them named
    spark: SparkSession,
    jobs: Sequence[Job],
    inputs: Sequence[Input],
    *,
    clock: bool,
    most_files: int | None = None,
    lenient: bool = False,
) -> LiveSource:
    """All inputs of some programs as one; each program reads those that are for it.

    `clock` says whether a clock is heeded, `most_files` how many files of a folder a batch takes. Columns that are
    missing in what is there are an error, and in what comes later make rows bad, unless that is `lenient`.
    """
    frames: list[DataFrame] = []
    readers: list[SourceReader] = []
    systems: list[SystemReader] = []
    offers = [(given, offer) for given in inputs for offer in _offers(spark, given)]
    for number, job in enumerate(jobs):
        own_offers = [offer for given, offer in offers if given.is_for(number)]
        check_columns(own_offers, _catalogue(job), lenient=lenient)
    for place, given in enumerate(inputs):
        if given.is_system:
            alike_for = [numbers for numbers in declaring_alike(jobs, inputs) if given.is_for(numbers[0])]
            systems += [_system(given, [jobs[n] for n in same], same, place, lenient=lenient) for same in alike_for]
            continue
        reading = _reader(spark, most_files)
        opened = None if _is_direct(spark, given) else _opened_or_told(spark, reading, given)
        for same in (numbers for numbers in declaring_alike(jobs, inputs) if given.is_for(numbers[0])):
            alike = [jobs[n] for n in same]
            if opened is None:
                frames.append(_documents(reading, given.paths[0]).select("path"))
                wanted = wanted_columns(alike, every_event=True)
                readers.append(FromFiles(tuple(same), wanted, complete=not lenient, only=given.only))
            else:
                own, reader = _read(*opened, alike, same, given.only, complete=not lenient)
                frames.append(own)
                readers.append(replace(reader, is_foreign=isinstance(given.given, DataFrame)))
    if systems:
        frames.append(shares(spark, cores_of(spark)))
        readers.append(FromSystems(tuple(systems)))
    idle = [n for n, job in enumerate(jobs) if any(s.idle is not None for s in _catalogue(job).sources)]
    if idle:
        # Spark goes on from a checkpoint only with as many sources as before: so one that nobody heeds stays, too.
        frames.append(spark.readStream.format("rate").option("rowsPerSecond", 1).load().select("timestamp"))
        readers.append(Heartbeat(tuple(idle) if clock else ()))
    kinds = {type(reader) for reader in readers}
    small = _READ_BY_SPARK if FromFrame in kinds else _READ_FROM_SYSTEMS if FromSystems in kinds else _READ_HERE
    small //= cores_of(spark)
    places = {one.number: one.place for one in systems}
    if len(frames) == 1:
        return LiveSource(frames[0], tuple(readers), small, places)
    apart = [frame.select(f.struct("*").alias(column_of(number))) for number, frame in enumerate(frames)]
    union = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), apart)
    return LiveSource(union, tuple(readers), small, places)


def systems_among(jobs: Sequence[Job], inputs: Sequence[Input]) -> dict[int, InStretches]:
    """The systems among some inputs, by their numbers."""
    return {
        number: system_at(
            given.paths[0], given.only, [_catalogue(j) for n, j in enumerate(jobs) if given.is_for(n)]
        ).opened()
        for number, given in enumerate(inputs)
        if given.is_system
    }


def _system(given: Input, jobs: Sequence[Job], numbers: Sequence[int], place: int, *, lenient: bool) -> SystemReader:
    """What reads a system; raises what is wrong with its address."""
    where = system_at(given.paths[0], given.only, list(map(_catalogue, jobs)))
    key = source_key(where.opened().source)
    return SystemReader(tuple(numbers), where, wanted_columns(jobs, every_event=True), place, key, lenient)


def _reader(spark: SparkSession, most_files: int | None) -> DataStreamReader:
    """A reader for one input: it remembers the schema and format that it was told."""
    return spark.readStream if most_files is None else spark.readStream.option("maxFilesPerTrigger", most_files)


def _catalogue(job: Job) -> Catalogue:
    return job.compiled.rules.resolved.catalogue


def _read(  # noqa: PLR0913 - a frame, who reads it, and how
    frame: DataFrame, form: Form, jobs: Sequence[Job], numbers: Sequence[int], only: str | None, *, complete: bool
) -> tuple[DataFrame, FromFrame]:
    catalogue = _catalogue(jobs[0]).carrying(only)
    source = source_of(frame, form, catalogue, wanted_columns(jobs, every_event=True), complete=complete)
    labels = sorted(catalogue.events)
    if source.offer is not None:  # a data frame has the same columns for ever
        check_columns([source.offer], catalogue, lenient=not complete)
    reader = FromFrame(tuple(numbers), form, dict(source.held), labels, source.counts, complete, only=only)
    return numbered(source, labels), reader


def _offers(spark: SparkSession, given: Input) -> list[Offer]:
    """What files that are there already offer."""
    if not given.paths or given.is_system or SOCKET.fullmatch(given.paths[0]) is not None:
        return []
    if _is_direct(spark, given):
        return parquet_offers(units(spark, given.paths) or [], given.only)
    if (given.format or format_of(given.paths[0])) != "csv":
        return []
    try:
        return [offer_of_sheets(sheets, given.only) for sheets in open_csv(spark, given.paths)]
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):  # nothing is there yet
            return []
        raise


# ---- opening -----------------------------------------------------------------------------------------------


def _is_direct(spark: SparkSession, given: Input) -> bool:
    """Whether Spark need only say which files are new, since Python reads them: Parquet files of this machine."""
    return given.holds_parquet and len(given.paths) == 1 and is_flat_here(spark, Path(given.paths[0]))


def _documents(reading: DataStreamReader, path: str) -> DataFrame:
    """Files as they are; what is not asked for of them is not read."""
    return reading.format("binaryFile").schema(_FILES).load(path)


def _opened(spark: SparkSession, reading: DataStreamReader, given: Input) -> tuple[DataFrame, Form]:
    if isinstance(given.given, DataFrame):
        if not given.given.isStreaming:
            raise NoInput("this data frame does not stream; `spark.readStream` makes one that does, `run` takes others")
        return given.given, "lines" if given.given.columns == ["value"] else "rows"
    path, *more = given.paths
    if more:
        raise NoInput(f"a stream is read from one folder or pattern, not from several: `{path}`, `{more[0]}`")
    socket = SOCKET.fullmatch(path)
    if socket is not None:
        wire = spark.readStream.format("socket").option("host", socket[1].strip("[]")).option("port", socket[2])
        return wire.load(), "lines"
    match given.format or format_of(path):
        case "json":
            return reading.option("lineSep", "\n").text(path), "lines"
        case "parquet":
            return reading.schema(spark.read.parquet(path).schema).parquet(path), "rows"
        case "csv":
            return _documents(reading, path), "sheets"
        case "xml":
            return _documents(reading, path), "documents"
        case "table":
            return spark.readStream.table(path), "rows"


def _opened_or_told(spark: SparkSession, reading: DataStreamReader, given: Input) -> tuple[DataFrame, Form]:
    """An input, or what to tell people if it cannot be opened."""
    try:
        return _opened(spark, reading, given)
    except AnalysisException as error:
        told = str(error)
        if "PATH_NOT_FOUND" in told:
            raise NoInput(
                f"there is no `{given.given}`; make the folder before files arrive in it, and if these are Parquet, "
                "put one there before the start: it shows the columns"
            ) from None
        if "UNABLE_TO_INFER_SCHEMA" in told or "EMPTY" in told:
            raise NoInput(
                f"there is no file in `{given.given}` yet that shows its columns; put one there before the start"
            ) from None
        raise


# ---- the clock -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ticking:
    """The time of a query, in microseconds."""

    ledger: Checkpoint
    passed: Callable[[], int] = passing
    _ahead: int | None = None
    """What is to be added to what has passed in this process."""

    def at(self, batch: int, before: Standings) -> int:
        """What time it is for a batch, however often it is done."""
        if self._ahead is None:
            latest = max((s.now for s in before.values() if s.now is not None), default=None)
            self._ahead = (wall_clock() if latest is None else latest) - self.passed()
            known = self.ledger.time_of(batch)
            if known is not None:
                self._ahead = max(self._ahead, known - self.passed())
                return known
        now = self._ahead + self.passed()
        self.ledger.note_time(batch, now)
        return now


def set_ticks(files: Files, checkpoint: str, now: Callable[[], int] = wall_clock) -> None:
    """Lets the rate source of a query go on from its last tick, if the time of day is behind that."""
    folder = f"{checkpoint}/spark"
    batches = [int(name) for name in files.names(f"{folder}/offsets") if name.isdigit()]
    if not batches:
        return
    _, *offsets = bytes(files.read(f"{folder}/offsets/{max(batches)}")).split(b"\n")
    for number, offset in enumerate(offsets[1:]):
        path = f"{folder}/sources/{number}/0"
        if not offset.strip().isdigit() or "0" not in files.names(f"{folder}/sources/{number}"):
            continue
        made = _MADE.fullmatch(bytes(files.read(path)))
        latest = now() // 1_000 - 1_000 * int(offset)
        if made is not None and int(made[1]) > latest:
            files.remove(f"{folder}/sources/{number}/.0.crc")  # which would be that of what was there
            files.put(path, [b"v1\n%d" % latest], lambda _: None)
