"""This module makes the mistakes of the table in `tests/unit/mistakes.py` on Spark, and compares what is told."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.cli.inputs import Given, read_all
from ephemera.cli.spark import _line
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input
from tests.spark.running import collected
from tests.unit.mistakes import ALL, PROGRAM, Mistake
from tests.unit.test_mistakes import named

FORMATS = {"jsonl": "json", "csv": "csv", "xml": "xml", "parquet": "parquet"}


def form(mistake: Mistake) -> str:
    return FORMATS[mistake.file.split(".")[1]]


def test_what_is_told_of_rows_is_what_the_local_engine_tells(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(PROGRAM)
    paths: dict[str, list[str]] = {}
    good: set[str] = set()
    for number, mistake in enumerate(mistake for mistake in ALL if mistake.kind == "letter"):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        content = mistake.content
        if form(mistake) != "parquet":
            content = content.replace(b"before", b"f%05d" % number).replace(b"behind", b"d%05d" % number)
            good |= {f"{'f' if name == 'before' else 'd'}{number:05}" for name in mistake.good}
        (folder / mistake.file).write_bytes(content)
        paths.setdefault(form(mistake), []).append(str(folder / mistake.file))
    (here,) = read_all([program], [Given(tuple(found), name) for name, found in paths.items()])  # type: ignore[arg-type]
    inputs = [Input(tuple(found), name) for name, found in paths.items()]  # type: ignore[arg-type]
    (came,) = collected(start(spark, [Job(program._compiled)], inputs, 2))
    reasons = (re.sub(r"^events\.(jsonl, line|parquet, row) \d+: ", "", bad.reason) for bad in here.bad)
    assert Counter(letter["reason"] for letter in came.bad) == Counter(reasons)  # of these Spark knows no places
    assert {answer["data"][0] for answer in came.answers} == good | {"before", "behind"}


def test_what_is_wrong_with_files_is_told_before_the_run(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(ephemera.compile(PROGRAM)._compiled)
    wrong = {}
    for mistake in (mistake for mistake in ALL if mistake.kind == "error"):
        path = tmp_path / mistake.file
        path.write_bytes(mistake.content)
        with pytest.raises(Exception) as error:  # noqa: PT011 - whatever it is, people are told the same
            collected(start(spark, [job], [Input(str(path), form(mistake))], 2))  # type: ignore[arg-type]
        code, told = _line(error.value)
        if mistake.told not in told or code not in (1, 2):
            wrong[named(mistake)] = code, told
    assert wrong == {}, json.dumps(wrong, indent=1)
