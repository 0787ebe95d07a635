"""This module runs stories live on Spark, all of them in one query: each program has a number and lines of its own.

A batch is a file. The k-th has the k-th event of every story, by the order in which they end, or all events of each.
Stories that say in which order their rows arrive are told so, row by row. In the end all inputs end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ephemera.base.scratch import scratch
from ephemera.engine.cluster.admission import TOO_LATE
from ephemera.engine.cluster.live_slices import WORTHWHILE, LiveSlicing
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.answer_keys import RulePrints
from ephemera.formats.json_events import read_time
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.spark.batch.job import Job
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.live.host import Host, QuerySinks, spread_live
from ephemera.spark.live.intake import TOLD, ToldLines, told_line
from ephemera.spark.live.report import BatchReport
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.session import session
from ephemera.spark.sinks.callback_sink import Answer, Delivery, EachBatch
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink, folder_at
from ephemera.stories.judge import Found, Ready, clock_of
from ephemera.stories.on_spark import bad_event
from ephemera.stories.record import line_of
from ephemera.terms.events import Event

PROGRAM = "program"
"""The key under which answers and dead letters say which program they are of."""
Beat = tuple[int, list[str]]
"""A row of a story, counted from 1, 0 being the end, and what is told of it."""


def beats(number: int, one: Ready, *, at_once: bool) -> Iterator[Beat]:
    """What a story tells, batch by batch."""
    story, unit, local = one.story, one.program.catalogue.unit, one.program.catalogue.local
    if not story.is_live:
        lines = [
            told_line(number, line_of(event)) for event in sorted(story.events, key=lambda event: _end(one, event))
        ]
        yield from [(0, lines)] if at_once else ((0, [line]) for line in lines)
        for advance in sorted(read_time(a, unit, local) for a in story.advances):
            yield 0, [told_line(number, closes=advance)]
    else:
        for row, (step, now) in enumerate(zip(story.steps, clock_of(story, unit), strict=True), 1):
            if any(s.idle is not None for s in one.program.catalogue.sources):
                yield row, [told_line(number, now=now)]
            if step.event is not None:
                yield row, [told_line(number, line_of(step.event))]
            if step.advance is not None:
                yield row, [told_line(number, closes=read_time(step.advance, unit, local))]
    yield 0, [told_line(number, ends=True)]


def _end(one: Ready, event: dict[str, Any]) -> int:
    """When an event of a story ends; what is none comes first."""
    read = read_event(line_of(event), one.compiled)
    return read.time.end if isinstance(read, Event) else -FAR


def run_on_stream(stories: Sequence[Ready], *, at_once: bool, small: int = 10_000) -> list[Found]:
    """What the programs of some stories make of them, live; batches of fewer events than `small` run in one task."""
    jobs = [Job(one.compiled, one.program._world(one.tables, None, None)) for one in stories]
    told = [list(beats(n, one, at_once=at_once)) for n, one in enumerate(stories)]
    came = Told()
    tell(jobs, [[lines for _, lines in own] for own in told], came.sinks, small=small)
    return _found(came, told, stories)


@dataclass(slots=True)
class Told:
    """What came of programs that ran live: answers with the number of their batch, and dead letters."""

    answers: list[tuple[int, Answer]] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def sinks(self, spreads: Sequence[DistributedProgram], query: str) -> Iterator[QuerySinks]:
        """Sinks that bring it here: a function for answers, and a folder for dead letters; both name the program."""
        forms = forms_of(spreads, [{PROGRAM: str(spread.number)} for spread in spreads])
        rules = {spread.number: RulePrints(spread.plan) for spread in spreads}
        taker = EachBatch(lambda answers, batch: self.answers.extend((batch, answer) for answer in answers))
        with scratch("letters") as folder:
            folders = FolderSink(forms, query, letters=folder_at(str(folder)))
            yield QuerySinks(folders, delivery=Delivery(forms, rules, taker, fraction=Decimal))
            for path in sorted(folder.glob("dead-*.jsonl")):
                self.letters += map(json.loads, path.read_text(encoding="utf-8").splitlines())


def tell(  # noqa: PLR0913 - most of them named
    jobs: Sequence[Job],
    told: Sequence[Sequence[Sequence[str]]],
    sinks: Callable[[Sequence[DistributedProgram], str], AbstractContextManager[QuerySinks]],
    *,
    shards: int = 2,
    small: int = 0,
    slicing: LiveSlicing = WORTHWHILE,
    watch: Callable[[BatchReport], None] | None = None,
) -> None:
    """Runs programs live in one query, told batch by batch: for each program the lines of each batch.

    Where answers go `sinks` says, of the programs and the name of the query.
    """
    spark = session(more={"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"})
    with scratch("stories") as folder:
        given = folder / "given"
        given.mkdir()
        _write(given, told)
        ledger = Checkpoint(f"{folder}/checkpoint")
        spreads = spread_live(spark, jobs, ledger, shards)
        with sinks(spreads, ledger.query) as sink:
            host = Host(spark, spreads, ledger, [ToldLines()], sink, watch, small, slicing=slicing, events=0)
            frame = spark.readStream.schema(TOLD).option("maxFilesPerTrigger", 1).json(str(given))
            query = (
                frame.writeStream.foreachBatch(host)
                .option("checkpointLocation", f"{folder}/checkpoint/spark")
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except Exception as error:
                raise host.failed or failure(error) from error


def _write(folder: Path, told: Sequence[Sequence[Sequence[str]]]) -> None:
    """A file for each batch; Spark takes them by their time."""
    for k in range(max(map(len, told), default=0)):
        lines = [line for own in told if k < len(own) for line in own[k]]
        path = folder / f"{k:06d}.json"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(path, (1_000_000 + k, 1_000_000 + k))


def _found(came: Told, told: Sequence[Sequence[Beat]], stories: Sequence[Ready]) -> list[Found]:
    found = [Found(after=[] if one.story.is_live else None) for one in stories]
    for batch, answer in came.answers:
        number = int(answer[PROGRAM])
        one = found[number]
        one.answers.append({name: value for name, value in answer.items() if name not in (PROGRAM, "key")})
        if one.after is not None:
            one.after.append(told[number][batch][0])
    for letter in came.letters:
        number = int(letter[PROGRAM])
        if letter["reason"] == TOO_LATE:
            event = read_event(letter["event"], stories[number].compiled)
            found[number].late += [event] if isinstance(event, Event) else []
        elif "rule" not in letter:
            found[number].bad.append(bad_event(stories[number], letter))
    return found
