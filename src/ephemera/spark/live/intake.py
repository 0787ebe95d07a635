"""This module lets the rows of a live batch in: they are read, late ones are turned away, and the others are routed.

A query reads several sources as one frame. Each has a column of its own that holds its rows, and a reader that knows
what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ephemera.engine.cluster.admission import Admission
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress
from ephemera.formats.arrow_rows import shown_rows
from ephemera.formats.check_columns import Offer, WrongColumns, check_columns
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.json_events import BadEvent, Message, decode_line, original_text, uses_text
from ephemera.formats.reading import read_event
from ephemera.kernels.event_columns import Events, of_events
from ephemera.rules.nodes import Catalogue
from ephemera.spark.live.fault_points import mark
from ephemera.spark.live.task import Turn, side_by_side, turn_of_task
from ephemera.spark.read.flat_events import TEXT, AttributeColumn, Form
from ephemera.spark.read.parquet import FromParquet, counts, units_of
from ephemera.spark.read.route_rows import FromSource, ReadCounts, Waiting, bad_input
from ephemera.spark.read.scan import apart, read_rest, rest_messages
from ephemera.spark.runtime.exchange import Programs, batches
from ephemera.spark.runtime.failures import told_by
from ephemera.terms.events import Event

TOLD = "program int, line string, now bigint, closes bigint, ends boolean"
"""The columns of `ToldLines`."""


class Entrance:
    """Where the events of a batch come in for one program."""

    def __init__(self, spread: DistributedProgram, before: Progress) -> None:
        self.spread = spread
        self.gate = Admission(spread, before)
        self._waiting = Waiting(spread.places)
        self._partition: str | None = None
        self.counts = ReadCounts(spread)

    def come_from(self, partition: str | None) -> Iterator[Shipment]:
        """What follows comes from there; what waits, which came from elsewhere, goes."""
        if partition != self._partition:
            yield from self.gate.let_in(self._waiting.take(), self._partition)
            self._partition = partition

    def add(self, parts: Sequence[Events]) -> Iterator[Shipment]:
        """Events by columns; they go when there are enough of them."""
        self.counts.add(parts)
        yield from self.gate.let_in(self._waiting.add([part for part in parts if len(part)]), self._partition)

    def add_each(self, events: Iterable[Event | BadEvent]) -> Iterator[Shipment]:
        """Events one by one; what is none goes elsewhere."""
        good: list[Event] = []
        for event in events:
            if isinstance(event, BadEvent):
                self.counts.add_bad(event)
                yield bad_input(self.spread, event)
            else:
                good.append(event)
        yield from self.add(of_events(good, self.spread.plan.catalogue.attributes))

    def close(self) -> Iterator[Shipment]:
        """What is left, how many were read, and a word to all places of what was seen."""
        yield from self.gate.let_in(self._waiting.take(), self._partition)
        yield from self.counts.told()
        yield from self.gate.words(range(self.spread.places))


class Entrances(dict[int, Entrance]):
    """The entrances of programs, made when they are first asked for."""

    def __init__(self, spreads: Programs, turn: Turn) -> None:
        super().__init__()
        self.spreads = spreads
        self.turn = turn

    def __missing__(self, number: int) -> Entrance:
        spread = self.spreads[number].for_batch(self.turn.visited.get(number, {}))
        self[number] = Entrance(spread, self.turn.standing(number))
        return self[number]


class SourceReader(Protocol):
    """Knows what the rows of a source are."""

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        """Takes some rows to the entrances of the programs that they are for."""
        ...


@dataclass(frozen=True, slots=True)
class Intake:
    """What runs where a batch is read."""

    spreads: Programs
    readers: Sequence[SourceReader]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self.let_in(given, turn_of_task())))

    def let_in(self, given: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[Shipment]:
        """What is read, for the places that it goes to."""
        mark("read")
        entrances = Entrances(self.spreads, turn)
        for number in self._told_the_time if turn.now is not None else ():
            entrances[number].gate.now = turn.now
        for batch in given:
            for reader, own in self._by_source(batch):
                yield from reader.read(own, entrances)
        for entrance in entrances.values():
            yield from entrance.close()

    @property
    def _told_the_time(self) -> list[int]:
        """The programs that are told what time it is."""
        return [number for reader in self.readers if isinstance(reader, Heartbeat) for number in reader.programs]

    def _by_source(self, batch: pa.RecordBatch) -> Iterator[tuple[SourceReader, pa.RecordBatch]]:
        if len(self.readers) == 1:
            yield self.readers[0], batch
            return
        for number, reader in enumerate(self.readers):
            own = batch.column(column_of(number))
            if own.null_count < len(own):
                rows = own.drop_null() if own.null_count else own
                yield reader, pa.RecordBatch.from_struct_array(rows)


def column_of(number: int) -> str:
    """The column of a source, where there are several."""
    return f"source{number}"


# ---- readers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FromFrame:
    """The events of a source, for programs that declare them alike."""

    programs: tuple[int, ...]
    form: Form
    held: Mapping[tuple[str, str], AttributeColumn]
    labels: Sequence[str]
    counts: bool
    """Whether the columns of a table that say when hold numbers."""
    complete: bool = False
    """Whether rows of a type for which not all columns are there are bad."""
    is_foreign: bool = False
    """Whether the frame is somebody else's, so that there may be much to do before a row of it is here."""
    only: str | None = None
    """The type of all that names none, if it is of a stream that carries one."""

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        here = [entrances[number] for number in self.programs]
        vouched, rest = apart(batch, self.form)
        texts = self._has_texts(vouched, rest, here[0].spread)
        for entrance in here:
            entrance.gate.texts = entrance.gate.texts or texts
        if vouched.num_rows:
            source = FromSource([e.spread for e in here], self.form, self.held, self.labels)
            parts = list(source.events(vouched))
            for entrance in here:
                for part in parts:
                    entrance.counts.keys.saw(part.label)
                yield from entrance.add(parts)
        for entrance in here if rest.num_rows else ():
            compiled = entrance.spread.compiled.carrying(self.only)
            events = read_rest(compiled, self.form, rest, complete=self.complete, keys=entrance.counts.keys)
            yield from entrance.add_each(events)

    def _has_texts(self, vouched: pa.RecordBatch, rest: pa.RecordBatch, spread: DistributedProgram) -> bool:
        """Whether some event writes its time as text."""
        if not self.counts:
            return True
        if TEXT in vouched.schema.names and vouched.num_rows and pc.any(vouched.column(TEXT)).as_py():
            return True
        compiled = spread.compiled.carrying(self.only)
        return _use_texts(rest_messages(compiled, self.form, rest), compiled.rules.resolved.catalogue)


@dataclass(frozen=True, slots=True)
class FromFiles:
    """The events of Parquet files that Python reads, for programs that declare them alike; rows have a `path`."""

    programs: tuple[int, ...]
    wanted: Mapping[str, frozenset[str]]
    complete: bool = False
    """Whether rows of a type for which not all columns are there are bad."""
    threads: int = 1
    """So many groups of rows are read at once."""
    only: str | None = None
    """The type of all rows that name none, if they are of a stream that carries one."""

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        here = [entrances[number] for number in self.programs]
        files = FromParquet([entrance.spread for entrance in here], self.wanted, self.complete, self.only)
        for uri in batch.column("path").to_pylist():
            path = unquote(urlsplit(uri).path)
            try:
                yield from self._read(path, files, here)
            except Exception as error:
                error.add_note(f"the file was {path}")
                raise

    def _read(self, path: str, files: FromParquet, here: Sequence[Entrance]) -> Iterator[Shipment]:
        name, catalogue = Path(path).name, here[0].spread.plan.catalogue.carrying(self.only)
        try:
            units = units_of(path)
        except BadFile as error:
            for entrance in here:
                yield from entrance.add_each([BadEvent(name, str(error))])
            return
        try:
            check_columns([Offer(name, pq.read_schema(path).names)], catalogue, lenient=True)
        except WrongColumns as error:
            told = str(error).partition("\n")[0]
            for entrance in here:
                table = pq.read_table(path)
                rows = map(original_text, shown_rows(table, range(len(table))))
                yield from entrance.add_each(BadEvent(row, told) for row in rows)
            return
        texts = not counts(units, catalogue)
        for entrance in here:
            entrance.gate.texts = entrance.gate.texts or texts
        for found in side_by_side(lambda unit: list(files.read(*unit)), units, self.threads):
            for parts, bad, others in found:
                for entrance in here:
                    entrance.counts.pass_over(others)
                    yield from entrance.add(parts)
                    yield from entrance.add_each(bad)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The clock: rows that come so that there are batches, for programs with silent sources."""

    programs: tuple[int, ...]

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        del batch, entrances  # what time it is stands in the turn
        yield from ()


@dataclass(frozen=True, slots=True)
class ToldLines:
    """Lines for programs by their numbers, and what is said of time between them: for stories and tests.

    Of the columns other than `program` all but one may be null.
    """

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        events: dict[int, list[Event | BadEvent]] = {}
        for row in batch.to_pylist():
            entrance = entrances[row["program"]]
            gate, line = entrance.gate, row["line"]
            if line is None:
                gate.now = row["now"] if row["now"] is not None else gate.now
                gate.closes = row["closes"] if row["closes"] is not None else gate.closes
                gate.ends = gate.ends or bool(row["ends"])
                continue
            event = read_event(line, entrance.spread.compiled)
            if event is None:
                continue
            gate.texts = gate.texts or (
                isinstance(event, Event) and _use_texts([decode_line(line.encode())], entrance.spread.plan.catalogue)
            )
            events.setdefault(row["program"], []).append(event)
        for number, found in events.items():
            yield from entrances[number].add_each(found)


def _use_texts(messages: Iterable[Message], catalogue: Catalogue) -> bool:
    """Whether one of some messages writes its time as text."""
    return any(message.complaint is None and uses_text(message.data, catalogue) for message in messages)


def told_line(program: int, line: str | None = None, **told: object) -> str:
    """A row of `ToldLines` as JSON."""
    return json.dumps({"program": program, "line": line, **told})
