"""This module measures a program from an Arrow table to an Arrow table, beside the engine alone and beside DuckDB.

All run in one process, one after the other in each round, and the fastest round of each counts. The engine alone gets
columns as it likes them, and its answers are only counted; DuckDB joins and sorts on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import ephemera
from bench import feeding
from bench.data import load
from bench.duckdb_files import ONE_THREAD, rows, views
from bench.files import tables
from bench.queries import Case
from bench.reference import Answers

BATCH = 100_000
"""Events that the engine alone gets at a time."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Seconds of the processor."""

    run: float
    """`Program.run`."""
    engine: float
    duckdb: float


def frames(case: Case, folder: Path, repeat: int, right: Answers) -> Frames:
    """A query over a saved stream, each way of asking right."""
    events = pa.concat_tables(tables(load(folder)))
    program = ephemera.compile(case.program, "bench.eq")
    connection = duckdb.connect()
    ours: list[float] = []
    alone: list[float] = []
    theirs: list[float] = []
    connection.register("events", events)
    for statement in (ONE_THREAD, *views("(SELECT *, time AS begin FROM events)")):
        connection.execute(statement)
    sql = _sorted(case)
    for _ in range(repeat):
        ours.append(_timed(case, right, "the program", lambda: program.run(events, emit=[case.query])))
        measured = feeding.run(case, folder, BATCH)
        _compare(case, right, "the engine", measured.answers)
        alone.append(measured.seconds)
        theirs.append(_timed(case, right, "DuckDB", lambda: connection.sql(sql).to_arrow_table()))
    return Frames(min(ours), min(alone), min(theirs))


def _sorted(case: Case) -> str:
    names = ", ".join(case.arguments)
    return (
        f"""SELECT '{case.query}' AS event, since AS "begin", until AS "end", {names} FROM ({rows(case)}) """
        f"ORDER BY until, since, {names}"
    )


def _timed(case: Case, right: Answers, who: str, work: Callable[[], pa.Table]) -> float:
    start = time.process_time()
    table = work()
    taken = time.process_time() - start
    _compare(case, right, who, _added_up(table))
    return taken


def _added_up(table: pa.Table) -> Answers:
    ids, averages = 0, 0.0
    for column in table.columns[3:]:
        total = pc.sum(column).as_py() or 0
        if pa.types.is_floating(column.type):
            averages += total
        else:
            ids += int(total)
    return Answers(len(table), ids, averages)


def _compare(case: Case, right: Answers, who: str, found: Answers) -> None:
    if not right.agree(found):
        raise SystemExit(f"{who} answers {case.name} with {found}; right is {right}")
