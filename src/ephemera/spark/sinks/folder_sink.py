"""This module writes what a batch of a stream gives to files, inside the tasks of its last stage, exactly once.

Each partition of batch n writes at most one file of answers and one of dead letters, whose names say n and the
partition. A file is written under a hidden name, synced and renamed, and its folder is synced: all before Spark can
commit the batch. A replay of the batch gives the same answers and replaces its own files. Where it is cut into other
partitions than before, `settle` removes those files of the first attempt that it did not replace.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ephemera.engine.cluster.message import BAD, DEAD, LATE, OUT, Shipment
from ephemera.engine.state.durable_files import Mark
from ephemera.spark.sinks.encode_answers import Form
from ephemera.spark.sinks.encode_files import ENDINGS, Format, fitting, writer
from ephemera.spark.sinks.owned_folder import Folder, WrongFolder, unmarked

LETTERS = {BAD: "bad", DEAD: "undefined", LATE: "late"}
"""The groups that go to the dead letters, and what each is called."""
_FILE = re.compile(r"(part|dead)-(\d+)-(\d+)\.(jsonl|parquet|csv)")


@dataclass(frozen=True)
class FolderSink:
    """Writes answers and dead letters to folders; whatever has none passes on, or is only counted.

    Without a folder answers pass on as they are, for a sink that takes them from there. Dead letters without a folder
    are counted.
    """

    forms: Mapping[int, Form]
    query: str
    """Names the query for as long as its checkpoint lives."""
    answers: Folder | None = None
    format: Format = "json"
    letters: Folder | None = None
    as_numbers: bool = True
    """Whether lines write times as numbers; columns hold instants."""
    has_columns: bool = False
    """Whether answers that pass on go to columns: those that fit none become dead letters here."""
    mark: Mark = unmarked
    """Is told of each step before it is taken."""

    # ---- in the driver -------------------------------------------------------------------------------------

    def open(self, batch: int) -> None:
        """Before the first batch of a start, which is batch number `batch`: the folders are claimed and tidied."""
        folders = [folder for folder in (self.answers, self.letters) if folder is not None]
        if len({folder.path for folder in folders}) < len(folders):
            raise WrongFolder(f"answers and dead letters cannot share `{folders[0].path}`; name two folders")
        for folder in folders:
            folder.claim(self.query)
        for folder in folders:
            folder.tidy(self.query, lambda name: (_number(name) or 0) > batch)

    def settle(self, batch: int, told: Iterable[Shipment]) -> None:
        """After the first batch of a start: what an earlier attempt at it wrote, and this one did not, is removed."""
        kept = {self._name(s.group, batch, s.place) for s in told if s.group in {OUT, *LETTERS}}
        for folder in (self.answers, self.letters):
            if folder is not None:
                folder.tidy(self.query, lambda name: _number(name) == batch and name not in kept)

    # ---- in workers ----------------------------------------------------------------------------------------

    def write(self, batch: int, place: int, shipments: Iterable[Shipment]) -> Iterator[Shipment]:
        """Stores what one partition gives; passes on all else, and at the end how many of each kind were stored.

        A count is a shipment of the same group with no events in it; that of dead letters carries the first of them.
        """
        told: Counter[tuple[int, str]] = Counter()
        letters = _Letters()
        answers = writer(self.format, as_numbers=self.as_numbers)
        for shipment in shipments:
            form = self.forms[shipment.program]
            if shipment.group in LETTERS:
                letters.add(shipment.group, shipment.program, form, [bytes(shipment.load)])
            elif shipment.group == OUT and self.answers is not None:
                unfit = answers.add(form, shipment)
                letters.add(DEAD, shipment.program, form, unfit)
                told[shipment.program, shipment.label] += shipment.count - len(unfit)
            elif shipment.group == OUT and self.has_columns:
                fit, unfit = fitting(form, shipment)
                letters.add(DEAD, shipment.program, form, unfit)
                yield from [] if fit is None else [fit]
            else:
                yield shipment
        if any(told.values()):
            self._put("answers", self.answers, self._name(OUT, batch, place), answers.close())
        if letters.lines:
            self._put("letters", self.letters, self._name(BAD, batch, place), letters.text())
        for (program, label), count in told.items():
            if count:
                yield Shipment(program, OUT, place, 0, count, label, None, 0, b"")
        for (group, program), (count, first) in letters.told.items():
            yield Shipment(program, group, place, 0, count, "", None, 0, first)

    def _put(self, what: str, folder: Folder | None, name: str, data: bytes | pa.Buffer) -> None:
        if folder is not None:
            folder.put(name, data, lambda step: self.mark(f"{what} {step}"))

    def _name(self, group: int, batch: int, place: int) -> str:
        if group == OUT:
            return f"part-{batch:09d}-{place:05d}.{ENDINGS[self.format]}"
        return f"dead-{batch:09d}-{place:05d}.jsonl"


def _number(name: str) -> int | None:
    """The batch that wrote a file."""
    found = _FILE.fullmatch(name)
    return int(found[2]) if found is not None else None


class _Letters:
    """The dead letters of a partition, heads without a value each once, and how many there are of each kind."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.told: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._seen: set[tuple[int, bytes]] = set()

    def add(self, group: int, program: int, form: Form, letters: Iterable[bytes]) -> None:
        for letter in letters:
            if group == DEAD and (program, letter) in self._seen:
                continue
            if group == DEAD:
                self._seen.add((program, letter))
            line = _named(letter, form.names) if form.names else letter
            self.lines.append(line)
            count, first = self.told.get((group, program), (0, line))
            self.told[group, program] = (count + 1, first)

    def text(self) -> bytes:
        """All of them, one in a line."""
        return b"".join(line + b"\n" for line in self.lines)


def _named(letter: bytes, names: Mapping[str, str]) -> bytes:
    """A letter that says where it comes from."""
    return json.dumps({**json.loads(letter), **names}, ensure_ascii=False).encode("utf-8", "backslashreplace")


# ---- what the driver is told ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Counts:
    """How many answers and dead letters a batch gave."""

    answers: dict[tuple[int, str], int] = field(default_factory=dict)
    bad: int = 0
    late: int = 0
    dead: int = 0
    first: str | None = None
    """One of the dead letters."""


def counts_of(told: Iterable[Shipment]) -> Counts:
    """What is said by shipments that a last stage gave; answers that were passed on count, too."""
    found = Counts()
    for shipment in told:
        count = shipment.count or 1  # a letter that nobody counted is one
        match shipment.group:
            case group if group == OUT:
                key = (shipment.program, shipment.label)
                found.answers[key] = found.answers.get(key, 0) + shipment.count
            case group if group == BAD:
                found.bad += count
            case group if group == DEAD:
                found.dead += count
            case group if group == LATE:
                found.late += count
        if shipment.group in LETTERS and found.first is None and len(shipment.load):
            found.first = bytes(shipment.load).decode("utf-8", "replace")
    return found
