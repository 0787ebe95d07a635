"""This module counts and adds up the answers in files, whoever wrote them, and tells whether they are sorted by time.

JSON lines have `time` and `data`, by position or by name; CSV and Parquet have columns `event`, `begin` and `end`, and
all others are arguments. A folder holds files in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.files import Format
from bench.queries import Case
from bench.reference import Answers

TIMES_FIRST = 'event, "begin", "end", * EXCLUDE (event, "begin", "end")'


@dataclass(frozen=True, slots=True)
class Written:
    """Answers as they lie in files."""

    answers: Answers
    checksum: int
    """The same for the same answers in any order and any format; averages count to the sixth digit."""
    is_sorted: bool
    """By end, then begin."""


def read(path: Path, form: Format, case: Case) -> Written:
    """What a run wrote to a file or a folder."""
    connection = duckdb.connect()
    connection.execute("SET threads=1")  # the order of rows is that of the files
    rows = _rows(_files(path, form), form, case)
    columns = [name for name, *_ in connection.execute(f"DESCRIBE {rows}").fetchall()][3:]
    if case.query == "Q4":  # an average is called in several ways
        ids, mean = columns[:1], f'"{columns[1]}"::DOUBLE'
    else:  # there may be columns of other heads, without a value
        ids, mean = [name for name in columns if name in case.arguments], "0.0"
    whole = [f'"{name}"::BIGINT' for name in ids]
    found = connection.execute(
        f'WITH r AS (SELECT *, lag("end") OVER () AS e, lag("begin") OVER () AS b FROM ({rows})) '
        f"SELECT count(*), sum({' + '.join(whole)}), sum({mean}), "
        f'bit_xor(hash(event, "begin", "end", {", ".join(whole)}, round({mean}, 6))), '
        'bool_and(e IS NULL OR "end" > e OR ("end" = e AND "begin" >= b)) FROM r'
    ).fetchone()
    if found is None:
        raise ValueError(f"{path} cannot be counted")
    count, total, averages, checksum, is_sorted = found
    all_answers = Answers(count, int(total or 0), float(averages or 0))
    return Written(all_answers, int(checksum or 0), bool(is_sorted or not count))


def _files(path: Path, form: Format) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    ends = (".json", ".jsonl") if form == "jsonl" else (f".{form}",)
    return [str(file) for file in sorted(path.iterdir()) if file.suffix in ends]


def _rows(files: list[str], form: Format, case: Case) -> str:
    """A query that gives event, begin, end and the arguments, each as a column."""
    match form:
        case "csv":
            return f"SELECT {TIMES_FIRST} FROM read_csv({files}, header=true)"
        case "parquet":
            return f"SELECT {TIMES_FIRST} FROM read_parquet({files})"
        case "jsonl":
            lines = (
                f"read_json({files}, format='newline_delimited', "
                "columns={event: 'VARCHAR', time: 'BIGINT[]', data: 'JSON'})"
            )
            values = "CASE json_type(data) WHEN 'ARRAY' THEN data->'$[*]' ELSE data->'$.*' END"
            columns = ", ".join(f"d[{k}] AS {name}" for k, name in enumerate(case.arguments, 1))
            return (
                f'SELECT event, time[1] AS "begin", time[2] AS "end", {columns} '
                f"FROM (SELECT event, time, {values} AS d FROM {lines})"
            )
