"""This module writes what a batch of a stream gives to files, inside the tasks of its last stage, exactly once.

A folder belongs to one query, which a file in it names. At each start the query must be the same, else the folder is
refused, and what a crash has left of unfinished files is removed.

Each partition of batch n writes at most one file of answers and one of dead letters, whose names say n and the
partition. A file is written under a hidden name, synced and renamed, and its folder is synced: all before Spark can
commit the batch. A replay of the batch gives the same answers and replaces its own files. Where it is cut into other
partitions than before, `settle` removes those files of the first attempt that it did not replace.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ephemera.base.errors import EphemeraError
from ephemera.engine.cluster.message import (
    Answers,
    BadInput,
    DeadLetters,
    LateInput,
    MessagesToSend,
    Shipment,
    StoredAnswers,
    UndefinedHead,
)
from ephemera.engine.state.durable_files import TEMPORARY, Files, Mark, files_of, seal, unseal
from ephemera.spark.sinks.encode_answers import ENDINGS, AnswerForm, FileFormat, fitting, writer

_FILE = re.compile(r"(part|dead)-(\d+)-(\d+)\.(jsonl|parquet|csv)")

OWNER = "_ephemera.json"
"""The file that says which query a folder belongs to; Spark does not read what begins so."""

KIND = "owner of a folder"
FORMAT = 2
_WAY_OUT = "bring the file back from a copy, or name a new folder"


class WrongFolder(EphemeraError):
    """A folder that a stream cannot write to."""


def unmarked(step: str) -> None:
    """Nobody looks at the steps."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a query."""

    files: Files
    path: str

    def claim(self, query: str) -> None:
        """Makes the folder one of a query; refuses what belongs to another, or holds other things."""
        self.files.make(self.path)
        names = [n for n in self.files.names(self.path) if not n.startswith(".") and not n.endswith(TEMPORARY)]
        if OWNER in names:
            path = f"{self.path}/{OWNER}"
            told = unseal(bytes(self.files.read(path)), KIND, FORMAT, path, _WAY_OUT)
            owner = told["query"]
            if owner != query:
                raise WrongFolder(
                    f"`{self.path}` holds what query {owner} wrote, and this is query {query}; "
                    "go on with the checkpoint of that query, or name another folder"
                )
        elif names:
            raise WrongFolder(f"`{self.path}` holds other things, such as `{names[0]}`; name a new folder")
        else:
            self._sign(query)

    def tidy(self, query: str, is_stale: Callable[[str], bool]) -> None:
        """Removes what is stale, and files that never became whole; they stay away when this returns."""
        stale = [name for name in self.files.names(self.path) if name.endswith(TEMPORARY) or is_stale(name)]
        for name in stale:
            self.files.remove(f"{self.path}/{name}")
        if stale:
            self._sign(query)  # which makes all names in the folder durable

    def _sign(self, query: str) -> None:
        self.put(OWNER, seal(KIND, FORMAT, {"query": query}), unmarked)

    def put(self, name: str, data: bytes | pa.Buffer, mark: Mark) -> None:
        """A file that is there as a whole or not at all, and stays when this returns."""
        self.files.put(f"{self.path}/{name}", [data], mark)


def folder_at(path: str) -> Folder:
    """The folder at a path."""
    return Folder(*files_of(path))


@dataclass(frozen=True)
class FolderSink:
    """Writes answers and dead letters to folders; whatever has none passes on, or is only counted.

    Without a folder answers pass on as they are, for a sink that takes them from there. Dead letters without a folder
    are counted.
    """

    forms: Mapping[int, AnswerForm]
    query: str
    """Names the query for as long as its checkpoint lives."""
    answers: Folder | None = None
    format: FileFormat = "json"
    letters: Folder | None = None
    texts: frozenset[int] = frozenset()
    """The programs whose lines write times as text; columns hold instants."""
    has_columns: bool = False
    """Whether answers that pass on go to columns: those that fit none become dead letters here."""
    mark: Mark = unmarked
    """Is told of each step before it is taken."""
    sends: bool = False
    """Whether messages go on, too, to whoever delivers them."""

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
        kept = {name for shipment in told if (name := self._file_of(shipment, batch)) is not None}
        for folder in (self.answers, self.letters):
            if folder is not None:
                folder.tidy(self.query, lambda name: _number(name) == batch and name not in kept)

    # ---- in workers ----------------------------------------------------------------------------------------

    def write(self, batch: int, place: int, shipments: Iterable[Shipment]) -> Iterator[Shipment]:
        """Stores what one partition gives; passes on all else, and at the end how many of each kind were stored.

        Of dead letters the first goes on, too.
        """
        stored: Counter[tuple[int, str]] = Counter()
        letters = _Letters()
        answers = writer(self.format, self.texts)
        for shipment in shipments:
            form = self.forms[shipment.program]
            if self.sends and isinstance(shipment, Answers) and shipment.rule:
                yield MessagesToSend(shipment.program, place, shipment.rule, shipment.events)
            match shipment:
                case BadInput() | LateInput() | UndefinedHead():
                    letters.add(type(shipment), shipment.program, form, [shipment.first])
                case Answers() if self.answers is not None:
                    unfit = answers.add(form, shipment)
                    letters.add(UndefinedHead, shipment.program, form, unfit)
                    stored[shipment.program, shipment.events.label] += shipment.events.count - len(unfit)
                case Answers() if self.has_columns:
                    fit, unfit = fitting(form, shipment)
                    letters.add(UndefinedHead, shipment.program, form, unfit)
                    yield from [] if fit is None else [fit]
                case _:
                    yield shipment
        if any(stored.values()):
            self._put("answers", self.answers, self._answers_file(batch, place), answers.close())
        if letters.lines:
            self._put("letters", self.letters, _letters_file(batch, place), letters.text())
        for (program, label), count in stored.items():
            if count:
                yield StoredAnswers(program, place, label, count)
        for (kind, program), (count, first) in letters.told.items():
            yield kind(program, place, count, first)

    def _put(self, what: str, folder: Folder | None, name: str, data: bytes | pa.Buffer) -> None:
        if folder is not None:
            folder.put(name, data, lambda step: self.mark(f"{what} {step}"))

    def _file_of(self, shipment: Shipment, batch: int) -> str | None:
        """The file in which that is stored which a shipment counts."""
        match shipment:
            case StoredAnswers():
                return self._answers_file(batch, shipment.place)
            case BadInput() | LateInput() | UndefinedHead():
                return _letters_file(batch, shipment.place)
            case _:
                return None

    def _answers_file(self, batch: int, place: int) -> str:
        return f"part-{batch:09d}-{place:05d}.{ENDINGS[self.format]}"


def _letters_file(batch: int, place: int) -> str:
    return f"dead-{batch:09d}-{place:05d}.jsonl"


def _number(name: str) -> int | None:
    """The batch that wrote a file."""
    found = _FILE.fullmatch(name)
    return int(found[2]) if found is not None else None


class _Letters:
    """The dead letters of a partition, heads without a value each once, and how many there are of each kind."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.told: dict[tuple[type[DeadLetters], int], tuple[int, bytes]] = {}
        self._seen: set[tuple[int, bytes]] = set()

    def add(self, kind: type[DeadLetters], program: int, form: AnswerForm, letters: Iterable[bytes]) -> None:
        for letter in letters:
            if kind is UndefinedHead and (program, letter) in self._seen:
                continue
            if kind is UndefinedHead:
                self._seen.add((program, letter))
            line = _named(letter, form.names) if form.names else letter
            self.lines.append(line)
            count, first = self.told.get((kind, program), (0, line))
            self.told[kind, program] = (count + 1, first)

    def text(self) -> bytes:
        """All of them, one in a line."""
        return b"".join(line + b"\n" for line in self.lines)


def _named(letter: bytes, names: Mapping[str, str]) -> bytes:
    """A letter that says where it comes from."""
    return json.dumps({**json.loads(letter), **names}, ensure_ascii=False).encode("utf-8", "backslashreplace")


# ---- what the driver is told ---------------------------------------------------------------------------------


@dataclass(slots=True)
class BatchCounts:
    """How many answers and dead letters a batch gave."""

    answers: dict[tuple[int, str], int] = field(default_factory=dict)
    bad: int = 0
    late: int = 0
    dead: int = 0
    first: str | None = None
    """One of the dead letters."""


def counts_of(told: Iterable[Shipment]) -> BatchCounts:
    """What is said by shipments that a last stage gave; answers that were passed on count, too."""
    counts = BatchCounts()
    answers: Counter[tuple[int, str]] = Counter()
    for shipment in told:
        match shipment:
            case StoredAnswers():
                answers[shipment.program, shipment.label] += shipment.count
            case Answers():
                answers[shipment.program, shipment.events.label] += shipment.events.count
            case BadInput():
                counts.bad += shipment.count
            case UndefinedHead():
                counts.dead += shipment.count
            case LateInput():
                counts.late += shipment.count
        if isinstance(shipment, BadInput | LateInput | UndefinedHead) and counts.first is None:
            counts.first = shipment.first.decode("utf-8", "replace")
    counts.answers = dict(answers)
    return counts
