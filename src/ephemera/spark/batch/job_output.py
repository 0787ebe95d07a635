"""This module has a run computed by Spark, once, and gives out what came of it: answers, also as files, and letters.

What engines shipped is kept by Spark, in memory and on disk, and everything is taken from there. It stays packed: there
are few rows for many answers, and lines or columns are made of them when they are written. Answers in order come here
by their earliest end, and are sorted and written by columns, some of them at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.connect import atomic_files
from ephemera.connect.written_places import Written
from ephemera.engine.cluster.message import Answers, BadInput, EngineStats, ReadCount, ReadNotes, UndefinedHead, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.lacking import Never, never
from ephemera.formats.encode_json import lines
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import Events
from ephemera.spark.batch.answer_lines import lines_in_order
from ephemera.spark.batch.encode_columns import as_columns
from ephemera.spark.batch.job import Started
from ephemera.spark.batch.run_output import summarized
from ephemera.spark.read.route_rows import notes_of
from ephemera.spark.runtime.exchange import NAMES, answers_of, is_a, of_rows
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.shipped_answers import put_history
from ephemera.terms.addresses import Address

_ARROW = pa.schema([("program", pa.int32()), ("line", pa.string())])
_ROWS = from_arrow_schema(_ARROW)
_RANGE = 2_000_000
"""So many answers are brought here in order at once."""


class Computed:
    """A run that has been computed; `close` forgets it."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._spreads = {s.number: s for s in started.spreads}
        shipped = started.shipped.where(is_a(Answers, UndefinedHead, BadInput, EngineStats, ReadCount, ReadNotes))
        self._kept = shipped.persist(StorageLevel.MEMORY_AND_DISK)
        counted = (
            self._kept.groupBy("kind", "program", f.when(is_a(Answers, ReadCount), f.col("label")).alias("label"))
            .agg(
                # Equal letters of different places are one, as they are in one place.
                f.when(is_a(UndefinedHead), f.size(f.collect_set(f.when(is_a(UndefinedHead), f.xxhash64("load")))))
                .otherwise(f.sum("count"))
                .alias("count"),
                f.collect_list(f.when(is_a(EngineStats, ReadNotes), f.struct(*NAMES))).alias("words"),
            )
            .collect()
        )
        words = of_rows(word for row in counted for word in row.words)
        self.summary = summarized([row.asDict() for row in counted], [w for w in words if isinstance(w, EngineStats)])
        self.summary.notes = tuple(dict.fromkeys((*started.notes, *notes_of(words))))
        self.summary.warnings = tuple(self._warnings([word for word in words if isinstance(word, ReadNotes)]))

    def _warnings(self, read: Sequence[ReadNotes]) -> Iterator[str]:
        """Keys that were missing in every event of their type, and types with wrong names, program by program."""
        for number, spread in self._spreads.items():
            keys = Keys(spread.plan)
            for notes in read:
                if notes.program == number:
                    keys.add(notes.keys)
            yield from keys.notes()
            yield from self.never(number).warnings

    def never(self, number: int = 0) -> Never:
        """What a program lacked. Of types that are not read, or not wholly, nothing is known."""
        spread, summary = self._spreads[number], self.summary
        asked = spread.plan.rewritten.columns
        expected = spread.plan.awaited if asked is None else spread.plan.awaited & asked.keys()
        came = summary.came.get(number, set())
        missing = expected - self._started.filtered - came
        return never(spread.compiled, missing, summary.matched.get(number, ()), unread=came)

    def close(self) -> None:
        """Frees what Spark keeps of it."""
        self._kept.unpersist()

    @property
    def shipped(self) -> DataFrame:
        """The answers, packed."""
        return self._kept.where(is_a(Answers))

    def lines(self) -> DataFrame:
        """The answers in no order, with a column `line`."""
        return map_in_arrow(self.shipped, ToRows(self._spreads, self._started.as_numbers), _ROWS)

    def columns(self) -> DataFrame:
        """The answers in no order, by columns."""
        return as_columns(self.shipped, self._started.spreads, as_numbers=self._started.as_numbers)

    def lines_in_order(self) -> Iterator[bytes]:
        """The answers as lines of JSON in their order, some at a time."""
        ranges = 1 + self.summary.total // _RANGE
        answers = self.shipped.coalesce(1) if ranges == 1 else self.shipped.repartitionByRange(ranges, "first")
        rows = answers.sortWithinPartitions("first").toLocalIterator(prefetchPartitions=ranges > 1)
        shipments = (shipment for row in rows for shipment in of_rows([row]) if isinstance(shipment, Answers))
        yield from lines_in_order(shipments, self._spreads, as_numbers=self._started.as_numbers)

    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages as objects, in no order."""
        sent = self.shipped.where(f.col("rule") > 0)
        rows = map_in_arrow(sent, ToRows(self._spreads, self._started.as_numbers), _ROWS)
        yield from (json.loads(row["line"]) for row in rows.select("line").toLocalIterator())

    def messages_by_columns(self) -> Iterator[tuple[int, Events, Address | None]]:
        """The messages in no order: of which program, by columns, and where they go unless they say it themselves."""
        for row in self.shipped.where(f.col("rule") > 0).toLocalIterator():
            for sent in of_rows([row]):
                if isinstance(sent, Answers):
                    spread = self._spreads[sent.program]
                    to = spread.recipient(sent.rule)
                    events = unpack(sent.events, spread.compiled.rules.resolved.catalogue)
                    yield sent.program, events, (to["recipient"], to["transport"]) if to else None

    def put(self, writes: Sequence[Written]) -> None:
        """The answers to systems, each of which gets its own in one commit."""
        rows = self.shipped.toLocalIterator()
        shipments = (one for row in rows for one in of_rows([row]) if isinstance(one, Answers))
        put_history(writes, shipments, self._started.spreads, as_numbers=self._started.as_numbers)

    def letters(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The dead letters with the numbers of their programs: bad events first, then heads without a value."""
        letter = f.decode("load", "utf-8").alias("letter")
        if self.summary.bad:
            bad = self._kept.where(is_a(BadInput)).select("program", letter).orderBy("program", "letter")
            yield from ((program, json.loads(text)) for program, text in bad.toLocalIterator())
        if self.summary.dead:
            undefined = self._kept.where(is_a(UndefinedHead)).select("program", letter).distinct()
            ordered = undefined.orderBy("program", "letter")
            yield from ((program, json.loads(text)) for program, text in ordered.toLocalIterator())


# ---- in workers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToRows:
    """Writes answers as lines of JSON, with the numbers of their programs."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._rows(answers) for answers in answers_of(given)))

    def _rows(self, answers: Answers) -> pa.RecordBatch:
        spread = self.spreads[answers.program]
        catalogue = spread.compiled.rules.resolved.catalogue
        events = unpack(answers.events, catalogue)
        written = lines(events, catalogue, as_numbers=self.as_numbers, more=spread.recipient(answers.rule))
        programs = pa.repeat(pa.scalar(answers.program, pa.int32()), len(events))
        return pa.RecordBatch.from_arrays([programs, written], schema=_ARROW)


# ---- as files --------------------------------------------------------------------------------------------------


def write_folder(answers: DataFrame, target: Path, form: Literal["json", "parquet", "csv"]) -> None:
    """Answers as a folder of part files, in no order; for JSON they have a column `line`, else one for each value."""
    with atomic_files.whole_folder(target) as folder:
        place = str(folder.absolute())
        match form:
            case "json":
                answers.select("line").write.text(place, lineSep="\n")
            case "parquet":
                answers.write.parquet(place)
            case "csv":
                answers.write.csv(place, header=True, escape='"', timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
