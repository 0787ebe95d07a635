"""This module runs stories on Spark, all of them in one job: each program has a number and lines of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import read_event
from ephemera.spark.batch.job import Job, places_of, start_lines
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.session import session
from ephemera.stories.judge import Found, Ready
from ephemera.stories.record import line_of
from ephemera.terms.events import Event


def run_on_spark(stories: Sequence[Ready], *, in_slices: bool = False) -> list[Found]:
    """What the programs of some stories make of them; rules without a key may be cut along time, in the middle."""
    spark = session(more={"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"})
    jobs = [Job(one.compiled, one.program._world(one.tables, None, one.until)) for one in stories]
    given = [[line_of(event) for event in one.story.events] for one in stories]
    ends = [sorted(e.time.end for e in _events(one)) for one in stories]
    spans = [span(own, job.world) for own, job in zip(ends, jobs, strict=True)]
    found = [Found() for _ in stories]
    limits = [[own[len(own) // 2]] if own else [] for own in ends] if in_slices else ()
    started = start_lines(spark, jobs, given, spans, places_of(spark), limits)
    try:
        computed = Computed(started)
        for row in computed.lines().select("program", "line").collect():
            found[row.program].answers.append(json.loads(row.line, parse_float=Decimal))
        for program, letter in computed.letters():
            if "rule" not in letter:
                found[program].bad.append(bad_event(stories[program], letter))
        computed.close()
    except Exception as error:
        raise failure(error) from error
    return found


def bad_event(one: Ready, letter: Mapping[str, Any]) -> BadEvent:
    """What a dead letter tells of a row that is no event; of which type it would be stands in the row."""
    read = read_event(letter["event"], one.compiled)
    label = read.label if isinstance(read, BadEvent) else None
    return BadEvent(letter["event"], letter["reason"], label or json.loads(letter["event"])["event"])


def _events(one: Ready) -> list[Event]:
    reading = one.program._reading(one.emit)
    for event in one.story.events:
        reading.add(event)
    return reading.events
