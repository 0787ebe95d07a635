"""This module runs programs over a small input in one task of Spark, from its files to its answers.

To send a few rows from stage to stage takes Spark much longer than to work on them, and to plan that, longer still. So
one task does all of it, as the local engine would: it reads the files, in limited memory, and leaves sorted answers and
dead letters in files of the session, where the run goes on. There is nothing to exchange, and no query to plan. Both
files and tasks are those of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from pyspark.sql import SparkSession

from ephemera.base.errors import EphemeraError
from ephemera.connect.file_sink import File
from ephemera.connect.file_source import CannotRead, Files
from ephemera.connect.local_run import LetterSink, ProgramRun, RunFailed, run_local
from ephemera.engine.cluster.message import bad_line, letter_line
from ephemera.engine.lacking import Never
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.json_events import BadEvent
from ephemera.rules.outcome import DeadLetter
from ephemera.spark.batch.job import Job
from ephemera.spark.batch.run_output import HistoryPeak, RunSummary
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.ship_package import ship

_REFUSED: tuple[type[EphemeraError], ...] = (WrongColumns, BadFile, CannotRead)
"""What is wrong with the input, which is said as it is."""
_PARQUET, _PACKED, _TEXT = 16 << 20, 8 << 20, 64 << 20
"""Bytes of files that one core has done with before Spark would have asked others."""
_PIECE = 1 << 20
_ANSWERS, _BAD, _UNDEFINED = "answers.jsonl", "bad.jsonl", "undefined.jsonl"
Readers = Mapping[int, str | None] | None
"""Which programs read some files, and as which type if their events do not name it; None are all."""


def is_small(files: Sequence[Files]) -> bool:
    """Whether one task is done with some files sooner than several would be."""
    part = 0.0
    for one in files:
        for path in map(Path, one.files):
            if not path.is_file():
                return False
            most = _PARQUET if one.format == "parquet" else _PACKED if path.suffix.lower() in {".gz", ".zst"} else _TEXT
            part += path.stat().st_size / most
    return part <= 1


@dataclass(frozen=True, slots=True)
class _Told:
    """What came of one program, besides answers and letters."""

    read: int
    bad: int
    undefined: int
    answers: Mapping[str, int]
    never: Never
    said: tuple[str, ...]
    warnings: tuple[str, ...]
    peaks: Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class _Refused:
    """What is wrong with the input: which of the errors, and in which words."""

    kind: int
    reason: str


class SmallRun:
    """A run that one task has done, in a folder that is there as long as this is."""

    def __init__(
        self,
        spark: SparkSession,
        jobs: Sequence[Job],
        inputs: Sequence[tuple[Files, Readers]],
        folder: Path,
        *,
        lenient: bool,
    ) -> None:
        ship(spark)
        self._folder = folder
        self._asked = [job.compiled.physical.rewritten.columns for job in jobs]
        task = OneTask(tuple(jobs), tuple(inputs), str(folder), lenient)
        told = spark.sparkContext.parallelize([0], 1).mapPartitions(task).collect()
        for one in told:
            if isinstance(one, _Refused):
                raise _REFUSED[one.kind](one.reason)
        self._told = [one for one in told if isinstance(one, _Told)]
        self.summary = _summary(self._told)

    def never(self, number: int = 0) -> Never:
        """What a program lacked. Of types that no rule asks for nothing is said, as in runs that do not read them."""
        told, asked = self._told[number].never, self._asked[number]
        return told if asked is None else replace(told, came=tuple(label for label in told.came if label in asked))

    def lines_in_order(self) -> Iterator[bytes]:
        """The answers as lines of JSON in their order, some at a time."""
        with (self._folder / _ANSWERS).open("rb") as file:
            yield from iter(partial(file.read, _PIECE), b"")

    def letters(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The dead letters with the numbers of their programs: bad events first, then heads without a value."""
        for name in (_BAD, _UNDEFINED):
            with (self._folder / name).open("rb") as file:
                for line in file:
                    program, _, letter = line.partition(b" ")
                    yield int(program), json.loads(letter)

    def close(self) -> None:
        """Nothing of it is in Spark, and the folder goes with the run."""


def _summary(told: Sequence[_Told]) -> RunSummary:
    return RunSummary(
        read={k: one.read for k, one in enumerate(told)},
        answers={(k, label): count for k, one in enumerate(told) for label, count in one.answers.items()},
        dead=sum(one.undefined for one in told),
        bad=sum(one.bad for one in told),
        histories=[HistoryPeak(k, name, *one.peaks[name]) for k, one in enumerate(told) for name in sorted(one.peaks)],
        busy=1,
        notes=tuple(dict.fromkeys(note for one in told for note in one.said)),
        warnings=tuple(note for one in told for note in one.warnings),
    )


# ---- in the worker ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneTask:
    """All of a run."""

    jobs: tuple[Job, ...]
    inputs: tuple[tuple[Files, Readers], ...]
    folder: str
    lenient: bool

    def __call__(self, _given: Iterable[int]) -> Iterator[_Told | _Refused]:
        yield from told_by("engine", self._run())

    def _run(self) -> Iterator[_Told | _Refused]:
        runs = [ProgramRun(j.compiled.beside(j.world.calendars), j.world) for j in self.jobs]
        files, readers = [files for files, _ in self.inputs], [readers for _, readers in self.inputs]
        sink, letters = File(f"{self.folder}/{_ANSWERS}"), partial(_Letters, Path(self.folder))
        try:
            done = run_local(runs, files, sink, letters, readers=readers, lenient=self.lenient)
        except RunFailed as error:
            raise (error.__cause__ or error) from None  # whose notes say where
        except _REFUSED as error:
            yield _Refused(next(k for k, kind in enumerate(_REFUSED) if isinstance(error, kind)), str(error))
            return
        for run in done:
            counts = run.read, run.bad, run.undefined, dict(run.answers)
            yield _Told(*counts, run.never, run.said, run.warnings, run.peaks)


class _Letters(LetterSink):
    """Dead letters in two files, each line behind the number of its program."""

    def __init__(self, folder: Path) -> None:
        self._bad, self._undefined = ((folder / name).open("wb") for name in (_BAD, _UNDEFINED))

    def bury(self, program: int, bad: Sequence[BadEvent], undefined: Sequence[DeadLetter]) -> None:
        """Some letters of a program."""
        _write(self._bad, program, map(bad_line, bad))
        _write(self._undefined, program, map(letter_line, undefined))

    def commit(self) -> None:
        """All of them count."""
        self._bad.close()
        self._undefined.close()

    abort = commit


def _write(file: IO[bytes], program: int, letters: Iterator[bytes]) -> None:
    file.writelines(b"%d %s\n" % (program, letter) for letter in letters)
