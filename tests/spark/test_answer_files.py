"""This module shows that files of answers have the same columns, types and rows, whichever engine wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input

UNDECLARED = "seen(x, n) <- i: a(x, n); when(begin(i)) <- i: a(x, n); none(x, count(y)) <- i: b(x), j: c(y);"
TERMS = "EVENT a(x: int, n: any); DETECT deep { item { var X } } ON a {{ x { var X } }} END"


def rows(*data: list[Any], time: Any = 1) -> list[dict[str, Any]]:
    return [{"event": "a", "time": time, "data": one} for one in data]


@pytest.mark.parametrize(
    ("program", "events", "emit"),
    [
        (UNDECLARED, rows(["tea", 5], ["milk", 7]), ()),
        (UNDECLARED, [*rows(["tea", 5]), *rows([None, 5.5], time=2.5)], ()),
        (UNDECLARED, rows(["tea", True], [7, None], time="2026-03-02T09:00:00Z"), ()),
        (UNDECLARED, rows(["tea", 5]), ("when",)),
        (TERMS, rows([1, 2], time=0.5), ()),
        (TERMS, [], ()),
    ],
    ids=["one kind", "fractions", "several kinds", "one event", "terms", "no answers"],
)
def test_files_are_alike(
    spark: SparkSession, tmp_path: Path, program: str, events: list[dict[str, Any]], emit: tuple[str, ...]
) -> None:
    compiled = ephemera.compile(program)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events), encoding="utf-8")
    source = ephemera.sources.Files(tmp_path / "in.jsonl")
    compiled.run(source, sink=ephemera.sinks.File(tmp_path / "local.parquet"), emit=emit, allow_unbounded=True)
    job = Job(compiled._planned(emit))
    computed = Computed(start(spark, [job], [Input(str(tmp_path / "in.jsonl"))], 2))
    found = computed.columns().toArrow()
    computed.close()
    expected = pq.read_table(tmp_path / "local.parquet")
    assert found.column_names == expected.column_names
    assert [str(kind) for kind in found.schema.types] == [str(kind) for kind in expected.schema.types]
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
