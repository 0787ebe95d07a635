from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ephemera.formats.decode_arrow import Reader
from ephemera.formats.decode_csv import Sheet, event_of_row
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import read_event
from ephemera.physical.plan import Compiled
from ephemera.spark.read.flat_events import ANY, ScannedEvents
from ephemera.spark.read.scan import Input, read, source_of
from tests.spark.sources import Judged, arriving, by_columns, by_python, compiled, everything, judged, rest, vouched

CLEAN = """
{"event": "order", "time": 1, "data": ["a", 3]}
{"event": "order", "time": -5, "data": {"id": "ü😀", "qty": 9223372036854775807}}
{"time": [7, 7], "data": {"qty": -0, "id": ""}, "event": "order"}
{"event": "order", "time": "2026-03-01T09:00:00Z", "data": ["\\ud83d\\ude00\\u0041\\n", 3]}
{"event": "order", "time": ["2026-03-01T09:00:00.25+01:00", "2026-03-01T09:00:00.250000+01:00"], "data": ["a", 3]}
{"event": "price", "time": 1, "data": ["a", 2.5, true, 12]}
{"event": "price", "time": 1, "data": {"id": "a", "value": 3, "open": false, "since": "0001-01-01T00:00:00Z"}}
{"event": "price", "time": 1, "data": ["a", 1e300, true, -12]}
{"event": "price", "time": 1, "data": ["a", 0.1, true, 0]}
{"event": "price", "time": 1, "data": ["a", 9007199254740993.0, true, 0]}
{"event": "price", "time": 1, "data": ["a", 123456789012345678.123456789012345678901, true, 0]}
{"event": "stay", "time": [1, 2001], "data": [4]}
{"event": "trip", "time": [-2305843009213693, 2305843009213693], "data": [4]}
  {"event": "trip", "time": [1, 2], "data": {"id": 4}}\r
""".strip("\n").split("\n")

OTHERS = """
{"event": "order", "time": 1, "data": ["a", "3"]}
{"event": "order", "time": 1, "data": ["a", 3.0]}
{"event": "order", "time": 1, "data": ["a", 1.5]}
{"event": "order", "time": 1, "data": ["a", 9223372036854775808]}
{"event": "order", "time": 1, "data": ["a", null]}
{"event": "order", "time": 1, "data": ["a"]}
{"event": "order", "time": 1, "data": ["a", 3, 4]}
{"event": "order", "time": 1, "data": {"id": "a"}}
{"event": "order", "time": 1, "data": {"id": 12, "qty": 1}}
{"event": "order", "time": 1, "data": {"id": "a", "qty": 1, "more": 99999999999999999999}}
{"event": "order", "time": 1, "data": {"id": "a", "qty": 1, "more": [1]}}
{"event": "order", "time": 1, "data": {"id": "a", "qty": 1}, "more": 1}
{"event": "order", "time": 1, "data": {"id": "a", "qty": 1}, "term": "order[]"}
{"event": "order", "time": 1, "data": {"id": "a", "qty": 1, "qty": 1}}
{"event": "order", "time": 1, "event": "order", "data": ["a", 1]}
{"event": "order", "time": 1, "data": ["a", true]}
{"event": "order", "time": 1, "data": [["a"], 1]}
{"event": "order", "time": 1, "data": {"id": {"x": 1}, "qty": 1}}
{"event": "order", "time": 1.5, "data": ["a", 1]}
{"event": "order", "time": 1e3, "data": ["a", 1]}
{"event": "order", "time": true, "data": ["a", 1]}
{"event": "order", "time": null, "data": ["a", 1]}
{"event": "order", "data": ["a", 1]}
{"event": "order", "time": [1, 2], "data": ["a", 1]}
{"event": "order", "time": [1], "data": ["a", 1]}
{"event": "order", "time": [1, 1, 1], "data": ["a", 1]}
{"event": "order", "time": [], "data": ["a", 1]}
{"event": "order", "time": [2, 1], "data": ["a", 1]}
{"event": "order", "time": 4611686018427388, "data": ["a", 1]}
{"event": "order", "time": 9999999999999999999, "data": ["a", 1]}
{"event": "order", "time": [1, "2026-03-01T09:00:00Z"], "data": ["a", 1]}
{"event": "order", "time": "2026-03-01T09:00:00", "data": ["a", 1]}
{"event": "order", "time": "2026-02-30T09:00:00Z", "data": ["a", 1]}
{"event": "order", "time": "2026-03-01T24:00:00Z", "data": ["a", 1]}
{"event": "order", "time": "2026-03-01T09:00:00+19:30", "data": ["a", 1]}
{"event": "order", "time": "2026-03-01 09:00Z", "data": ["a", 1]}
{"event": "order", "time": "0000-03-01T09:00:00Z", "data": ["a", 1]}
{"event": "order", "time": "1", "data": ["a", 1]}
{"event": "order", "time": 1, "xml": "<order><id>4711</id><qty>3</qty></order>"}
{"event": "order", "time": 1, "term": "order{ id{\\"a\\"}, qty{3} }"}
{"event": "order", "time": 1}
{"event": "order", "time": 1, "data": ["a", 1]} x
{"event": "order", "time": 1, "data": ["a", 1]}{"event": "order", "time": 1, "data": ["b", 1]}
{"event": "order", "time": 1, "data": ["a", 1]},"z":1} {"l":{"event": "order", "time": 1, "data": ["b", 1]}
{"event": "order", "time": 1, "data": ["a", 1]}, "y": {"event": "order", "time": 1, "data": ["b", 1]}
{"event": "order", "time": 1, "data": ["\\ud800", 1]}
{"event": "order", "time": 1, "data": ["a", NaN]}
{"event": "order", "time": 01, "data": ["a", 1]}
{'event': 'order', 'time': 1, 'data': ['a', 1]}
{"event": 5, "time": 1, "data": ["a", 1]}
{"event": "price", "time": 1, "data": ["a", -0.0, true, 0]}
{"event": "price", "time": 1, "data": ["a", 1e999, true, 0]}
{"event": "price", "time": 1, "data": ["a", 9007199254740993, true, 0]}
{"event": "price", "time": 1, "data": ["a", "NaN", true, 0]}
{"event": "price", "time": 1, "data": ["a", 1, "true", 0]}
{"event": "price", "time": 1, "data": ["a", 1, 1, 0]}
{"event": "price", "time": 1, "data": ["a", 1, true, "yesterday"]}
{"event": "price", "time": 1, "data": ["a", 1, true, 99999999999999999]}
{"event": "price", "time": 1, "data": ["a", 1, true, 1.5]}
{"event": "stay", "time": [1, 2002], "data": [4]}
{"event": "trip", "time": [-4611686018427388, 0], "data": [4]}
{"event": "tags", "time": 1, "data": {"id": "a", "tag": ["x", "y"]}}
{"event": "loose", "time": 1, "data": [4]}
{"event": "other", "time": [1, 9999], "data": [4]}
{"event": "nobody", "time": 1, "data": [4]}
[1]
order
{"event": "order"
""".strip("\n").split("\n")


def lines_of(spark: SparkSession, tmp_path: Path, lines: list[bytes]) -> tuple[ScannedEvents, Compiled]:
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(lines))
    one = compiled()
    (source,) = read(spark, [Input(str(tmp_path / "events.jsonl"))], one.rules.resolved.catalogue, everything(one))
    return source, one


def test_clean_lines_are_read_by_columns_and_give_the_same_events(spark: SparkSession, tmp_path: Path) -> None:
    source, one = lines_of(spark, tmp_path, [line.encode() for line in CLEAN])
    assert judged([*by_columns(source, one)]) == judged([read_event(line, one) for line in CLEAN])
    assert rest(source).collect() == []


def test_all_other_lines_are_read_as_the_local_engine_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    lines = [*(line.encode() for line in OTHERS), b'{"event": "order", "time": 1, "data": ["\xff", 1]}']
    lines += [
        b"\xef\xbb\xbf" + CLEAN[0].encode(),
        b'{"event": "order", "time": 1, "data": ["' + b"x" * 1_000_000 + b'", 1]}',
    ]
    source, one = lines_of(spark, tmp_path, [*lines, b"", b" \t\r"])
    assert [e.term for e in by_columns(source, one)] == []
    assert judged(by_python(source, one)) == judged([read_event(line, one) for line in lines])


def test_the_two_halves_are_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line.encode() for line in (*CLEAN, *OTHERS)]
    source, one = lines_of(spark, tmp_path, lines)
    assert judged([*by_columns(source, one), *by_python(source, one)]) == judged(
        [read_event(line, one) for line in lines]
    )
    told = Counter(row["text"] for row in vouched(source).select("text").collect())
    assert told == {False: 12, True: 2}


def test_what_no_rule_reads_is_never_bad(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        b'{"event": "nobody", "time": "2026-03-01T00:00:00Z", "data": {"x": 1, "x": 2}}',
        b'{"event": "nobody", "data": {"x": 1}}',
    ]
    source, one = lines_of(spark, tmp_path, lines)
    events, bad = judged([*by_columns(source, one), *by_python(source, one)])
    assert (events.total(), bad.total()) == (1, 0)
    assert one.is_unread("nobody")


def test_only_types_and_attributes_that_are_wanted_are_there(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(CLEAN), encoding="utf-8")
    catalogue = compiled().rules.resolved.catalogue
    (source,) = read(spark, [Input(str(tmp_path / "events.jsonl"))], catalogue, {"price": frozenset({"open"})})
    assert vouched(source).columns == ["event", "s", "e", "text", "open"]
    assert vouched(source).count() == 6


# ---- tables ------------------------------------------------------------------------------------------------

INSTANT = pa.timestamp("us", tz="UTC")
EVENTS = ["order", "order", "price", None, "tags", "nobody", "stay", "order", "loose", "price"]
TABLES = {
    "plain": {
        "event": EVENTS,
        "time": pa.array([1, None, 3, 4, 5, 6, 7, 2**62, 9, -3], pa.int64()),
        "id": ["a", "b", None, "d", "e", "f", "g", "h", "i", "j"],
        "qty": pa.array([1, 2, None, 4, 5, 6, 7, 8, 9, 10], pa.int16()),
        "value": [1.5, 2.0, float("nan"), 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, float("inf")],
        "room": pa.array(range(10), pa.int32()),
        "unused": [[1]] * 10,
    },
    "fractions": {
        "event": EVENTS,
        "begin": [1.0, 1.5, 3, 4, 5, 6, 7, 1e18, float("nan"), -3],
        "end": [1.0, 1.5, 3, 4, 5, 6, 2007, 1e18, 1, -4],
        "id": ["a"] * 10,
        "qty": [1.0, 2.5, 3.0, 4.0, 1e16, 6.0, 7.0, 8.0, 9.0, 9.0],
        "value": pa.array([1, 2, 2**53, 2**53 + 1, 5, 6, 7, 8, 9, 2**53 + 1], pa.int64()),
        "since": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 2**62], pa.int64()),
    },
    "instants": {
        "event": EVENTS,
        "time": pa.array([1, None, 3, 4, 5, 6, 7, 2**50, 9, -3], INSTANT),
        "id": ["a"] * 10,
        "qty": ["1"] * 9 + [None],
        "since": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, -3], pa.date32()),
        "open": [True, None] * 5,
    },
    "local": {
        "event": ["trip", *EVENTS[1:]],
        "begin": pa.array(range(10), pa.date32()),
        "end": pa.array([10**6 * k for k in range(86_400, 96_400, 1_000)], pa.timestamp("us")),
        "id": pa.array(range(10)),
        "since": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, -3], pa.timestamp("us")),
    },
}


def rows_read(table: pa.Table, one: Compiled) -> Judged:
    """What the local engine makes of a table; columns of null are not told from columns that are missing."""
    found = Reader(table, one).read()
    bad = [
        BadEvent(json.dumps(table.slice(b.row, 1).to_pylist()[0], default=str), b.reason, b.label) for b in found.bad
    ]
    return judged([*(e for part in found.parts for e in part.events()), *bad])


def reasons(bad: Counter[Any]) -> Counter[Any]:
    return Counter((reason, label) for _, reason, label in bad.elements())


@pytest.mark.parametrize("name", TABLES)
def test_tables_give_the_events_that_they_give_the_local_engine(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = pa.table(TABLES[name])
    pq.write_table(table, tmp_path / "events.parquet")
    one = compiled()
    catalogue = one.rules.resolved.catalogue
    (source,) = read(spark, [Input(str(tmp_path / "events.parquet"))], catalogue, everything(one))
    right = rows_read(table, one)
    events, bad = judged([*by_columns(source, one), *by_python(source, one)])
    assert events == Counter({key: n for key, n in right[0].items() if key[0][2] != "nobody"})
    assert reasons(bad) == {key: n for key, n in reasons(right[1]).items() if key[1] != "nobody"}
    assert bool(by_columns(source, one))


def test_a_table_of_one_type_needs_no_column_for_it(spark: SparkSession) -> None:
    one = compiled("EVENT order(id: string); seen(i) <- o: order(i);")
    frame = spark.createDataFrame([(1, "a"), (2, None)], "time int, id string")
    spark.sql("SELECT 1").createOrReplaceTempView("nothing")
    frame.createOrReplaceTempView("orders")
    catalogue = one.rules.resolved.catalogue
    for given in (Input(frame), Input("orders", "table")):
        (source,) = read(spark, [given], catalogue, {"order": frozenset({"id"})})
        assert [tuple(row) for row in vouched(source).collect()] == [
            ("order", 1_000_000, 1_000_000, "a"),
            ("order", 2_000_000, 2_000_000, None),
        ]
        assert rest(source).collect() == []


def test_attributes_that_types_declare_differently_have_several_columns(spark: SparkSession) -> None:
    one = compiled("EVENT a(x: int); EVENT b(x: float); EVENT c(event: int); p(x) <- i: a(x), j: b(x), k: c(_);")
    frame = spark.createDataFrame([("a", 1, 2.0), ("b", 2, 2.5)], "event string, time int, x double")
    wanted = {"a": frozenset({"x"}), "b": frozenset({"x"})}
    (source,) = read(spark, [Input(frame)], one.rules.resolved.catalogue, wanted)
    assert vouched(source).columns == ["event", "s", "e", "x:int", "x:float"]
    assert judged([*by_columns(source, one)])[0].total() == 2


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def test_filters_and_columns_reach_the_files(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table(TABLES["plain"]), tmp_path / "events.parquet")
    one = compiled()
    wanted = {"order": frozenset({"id"})}
    (source,) = read(spark, [Input(str(tmp_path / "events.parquet"))], one.rules.resolved.catalogue, wanted)
    physical = plan(source.frame)
    assert physical.count("FileScan") == 1
    assert "PushedFilters: [Or(IsNull(event),EqualTo(event,order))]" in physical
    assert "ReadSchema: struct<event:string,time:bigint,id:string>" in physical


# ---- CSV ---------------------------------------------------------------------------------------------------

CSV = '''event,time,id,qty,value,open,since
order,1,a,3,,,
order,2,"quoted ""x"", and comma",-4,,,
order,x,a,3,,,
order,2026-03-01T09:00:00Z,a,3,,,
order,1.5,a,3,,,
order,3,,,,,
order,4,a,3.5,,,
order,5,a,three,,,
order,99999999999999999999,a,3,,,
price,1,a,,2.50,true,
price,1,a,,1e3,false,
price,1,a,,-0.0,TRUE,
price,1,007,,5,true,12
price,1,a,,x,true,2026-03-01T09:00:00Z
,1,a,3,,,
nobody,1,a,3,,,
loose,1,[1],3,,,
"order","6","a, b","-7",,"",""
order,7,5" pipe,1,,,
order,8,"x""","3",,,
order,9,"x,1,,,
order,9,"x"y,1,,,
order,9,a"b",1
order,9,a,1,,,,
order,9,a
'''


def test_cells_are_read_as_python_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(CSV)
    one = compiled()
    catalogue = one.rules.resolved.catalogue
    (source,) = read(spark, [Input(str(tmp_path / "events.csv"))], catalogue, everything(one))
    rows = [replace(row, number=0) for row in Sheet(io.BytesIO(CSV.encode()), "").rows()]
    rows = [row for row in rows if row.cells is None or row.cells["event"] != "nobody"]
    right = judged([event_of_row(row, "events.csv", one)[0] for row in rows])
    found = judged([*by_columns(source, one), *by_python(source, one)])
    assert found == right
    assert len(by_columns(source, one)) == 7


def test_a_path_must_say_what_it_holds(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"`events.txt` does not say what it holds"):
        read(spark, [Input("events.txt")], compiled().rules.resolved.catalogue, {})


# ---- streams -----------------------------------------------------------------------------------------------


def test_a_stream_of_lines_is_read_as_a_file_of_them(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line.encode() for line in (*CLEAN, *OTHERS)]
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_bytes(b"\n".join(lines))
    one = compiled()
    frame = spark.readStream.option("lineSep", "\n").text(str(tmp_path / "events"))
    source = source_of(frame, "lines", one.rules.resolved.catalogue, everything(one))
    found = arriving(spark, source, tmp_path)
    assert judged([*by_columns(found, one), *by_python(found, one)]) == judged(
        [read_event(line, one) for line in lines]
    )


def test_a_stream_of_columns_is_read_as_a_table(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(TABLES["plain"])
    (tmp_path / "events").mkdir()
    pq.write_table(table, tmp_path / "events" / "a.parquet")
    one = compiled()
    schema = spark.read.parquet(str(tmp_path / "events")).schema
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "events"))
    source = source_of(frame, "rows", one.rules.resolved.catalogue, everything(one))
    found = arriving(spark, source, tmp_path)
    right = rows_read(table, one)
    events, bad = judged([*by_columns(found, one), *by_python(found, one)])
    assert events == Counter({key: n for key, n in right[0].items() if key[0][2] != "nobody"})
    assert reasons(bad) == {key: n for key, n in reasons(right[1]).items() if key[1] != "nobody"}


def test_a_type_that_may_be_any_is_read_one_by_one_beside_those_by_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(TABLES["plain"])
    pq.write_table(table, tmp_path / "events.parquet")
    one = compiled()
    wanted = {**everything(one), ANY: frozenset()}
    (source,) = read(spark, [Input(str(tmp_path / "events.parquet"))], one.rules.resolved.catalogue, wanted)
    events, bad = judged([*by_columns(source, one), *by_python(source, one)])
    assert events == rows_read(table, one)[0]
    assert reasons(bad) == reasons(rows_read(table, one)[1])
