"""This module has a run computed, once, and gives out what came of it: answers, also as files, letters, a summary.

What engines shipped is kept by Spark, in memory and on disk, and everything is taken from there. It stays packed: there
are few rows for many answers, and lines or columns are made of them when they are written. Answers in order are sorted
by Spark, by end, begin and event; those that agree in all three fall into the same partition and are put in order
there. Nothing is collected here but the summary; what is in order passes through one partition at a time, as text.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.algebra.attributes import is_position
from ephemera.connect import atomic_files
from ephemera.engine.cluster.message import Answers, BadInput, EngineStats, ReadCount, ReadNotes, UndefinedHead, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Never, never
from ephemera.formats.encode_json import lines
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import BEGIN, END, Events, flat_term
from ephemera.spark.batch.encode_columns import as_columns
from ephemera.spark.batch.job import Started
from ephemera.spark.read.route_rows import notes_of
from ephemera.spark.runtime.exchange import NAMES, answers_of, is_a, kind_of, of_rows
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.syntax.nodes import Raise
from ephemera.terms.values import Key, Term, Time

_ARROW = pa.schema(
    [
        ("e", pa.int64()),
        ("s", pa.int64()),
        ("event", pa.string()),
        ("program", pa.int32()),
        ("rule", pa.int32()),
        ("line", pa.string()),
        ("tie", pa.binary()),
    ]
)
_ROWS = from_arrow_schema(_ARROW)
_FEW = 50_000
"""So many answers are sorted in one partition."""
_CHUNK = 1 << 20
"""Lines pass through here about so many characters at a time."""


@dataclass(frozen=True, slots=True)
class HistoryPeak:
    """What the rules of a program keep of some events: the most tuples in one place, and for how long each counts."""

    program: int
    name: str
    peak: int
    reach: int | None
    """In microseconds; None is forever."""


@dataclass(slots=True)
class RunSummary:
    """What there is to tell of a run."""

    read: dict[int, int] = field(default_factory=dict)
    """For each program how many events were read for it."""
    came: dict[int, set[str]] = field(default_factory=dict)
    """For each program the types of which events came."""
    matched: dict[int, set[int]] = field(default_factory=dict)
    """For each program the rules that gave something."""
    answers: dict[tuple[int, str], int] = field(default_factory=dict)
    dead: int = 0
    bad: int = 0
    histories: list[HistoryPeak] = field(default_factory=list)
    busy: int = 0
    """In how many places engines had something to do."""
    notes: tuple[str, ...] = ()
    """What is to be said of the input."""
    warnings: tuple[str, ...] = ()
    """What is likely wrong with it: keys that were missing in every event of their type."""

    @property
    def total(self) -> int:
        return sum(self.answers.values())


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
                f.sum("count").alias("count"),
                f.collect_list(f.when(is_a(EngineStats, ReadNotes), f.struct(*NAMES))).alias("words"),
            )
            .collect()
        )
        words = of_rows(word for row in counted for word in row.words)
        self.summary = _summary([row.asDict() for row in counted], [w for w in words if isinstance(w, EngineStats)])
        self.summary.notes = tuple(dict.fromkeys((*started.notes, *notes_of(words))))
        self.summary.warnings = tuple(self._warnings([word for word in words if isinstance(word, ReadNotes)]))

    def _warnings(self, read: Sequence[ReadNotes]) -> Iterator[str]:
        """Keys that were missing in every event of their type, program by program."""
        for number, spread in self._spreads.items():
            keys = Keys(spread.plan)
            for notes in read:
                if notes.program == number:
                    keys.add(notes.keys)
            yield from keys.notes()

    def never(self, number: int = 0) -> Never:
        """What a program lacked. Of types that are not read, or not wholly, nothing is known."""
        spread, summary = self._spreads[number], self.summary
        asked = spread.plan.rewritten.columns
        expected = spread.plan.awaited if asked is None else spread.plan.awaited & asked.keys()
        missing = expected - self._started.filtered - summary.came.get(number, set())
        return never(spread.compiled.rules, spread.compiled.plan, missing, summary.matched.get(number, ()), spread.emit)

    def close(self) -> None:
        """Frees what Spark keeps of it."""
        self._kept.unpersist()

    @property
    def shipped(self) -> DataFrame:
        """The answers, packed."""
        return self._kept.where(is_a(Answers))

    def lines(self) -> DataFrame:
        """The answers in no order, with a column `line`."""
        return map_in_arrow(self.shipped, ToRows(self._spreads, self._started.as_numbers, ties=False), _ROWS)

    def columns(self) -> DataFrame:
        """The answers in no order, by columns."""
        return as_columns(self.shipped, self._started.spreads, as_numbers=self._started.as_numbers)

    def texts(self) -> Iterator[str]:
        """The answers as text, in order."""
        rows = map_in_arrow(self.shipped, ToRows(self._spreads, self._started.as_numbers, ties=True), _ROWS)
        order = ("e", "s", "event")
        few = self.summary.total <= _FEW
        ordered = rows.coalesce(1).sortWithinPartitions(*order) if few else rows.orderBy(*order)
        joined = map_in_arrow(ordered, Joined(self._spreads), "text string")
        yield from (row[0] for row in joined.toLocalIterator(prefetchPartitions=not few))

    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages as objects, in no order."""
        sent = self.shipped.where(f.col("rule") > 0)
        rows = map_in_arrow(sent, ToRows(self._spreads, self._started.as_numbers, ties=False), _ROWS)
        yield from (json.loads(row["line"]) for row in rows.select("line").toLocalIterator())

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


def _summary(counted: Sequence[Mapping[str, Any]], told: Sequence[EngineStats]) -> RunSummary:
    """What was counted by kind, program and label, and what engines told."""
    summary = RunSummary()
    for row in counted:
        program, label, count = row["program"], row["label"], row["count"]
        kind = kind_of(row)
        if kind is Answers:
            summary.answers[program, label] = count
        elif kind is ReadCount:
            summary.read[program] = summary.read.get(program, 0) + count
            summary.came.setdefault(program, set()).add(label)
        elif kind is BadInput:
            summary.bad += count
        elif kind is UndefinedHead:
            summary.dead += count
    peaks: dict[tuple[int, str], HistoryPeak] = {}
    for stats in told:
        summary.matched.setdefault(stats.program, set()).update(stats.stats["matched"])
        for name, (peak, reach) in stats.stats["histories"].items():
            key = (stats.program, name)
            if key not in peaks or peak > peaks[key].peak:
                peaks[key] = HistoryPeak(stats.program, name, peak, reach)
    summary.histories = [peaks[key] for key in sorted(peaks)]
    summary.busy = len({stats.place for stats in told if stats.stats["events"]})
    return summary


# ---- in workers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToRows:
    """Writes answers as lines of JSON, with what they are sorted by.

    What a line does not tell exactly goes along as a `tie`: the key of data that holds times or terms.
    """

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool
    ties: bool

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._rows(answers) for answers in answers_of(given)))

    def _rows(self, answers: Answers) -> pa.RecordBatch:
        spread = self.spreads[answers.program]
        catalogue = spread.compiled.rules.resolved.catalogue
        events = unpack(answers.events, catalogue)
        count = len(events)
        keys = [pickle.dumps(term.key) for term in events.terms()] if self.ties and not _is_plain(events) else None
        arrays = [
            pa.array(events.batch[END], pa.int64()),
            pa.array(events.batch[BEGIN], pa.int64()),
            pa.repeat(pa.scalar(events.label), count),
            pa.repeat(pa.scalar(answers.program, pa.int32()), count),
            pa.repeat(pa.scalar(answers.rule, pa.int32()), count),
            lines(events, catalogue, as_numbers=self.as_numbers, more=spread.recipient(answers.rule)),
            pa.nulls(count, pa.binary()) if keys is None else pa.array(keys, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _is_plain(events: Events) -> bool:
    """Whether JSON tells all values exactly."""
    values = [c for name, c in events.batch.columns.items() if is_position(name) and c.kind == "any"]
    return events.arity is not None and not any(isinstance(v, Term | Time) for c in values for v in c.tolist())


@dataclass(frozen=True, slots=True)
class Joined:
    """Puts those of sorted answers in order that agree in end, begin and event, and joins the lines."""

    spreads: Mapping[int, DistributedProgram]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", self._joined(given))

    def _joined(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in given for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        found: list[str] = []
        size = 0
        for line in self._ordered(rows):
            found.append(line)
            size += len(line)
            if size >= _CHUNK:
                yield pa.RecordBatch.from_pydict({"text": ["\n".join(found) + "\n"]})
                found, size = [], 0
        if found:
            yield pa.RecordBatch.from_pydict({"text": ["\n".join(found) + "\n"]})

    def _ordered(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        for _, tied in groupby(rows, key=itemgetter(0, 1, 2)):
            first, *others = tied
            if not others:
                yield first[5]
                continue
            # Two rules may send the same message, and it is one.
            found = {self._key(row): row[5] for row in (first, *others)}
            yield from (found[key] for key in sorted(found))

    def _key(self, row: tuple[Any, ...]) -> tuple[Key, int, bool, str, str]:
        _, _, label, program, rule, line, tie = row
        resolved = self.spreads[program].compiled.rules.resolved
        head = resolved.rules[rule - 1].head if rule else None
        to = (head.recipient, head.transport) if isinstance(head, Raise) else ("", "")
        if tie is not None:
            data: Key = pickle.loads(tie)
        else:
            data = flat_term(label, json.loads(line)["data"], resolved.catalogue.attributes(label)).key
        return (data, program, bool(rule), *to)


# ---- as files --------------------------------------------------------------------------------------------------


def write_file(texts: Iterable[str], target: Path) -> None:
    """Texts, one behind the other, as one file."""
    atomic_files.write_file((text.encode("utf-8", "backslashreplace") for text in texts), target)


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
