"""This module shows that Spark runs what lies in the process, with the answers of the local engine."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ephemera

PROGRAM = ephemera.compile("""
    EVENT order(id: string, qty: int, price: float);
    EVENT shipped(id: string);
    overdue(id, q) <- o: order(id, q, p), w: extend(o, 6h), while w: not shipped(id);
    value(id, q * p) <- o: order(id, q, p);
    RAISE to(recipient="desk", transport="mail") { note { id { var I } } } ON order {{ id { var I }, qty { 7 } }} END
    rate(id, 1 / q) <- o: order(id, q, p);
""")
EVENTS: list[Any] = [
    {"event": "order", "time": datetime(2026, 3, 2, 9, tzinfo=UTC), "data": ["a", 3, 1.25]},
    {"event": "order", "time": "2026-03-02T10:00:00Z", "data": {"id": "b", "qty": 7, "price": Decimal("0.1")}},
    '{"event": "shipped", "time": "2026-03-02T11:00:00Z", "data": ["b"]}',
    {"event": "order", "time": "2026-03-02T12:00:00Z", "data": ["c", "many", 1]},
    {"event": "order", "time": "2026-03-02T13:00:00Z", "data": ("d", 0, 2)},
]


def test_a_list_of_events_runs_on_spark(spark: SparkSession) -> None:
    assert spark is not None
    found, expected = PROGRAM.run_all(EVENTS, engine="spark"), PROGRAM.run_all(EVENTS)
    assert found.answers == expected.answers
    assert isinstance(found.answers, ephemera.Answers)
    assert found.answers["overdue"] == expected.answers["overdue"]
    assert found.messages == expected.messages
    assert [one.reason for one in found.dead_letters] == [one.reason for one in expected.dead_letters]
    assert found.notes == expected.notes


def test_run_warns_of_what_could_not_be_used_on_spark(spark: SparkSession) -> None:
    assert spark is not None
    # Nothing that runs asks for `shipped`, and Spark does not read it.
    with pytest.warns(ephemera.EphemeraWarning, match=r"1 of 4 events could not be used"):
        answers = PROGRAM.run(EVENTS, engine="spark", emit=["value"])
    assert PROGRAM.run_all(EVENTS, engine="spark").read == PROGRAM.run_all(EVENTS).read == 5
    assert [one["data"][0] for one in answers] == ["a", "b", "d"]


def table() -> pa.Table:
    times = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (9, 10, 11, 13)]
    return pa.table(
        {
            "event": pa.array(["order", "order", "shipped", "order"]).dictionary_encode(),
            "time": pa.array(times, pa.timestamp("ns", tz="UTC")),
            "id": ["a", "b", "b", "d"],
            "qty": pa.array([3, 7, None, 1], pa.uint8()),
            "price": [1.25, 0.1, None, 2.0],
        }
    )


def test_tables_run_on_spark_and_are_answered_in_kind(spark: SparkSession) -> None:
    assert spark is not None
    expected = PROGRAM.run(table())
    found = PROGRAM.run(table(), engine="spark")
    assert isinstance(found, pa.Table)
    assert found.column_names == expected.column_names
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert found["end"] == expected["end"], "they are in the order of time"
    assert isinstance(PROGRAM.run(table().to_pandas(), engine="spark"), pd.DataFrame)
    polars = PROGRAM.run(pl.DataFrame(table()), engine="spark")
    assert isinstance(polars, pl.DataFrame)
    assert polars.height == expected.num_rows


def test_bad_rows_of_frames_are_told_with_the_reason(spark: SparkSession) -> None:
    program = ephemera.compile("EVENT a(x: int); p(1 / x) <- i: a(x);")
    rows = [("a", 1, 1.0), ("a", 2, 0.0), ("a", 3, 1.5)]
    frame = spark.createDataFrame(rows, "event string, time bigint, x double")
    run = program.run_all(frame)
    told = ["<DeadLetter bad event: `x` is int, and 1.5 is not>", "<DeadLetter rule 1: division by zero>"]
    assert [repr(one) for one in run.dead_letters] == told
    assert "1.5" in str(run.dead_letters[0].event)
    arrow = pa.table({"event": ["a"] * 3, "time": [1, 2, 3], "x": [1.0, 0.0, 1.5]})
    assert [repr(one) for one in program.run_all(arrow, engine="spark").dead_letters] == told


def test_an_unknown_engine_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"there is no engine `flink`; the engines are local, oracle, spark"):
        PROGRAM.run([], engine="flink")
