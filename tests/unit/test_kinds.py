"""This module shows that what a program answers is of the kind of what it is given, to people and to type checkers."""

from __future__ import annotations

from typing import Any, assert_type

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa

import ephemera
from ephemera import sinks, sources

PROGRAM = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);")
EVENTS: list[dict[str, Any]] = [{"event": "a", "time": 1, "data": [7]}]
TABLE = pa.table({"event": ["a"], "time": [1], "x": [7]})


def test_lists_lines_and_sources_are_answered_with_answers() -> None:
    for found in (
        assert_type(PROGRAM.run(EVENTS), ephemera.Answers),
        assert_type(PROGRAM.run(iter(EVENTS), emit=["p"]), ephemera.Answers),
        assert_type(PROGRAM.run(['{"event": "a", "time": 1, "data": [7]}']), ephemera.Answers),
        assert_type(PROGRAM.run(sources.Memory(EVENTS)), ephemera.Answers),
        assert_type(PROGRAM.run(EVENTS, engine="oracle"), ephemera.Answers),
    ):
        assert isinstance(found, ephemera.Answers)
        assert found == [{"event": "p", "time": 1, "data": [7]}]
    assert assert_type(PROGRAM.run(pl.DataFrame(TABLE), sink=sinks.Memory()), ephemera.Answers) == []


def test_tables_and_frames_are_answered_in_kind() -> None:
    frame = assert_type(PROGRAM.run(pl.DataFrame(TABLE)), pl.DataFrame)
    lazy = assert_type(PROGRAM.run(pl.LazyFrame(pl.DataFrame(TABLE))), pl.LazyFrame)
    connection = duckdb.connect()
    relation = assert_type(PROGRAM.run(connection.from_arrow(TABLE)), duckdb.DuckDBPyRelation)
    assert isinstance(frame, pl.DataFrame)
    assert isinstance(lazy, pl.LazyFrame)
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert isinstance(PROGRAM.run(TABLE), pa.Table)
    assert isinstance(PROGRAM.run(TABLE.to_batches()[0]), pa.RecordBatch)
    assert isinstance(PROGRAM.run(TABLE.to_reader()), pa.RecordBatchReader)
    assert isinstance(PROGRAM.run(TABLE.to_pandas()), pd.DataFrame)
    assert [PROGRAM.run(t).num_rows for t in (TABLE, TABLE.to_batches()[0])] == [1, 1]
