"""This module runs programs live on Spark from the command line: until the input ends, a signal comes, or it fails.

What is read are folders in which files arrive, sockets, or systems such as Kafka. Answers go to a folder, a table or
systems, or line by line to standard output, at least once. Whatever can be found wrong is told before the query starts.
"""

from __future__ import annotations

import json
import re
import select
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from ephemera.base.errors import EphemeraError
from ephemera.base.installed import WITH_SPARK
from ephemera.base.scratch import scratch
from ephemera.base.time import SECOND, SPELLINGS, microseconds
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, no_output, tell, write_out
from ephemera.cli.inputs import LiveInput
from ephemera.cli.metrics import check_metrics, offered
from ephemera.cli.progress import counted, is_shown, letters_line, note_lines, tell_notes, tell_warnings
from ephemera.cli.signals import Stopped, exit_code, heed_again, noted
from ephemera.cli.spark import Rows, Wanted, check_master, check_spark, told
from ephemera.connect.atomic_files import CannotWrite
from ephemera.connect.live.past_told import ALREADY, known_line, past_line
from ephemera.connect.written_places import Written
from ephemera.engine.state.checkpoint_lock import CheckpointLock, hold
from ephemera.engine.state.durable_files import Broken, WrongPlace
from ephemera.engine.state.identity import ChangedData
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.json_events import read_time
from ephemera.program import Program

if TYPE_CHECKING:
    from ephemera.spark.live.query import LiveQuery, Streaming

TABLE = "table:"
ONCE = "once"
Query = TypeVar("Query")
_PAUSE = 0.2
"""Seconds after which a signal is seen."""
_ALL = 1_000_000
"""So many signals are noted, and none breaks off what the run does at its end."""
_TRIGGER = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_ADDED = ("key", "program")
"""What functions are told of an answer, and lines do not say."""
_SHORTEST = 1_000
"""Microseconds that Spark can tell apart."""


@dataclass(frozen=True, slots=True)
class LiveWanted:
    """What a live run is asked for besides what any run is."""

    checkpoint: str | None
    trigger: str | None
    shards: int | None
    metrics: str | None
    dead_letters: str | None = None
    watch: bool = False
    """Whether program files are taken when they change; then the next says how added rules begin."""
    look_back: str = "refuse"

    def first(self) -> str | None:
        """The first option of those that only live runs on Spark have, if one was given."""
        given = {
            "--checkpoint": self.checkpoint,
            "--trigger": self.trigger,
            "--shards": self.shards,
            "--metrics": self.metrics,
        }
        return next((name for name, value in given.items() if value is not None), None)


def run_live(
    programs: Sequence[Program],
    tables: Sequence[Rows],
    inputs: Sequence[LiveInput],
    wanted: Wanted,
    live: LiveWanted,
    *,
    past: Sequence[LiveInput] = (),
    systems: Sequence[Written] = (),
) -> None:
    """A live run, behind its past if it has one; ends the command when it has ended."""
    check_spark("give files or - with --input, which are read without it")
    check_metrics(live.metrics, WITH_SPARK)
    check_master(wanted.master)
    pace = pace_of(live.trigger)
    with told(debug=wanted.debug), _ended_at_once(), ExitStack() as stack:
        checkpoint = live.checkpoint or stack.enter_context(_passing())
        held = stack.enter_context(_held(checkpoint))
        names = [name.get("program", "") for name in wanted.names]
        watch = stack.enter_context(_watched(names, wanted, live))
        from ephemera.spark.runtime.session import session

        spark = session(wanted.master, debug=wanted.debug, is_alone=True)
        heed_again()
        streaming = _streaming(spark, list(zip(programs, tables, strict=True)), (past, inputs), wanted, live)
        if systems:
            streaming = replace(streaming, systems=systems, output=None)
        printed = _Printed() if wanted.output is None and not systems else None
        streaming = replace(streaming, checkpoint=checkpoint, trigger=pace, foreach_batch=printed, hold=held)
        signals = stack.enter_context(noted(most=_ALL))
        query = _begun(lambda: streaming.start_past(watch))
        if query is None and past:
            tell(ALREADY)
        if query is not None:
            _run_to_end(query, signals, printed, past)
            if not signals and not (printed is not None and printed.is_over):
                streaming = streaming.behind(query)
                _tell_past(query, programs, live)
                query = None
        if query is None:
            query = _begun(lambda: streaming.start_live(watch))
            _run_to_end(query, signals, printed, inputs)
        is_over = printed is not None and printed.is_over
        stack.close()
        if is_shown(wanted=wanted.progress) and query.totals.batches:  # a start that found nothing new lacked nothing
            lacking = [program.notes(query.never(number)) for number, program in enumerate(programs)]
            for line in note_lines(lacking, wanted.names):
                click.echo(line, err=True)
        tell_warnings(query.warnings, strict=False)
        _tell_end(query, signals, live)
        if printed is not None and is_over:
            raise printed.failure or CannotWrite("cannot write standard output: Broken pipe")
        if wanted.strict and query.warnings:
            raise click.exceptions.Exit(WRONG_PROGRAM)


def _run_to_end(
    query: LiveQuery, signals: Sequence[int], printed: _Printed | None, inputs: Sequence[LiveInput]
) -> None:
    """Until a query ends by itself, or has to."""
    try:
        _await(query, signals, printed)
    except EphemeraError as error:
        raise _explained(error, inputs) from error
    finally:
        query.stop(in_a_hurry=lambda: len(signals) > 1)


def _tell_past(query: LiveQuery, programs: Sequence[Program], live: LiveWanted) -> None:
    """What the past was, and where it ends."""
    standings = query.host.ledger.standings
    last = max((one.last for one in standings.values() if one.first is not None), default=None)
    as_numbers = not any(one.texts for one in standings.values())
    tell(past_line(query.totals.events, last, programs[0].catalogue, as_numbers=as_numbers))
    totals = query.totals
    if totals.bad or totals.dead:
        tell(letters_line(totals.events, totals.bad, totals.late, totals.dead, kept=live.dead_letters is not None))


def _await(query: LiveQuery, signals: Sequence[int], printed: _Printed | None) -> None:
    """Until the query ends, a signal comes, or nobody reads the answers any more."""
    try:
        while not signals and not (printed is not None and printed.is_over) and not query.wait(_PAUSE):
            pass
    except EphemeraError:
        # A signal may have gone to workers, too, and a batch have failed for that.
        if not signals and (printed is None or printed.failure is None):
            raise


def check_names(output: str | None, dead_letters: str | None) -> None:
    """Ends the command if what should be a folder has the name of a file."""
    for path in (output, dead_letters):
        if path is not None and path.lower().endswith((".jsonl", ".json")):
            _fail(
                f"a live run on Spark writes folders, and `{path}` is the name of a file\n"
                "name a folder, such as answers/ or answers.parquet; `--engine local` writes one file"
            )


def pace_of(trigger: str | None) -> str | None:
    """How often there is a batch, as Spark reads it."""
    if trigger is None or trigger == ONCE:
        return trigger
    found = _TRIGGER.fullmatch(trigger.strip().lower())
    unit = SPELLINGS.get(found[2]) if found is not None else None
    length = microseconds([(Decimal(found[1]), unit)], SECOND) if found is not None and unit is not None else None
    if length is None or (0 < length < _SHORTEST):
        _fail(f'`{trigger}` says nothing about when; `--trigger` is such as "1 second", "5 min", or once')
    return f"{length // _SHORTEST} milliseconds"


@contextmanager
def _passing() -> Iterator[str]:
    """A checkpoint that is there as long as the run."""
    click.echo("without --checkpoint nothing is kept for another start", err=True)
    with scratch("checkpoint") as folder:
        yield str(folder)


def _held(checkpoint: str) -> CheckpointLock:
    """The checkpoint, which no other run has; before Spark is started, which takes a while."""
    try:
        return hold(checkpoint)
    except WrongPlace as error:
        _fail(str(error))


def _begun(start: Callable[[], Query]) -> Query:
    """A query at work; what keeps it from that is something that the command named."""
    try:
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always", ChangedData)
            query = start()
    except (Broken, WrongColumns):
        raise  # which is not what the command says, but what it found
    except EphemeraError as error:
        _fail(str(error))
    for one in noted:
        click.echo(str(one.message), err=True)
    return query


def _explained(error: EphemeraError, inputs: Sequence[LiveInput]) -> EphemeraError:
    """What went wrong, with the socket if it was one that nobody listens to."""
    sockets = ", ".join(one.name for one in inputs if one.is_socket)
    if not sockets or "Connection refused" not in str(error):
        return error
    return EphemeraError(f"nobody answers at {sockets}; start whoever sends the events first")


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)


def _streaming(
    spark: Any,
    programs: Sequence[tuple[Program, Rows]],
    inputs: tuple[Sequence[LiveInput], Sequence[LiveInput]],
    wanted: Wanted,
    live: LiveWanted,
) -> Streaming:
    """A live query of the past, which may be nothing, and of what is read live."""
    from ephemera.spark.batch.job import Job
    from ephemera.spark.live.query import Streaming
    from ephemera.spark.read.scan import Input

    if any(one.is_socket for one in inputs[1]):
        click.echo("what comes from a socket is read at most once: it is lost if the run fails", err=True)
    past, read = ([Input(one.place, one.format, one.only, one.programs) for one in own] for own in inputs)
    output = wanted.output
    is_table = output is not None and output.startswith(TABLE)
    if output is not None and is_table and _forgets(spark, output.removeprefix(TABLE)):
        _fail(
            f"Spark forgets the table `{output.removeprefix(TABLE)}` when the run ends: its catalog is in memory\n"
            "name a folder, such as answers.parquet; or use a catalog that lasts, by spark-submit or in Python"
        )
    return Streaming(
        spark,
        [
            Job(program._planned(wanted.emit, wanted.points), program._world(rows), program._source)
            for program, rows in programs
        ],
        read,
        past=past,
        output=None if is_table else output,
        format="parquet" if output and output.rstrip("/").lower().endswith(".parquet") else _csv_or_json(output),
        dead_letters=live.dead_letters,
        table=output.removeprefix(TABLE) if output is not None and is_table else None,
        shards=live.shards,
        names=wanted.names,
        lenient=wanted.lenient,
        deliver=wanted.delivery.wanted() if wanted.delivery.is_wanted else None,
        tell=tell,
    )


def _forgets(spark: Any, table: str) -> bool:
    """Whether a table is gone when the session is: those of Spark's own catalog are, if it is in memory."""
    catalog, dot, _ = table.partition(".")
    is_own = not dot or spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None
    return is_own and spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"


def _csv_or_json(output: str | None) -> Any:
    return "csv" if output and output.rstrip("/").lower().endswith(".csv") else "json"


@dataclass(slots=True)
class _Printed:
    """Answers on standard output, until nobody reads it any more."""

    failure: CannotWrite | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody reads it any more; that is seen at once, and not with the next answer."""
        if self.failure is not None or not hasattr(select, "poll"):
            return self.failure is not None
        poll = select.poll()
        try:
            poll.register(sys.stdout.fileno(), 0)
        except (OSError, ValueError):  # it is no file, or closed
            return False
        return any(flags & select.POLLERR for _, flags in poll.poll(0))

    def __call__(self, answers: list[dict[str, Any]], batch: int) -> None:
        del batch
        by_time = sorted(answers, key=_place)
        plain = ({name: value for name, value in answer.items() if name not in _ADDED} for answer in by_time)
        text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in plain)
        try:
            if sys.stdout.isatty():
                sys.stdout.write(text)  # which keeps clear of what is shown there
                sys.stdout.flush()
            else:
                write_out(text)
        except (OSError, CannotWrite) as error:
            self.failure = error if isinstance(error, CannotWrite) else no_output(error)
            raise self.failure from None


def _place(answer: dict[str, Any]) -> tuple[int, int, str, str]:
    """Where an answer stands among those of a batch: by end, begin, event and data."""
    time = answer["time"]
    begin, end = time if isinstance(time, list) else (time, time)
    data = json.dumps(answer.get("data", answer.get("term")), ensure_ascii=False)
    return read_time(end, SECOND), read_time(begin, SECOND), answer["event"], data


@contextmanager
def _watched(names: Sequence[str], wanted: Wanted, live: LiveWanted) -> Iterator[Any]:
    """Whoever is told of each batch: the terminal, and those who ask for metrics."""
    with ExitStack() as stack:
        watches: list[Any] = []
        if is_shown(wanted=wanted.progress):
            from ephemera.cli.watch import shown_batches

            watches.append(stack.enter_context(shown_batches(names)))
        if live.metrics is not None:
            from ephemera.spark.live.metrics import Prometheus

            page = Prometheus(names)
            stack.enter_context(offered(live.metrics, page))
            watches.append(page.add)
        yield lambda report: [watch(report) for watch in watches]


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """Until there is a query that could stop in good order, a signal ends the command as it is."""
    try:
        yield
    except Stopped:
        tell("stopped before the first batch")
        raise click.exceptions.Exit(exit_code(is_live=True)) from None


def _tell_end(query: LiveQuery, signals: Sequence[int], live: LiveWanted) -> None:
    totals = query.totals
    if totals.bad or totals.late or totals.dead:
        kept = live.dead_letters is not None
        tell(letters_line(totals.events, totals.bad, totals.late, totals.dead, kept=kept))
    if totals.known:
        tell(known_line(totals.known))
    for line in query.delivery.complaints() if query.delivery is not None else ():
        tell(line)
    tell_notes(totals.notes)
    if not signals:
        return
    on = f"; go on with --checkpoint {live.checkpoint}" if live.checkpoint is not None else ""
    tell(f"stopped after {counted(totals.batches, 'batch')}{on}")
    raise click.exceptions.Exit(exit_code(is_live=True))
