"""This module writes SQL with which DuckDB does what a command of ours does: read a file, join, sort, write a file.

A file is read once, into a table in memory, and only the events that the query asks for: that was measured as fast as
a table for each type for Parquet, and faster for text; views on the file itself were the slowest.
"""

from __future__ import annotations

from pathlib import Path

from bench.duckdb_queries import variants
from bench.files import File, Format
from bench.queries import Case
from bench.selection import answers

BEST = {
    "Q1": "buckets of twice the window",
    "Q1w": "buckets of twice the window",
    "Q2": "buckets, pairs spread",
    "Q3": "anti join of buckets",
    "Q4": "buckets, then groups",
}
"""Of the variants: the fastest at 5 M events."""
ONE_THREAD = "SET threads=1"


def statements(file: File, path: Path, output: Path, form: Format) -> list[str]:
    """From a file to a file."""
    case = file.case
    types = "ABDE" if case.query == "Q2" else "AB"
    wanted = ", ".join(f"'{letter}'" for letter in types)
    return [
        ONE_THREAD,
        f"CREATE TEMP TABLE events AS {_source(file, path)} WHERE event IN ({wanted})",
        *views("events", types),
        f"COPY ({_shown(case, form)} FROM ({rows(case)}) ORDER BY until, since, {', '.join(case.arguments)}) "
        f"TO '{output}' (FORMAT {'json' if form == 'jsonl' else form})",
    ]


def views(table: str, types: str = "ABDE") -> list[str]:
    """One for each type, as the queries ask for them."""
    return [f"CREATE TEMP VIEW {letter} AS SELECT * FROM {table} WHERE event = '{letter}'" for letter in types]


def rows(case: Case) -> str:
    """The answers, as columns `since`, `until` and the arguments."""
    return variants(case, answers("begin"))[BEST[case.query]]


def _source(file: File, path: Path) -> str:
    columns = "event, time AS begin, id, x, v"
    match file.format:
        case "jsonl":
            kind = "STRUCT(id BIGINT, x BIGINT, v BIGINT)" if file.has_objects else "BIGINT[]"
            fields = ("data.id", "data.x", "data.v") if file.has_objects else ("data[1]", "data[2]", "data[3]")
            data = ", ".join(f"{field} AS {name}" for field, name in zip(fields, ("id", "x", "v"), strict=True))
            types = f"{{event: 'VARCHAR', time: 'BIGINT', data: '{kind}'}}"
            return (
                f"SELECT event, time AS begin, {data} "
                f"FROM read_json('{path}', format='newline_delimited', columns={types})"
            )
        case "csv":
            types = "{event: 'VARCHAR', time: 'BIGINT', id: 'BIGINT', x: 'BIGINT', v: 'BIGINT'}"
            return f"SELECT {columns} FROM read_csv('{path}', header=true, columns={types})"
        case "parquet":
            return f"SELECT {columns} FROM read_parquet('{path}')"


def _shown(case: Case, form: Format) -> str:
    names = ", ".join(case.arguments)
    if form != "jsonl":
        return f"""SELECT '{case.query}' AS event, since AS "begin", until AS "end", {names}"""
    data = f"json_array({names})" if case.query == "Q4" else f"[{names}]"  # a list has one type, and is faster
    return f"SELECT '{case.query}' AS event, [since, until] AS time, {data} AS data"
