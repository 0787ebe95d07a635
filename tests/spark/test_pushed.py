from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import ephemera
from ephemera.rewrite.pushdown import comparable, constants
from ephemera.spark.read.scan import Input, read
from tests.spark.test_frames import rows_of

EVENTS = "EVENT A(id: int, x: int, y: int); EVENT B(id: int, s: string, b: bool); EVENT C(id: any);\n"
COUNT = 400
TABLE = pa.table(
    {
        "event": ["ABC"[k % 3] for k in range(COUNT)],
        "time": list(range(COUNT)),
        "id": [k % 11 for k in range(COUNT)],
        "x": [k % 7 if k % 5 else None for k in range(COUNT)],
        "y": [k % 4 for k in range(COUNT)],
        "s": ["st"[k % 2] for k in range(COUNT)],
        "b": [k % 4 < 2 for k in range(COUNT)],
    }
)


def plan_of(frame: DataFrame) -> str:
    told = StringIO()
    with redirect_stdout(told):
        frame.explain(mode="formatted")
    return told.getvalue()


def asked(text: str) -> dict[str, Any]:
    return dict(constants([ephemera.compile(EVENTS + text)._sound.plan]))


def test_constants_count_where_all_uses_have_some() -> None:
    assert asked("p(i) <- a: A(i, 5, _); q(i) <- a: A(i, _, 15), b: A(i, 6, _), {a, b} within 9;") == {
        "A": ((("x", 5),), (("y", 15),), (("x", 6),))
    }
    assert asked("p(i) <- a: A(i, 5, _); q(i) <- a: A(i, x, y);") == {}
    assert asked('p(i) <- a: A(id: i, x: 5), w: extend(a, 3), while w: not B(i, "s", true);') == {
        "A": ((("x", 5),),),
        "B": ((("s", "s"), ("b", True)),),
    }
    assert asked("p(i) <- a: A(i, 5, _), w: extend(a, 3), while w: not A(i, _, _);") == {}
    assert asked("p(1) <- a: C(1); p(2) <- a: C(true);") == {"C": ((("id", 1),), (("id", True),))}


def test_programs_that_read_together_are_filtered_by_what_any_asks_for() -> None:
    texts = [
        "p(i) <- a: A(i, 5, _);",
        "p(i) <- a: A(i, 6, _), b: B(i, _, true), {a, b} within 9;",
        "p(i) <- b: B(i, _, _);",
    ]
    plans = [ephemera.compile(EVENTS + text)._sound.plan for text in texts]
    assert constants(plans) == {"A": ((("x", 5),), (("x", 6),))}
    assert constants(plans[:2]) == {"A": ((("x", 5),), (("x", 6),)), "B": ((("b", True),),)}


@pytest.mark.parametrize(
    ("kind", "constant", "found"),
    [
        ("int", 5, 5),
        ("int", 5.0, 5),
        ("int", 5.5, None),
        ("int", 2.0**60, None),
        ("int", True, None),
        ("float", 5, 5.0),
        ("float", 2**53 + 1, None),
        ("float", 0, None),
        ("float", -0.0, None),
        ("string", "a", "a"),
        ("string", 1, None),
        ("bool", False, False),
        ("time", 5, None),
        ("any", "a", "a"),
    ],
)
def test_a_constant_counts_only_where_columns_compare_as_rules_do(kind: str, constant: Any, found: Any) -> None:
    given = comparable(kind, constant)
    assert (type(given), given) == (type(found), found)


PROGRAMS = {
    "one": ("p(i, y) <- a: A(i, 5, y);", ["EqualTo(x,5)"]),
    "several": ("p(i) <- a: A(i, 5, _); q(i) <- a: A(i, 6, _);", ["In(x, [5,6])"]),
    "both": ("p(i) <- a: A(i, 5, 3); q(x) <- a: A(2, x, _);", ["And(EqualTo(x,5),EqualTo(y,3))", "EqualTo(id,2)"]),
    "types": (
        'p(i) <- a: A(i, 5, 1), b: B(i, "t", _), a before b, {a, b} within 50; q(i) <- b: B(i, _, true);',
        ["EqualTo(x,5)", "EqualTo(y,1)", "EqualTo(s,t)", "EqualTo(b,true)"],
    ),
    "absence": ('p(i) <- a: A(i, 5, _), w: extend(a, 9), while w: not B(i, "s", _);', ["EqualTo(s,s)"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_constants_reach_the_scan_and_change_no_answer(name: str, spark: SparkSession, tmp_path: Path) -> None:
    text, pushed = PROGRAMS[name]
    path = str(tmp_path / "events.parquet")
    pq.write_table(TABLE, path, row_group_size=50)
    program = ephemera.compile(EVENTS + text)
    frame = spark.read.parquet(path)
    plan = program._sound.plan
    (source,) = read(
        spark, [Input(path)], plan.catalogue, {"A": frozenset({"id"}), "B": frozenset({"id"})}, constants([plan])
    )
    (filters,) = (line for line in plan_of(source.frame).splitlines() if line.startswith("PushedFilters"))
    assert all(one in filters for one in pushed), filters
    answers = program.run(frame)
    assert all(one in plan_of(answers) for one in pushed)
    found = answers.toArrow()
    assert found.num_rows
    assert rows_of(found) == rows_of(program.run_all(TABLE).answers)


def test_an_event_of_any_use_is_not_left_out(spark: SparkSession) -> None:
    text = EVENTS + "p(x) <- a: A(2, x, _), w: extend(a, 4), while w: not A(id: 3, x: 1);"
    rows = [("A", 1, 2.0, 5), ("A", 2, 3.0, 1), ("A", 11, 2.0, 6), ("A", 12, 3.0, 2), ("A", 21, None, 1)]
    frame = spark.createDataFrame(rows, "event string, time bigint, id double, x short")
    program = ephemera.compile(text)
    found = program.run(frame, lenient=True).toArrow()
    assert found.column("x").to_pylist() == [6]
    assert rows_of(found) == rows_of(program.run_all(frame.toArrow(), lenient=True).answers)


def test_rows_that_are_bad_are_told_whatever_their_constants(spark: SparkSession) -> None:
    program = ephemera.compile(EVENTS + "p(i) <- a: A(i, 5, _);")
    frame = spark.createDataFrame([("A", None, 1, 6), ("A", 1, 1, 6)], "event string, time bigint, id int, x int")
    plan = program._sound.plan
    (source,) = read(spark, [Input(frame)], plan.catalogue, {"A": frozenset({"id", "x"})}, constants([plan]))
    assert source.frame.count() == 1
    assert source.frame.where("rest IS NOT NULL").count() == 1


def test_doubles_hide_from_statistics_so_scans_of_them_use_the_type_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    rows = {"event": ["A", "A", "B", "A"], "time": [1, 2, 3, 4], "x": [5, 6, 5, 6], "y": [1.0, float("nan"), 1.0, 2.0]}
    pq.write_table(pa.table(rows), path)
    plan = ephemera.compile("EVENT A(x: int, y: float); EVENT B(x: int); p(y) <- a: A(5, y);")._sound.plan
    (source,) = read(spark, [Input(path)], plan.catalogue, {"A": frozenset({"x", "y"})}, constants([plan]))
    (filters,) = (line for line in plan_of(source.frame).splitlines() if line.startswith("PushedFilters"))
    assert filters == "PushedFilters: [Or(IsNull(event),EqualTo(event,A))]"
    found = source.frame.collect()
    assert [(row.s, row.y) for row in found if row.rest is None] == [(1_000_000, 1.0)]
    assert [row.rest.time for row in found if row.rest is not None] == [2]


@pytest.mark.parametrize("kind", [pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.date32()], ids=str)
def test_instants_let_constants_reach_the_scan(spark: SparkSession, tmp_path: Path, kind: pa.DataType) -> None:
    path = str(tmp_path / "events.parquet")
    days = [-800_000, -200_000, 0, 20_000, 3_000_000, None]
    stamps = pa.array([None if d is None else d if kind == pa.date32() else d * 86_400_000_000 for d in days])
    stamps = (stamps.cast(pa.int32()) if kind == pa.date32() else stamps).cast(kind)
    rows = {"event": ["A"] * 12, "time": pa.chunked_array([stamps, stamps]), "x": [5] * 6 + [6] * 6}
    pq.write_table(pa.table(rows), path, row_group_size=1)
    program = ephemera.compile("EVENT A(x: int); p(1) <- a: A(5);")
    plan = program._sound.plan
    (source,) = read(spark, [Input(path)], plan.catalogue, {"A": frozenset({"x"})}, constants([plan]))
    (filters,) = (line for line in plan_of(source.frame).splitlines() if line.startswith("PushedFilters"))
    assert "EqualTo(x,5)" in filters
    found = [row.x for row in source.frame.selectExpr("rest.x AS x").collect()]
    assert (found.count(None), found.count(5), found.count(6)) == (5, 1, 1)
