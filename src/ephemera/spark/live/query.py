"""This module starts live queries, and is what people have in hand while they run."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Unpack, get_args, overload

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ephemera.base.errors import EphemeraError, InternalError, warned
from ephemera.base.scratch import scratch_of_process
from ephemera.base.span import Source
from ephemera.connect.systems.source_names import check_alike, source_key
from ephemera.connect.written_places import Written
from ephemera.deliver.delivery import Delivery as MessageDelivery
from ephemera.deliver.delivery import Wanted, sends
from ephemera.engine.change.archive import ReadOnce
from ephemera.engine.change.change import Change
from ephemera.engine.change.starts import LookBack
from ephemera.engine.lacking import Never, never
from ephemera.engine.state.checkpoint_lock import CheckpointLock, hold
from ephemera.engine.state.durable_files import WAY_OUT, Broken
from ephemera.formats.answer_keys import RulePrints
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import World
from ephemera.spark.batch.job import Job
from ephemera.spark.live.change_checkpoint import changed_programs, opened, told_source
from ephemera.spark.live.changed_jobs import ChangeOptions, ChangingProgram, changed_jobs
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.live.connections import check_targets, inputs_of, old_ways, past_of, ways_of
from ephemera.spark.live.fault_points import mark
from ephemera.spark.live.host import Host, QuerySinks, spread_live
from ephemera.spark.live.intake import Heartbeat
from ephemera.spark.live.positions import MOST, Positions, note_begin
from ephemera.spark.live.report import BatchReport, Totals, as_progress
from ephemera.spark.live.sources import LiveSource, Ticking, open_inlets, set_ticks, systems_among
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.java import GONE, java_ended, told_of_java
from ephemera.spark.runtime.session import lent
from ephemera.spark.sinks.callback_sink import Answer, Console, Delivery, EachAnswer, EachBatch, Sink
from ephemera.spark.sinks.encode_answers import AnswerForm, FileFormat, forms_of
from ephemera.spark.sinks.folder_sink import Folder, FolderSink, folder_at
from ephemera.spark.sinks.outbox_sink import OutboxSink
from ephemera.spark.sinks.table_sink import TableSink
from ephemera.spark.sinks.target_sink import TargetSink

ONCE = "once"
_LEAST = 0.001
"""Seconds; to wait for less is not to wait."""
_IN_ITS_LOG = re.compile(r"batch \d+ doesn't exist|[Ll]og file|/(spark|past)/(offsets|commits|sources|metadata)")
"""What Spark says of files of its own that it cannot go on from."""
_OPENING = "Initializing"
"""What Spark says that a query does until all its sources are there."""
_MOMENT = 1.0
"""Seconds for which a batch waits for systems, where there is something else, too."""
_PAUSE = 0.005
"""Seconds after which it is asked again."""
_DRAINING = 0.05
"""The same for one who waits until everything has been read."""
FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes the files of Spark's own logs in much less time than what it takes by default; `docs/live.md` has how much."""


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
    format: FileFormat = "json"
    dead_letters: str | None = None
    table: str | None = None
    location: str | None = None
    foreach: Callable[[Answer], object] | None = None
    foreach_batch: Callable[[list[Answer], int], object] | None = None
    console: bool = False
    systems: Sequence[Written] = ()
    """The systems that answers go to, each with which of them; then they go nowhere else."""
    trigger: str | None = None
    """Such as `1 second`; `once` takes what is there and stops; None goes on as fast as it can."""
    shards: int | None = None
    most_files: int | None = None
    """How many files of a folder a batch takes; None takes all that are there."""
    most: int = MOST
    """How many messages of a system a batch takes; one that takes what is there takes all."""
    small: int | None = None
    """Batches of fewer events run in one task; None leaves it to what is read."""
    lenient: bool = False
    """Whether declared attributes that are no columns of the input are null."""
    names: Sequence[Mapping[str, str]] = ()
    """What the dead letters of each program say of where they come from."""
    hold: CheckpointLock | None = None
    """The checkpoint, if it has been taken for this query already."""
    deliver: Wanted | None = None
    """Whether messages are delivered, and how; they wait in the checkpoint unless it says otherwise."""
    tell: Callable[[str], object] = warned
    """Tells people what they should know at once."""
    past: Sequence[Input] = ()
    """What is read first, all of it, before the inputs are read live."""
    following: Sequence[Input] | None = None
    """Where it reads the past, what is read live when it has ended."""
    earlier: LiveQuery | None = None
    """What has read the past in this start."""
    before: LiveQuery | None = None
    """What ran in this start before the programs were changed."""

    def start(self, watch: Callable[[BatchReport], object] | None = None) -> LiveQuery:
        """Starts the query; `watch` is told of each batch. If there is a past, all of it has been read then."""
        whole = replace(self, checkpoint=self.checkpoint or str(scratch_of_process("checkpoint")))
        past = whole.start_past(watch)
        if past is not None:
            past.wait()
        return whole.behind(past).start_live(watch)

    def start_past(self, watch: Callable[[BatchReport], object] | None = None) -> LiveQuery | None:
        """Starts to read the past; None if there is none, or if it has been read by an earlier start."""
        if not self.past or self.checkpoint is None or not Checkpoint(self.checkpoint).begin_past():
            return None
        first = replace(self, inputs=self.past, following=self.inputs, most_files=None, trigger=ONCE)
        return first.start_live(watch)

    def behind(self, past: LiveQuery | None) -> Streaming:
        """What is read live when a query has read all of the past, if one had to."""
        return self if past is None else replace(self, hold=None, earlier=past)

    def start_live(self, watch: Callable[[BatchReport], object] | None = None) -> LiveQuery:
        """Starts to read the inputs, behind the past if there is one."""
        taker = self._one_taker()
        checkpoint = self.checkpoint or str(scratch_of_process("checkpoint"))
        own = self.hold or hold(checkpoint)
        try:
            with told_of_java():
                return self._started(checkpoint, own, taker, watch)
        except BaseException:
            own.release()
            raise

    def _started(
        self, checkpoint: str, own: CheckpointLock, taker: Sink | None, watch: Callable[[BatchReport], object] | None
    ) -> LiveQuery:
        ledger = Checkpoint(checkpoint)
        spreads = spread_live(self.spark, self.jobs, ledger, self.shards)
        self._begin(ledger)
        forms = forms_of(spreads, self.names)
        delivery = None
        if taker is not None:
            rules = {spread.number: RulePrints(spread.plan) for spread in spreads}
            delivery = Delivery(forms, rules, taker)
        out, dead, has_columns = _folder(self.output), _folder(self.dead_letters), self.table is not None
        for folder in (out, dead):
            if folder is not None:
                folder.claim(ledger.query)  # so that one that is refused is so at once, and not with the first event
        with ExitStack() as undone:
            messages = self._messages(ledger, forms, undone)
            folders = FolderSink(
                forms,
                ledger.query,
                out,
                self.format,
                dead,
                has_columns=has_columns,
                mark=mark,
                sends=messages is not None,
            )
            table = TableSink(self.table, forms, self.location) if self.table is not None else None
            totals = Totals() if self.earlier is None else self.earlier.totals.going_on()
            totals = totals if self.before is None else self.before.totals
            is_once = self.trigger == ONCE
            local = [job.compiled.rules.resolved.catalogue.local for job in self.jobs]
            assumed = [one.assumed for one in local]
            more: dict[str, Any] = {"most_files": self.most_files, "lenient": self.lenient}
            inlet = open_inlets(self.spark, self.jobs, self.inputs, clock=not is_once, **more)
            for one, before in zip(local, assumed, strict=True):
                totals.notes |= dict.fromkeys(one.note_since(before))
            systems = TargetSink(self.systems, spreads) if self.systems else None
            outlet = QuerySinks(folders, table, delivery, messages, systems)
            small = inlet.small if self.small is None else self.small
            host = Host(self.spark, spreads, ledger, inlet.readers, outlet, _Telling(totals, watch), small, hold=own)
            beats = [reader for reader in inlet.readers if isinstance(reader, Heartbeat)]
            if beats:
                set_ticks(*ledger.place)
                host.ticking = Ticking(ledger) if beats[0].programs else None
            if inlet.systems:
                host.positions = _positions(ledger, inlet, None if is_once else self.most, self.tell)
            host.planned = ledger.planned
            host.go_on_from(self.earlier.host if self.earlier is not None else None)
            writer = inlet.frame.writeStream.foreachBatch(host).option(
                "checkpointLocation", f"{ledger.root}/{ledger.log}"
            )
            if is_once:
                writer = writer.trigger(availableNow=True)
            elif self.trigger is not None:
                writer = writer.trigger(processingTime=self.trigger)
            if messages is not None:
                messages.delivery.start(ledger.last)
            with lent(self.spark, "spark.sql.streaming.checkpointFileManagerClass", FILES):
                query = writer.start()
                undone.callback(query.stop)
                # Its logs are of the kind that is set when they are opened.
                while query.status["message"].startswith(_OPENING):
                    time.sleep(_PAUSE)
            undone.pop_all()
        own.is_over = lambda: not query.isActive
        return LiveQuery(query, host, totals, own, self, watch)

    def _begin(self, ledger: Checkpoint) -> None:
        """Tells the ledger whether the past is read or what follows it."""
        if self.following is not None:
            ledger.begin_past()
            note_begin(ledger, systems_among(self.jobs, self.following))
        else:
            ledger.begin_live(has_read=self.earlier is not None)

    def _messages(self, ledger: Checkpoint, forms: Mapping[int, AnswerForm], undone: ExitStack) -> OutboxSink | None:
        """What will deliver messages, which a start that fails closes."""
        programs = [job.compiled for job in self.jobs]
        if self.deliver is None or not any(map(sends, programs)):
            return None
        wanted = replace(self.deliver, folder=self.deliver.folder or f"{ledger.root}/outbox")
        delivery = MessageDelivery(programs, wanted)
        undone.callback(delivery.close, 0.0)
        # What a first batch has put that was never committed is ours; none of it was sent.
        if ledger.last < 0 and delivery.outbox.next > int(ledger.planned >= 0):
            raise EphemeraError(
                f"the outbox `{wanted.folder}` is that of another query, and batches of a new one are counted from 0; "
                "name another folder, or go on with the checkpoint of that query"
            )
        return OutboxSink(forms, delivery)

    def _one_taker(self) -> Sink | None:
        """Who gets the answers here, if they go neither to a folder nor to a table."""
        ways = ("output", "table", "foreach", "foreach_batch", "console", "systems")
        given = [way for way in ways if getattr(self, way) not in (None, False, ())]
        if len(given) > 1:
            raise SeveralWays(f"answers go one way, and both `{given[0]}` and `{given[1]}` are given; name one of them")
        return self._taker()

    def _taker(self) -> Sink | None:
        if self.foreach is not None:
            return EachAnswer(self.foreach)
        if self.foreach_batch is not None:
            return EachBatch(self.foreach_batch)
        return Console(sys.stdout) if self.console else None


def streaming_of(  # noqa: PLR0913 - all of them named
    spark: SparkSession,
    compiled: Compiled,
    world: World,
    source: Any,
    sink: Any,
    *,
    past: Any = None,
    old: Mapping[str, Any],
    text: Source | None = None,
    **more: Any,
) -> Streaming:
    """A live query of one program; `old` are keywords that sinks have taken the place of."""
    catalogue = compiled.rules.resolved.catalogue
    read = inputs_of(source, catalogue)
    ways = {"most_files": read.most_files} | ways_of(sink) | old_ways(old, stacklevel=4)
    if past is not None:
        ways["past"] = past_of(past, catalogue)
    check_targets((*read.inputs, *ways.get("past", ())), ways, more)
    return Streaming(spark, [Job(compiled, world, text)], read.inputs, **ways, **more)


def _positions(ledger: Checkpoint, inlet: LiveSource, most: int | None, tell: Callable[[str], object]) -> Positions:
    """How far systems are read: what else is read, be it a clock, lets no batch wait for long."""
    systems = {number: place.opened() for number, place in inlet.systems.items()}
    for one, other in combinations(systems.values(), 2):
        if source_key(one.source) == source_key(other.source):
            check_alike(one.source, other.source)
    others = len(inlet.readers) > 1
    is_once = most is None
    return Positions(ledger, systems, most, 0.0 if is_once else _MOMENT if others else None, is_once, tell)


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
    """A live query at work; `Program.stream(…).start()` makes one."""

    query: StreamingQuery
    host: Host
    totals: Totals
    """What all batches since the start did."""
    hold: CheckpointLock
    """The checkpoint, which no other run can have until this one has ended."""
    streaming: Streaming | None = None
    """How it was started."""
    watch: Callable[[BatchReport], object] | None = None
    _changes: threading.RLock = field(default_factory=threading.RLock)
    """Who has this changes the programs."""

    def __repr__(self) -> str:
        how = "runs" if self.is_active else "has ended"
        return f"<Query: {how}, {self.totals.batches:,} batches, {self.totals.events:,} events>"

    @property
    def is_active(self) -> bool:
        try:
            return bool(self.query.isActive)
        except GONE as error:
            if java_ended(error) is None:
                raise
            return False

    @property
    def notes(self) -> tuple[str, ...]:
        """All that people should know of the input since the start."""
        return (*self.totals.notes, *self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is likely wrong with it: keys that were missing in every event of their type, wrong names of types."""
        names = (note for number in range(len(self.host.spreads)) for note in self.never(number).warnings)
        return (*(note for keys in self.host.keys.values() for note in keys.notes()), *names)

    @property
    def last(self) -> BatchReport | None:
        """The report of the last batch."""
        return self.totals.last

    def never(self, number: int = 0) -> Never:
        """What a program has lacked since the start: types of events that never came, rules that never matched."""
        spread = self.host.spreads[number]
        came = {label for program, label in self.totals.came if program == number}
        matched = {rule for program, rule in self.totals.matched if program == number}
        return never(spread.compiled, spread.plan.awaited - came, matched, unread=came)

    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, with what there is to tell of the program under `ephemera`."""
        try:
            told = self.query.lastProgress
        except GONE as error:
            raise self._told(error) from error
        if not told:
            return None
        own = as_progress(self.totals.last) if self.totals.last is not None else None
        return {**json.loads(json.dumps(dict(told), default=str)), "ephemera": own}

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the query has ended; whether it has. What ended it, if it failed, is raised."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            query = self.query
            is_over = self._waited(query, None if until is None else max(until - time.monotonic(), _LEAST))
            with self._changes:  # it may have ended for another to go on
                if not is_over or self.query is query:
                    return is_over

    def _waited(self, query: StreamingQuery, timeout: float | None) -> bool:
        try:
            if timeout is None:
                query.awaitTermination()
                is_over = True
            else:
                is_over = bool(query.awaitTermination(timeout))  # type: ignore[arg-type]
        except Exception as error:
            with self._changes:
                if self.query is not query:
                    return True
            self._end_delivery()
            self.hold.release()
            if self.host.was_stopped:
                return True
            raise self._told(error) from error
        with self._changes:
            if is_over and self.query is query:
                self._end_delivery()
                self.hold.release()
        return is_over

    # ---- programs that change ------------------------------------------------------------------------------

    @overload
    def change(self, program: ChangingProgram, **options: Unpack[ChangeOptions]) -> Change: ...

    @overload
    def change(self, program: Sequence[ChangingProgram], **options: Unpack[ChangeOptions]) -> list[Change]: ...

    def change(
        self,
        program: ChangingProgram | Sequence[ChangingProgram],
        *,
        look_back: LookBack | Any = "refuse",
        tables: Mapping[str, Any] | None = None,
        allow_unbounded: bool = False,
        dry_run: bool = False,
    ) -> Change | list[Change]:
        """Goes on with another program behind the batch at hand: rules that mean the same go on, others end or begin.

        An added rule is exact from now on if what it needs of the time before is kept. If it is not, the change is
        refused with what is lacking; or such rules see only what ends from now on (`from-now`), or what there is
        (`available`). Anything else is an archive, in which they find their past, as for engines in one process: a
        path, one of `sources` or several, a table, or a list of events. A change that is refused leaves the query as
        it was, and so does a `dry_run`. `tables` are rows of tables that the program has besides those that there are.
        One that has been stopped is changed in its checkpoint. Of a query of several programs all are given, and for
        each it is told what became of its rules.
        """
        programs = list(program) if isinstance(program, Sequence) else [program]
        is_way = isinstance(look_back, str) and look_back in get_args(LookBack)
        with self._changes:
            before = self._how_it_was_started()
            pasts = [
                look_back if is_way else ReadOnce(one.archive(look_back, lenient=before.lenient)) for one in programs
            ]
            jobs = changed_jobs(before.jobs, programs, tables or {}, allowed=allow_unbounded, lenient=before.lenient)
            new = [(job.compiled, job.world, told_source(job)) for job in jobs]
            ways: dict[str, Any] = {"look_backs": pasts, "dry_run": dry_run}
            if not self.is_active:
                with hold(self.host.ledger.root):
                    ledger = Checkpoint(self.host.ledger.root)
                    done = changed_programs(ledger, opened(before.jobs, ledger), new, **ways)
                    self.streaming = before if dry_run else replace(before, jobs=jobs)
            else:
                with self.host.between_batches() as end:
                    done = changed_programs(self.host.ledger, self.host.spreads, new, **ways)
                    if not dry_run:
                        end()
                if not dry_run:
                    self._go_on(replace(before, jobs=jobs, past=(), earlier=None, shards=None))
        return done if isinstance(program, Sequence) else done[0]

    def _how_it_was_started(self) -> Streaming:
        if self.streaming is None:
            raise InternalError("live", "nobody knows how the query was started")
        return self.streaming

    def _go_on(self, streaming: Streaming) -> None:
        """Stops Spark's query, and starts the next; no batch is under way."""
        self.query.stop()
        self._end_delivery()
        self.totals.matched.clear()
        other = replace(streaming, hold=self.hold, before=self).start_live(self.watch)
        self.query, self.host, self.streaming = other.query, other.host, streaming

    def drain(self) -> None:
        """Waits until all that is there has been worked on."""
        positions = self.host.positions
        if positions is not None:  # Spark's own counting never ends there
            ends = positions.ends()
            while not positions.has_read(ends) and not self.wait(_DRAINING):
                pass
            return
        try:
            self.query.processAllAvailable()
        except Exception as error:
            if not self.host.was_stopped:
                raise self._told(error) from error

    def stop(self, patience: float = 20.0, in_a_hurry: Callable[[], bool] = lambda: False) -> None:
        """Stops the query when the batch at hand is done; one that takes longer is done again at the next start.

        Who is `in_a_hurry` does not wait for it.
        """
        try:
            with self.host.paused(patience, in_a_hurry):
                self.query.stop()
        except GONE as error:
            raise self._told(error) from error
        finally:
            self._end_delivery()
            self.hold.release()

    @property
    def delivery(self) -> MessageDelivery | None:
        """What delivers messages, if they are delivered."""
        outbox = self.host.sink.outbox
        return None if outbox is None else outbox.delivery

    def _end_delivery(self) -> None:
        if self.delivery is not None:
            self.delivery.close()
        if self.host.sink.systems is not None:
            self.host.sink.systems.close()

    def _told(self, error: Exception) -> EphemeraError:
        if self.host.failed is not None:
            return self.host.failed
        told = failure(error)
        if _IN_ITS_LOG.search(str(told)) is None:
            return told
        return Broken(f"{self.host.ledger.root}/spark is damaged. {told}. {WAY_OUT.capitalize()}")
