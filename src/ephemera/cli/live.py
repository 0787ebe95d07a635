"""This module runs programs live on Spark from the command line: until the input ends, a signal comes, or it fails.

What is read are folders in which files arrive, or sockets. Answers go to a folder or a table exactly once, or line by
line to standard output, at least once.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from ephemera.cli.files import WRONG_COMMAND
from ephemera.cli.spark import Rows, Wanted, check_master, told
from ephemera.cli.stream import INTERRUPTED
from ephemera.cli.watch import shown_batches
from ephemera.pipeline import Program

if TYPE_CHECKING:
    from ephemera.spark.streaming import LiveQuery, Streaming

TABLE = "table:"
_PAUSE = 0.2
"""Seconds after which a signal is seen."""
_FORMATS = {"json": "json", "jsonl": "json", "parquet": "parquet", "csv": "csv", "xml": "xml"}


@dataclass(frozen=True, slots=True)
class LiveWanted:
    """What a live run is asked for besides what any run is."""

    checkpoint: str | None
    trigger: str | None
    shards: int | None
    metrics: int | None


@dataclass(slots=True)
class _Signals:
    """Whether somebody wants the run to stop, and with which signal."""

    seen: list[int] = field(default_factory=list)

    def note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.seen.append(number)


def run_live(
    programs: Sequence[Program],
    tables: Sequence[Rows],
    inputs: Sequence[tuple[str, str | None]],
    wanted: Wanted,
    live: LiveWanted,
) -> None:
    """A live run; ends the command when it has ended."""
    check_master(wanted.master)
    _check(wanted, live)
    with told(debug=wanted.debug), ExitStack() as stack:
        from ephemera.spark.session import session  # noqa: PLC0415 - it takes a while to load

        spark = session(wanted.master, debug=wanted.debug)
        streaming = _streaming(spark, list(zip(programs, tables, strict=True)), inputs, wanted, live)
        names = [name.get("program", "") for name in wanted.names]
        watch = stack.enter_context(_watched(names, wanted, live))
        signals = stack.enter_context(_heeded())
        query = streaming.start(watch)
        try:
            while not signals.seen and not query.wait(_PAUSE):
                pass
        finally:
            query.stop()
        _tell_end(query, signals, live)


def _check(wanted: Wanted, live: LiveWanted) -> None:
    output = wanted.output
    if output is not None and output.endswith((".jsonl", ".json")):
        typer.echo(f"a live run on Spark writes a folder, and `{output}` is the name of a file", err=True)
        typer.echo("name a folder, such as answers/ or answers.parquet; `--engine local` writes one file", err=True)
        raise typer.Exit(WRONG_COMMAND)
    if live.checkpoint is None and live.trigger != "once":
        typer.echo("without --checkpoint nothing is kept for another start", err=True)


def _streaming(
    spark: Any,
    programs: Sequence[tuple[Program, Rows]],
    inputs: Sequence[tuple[str, str | None]],
    wanted: Wanted,
    live: LiveWanted,
) -> Streaming:
    from ephemera.spark.inlets import SOCKET  # noqa: PLC0415
    from ephemera.spark.reading import Input  # noqa: PLC0415
    from ephemera.spark.run import Job  # noqa: PLC0415
    from ephemera.spark.streaming import Streaming  # noqa: PLC0415

    emit = frozenset(wanted.emit)
    if any(SOCKET.fullmatch(path) for path, _ in inputs):
        typer.echo("what comes from a socket is read at most once: it is lost if the run fails", err=True)
    output = wanted.output
    is_table = output is not None and output.startswith(TABLE)
    return Streaming(
        spark,
        [Job(program.compiled, program.world(rows), emit) for program, rows in programs],
        [Input(path, _FORMATS.get(form) if form else _guess(path)) for path, form in inputs],  # type: ignore[arg-type]
        checkpoint=live.checkpoint,
        output=None if is_table else output,
        format="parquet" if output and output.rstrip("/").endswith(".parquet") else _csv_or_json(output),
        dead_letters=None if wanted.dead_letter is None else str(wanted.dead_letter),
        table=output.removeprefix(TABLE) if output is not None and is_table else None,
        foreach_batch=_print if output is None else None,
        trigger=live.trigger,
        shards=live.shards,
        names=wanted.names,
    )


def _guess(path: str) -> str:
    """What the files of a folder are, as its name says; else lines of JSON."""
    return _FORMATS.get(Path(path.rstrip("/")).suffix.removeprefix("."), "json")


def _csv_or_json(output: str | None) -> Any:
    return "csv" if output and output.rstrip("/").endswith(".csv") else "json"


def _print(answers: list[dict[str, Any]], batch: int) -> None:
    del batch
    plain = ({name: value for name, value in answer.items() if name != "key"} for answer in answers)
    sys.stdout.write("".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in plain))
    sys.stdout.flush()


@contextmanager
def _watched(names: Sequence[str], wanted: Wanted, live: LiveWanted) -> Iterator[Any]:
    """Whoever is told of each batch: the terminal, and those who ask for metrics."""
    with ExitStack() as stack:
        watches: list[Any] = []
        if wanted.progress or sys.stderr.isatty():
            watches.append(stack.enter_context(shown_batches(names)))
        if live.metrics is not None:
            from ephemera.spark.metrics import Prometheus  # noqa: PLC0415

            metrics = Prometheus(names)
            port, stop = metrics.serve(live.metrics)
            stack.callback(stop)
            typer.echo(f"metrics at http://127.0.0.1:{port}/metrics", err=True)
            watches.append(metrics.add)
        yield lambda report: [watch(report) for watch in watches]


@contextmanager
def _heeded() -> Iterator[_Signals]:
    """Signals to stop are noted while this lasts."""
    signals = _Signals()
    before = {number: signal.signal(number, signals.note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_end(query: LiveQuery, signals: _Signals, live: LiveWanted) -> None:
    totals = query.totals
    if totals.bad or totals.late or totals.dead:
        letters = f"{totals.bad} bad, {totals.late} late, {totals.dead} without a value"
        typer.echo(f"{totals.events} events, {letters}; `--dead-letter PATH` keeps them", err=True)
    if not signals.seen:
        return
    on = f"; go on with --checkpoint {live.checkpoint}" if live.checkpoint is not None else ""
    typer.echo(f"stopped after {totals.batches} batches{on}", err=True)
    if signals.seen[0] == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0)
