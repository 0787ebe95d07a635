"""This module decodes what sources give as the events of a program: lines, cells, rows of tables, objects.

What a source gives is a batch of one of a few kinds, whatever it is a source of. One decoder reads all that comes from
one source for one program; keys and columns that are missing are looked at over all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import pyarrow as pa

from ephemera.formats.check_columns import Offer, check_columns
from ephemera.formats.columns_beside import put_in
from ephemera.formats.decode_arrow import Reader, bad_events
from ephemera.formats.decode_cells import CellDecoder
from ephemera.formats.decode_json import JsonDecoder
from ephemera.formats.decoded import Decoded
from ephemera.formats.json_events import BadEvent, enveloped, uses_text
from ephemera.formats.json_lines import line_numbers
from ephemera.formats.reading import Given, Keys, given_message, read_event
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled
from ephemera.terms.events import Event


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of JSON; if they are of a file, of which, and the number of the first line."""

    data: bytes
    name: str | None = None
    first: int = 1
    beside: tuple[Mapping[str, Any], ...] = ()
    """What stands beside each line, none of which is blank then: columns of the message that it has come in."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Whole lines of a CSV file, behind its header: what that names, and the number of the first line."""

    data: bytes
    name: str
    columns: tuple[str, ...]
    first: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table."""

    table: pa.Table
    name: str = "the table"
    """What it is told apart by; of a path, people see the end."""
    originals: Callable[[], pa.Table] | None = None
    """Gives the rows with all their columns, if these are not all here."""
    first: int | None = None
    """The number of the first row, if it is of a file."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Events one by one: objects, lines of JSON, or messages; where each came from, if that is known."""

    events: Sequence[Given]
    places: Sequence[str] | None = None


Batch: TypeAlias = Lines | Cells | Rows | Objects
"""What a source gives at a time."""


@dataclass(slots=True)
class Noticed:
    """What is to be told of an input as a whole, over all its sources."""

    keys: Keys
    offers: list[Offer] = field(default_factory=list)
    """The files and tables that have columns."""
    warnings: list[str] = field(default_factory=list)

    def check(self, compiled: Compiled, *, lenient: bool) -> None:
        """Raises what is wrong with the columns, now that everything has been read."""
        if self.offers:
            check_columns(self.offers, compiled.rules.resolved.catalogue, lenient=lenient)


class Decoder:
    """Reads what one source gives as the events of one program."""

    def __init__(self, compiled: Compiled, noticed: Noticed, only: str | None = None) -> None:
        """A source of a stream that carries `only` one type need not name it."""
        self._only = only
        self._compiled = compiled.carrying(only)
        self._noticed = noticed
        self._lines: JsonDecoder | None = None
        self._sheets: dict[str, CellDecoder] = {}
        self._held: dict[str, set[str]] = {}
        """For each table the types of which rows have been seen."""
        self.has_instants = False
        """Whether an attribute came as a timestamp."""

    def decode(self, batch: Batch) -> Decoded:
        """The events of a batch."""
        match batch:
            case Lines(data):
                self._lines = self._lines or JsonDecoder(self._compiled, self._noticed.keys)
                if batch.beside:
                    data = put_in(data.split(b"\n"), batch.beside, self._compiled.rules.resolved.catalogue)
                found = self._lines.decode(data)
                if found.bad and batch.name is not None:
                    found.place_bad(partial(_place_of_line, batch.name, line_numbers(data, batch.first)))
                return found
            case Cells(_, name, ()):
                self._noticed.warnings.append(f"{name} is empty")
                return Decoded()
            case Cells(data, name, columns, first):
                return self._sheet(name, columns).decode(data, first)
            case Rows():
                return self._rows(batch)
            case Objects(events, places):
                return self._objects(events, places)
            case _:
                assert_never(batch)

    def _sheet(self, name: str, columns: tuple[str, ...]) -> CellDecoder:
        if name not in self._sheets:
            labels: set[str] = set()
            self._offer(Offer(Path(name).name, columns, labels.__contains__, self._only))
            self._sheets[name] = CellDecoder(self._compiled, name, columns, labels)
        return self._sheets[name]

    def _offer(self, offer: Offer) -> None:
        """Notes what a file or table offers, which must say at least what and when."""
        check_columns([offer], self._compiled.rules.resolved.catalogue, lenient=True)
        self._noticed.offers.append(offer)

    def _rows(self, batch: Rows) -> Decoded:
        if batch.name not in self._held:
            held = self._held[batch.name] = set[str]()
            self._offer(Offer(Path(batch.name).name, batch.table.column_names, held.__contains__, self._only))
        read = Reader(batch.table, self._compiled).read()
        self.has_instants = self.has_instants or read.numbers > read.plain_numbers
        self._held[batch.name].update(part.label for part in read.parts)
        self._held[batch.name].update(one.label for one in read.bad if one.label is not None)
        bad = sorted(read.bad, key=lambda one: one.row)
        originals = batch.table if batch.originals is None or not bad else batch.originals()
        found = Decoded(
            len(batch.table),
            read.parts,
            read.rows,
            [(one.row, event) for one, event in zip(bad, bad_events(bad, originals), strict=True)],
            [read.numbers] * len(read.parts),
        )
        if batch.first is not None:
            found.place_bad(partial(_place_of_row, batch.name, batch.first))
        return found

    def _objects(self, events: Sequence[Given], places: Sequence[str] | None) -> Decoded:
        if places is None and len(events) > FEW and all(map(_is_line, events)):
            return self.decode(Lines(b"\n".join(events)))  # type: ignore[arg-type]
        catalogue = self._compiled.rules.resolved.catalogue
        found = Decoded(len(events))
        good: list[tuple[int, Event, bool]] = []
        for row, given in enumerate(events):
            message = given_message(given)
            event = read_event(message, self._compiled)
            if isinstance(event, BadEvent):
                reason = event.reason if places is None else f"{places[row]}: {event.reason}"
                found.bad.append((row, BadEvent(event.original, reason, event.label)))
                continue
            if event is None:
                continue
            if places is None:
                self._noticed.keys.note(enveloped(message.data, catalogue))
            good.append((row, event, not uses_text(message.data, catalogue)))
        found.add_each(good, catalogue)
        return found


def _place_of_line(name: str, numbers: Sequence[int], row: int) -> str:
    return f"{Path(name).name if name != '-' else 'standard input'}, line {numbers[row]}"


def _place_of_row(name: str, first: int, row: int) -> str:
    return f"{Path(name).name}, row {first + row}"


def _is_line(given: Given) -> bool:
    return type(given) is bytes and b"\n" not in given and not given.isspace() and given != b""


def decoders_of(
    programs: Sequence[Compiled],
    noticed: Sequence[Noticed],
    readers: Mapping[int, str | None] | None,
    only: str | None = None,
) -> list[Decoder | None]:
    """How each program reads one source: `readers` says which do, by their numbers, and as which type; else all do."""
    found = zip(programs, noticed, strict=True)
    if readers is None:
        return [Decoder(compiled, own, only) for compiled, own in found]
    return [Decoder(c, own, readers[k]) if k in readers else None for k, (c, own) in enumerate(found)]
