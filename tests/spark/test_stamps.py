"""This module reads events on Spark whose streams declare under which keys or columns their times stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ephemera.formats.reading import read_event
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input, read
from tests.engine import test_stamps as stamps
from tests.spark.running import collected
from tests.spark.sources import by_columns, by_python, compiled, judged, vouched

STAMPED = """
{"event": "order", "at": 1, "data": ["a"]}
{"event": "order", "at": [2, 2], "data": {"id": "a"}}
{"event": "order", "data": ["b"], "at": "1970-01-01T00:00:03Z"}
{"event": "stay", "arrival": 4, "departure": 6, "data": ["d"]}
{"event": "stay", "arrival": "1970-01-01T00:00:04Z", "departure": 6, "data": ["e"]}
{"event": "note", "time": 8, "data": ["f"]}
""".strip("\n").split("\n")
UNUSUAL = """
{"event": "order", "at": 2, "time": 99, "data": ["b"]}
{"event": "order", "time": 3, "data": ["c"]}
{"event": "order", "at": null, "data": ["c"]}
{"event": "order", "at": [1], "data": ["c"]}
{"event": "stay", "time": [5, 7], "data": ["e"]}
{"event": "stay", "arrival": 5, "data": ["e"]}
{"event": "stay", "arrival": 5, "departure": 4, "data": ["e"]}
{"event": "stay", "arrival": [5], "departure": 6, "data": ["e"]}
{"event": "note", "time": 8, "at": 99, "data": ["f"]}
{"event": "note", "at": 99, "data": ["f"]}
""".strip("\n").split("\n")


def test_lines_give_their_times_under_the_keys_of_their_stream(spark: SparkSession, tmp_path: Path) -> None:
    lines = [*STAMPED, *UNUSUAL]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    one = compiled(stamps.PROGRAM)
    catalogue = one.rules.resolved.catalogue
    wanted = {label: frozenset(catalogue.attributes(label) or ()) for label in catalogue.events}
    (source,) = read(spark, [Input(str(tmp_path / "events.jsonl"))], catalogue, wanted)
    assert judged([*by_columns(source, one)]) == judged([read_event(line, one) for line in STAMPED])
    assert judged(by_python(source, one)) == judged([read_event(line, one) for line in UNUSUAL])
    told = [row["text"] for row in vouched(source).orderBy("s", "e").select("text").collect()]
    assert told == [False, False, True, False, True, False]


@pytest.mark.parametrize("form", ["lines", "rows", "cells"])
def test_files_give_their_times_as_streams_declare(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Rows that Python reads by itself and rows that Spark reads, and both say the same as the local engine."""
    paths = dict(zip(("lines", "rows", "cells"), stamps.written(tmp_path), strict=True))
    inputs = [Input(str(paths[form]))]
    if form == "rows":
        inputs.append(Input(spark.read.parquet(str(paths[form]))))
    for given in inputs:
        started = start(spark, [Job(compiled(stamps.PROGRAM))], [given])
        assert started.as_numbers
        (came,) = collected(started)
        assert stamps.as_rows(came.answers) == (stamps.ANSWERS if form == "lines" else stamps.ROWS)
        assert len(came.bad) == (0 if form == "lines" else 2)
