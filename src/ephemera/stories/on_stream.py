"""This module runs stories live on Spark, all of them in one query: each program has a number and lines of its own.

A batch is a file. The k-th has the k-th event of every story, by the order in which they end, or all events of each.
Stories that say in which order their rows arrive are told so, row by row. In the end all inputs end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ephemera.base.scratch import scratch
from ephemera.engine.cluster.message import BAD, LATE
from ephemera.formats.json_events import BadEvent, read_time
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.spark.batch.job import Job
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.live.host import Host, spread_live
from ephemera.spark.live.intake import TOLD, ToldLines, told_line
from ephemera.spark.live.memory_sink import LINES, MemorySink
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.session import session
from ephemera.stories.judge import Found, Ready, clock_of
from ephemera.stories.on_spark import line_of
from ephemera.terms.events import Event

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
    read = read_event(line_of(event), one.program.compiled)
    return read.time.end if isinstance(read, Event) else -FAR


def run_on_stream(stories: Sequence[Ready], *, at_once: bool, small: int = 10_000) -> list[Found]:
    """What the programs of some stories make of them, live; batches of fewer events than `small` run in one task."""
    jobs = [Job(one.program.compiled, one.program.world(one.tables, None, None)) for one in stories]
    told = [list(beats(n, one, at_once=at_once)) for n, one in enumerate(stories)]
    sink = MemorySink()
    tell(jobs, [[lines for _, lines in own] for own in told], sink, small=small)
    return _found(sink, told, stories)


def tell(
    jobs: Sequence[Job],
    told: Sequence[Sequence[Sequence[str]]],
    sink: MemorySink,
    *,
    shards: int = 2,
    small: int = 0,
) -> None:
    """Runs programs live in one query, told batch by batch: for each program the lines of each batch."""
    spark = session(more={"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"})
    with scratch("stories") as folder:
        given = folder / "given"
        given.mkdir()
        _write(given, told)
        ledger = Checkpoint(f"{folder}/checkpoint")
        host = Host(spark, spread_live(spark, jobs, ledger, shards), ledger, [ToldLines()], sink, small=small, events=0)
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


def _found(sink: MemorySink, told: Sequence[Sequence[Beat]], stories: Sequence[Ready]) -> list[Found]:
    found = [Found(after=[] if one.story.is_live else None) for one in stories]
    for batch, shipment in sink.rows:
        one, number = found[shipment.program], shipment.program
        if shipment.group == LINES:
            lines = json.loads(bytes(shipment.load), parse_float=Decimal)
            one.answers += lines
            if one.after is not None:
                one.after += [told[number][batch][0]] * len(lines)
        elif shipment.group == BAD:
            letter = json.loads(bytes(shipment.load))
            label = shipment.label or json.loads(letter["event"])["event"]
            one.bad.append(BadEvent(letter["event"], letter["reason"], label))
        elif shipment.group == LATE:
            event = read_event(json.loads(bytes(shipment.load))["event"], stories[number].program.compiled)
            one.late += [event] if isinstance(event, Event) else []
    return found
