"""This module says what hand-written PySpark does to do what a command of ours does on Spark: file to file.

Ours writes JSON lines as one sorted file, and CSV and Parquet as a folder that is not sorted; so does this.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.files import File, Format
from bench.selection import answers
from bench.spark_queries import variants
from ephemera.spark.runtime.java import find_java, home_for_spark

MANY = 10_000
"""From so many keys on joins on the key alone win."""
BEST = {
    "Q1": ("buckets of four windows", "plain"),
    "Q1w": ("buckets of four windows", "plain"),
    "Q2": ("buckets", "plain"),
    "Q3": ("lead", "lead"),
    "Q4": ("window function", "plain"),
}
"""Of the variants: the fastest at 5 M events, on few keys and on many."""


def environment() -> dict[str, str]:
    """Where Java and Python are, for a session that does not look for them."""
    return {"JAVA_HOME": str(home_for_spark(find_java())), "PYSPARK_PYTHON": sys.executable}


def job(file: File, path: Path, output: Path, form: Format) -> dict[str, Any]:
    """What `bench.command_pyspark` is told."""
    case = file.case
    names = case.arguments
    match file.format:
        case "jsonl" if file.has_objects:
            schema, fields = "data struct<id: bigint, x: bigint, v: bigint>", ("data.id", "data.x", "data.v")
        case "jsonl":
            schema, fields = "data array<bigint>", ("data[0]", "data[1]", "data[2]")
        case _:
            schema, fields = "id bigint, x bigint, v bigint", ("id", "x", "v")
    columns = ["event", "time", *(f"{f} AS {n}" for f, n in zip(fields, ("id", "x", "v"), strict=True))]
    shown = [f"'{case.query}' AS event"]
    if form == "jsonl":
        data = f"struct({', '.join(names)})" if case.query == "Q4" else f"array({', '.join(names)})"
        shown += ["array(since, until) AS time", f"{data} AS data"]
    else:
        shown += ["since AS begin", "until AS end", *names]
    return {
        "input": str(path),
        "format": file.format,
        "schema": f"event string, time bigint, {schema}",
        "columns": columns,
        "query": variants(case.query, case.within, answers("time"))[BEST[case.query][case.keys >= MANY]],
        "sort": ["until", "since", *names] if form == "jsonl" else [],
        "shown": shown,
        "output": str(output),
        "output_format": form,
    }
