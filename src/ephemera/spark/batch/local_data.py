"""This module runs programs on Spark over what lies in this process: a list of events, or a table.

Events go there as lines of JSON and come back as objects; a table goes there by columns and comes back as one of its
kind, with the types that answers of data frames have. The session is the one that is there, or a new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ephemera.engine.hosts.batch import Run
from ephemera.engine.hosts.tables import is_table, like, to_arrow
from ephemera.formats.json_events import BadEvent, Message, original_text
from ephemera.formats.reading import Given, given_message, several
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import DeadLetter, World
from ephemera.spark.batch.frames import run_whole_frame
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input
from ephemera.spark.read.time_form import counts
from ephemera.spark.runtime.connect_session import names_server
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.java import GONE, told_of_java
from ephemera.spark.runtime.session import session


def run_local_data(compiled: Compiled, events: Any, world: World, *, lenient: bool = False) -> Run:
    """All that comes of events, or of the rows of a table."""
    if not is_table(events):
        return _run_events(_session(), compiled, several(events), world)
    spark = _session()
    frame = spark.createDataFrame(_for_spark(to_arrow(events)))
    found = run_whole_frame(compiled, frame, world, lenient=lenient)
    answers = found.answers.toArrow()
    order = ["end", "begin", *(name for name in answers.column_names if name not in ("begin", "end"))]
    return replace(found, answers=like(events, answers.sort_by([(name, "ascending") for name in order])))


def _session() -> SparkSession:
    """The session that is there, or a new one: at the server that the environment names, else of our own."""
    return SparkSession.builder.getOrCreate() if names_server() else session()


def _run_events(spark: SparkSession, compiled: Compiled, events: Iterable[Given], world: World) -> Run:
    given = list(events)
    lines = pa.table({"value": pa.array([line_of(event) for event in given], pa.string())})
    numbers = counts((given_message(event) for event in given), compiled)
    try:
        with told_of_java():
            started = start(spark, [Job(compiled, world)], [Input(spark.createDataFrame(lines), "json")])
            computed = Computed(replace(started, as_numbers=numbers))
            try:
                written = [json.loads(line) for block in computed.lines_in_order() for line in block.splitlines()]
                letters = [letter for _, letter in computed.letters()]
            finally:
                computed.close()
    except (PySparkException, *GONE) as error:
        raise failure(error) from error
    return Run(
        [one for one in written if "recipient" not in one],
        [one for one in written if "recipient" in one],
        [BadEvent(letter["event"], letter["reason"]) for letter in letters if "rule" not in letter],
        [DeadLetter(one["rule"], one["variables"], one["reason"]) for one in letters if "rule" in one],
        read=sum(computed.summary.read.values()),
        never=computed.never(),
        as_numbers=numbers,
        said=computed.summary.notes,
        warnings=computed.summary.warnings,
    )


def line_of(event: Given) -> str:
    """An event as a line of JSON; what is none already stays as it is, and is bad there."""
    given = event.original if isinstance(event, Message) else event
    try:
        return _text(given) if isinstance(given, Mapping) else original_text(given)
    except (RecursionError, TypeError, ValueError):
        return original_text(given)


def _text(value: Any) -> str:
    """JSON with fractions as exact as they are, and with times as texts."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{json.dumps(key)}: {_text(v)}" for key, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case Decimal():
            return str(value)
        case datetime() | date():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value)


def _for_spark(table: pa.Table) -> pa.Table:
    """The table with types that Spark has: values for numbers of a dictionary, signed numbers, microseconds."""
    fields = [pa.field(field.name, _type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields), safe=False) if pa.schema(fields) != table.schema else table


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_null(kind):
        return pa.string()
    return kind
