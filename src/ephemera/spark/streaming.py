"""This module starts live queries, and is what people have in hand while they run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from tempfile import mkdtemp
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ephemera.base.errors import EphemeraError
from ephemera.engine.compiled import Compiled
from ephemera.rules.outcome import World
from ephemera.spark.answer_forms import forms_of
from ephemera.spark.delivery import Answer, Console, Delivery, EachAnswer, EachBatch, Sink, fingerprint
from ephemera.spark.failures import failure
from ephemera.spark.folders import Folder, folder_at
from ephemera.spark.inlets import open_inlets
from ephemera.spark.ledger import Ledger
from ephemera.spark.live import Host, spread_live
from ephemera.spark.marks import mark
from ephemera.spark.outlet import Outlet
from ephemera.spark.reading import Input, format_of
from ephemera.spark.run import Job
from ephemera.spark.sink_formats import Format
from ephemera.spark.sinks import FolderSink
from ephemera.spark.table_sink import TableSink
from ephemera.spark.watching import BatchReport, Totals, as_progress

ONCE = "once"
FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


class SeveralWays(EphemeraError):
    """Answers that should go to several places at once."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """A live query that can be started; make one with `Program.stream`."""

    spark: SparkSession
    jobs: Sequence[Job]
    inputs: Sequence[Input]
    checkpoint: str | None = None
    output: str | None = None
    format: Format = "json"
    dead_letters: str | None = None
    table: str | None = None
    location: str | None = None
    foreach: Callable[[Answer], object] | None = None
    foreach_batch: Callable[[list[Answer], int], object] | None = None
    console: bool = False
    trigger: str | None = None
    """Such as `1 second`; `once` takes what is there and stops; None goes on as fast as it can."""
    shards: int | None = None
    most_files: int | None = None
    """How many files of a folder a batch takes; None takes all that are there."""
    small: int | None = None
    """Batches of fewer events run in one task; None leaves it to what is read."""
    lenient: bool = False
    """Whether declared attributes that are no columns of the input are null."""
    names: Sequence[Mapping[str, str]] = ()
    """What the dead letters of each program say of where they come from."""

    def start(self, watch: Callable[[BatchReport], object] | None = None) -> LiveQuery:
        """Starts the query; `watch` is told of each batch."""
        taker = self._one_taker()
        checkpoint = self.checkpoint or mkdtemp(prefix="ephemera-checkpoint-")
        ledger = Ledger(checkpoint)
        spreads = spread_live(self.spark, self.jobs, ledger, self.shards)
        forms = forms_of(spreads, self.names)
        delivery = None
        if taker is not None:
            prints = {spread.number: fingerprint(spread.compiled.plan) for spread in spreads}
            delivery = Delivery(forms, prints, taker)
        out, dead, has_columns = _folder(self.output), _folder(self.dead_letters), self.table is not None
        for folder in (out, dead):
            if folder is not None:
                folder.claim(ledger.query)  # so that one that is refused is so at once, and not with the first event
        folders = FolderSink(forms, ledger.query, out, self.format, dead, has_columns=has_columns, mark=mark)
        table = TableSink(self.table, forms, self.location) if self.table is not None else None
        totals = Totals()
        is_once = self.trigger == ONCE
        more: dict[str, Any] = {"most_files": self.most_files, "lenient": self.lenient}
        inlet = open_inlets(self.spark, self.jobs, self.inputs, clock=not is_once, **more)
        outlet = Outlet(folders, table, delivery)
        small = inlet.small if self.small is None else self.small
        host = Host(self.spark, spreads, ledger, inlet.readers, outlet, _Telling(totals, watch), small)
        writer = inlet.frame.writeStream.foreachBatch(host).option("checkpointLocation", f"{ledger.root}/spark")
        if is_once:
            writer = writer.trigger(availableNow=True)
        elif self.trigger is not None:
            writer = writer.trigger(processingTime=self.trigger)
        self.spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", FILES)
        return LiveQuery(writer.start(), host, totals)

    def _one_taker(self) -> Sink | None:
        """Who gets the answers here, if they go neither to a folder nor to a table."""
        ways = ("output", "table", "foreach", "foreach_batch", "console")
        given = [way for way in ways if getattr(self, way) not in (None, False)]
        if len(given) > 1:
            raise SeveralWays(f"answers go one way, and both `{given[0]}` and `{given[1]}` are given; name one of them")
        return self._taker()

    def _taker(self) -> Sink | None:
        if self.foreach is not None:
            return EachAnswer(self.foreach)
        if self.foreach_batch is not None:
            return EachBatch(self.foreach_batch)
        return Console(sys.stdout) if self.console else None


def streaming_of(
    spark: SparkSession,
    compiled: Compiled,
    world: World,
    source: str | DataFrame | Sequence[str | DataFrame] | None,
    *,
    emit: frozenset[str],
    **more: Any,
) -> Streaming:
    """A live query of one program."""
    if source is None:
        places = [(s.location, s.format) for s in compiled.rules.resolved.catalogue.sources if s.location is not None]
        inputs = [Input(where, form) for where, form in places]  # type: ignore[arg-type]
    else:
        several = [source] if isinstance(source, str | DataFrame) else list(source)
        inputs = [Input(one, _format(one)) for one in several]
    if not inputs:
        raise ValueError("there is nothing to read: give a folder or a streaming data frame, or declare STREAM … FROM")
    return Streaming(spark, [Job(compiled, world, emit)], inputs, **more)


def _format(source: str | DataFrame) -> Any:
    """What a folder holds, as its name says; else lines of JSON."""
    if isinstance(source, DataFrame):
        return None
    try:
        return format_of(source)
    except ValueError:
        return "json"


def _folder(path: str | None) -> Folder | None:
    return folder_at(path) if path is not None else None


@dataclass(frozen=True, slots=True)
class _Telling:
    totals: Totals
    watch: Callable[[BatchReport], object] | None

    def __call__(self, report: BatchReport) -> None:
        self.totals.add(report)
        if self.watch is not None:
            self.watch(report)


@dataclass(slots=True)
class LiveQuery:
    """A live query at work."""

    query: StreamingQuery
    host: Host
    totals: Totals
    """What all batches since the start did."""

    @property
    def is_active(self) -> bool:
        return bool(self.query.isActive)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the input since the start: keys that were missing in every event of their type."""
        return tuple(note for keys in self.host.keys.values() for note in keys.notes())

    @property
    def last(self) -> BatchReport | None:
        """The report of the last batch."""
        return self.totals.last

    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, with what there is to tell of the program under `ephemera`."""
        told = self.query.lastProgress
        if not told:
            return None
        own = as_progress(self.totals.last) if self.totals.last is not None else None
        return {**json.loads(json.dumps(dict(told), default=str)), "ephemera": own}

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the query has ended; whether it has. What ended it, if it failed, is raised."""
        try:
            if timeout is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(timeout))  # type: ignore[arg-type]
        except Exception as error:
            raise self._told(error) from error

    def drain(self) -> None:
        """Waits until all that is there has been worked on."""
        try:
            self.query.processAllAvailable()
        except Exception as error:
            raise self._told(error) from error

    def stop(self, patience: float = 20.0) -> None:
        """Stops the query when the batch at hand is done; one that takes longer is done again at the next start."""
        with self.host.paused(patience):
            self.query.stop()

    def _told(self, error: Exception) -> EphemeraError:
        return self.host.failed or failure(error)
