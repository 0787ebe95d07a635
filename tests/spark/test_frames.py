from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import ephemera
from ephemera.spark.runtime.failures import failure

ORDERS = """
TIME UNIT 1 hour;
EVENT order(id: string, product: string, qty: int, price: float, since: time);
EVENT shipped(id: string, tracking: string);
overdue(id, q) <- o: order(id, p, q, _, _), w: extend(o, 6), while w: not shipped(id, _), q < 10;
served(id, t, q * 2, begin(o), price / 2, since) <-
    o: order(id, p, q, price, since), s: shipped(id, t), o before s, {o, s} within 9;
bulk(sum(q), count(q), avg(q), max(price)) <-
    d: shipped(_, _), w: extend-begin(d, 4), while w: collect order(_, _, q, price, _);
"""
ROWS: list[dict[str, Any]] = [
    {
        "event": "order" if k % 3 else "shipped",
        "time": k,
        "id": f"o{k % 7}",
        "product": "p",
        "qty": k % 5 if k % 4 else None,
        "price": k / 4,
        "since": k - 3 if k % 5 else None,
        "tracking": f"t{k}",
    }
    for k in range(60)
]
SCHEMA = "event string, time bigint, id string, product string, qty bigint, price double, since bigint, tracking string"


def frame_of(spark: SparkSession, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], schema).repartition(3)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows with the types of their values, each as often as it is there; columns by name."""
    names = sorted(table.column_names)
    return Counter(
        tuple((n, None if v is None else (type(v).__name__, v)) for n, v in zip(names, row, strict=True))
        for row in zip(*(table.column(n).to_pylist() for n in names), strict=True)
    )


def both(spark: SparkSession, text: str, rows: list[dict[str, Any]], schema: str) -> tuple[pa.Table, pa.Table]:
    """What Spark answers, and what the engine in this process answers, as tables of Arrow."""
    program = ephemera.compile(text)
    frame = frame_of(spark, rows, schema)
    return program.run(frame).toArrow(), program.run_all(frame.toArrow()).answers


def test_a_data_frame_is_answered_with_one_that_holds_what_arrow_would(spark: SparkSession) -> None:
    found, expected = both(spark, ORDERS, ROWS, SCHEMA)
    assert found.num_rows > 30
    assert found.schema.names == expected.schema.names
    assert [str(f.type) for f in found.schema] == [str(f.type) for f in expected.schema]
    assert rows_of(found) == rows_of(expected)


def test_timestamps_in_are_timestamps_out(spark: SparkSession) -> None:
    rows = [
        {"event": "a", "time": datetime(2026, 3, 1, 9, minute, tzinfo=UTC), "x": minute % 3, "t": None}
        for minute in range(9)
    ]
    text = """
    EVENT a(x: int, t: time);
    b(x, begin(i), end(j), duration(w)) <-
        i: a(x, _), j: a(x, _), w: from-start(i, 2 min), i before j, {i, j} within 5 min;
    """
    found, expected = both(spark, text, rows, "event string, time timestamp, x int, t timestamp")
    assert found.num_rows > 3
    assert [str(found.schema.field(n).type) for n in ("begin", "end", "begin_i")] == ["timestamp[us, tz=UTC]"] * 3
    assert rows_of(found.drop(["duration_w"])) == rows_of(expected.drop(["duration_w"]))
    assert found.column("duration_w").to_pylist() == pytest.approx(expected.column("duration_w").to_pylist())


def test_where_the_end_is_not_seen_answers_that_may_lie_between_two_units_are_timestamps(spark: SparkSession) -> None:
    text = "TIME UNIT 1 hour; EVENT a(x: int); b(x) <- i: a(x), w: extend(i, {}), while w: not a(9);"
    rows = [{"event": "a", "time": 4, "x": 1}]
    found, expected = both(spark, text.format("30 min"), rows, "event string, time bigint, x int")
    assert str(found.schema.field("end").type) == "timestamp[us, tz=UTC]"
    assert found.column("end").to_pylist() == [datetime(1970, 1, 1, 4, 30, tzinfo=UTC)]
    # A table is typed when all answers are there: its times are numbers, as in JSON lines.
    assert expected.column("end").to_pylist() == [4.5]
    assert found.drop(["begin", "end"]).to_pylist() == expected.drop(["begin", "end"]).to_pylist()
    found, expected = both(spark, text.format("1 hour"), rows, "event string, time bigint, x int")
    assert rows_of(found) == rows_of(expected)


def test_a_column_whose_type_is_not_known_holds_json(spark: SparkSession) -> None:
    text = """
    EVENT a(x: any, y: string);
    EVENT c(x: int, z: bool);
    b(x, y) <- i: a(x, y);
    d(x, y) <- i: c(x, _), j: a(_, y), {i, j} within 1 min;
    """
    rows = [
        {"event": "a", "time": 1, "x": 7, "y": 'say "a"', "z": None},
        {"event": "c", "time": 2, "x": 8, "y": None, "z": True},
    ]
    schema = "event string, time bigint, x bigint, y string, z boolean"
    program = ephemera.compile(text)
    found = program.run(frame_of(spark, rows, schema)).toArrow()
    assert sorted(zip(*(found.column(n).to_pylist() for n in ("event", "x", "y")), strict=True)) == [
        ("b", "7", 'say "a"'),
        ("d", "8", 'say "a"'),
    ]


def test_whole_numbers_and_others_in_one_column_are_doubles(spark: SparkSession) -> None:
    text = """
    EVENT a(x: int, y: float);
    b(x) <- i: a(x, _);
    c(x) <- i: a(_, x);
    same(x) <- i: a(x, _), j: a(_, x), {i, j} within 1 hour;
    """
    rows = [{"event": "a", "time": k, "x": k, "y": k / 2} for k in range(6)]
    found, expected = both(spark, text, rows, "event string, time bigint, x bigint, y double")
    assert str(found.schema.field("x").type) == "double"
    assert rows_of(found) == rows_of(expected)


def test_messages_and_terms_are_json(spark: SparkSession) -> None:
    text = """
    EVENT a(x: int, y: string);
    DETECT big { id { var X }, note { "big" } } ON event i: a {{ x { var X }, y { var Y } }} where { var X > 2 } END
    RAISE to(recipient="ops", transport="console") { alert { var Y } } ON event i: a {{ x { 1 }, y { var Y } }} END
    """
    rows = [{"event": "a", "time": k, "x": k, "y": f"ü{k}"} for k in range(6)]
    found, expected = both(spark, text, rows, "event string, time bigint, x bigint, y string")
    assert rows_of(found) == rows_of(expected)
    assert found.schema.names == expected.schema.names


def test_tables_come_with_the_run(spark: SparkSession) -> None:
    text = """
    EVENT a(x: int);
    TABLE area(x: int, name: string);
    b(n, x) <- i: a(x), area(x, n);
    """
    program = ephemera.compile(text)
    given = {"area": [{"x": k, "name": f"n{k}"} for k in range(5)]}
    frame = frame_of(
        spark, [{"event": "a", "time": k, "x": k % 8} for k in range(30)], "event string, time bigint, x bigint"
    )
    found = program.run(frame, tables=given).toArrow()
    assert found.num_rows == 20
    assert rows_of(found) == rows_of(program.run_all(frame.toArrow(), tables=given).answers)


def test_rules_that_ask_the_clock_answer_the_same(spark: SparkSession) -> None:
    text = """
    EVENT a(x: int);
    b(n) <- t: timer:datetime(minute: n), while t: not a(_);
    c(x, n) <- i: a(x), t: timer:datetime(second: n), {i, t} within 2 sec;
    """
    rows = [{"event": "a", "time": k * 25, "x": k} for k in range(9)]
    found, expected = both(spark, text, rows, "event string, time bigint, x bigint")
    assert found.num_rows > 3
    assert rows_of(found) == rows_of(expected)


def test_nothing_is_computed_before_somebody_reads(spark: SparkSession) -> None:
    failing = frame_of(spark, ROWS, SCHEMA).selectExpr(
        "event", "time", "id", "product", "qty", "price", "since", "cast(raise_error('read') as string) as tracking"
    )
    answers = ephemera.compile(ORDERS).run(failing)
    assert answers.columns[:3] == ["event", "begin", "end"]
    with pytest.raises(PySparkException, match="read"):
        answers.collect()


def test_a_value_that_rules_do_not_let_expect_is_told(spark: SparkSession) -> None:
    text = "EVENT a(x: int); b(x) <- i: a(x); c(x) <- i: b(x);"
    frame = frame_of(
        spark,
        [{"event": "b", "time": 1, "x": "text"}, {"event": "a", "time": 2, "x": "no"}],
        "event string, time int, x string",
    )
    found = ephemera.compile(text).run(frame)
    assert dict(found.dtypes) == {"event": "string", "begin": "bigint", "end": "bigint", "x": "bigint"}
    with pytest.raises(PySparkException) as told:
        found.collect()
    assert "declare with `EVENT` what the rules read" in str(failure(told.value))


def test_the_oracle_does_not_take_data_frames(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1, 2)], "event string, time int, x int")
    with pytest.raises(ValueError, match="runs on Spark"):
        ephemera.compile("EVENT a(x: int); b(x) <- i: a(x);").run(frame, engine="oracle")


def test_large_whole_numbers_stay_exact_where_the_rules_say_int(spark: SparkSession) -> None:
    text = "EVENT a(x: int); b(x, x - 1) <- i: a(x);"
    rows = [{"event": "a", "time": 1, "x": 2**62 + 1}, {"event": "a", "time": 2, "x": -(2**63) + 1}]
    found, expected = both(spark, text, rows, "event string, time bigint, x bigint")
    assert rows_of(found) == rows_of(expected)
    assert not any(math.isnan(v) for v in found.column("x").to_pylist())


def test_what_nobody_asks_for_is_no_key(spark: SparkSession) -> None:
    text = """
    EVENT a(x: int, y: string, z: int);
    b(x) <- i: a(x, _, _);
    c(_x) <- i: a(_x, _, _), j: a(_, _, _1), {i, j} within 2 sec, _1 = 4;
    d() <- i: a(_, _, _);
    """
    rows = [{"event": "a", "time": k // 2, "x": k % 4, "y": f"y{k}", "z": k} for k in range(20)]
    found, expected = both(spark, text, rows, "event string, time bigint, x bigint, y string, z bigint")
    assert {*found.column("event").to_pylist()} == {"b", "c", "d"}
    assert rows_of(found) == rows_of(expected)
