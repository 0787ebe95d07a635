"""This module takes apart what is read of a source, so that it can be compared with what the local engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ephemera
from ephemera.formats.json_events import BadEvent
from ephemera.kernels.event_columns import flat_term
from ephemera.physical.plan import Compiled
from ephemera.spark.read.flat_events import ScannedEvents
from ephemera.spark.read.scan import apart, read_rest
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time

PROGRAM = """
TIME UNIT 1 ms;
EVENT order(id: string, qty: int);
EVENT price(id: string, value: float, open: bool, since: time);
EVENT stay(room: int) LASTS AT MOST 2 sec;
EVENT trip(id: int) LASTS ANY;
EVENT tags(id: string, tag: string[]);
EVENT loose(id: any);
seen(i) <- o: order(i, q);
long(i) <- o: order(i, q), s: other(i), {o, s} within 2 sec;
other(i) <- o: order(i, q);
"""
LABELS = ("order", "price", "stay", "trip", "tags", "loose", "other", "empty")


def compiled(text: str = PROGRAM) -> Compiled:
    return ephemera.compile(text)._compiled


def everything(one: Compiled) -> dict[str, frozenset[str]]:
    catalogue = one.rules.resolved.catalogue
    return {label: frozenset(catalogue.attributes(label) or ()) for label in LABELS}


Judged = tuple[Counter[Any], Counter[Any]]


def judged(found: Sequence[Event | BadEvent | None]) -> Judged:
    """Events and bad events, each as often as it is there; values with their types."""
    events = Counter((e.key, repr(sorted(_leaves(e.term)))) for e in found if isinstance(e, Event))
    return events, Counter((b.original, b.reason, b.label) for b in found if isinstance(b, BadEvent))


def _leaves(term: Term) -> list[str]:
    """Values with their types, since numbers equal others of another type."""
    return [s for c in term.children for s in (_leaves(c) if isinstance(c, Term) else [f"{term.label}={c!r}"])]


def vouched(source: ScannedEvents) -> DataFrame:
    return source.frame.where("rest IS NULL").drop("rest")


def rest(source: ScannedEvents) -> DataFrame:
    return source.frame.where("rest IS NOT NULL").select("rest")


def by_columns(source: ScannedEvents, one: Compiled) -> list[Event]:
    """The events that came by columns."""
    if not source.has_columns:
        return []
    attributes = one.rules.resolved.catalogue.attributes
    found = []
    for row in vouched(source).collect():
        names = attributes(row["event"]) or ()
        values = []
        for name in names:
            held = source.held[row["event"], name]
            value = row[held.column]
            values.append(Time(value) if held.kind == "time" and value is not None else value)
        found.append(Event(flat_term(row["event"], values, names), Interval(row["s"], row["e"])))
    return found


def by_python(source: ScannedEvents, one: Compiled) -> list[Event | BadEvent]:
    batches = source.frame.toArrow().to_batches()
    return [e for batch in batches for e in read_rest(one, source.form, apart(batch, source.form)[1])]


def arriving(spark: SparkSession, source: ScannedEvents, tmp_path: Path) -> ScannedEvents:
    """The same source with all that a stream has brought."""
    assert source.frame.isStreaming
    query = (
        source.frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "arrived"))
    )
    query.awaitTermination()
    return replace(source, frame=spark.read.parquet(str(tmp_path / "arrived")))
