"""This module is a shop that is watched live: its program, its events in files, what must come of them, and a driver.

The driver is run apart from the tests, takes two files for a batch, and ends when all files have been read.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow.dataset as ds

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.engine.cluster.admission import TOO_LATE
from ephemera.formats.reading import read_event
from ephemera.spark.batch.job import Job
from ephemera.spark.live.query import ONCE, Streaming
from ephemera.spark.live.report import BatchReport
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.session import session

PROGRAM = """
TIME UNIT 1 sec;
EVENT order(id: int, customer: int);
EVENT paid(id: int, sum: int, receipt: int);
EVENT complaint(customer: int);
STREAM shop CARRIES order, paid WATERMARK 4 sec;
STREAM desk CARRIES complaint WATERMARK 6 sec;
settled(i, c, s, r) <- o: order(i, c), p: paid(i, s, r), o before p, {o, p} within 30;
late(i, c) <- o: order(i, c), w: extend(o, 20), while w: not paid(i, _, _);
angry(i, c) <- l: late(i, c), k: complaint(c), {l, k} within 40;
busy(c, count(i)) <- k: complaint(c), w: extend-begin(k, 15), while w: collect order(i, c);
somebody(c) <- o: order(i, c), p: paid(i, _, _), o before p, {o, p} within 10;
share(i, 60 / s) <- e: settled(i, c, s, r);
"""
"""A join, an absence with a timer, a second level with another key, a collection, answers that several places may give,
and heads that may have no value."""
WATERMARKS = {"order": 4, "paid": 4, "complaint": 6}
BATCHES = 12
FILES = 2
"""So many files are a batch."""
EVENTS = 10
"""So many are in a file."""
STEP = 8
"""Seconds from one batch to the next."""
PAST = 8
"""So many files are the past, where there is one; the last two of them are read live, too."""
END = 1_000
COUNTED = ("events", "late", "bad", "dead")
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


# ---- what is given, and what must come of it ---------------------------------------------------------------


def history(seed: int) -> list[list[str]]:
    """The lines of each file. Some events are late, some lines are none; the last batch is long after all others."""
    dice = Random(seed)
    count = FILES * (BATCHES - 1)
    files = [[_line(dice, file // FILES, EVENTS * file + n) for n in range(EVENTS)] for file in range(count)]
    last = [_told("order", END, -1, -1), _told("complaint", END, -1)]
    return [*files, *([line] for line in last)]


def _line(dice: Random, batch: int, receipt: int) -> str:
    if dice.random() < 0.05:
        return dice.choice(["rubbish", _told("order", batch, "x", 1), '{"event": "paid", "time": 3}'])
    time = batch * STEP + dice.randrange(-3, STEP) - (50 if dice.random() < 0.05 else 0)
    customer = dice.randrange(6)
    number = dice.randrange(20) * 6 + customer
    match dice.randrange(5):
        case 0 | 1:
            return _told("order", time, number, customer)
        case 2 | 3:
            return _told("paid", time, number, dice.randrange(4), receipt)
        case _:
            return _told("complaint", time, customer)


def _told(event: str, time: int, *data: object) -> str:
    return json.dumps({"event": event, "time": time, "data": data})


def write(files: Sequence[Sequence[str]], folder: Path) -> None:
    """Puts the files where the driver reads them, one second after the other."""
    folder.mkdir()
    for number, lines in enumerate(files):
        path = folder / f"{number:04d}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def write_with_past(files: Sequence[Sequence[str]], folder: Path) -> None:
    """Puts some of the files in a folder of the past."""
    write(files[:PAST], folder / "past")
    write(files[PAST - FILES :], folder / "in")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What comes of the events: how often there is each line of answers and of dead letters."""

    answers: Counter[str]
    letters: Counter[str]
    read: int
    late: int
    bad: int
    undefined: int


def expected(files: Sequence[Sequence[str]], *, past: bool = False) -> Outcome:
    """What the oracle makes of all events that are not late; those behind the last bound are not asked for."""
    program = ephemera.compile(PROGRAM)
    batches = [files[begin : begin + FILES] for begin in range(0, len(files), FILES)]
    if past:
        batches = [files[:PAST], *batches[PAST // FILES - 1 :]]
        files = [file for batch in batches for file in batch]
    good, late = _apart(batches, past=past)
    run = program.run_all(good, engine="oracle")
    bound = END - max(WATERMARKS.values())
    answers = Counter(_plain(a) for a in run.answers if _end(a) < bound)
    letters = [_plain({"reason": TOO_LATE, "event": json.loads(line)}) for line in late]
    letters += [_plain({"reason": bad.reason, "event": bad.original}) for bad in run.bad]
    undefined = {_plain({"reason": u.reason, "rule": u.rule, "variables": dict(u.variables)}) for u in run.undefined}
    letters += undefined
    read = sum(map(len, files))
    return Outcome(answers, Counter(letters), read, len(late), len(run.bad), len(undefined))


def _apart(batches: Sequence[Sequence[Sequence[str]]], *, past: bool) -> tuple[list[str], list[str]]:
    """The lines that are read, and the events that come behind the bound that their source had before their batch.

    What comes behind the bound of a past, which is the first batch, is neither.
    """
    good: list[str] = []
    late: list[str] = []
    bounds: dict[int, int] = {}
    reader = ephemera.compile(PROGRAM)._compiled
    known: dict[int, int] = {}
    for number, files in enumerate(batches):
        before = dict(bounds)
        known = before if past and number == 1 else known
        for line in [line for file in files for line in file]:
            told = read_event(line, reader)
            if not hasattr(told, "term"):
                good.append(line)
                continue
            event = json.loads(line)
            source = WATERMARKS[event["event"]]
            if event["time"] >= before.get(source, event["time"]):
                good.append(line)
            elif event["time"] >= known.get(source, -END):
                late.append(line)
            bounds[source] = max(bounds.get(source, event["time"] - source), event["time"] - source)
    return good, late


def _plain(told: Any) -> str:
    return json.dumps(told, sort_keys=True)


def _end(answer: dict[str, Any]) -> float:
    time = answer["time"]
    return float(time[1] if isinstance(time, list) else time)


# ---- what came of it ---------------------------------------------------------------------------------------


def found(folder: Path) -> Outcome:
    """What a run has written, and what the last report of each batch says."""
    reports: dict[int, dict[str, Any]] = {}
    for line in _lines(folder, "reports.jsonl"):
        reports[json.loads(line)["batch"]] = json.loads(line)
    total = {key: sum(report[key] for report in reports.values()) for key in COUNTED}
    return Outcome(
        answers=Counter(_plain(json.loads(line)) for line in _lines(folder / "out", "part-*")),
        letters=Counter(_plain(_letter(json.loads(line))) for line in _lines(folder / "dead", "dead-*")),
        read=total["events"],
        late=total["late"],
        bad=total["bad"],
        undefined=total["dead"],
    )


Row: TypeAlias = tuple[str, float, float, tuple[float, ...]]
"""An answer in a table: its label, its times, and what it says, by size."""


def rows_due(outcome: Outcome) -> Counter[Row]:
    """The answers as a table has them."""
    found: Counter[Row] = Counter()
    for line, count in outcome.answers.items():
        told = json.loads(line)
        begin = told["time"][0] if isinstance(told["time"], list) else told["time"]
        found[told["event"], float(begin), _end(told), tuple(sorted(map(float, told["data"])))] += count
    return found


def rows_found(folder: Path) -> Counter[Row]:
    """The answers in the table of a run."""
    found: Counter[Row] = Counter()
    for row in ds.dataset(folder / "table", format="parquet").to_table().to_pylist():
        label, begin, end = row.pop("event"), row.pop("begin"), row.pop("end")
        values = tuple(sorted(float(value) for value in row.values() if value is not None))
        found[label, begin.timestamp(), end.timestamp(), values] += 1
    return found


def _lines(folder: Path, pattern: str) -> Iterator[str]:
    for path in sorted(folder.glob(pattern)):
        yield from path.read_text().splitlines()


def _letter(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "event": json.loads(told["event"])} if told["reason"] == TOO_LATE else told


# ---- the driver --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reports:
    path: Path

    def __call__(self, report: BatchReport) -> None:
        told = {key: getattr(report, key) for key in ("batch", *COUNTED)}
        with self.path.open("a") as file:
            file.write(json.dumps(told) + "\n")


def main(folder: str, master: str, small: str, *table: str) -> None:
    """Reads all there is, a past first if there is one, into a folder or a table; says what went wrong."""
    spark = session(master, more=SMALL)
    lines = spark.readStream.option("lineSep", "\n").option("maxFilesPerTrigger", FILES).text(f"{folder}/in")
    streaming = Streaming(
        spark,
        [Job(ephemera.compile(PROGRAM)._compiled)],
        [Input(lines)],
        checkpoint=f"{folder}/checkpoint",
        output=None if table else f"{folder}/out",
        table=table[0] if table else None,
        location=f"{folder}/table" if table else None,
        dead_letters=f"{folder}/dead",
        trigger=ONCE,
        shards=2,
        small=int(small),
        past=[Input(f"{folder}/past", "json")] if Path(folder, "past").exists() else [],
    )
    try:
        streaming.start(_Reports(Path(folder, "reports.jsonl"))).wait()
    except EphemeraError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
