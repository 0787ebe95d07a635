"""This module reads streams of one type on Spark, each from its own files, and columns that have other names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.connect.declared_streams import declared_places
from ephemera.formats.check_columns import WrongColumns
from ephemera.formats.reading import Reading
from ephemera.program import Program
from ephemera.spark.batch.job import Job, start, wanted_columns
from ephemera.spark.read.scan import Input, read
from tests.spark.running import collected, plain

KEYS = """
TIME UNIT 1 min;
EVENT txn(card: string FROM "card_no", amount: float);
EVENT login(user: string, card: string FROM "for card");
STREAM cards FROM "cards.jsonl" CARRIES txn TIME ts;
STREAM logins FROM "logins.jsonl" CARRIES login;
dear(u, c, a) <- t: txn(c, a), l: login(u, c), a > 10, l before t, {l, t} within 1 hour;
"""
CARDS: list[Any] = [
    {"ts": 5, "card_no": "a", "amount": 10.5},
    {"ts": 6, "card_no": "b", "amount": 20},
    {"ts": 7, "card_no": "a", "amount": 9.5},
    {"ts": 8, "card_no": "c", "amount": 11.25, "note": "another key"},
    {"ts": 9, "data": {"card_no": "d", "amount": 12.5}},
    {"ts": 10, "data": ["a", 13.5]},
    {"event": "txn", "ts": 11, "data": {"card_no": "a", "amount": 14.5}},
    {"event": "txn", "ts": 12, "card_no": "b", "amount": 15.5},
    {"event": "other", "ts": 13, "card_no": "b", "amount": 15.5},
    {"ts": 14, "card_no": 7, "amount": 15.5},
    {"card_no": "a", "amount": 15.5},
    {"ts": 15, "card_no": "a"},
    {"ts": 16, "card_no": "a", "amount": -0.0},
    17,
]
LOGINS: list[Any] = [{"time": t, "user": f"u{t}", "for card": c} for t, c in ((1, "a"), (2, "b"), (3, "c"), (4, "d"))]


def lines(path: Path, objects: list[Any]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")


def inputs_of(program: Program, folder: Path) -> list[Input]:
    return [Input(p.location, None, p.only) for p in declared_places([program.catalogue], [folder])]


def read_here(program: Program, given: dict[str, list[Any]]) -> Reading:
    """The same objects as the local engine reads them, stream by stream."""
    whole = Reading(program._compiled)
    for only, objects in given.items():
        own = Reading(program._compiled.carrying(only))
        for one in objects:
            own.add(json.dumps(one))
        whole.events += own.events
        whole.bad += own.bad
    return whole


def test_lines_of_streams_of_one_type_are_read_as_in_one_process(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(KEYS)
    lines(tmp_path / "cards.jsonl", CARDS)
    lines(tmp_path / "logins.jsonl", LOGINS)
    (came,) = collected(start(spark, [Job(program._compiled)], inputs_of(program, tmp_path), 2))
    reading = read_here(program, {"txn": CARDS, "login": LOGINS})
    run = program._run_read(reading)
    assert len(run.answers) == 7
    assert plain(came.answers) == plain(run.answers)
    assert program._run_read(reading, engine="oracle").answers == run.answers
    told = [(bad["event"], bad["reason"]) for bad in came.bad]
    assert sorted(told) == sorted((bad.original, bad.reason) for bad in reading.bad)
    assert len(told) == 3


def test_plain_lines_are_read_by_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Only what is not plain goes to Python: lines with another key, and those with all under `data`."""
    program = ephemera.compile(KEYS)
    lines(tmp_path / "cards.jsonl", CARDS)
    cards = inputs_of(program, tmp_path)[:1]
    (source,) = read(spark, cards, program.catalogue, wanted_columns([Job(program._compiled)]))
    rows = source.frame.where("rest is null").collect()
    assert [(row.event, row.card, row.amount) for row in rows] == [
        ("txn", "a", 10.5),
        ("txn", "b", 20.0),
        ("txn", "a", 9.5),
        ("txn", "a", 14.5),
    ]


PLAIN = """
TIME UNIT 1 min;
EVENT txn(card: string, amount: float);
EVENT login(user: string, card: string);
EVENT out(user: string);
STREAM cards FROM "cards.csv.gz" FORMAT csv CARRIES txn TIME ts;
STREAM logins FROM "logins.parquet" CARRIES login;
STREAM outs FROM "outs.csv" CARRIES out;
dear(u, c, a) <- t: txn(c, a), l: login(u, c), a > 10, l before t, {l, t} within 1 hour;
left(u) <- o: out(u);
"""
DEAR = [
    ("dear", [1, 5], ["u1", "a", 10.5]),
    ("dear", [2, 6], ["u2", "b", 20.0]),
    ("left", 9, ["u1"]),
    ("left", 10, ["u2"]),
]


def columns(folder: Path) -> None:
    text = "ts,amount,card,more\n5,10.5,a,x\n6,20,b,y\n7,9.5,a,z\n8,much,a,z\n"
    (folder / "cards.csv.gz").write_bytes(gzip.compress(text.encode()))
    table = pa.table({"time": [1, 2], "user": ["u1", "u2"], "card": ["a", "b"]})
    pq.write_table(table, folder / "logins.parquet")
    (folder / "outs.csv").write_text("event,time,user\nout,9,u1\nout,10,u2\nother,11,u3\n", encoding="utf-8")


def found(answers: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    return sorted(((a["event"], a["time"], a["data"]) for a in answers), key=str)


def test_files_of_several_formats_in_one_run_need_no_column_event(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(PLAIN)
    columns(tmp_path)
    places = declared_places([program.catalogue], [tmp_path])
    inputs = [Input(p.location, "csv" if p.format else None, p.only) for p in places]
    (came,) = collected(start(spark, [Job(program._compiled)], inputs, 2))
    assert found(came.answers) == sorted(DEAR, key=str)
    assert [bad["reason"].partition(": ")[2] for bad in came.bad] == ['`amount` is float, and "much" is not']


def test_several_programs_read_what_is_for_them(spark: SparkSession, tmp_path: Path) -> None:
    columns(tmp_path)
    program = ephemera.compile(PLAIN)
    other = ephemera.compile('EVENT quit(user: string); STREAM o FROM "q.csv" CARRIES quit; gone(u) <- q: quit(u);')
    (tmp_path / "q.csv").write_text("time,user\n3,u3\n", encoding="utf-8")
    places = declared_places([program.catalogue, other.catalogue], [tmp_path, tmp_path])
    inputs = [Input(p.location, "csv" if p.format else None, p.only, p.programs) for p in places]
    came = collected(start(spark, [Job(program._compiled), Job(other._compiled)], inputs, 2))
    assert found(came[0].answers) == sorted(DEAR, key=str)
    assert found(came[1].answers) == [("gone", 3, ["u3"])]


def test_columns_of_frames_and_cells_have_other_names(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(
        'EVENT txn(card: string FROM "card no", owner: string FROM "card"); STREAM s CARRIES txn TIME ts;'
        'got(c, o) <- t: txn(c, o), o = "Mira";'
    )
    frame = spark.createDataFrame([(1, "a", "Mira"), (2, "b", "Ole")], "ts bigint, `card no` string, card string")
    assert [(row.begin, row.c, row.o) for row in program.run(frame).collect()] == [(1, "a", "Mira")]
    (tmp_path / "a.csv").write_text("ts,card no,card\n1,a,Mira\n2,b,Ole\n", encoding="utf-8")
    (came,) = collected(start(spark, [Job(program._compiled)], [Input(str(tmp_path / "a.csv"), only="txn")], 2))
    assert found(came.answers) == [("got", 1, ["a", "Mira"])]
    with pytest.raises(
        WrongColumns, match=r"no column `card no` \(for `card`\) in the data frame; did you mean `cardno`"
    ):
        program.run(frame.withColumnRenamed("card no", "cardno"))


def test_files_with_columns_of_other_names_are_read_row_by_row_and_by_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = ephemera.compile(
        """TIME UNIT 1 min;
        EVENT txn(card: string FROM "card no", amount: float FROM "sum", owner: string FROM "card");
        EVENT login(user: string FROM "who", cards: string[] FROM "for") LASTS ANY;
        STREAM cards FROM "cards.csv" CARRIES txn TIME ts;
        STREAM logins FROM "logins.parquet" CARRIES login TIME from, to;
        dear(c, a, o) <- t: txn(c, a, o), a > 10;
        seen(u, c) <- l: login(user: u, cards: c);"""
    )
    text = "ts,sum,card,card no\n1,10.5,Mira,a\n2,1e1,Ole,b\n3,1.05e1,Ole,c\n4,much,Ole,d\n"
    (tmp_path / "cards.csv").write_text(text, encoding="utf-8")
    table = pa.table({"from": [1, 5], "to": [2, 4], "who": ["u1", "u2"], "for": [["a", "b"], ["c"]]})
    pq.write_table(table, tmp_path / "logins.parquet")
    (came,) = collected(start(spark, [Job(program._compiled)], inputs_of(program, tmp_path), 2))
    assert found(came.answers) == [
        ("dear", 1, ["a", 10.5, "Mira"]),
        ("dear", 3, ["c", 10.5, "Ole"]),
        ("seen", [1, 2], ["u1", "a"]),
        ("seen", [1, 2], ["u1", "b"]),
    ]
    assert sorted(bad["reason"] for bad in came.bad) == [
        'cards.csv, line 5: `sum` is float, and "much" is not',
        "it begins after its end",
    ]


def test_a_column_that_an_attribute_is_read_from_names_no_type(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"time": 1, "event": "buy", "page": "a"}, {"time": 2, "event": "click", "page": "b"}]
    (tmp_path / "in.csv").write_text("time,event,page\n1,buy,a\n2,click,b\n", encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    lines(tmp_path / "in.jsonl", rows)
    forms = ["csv", "parquet", "jsonl"]
    programs = [
        ephemera.compile(
            f"""EVENT click(kind: string FROM "event", page: string); EVENT buy(page: string);
            STREAM clicks FROM "in.{form}" CARRIES click; seen(k, p) <- c: click(k, p); bought(p) <- b: buy(p);"""
        )
        for form in forms
    ]
    places = declared_places([program.catalogue for program in programs], [tmp_path] * 3)
    inputs = [Input(p.location, None, p.only, p.programs) for p in places]
    for came in collected(start(spark, [Job(program._compiled) for program in programs], inputs, 2)):
        assert found(came.answers) == [("seen", 1, ["buy", "a"]), ("seen", 2, ["click", "b"])]
        assert came.bad == []


# ---- live ------------------------------------------------------------------------------------------------------


def test_live_each_stream_reads_its_own_folder(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("cards.csv", "logins.parquet", "outs"):
        (tmp_path / name).mkdir()
    text = (
        PLAIN.replace('"cards.csv.gz" FORMAT csv', f'"{tmp_path}/cards.csv"')
        .replace('"logins.parquet"', f'"{tmp_path}/logins.parquet"')
        .replace('"outs.csv" CARRIES out', f'"{tmp_path}/outs" FORMAT json CARRIES out')
    )
    program = ephemera.compile(text)
    (tmp_path / "cards.csv" / "a.csv").write_text("ts,amount,card\n5,10.5,a\n6,20,b\n30,9.5,a\n", encoding="utf-8")
    logins = pa.table({"time": [1, 2, 30], "user": ["u1", "u2", "u3"], "card": ["a", "b", "z"]})
    pq.write_table(logins, tmp_path / "logins.parquet" / "a.parquet")
    lines(
        tmp_path / "outs" / "a.jsonl",
        [{"time": 9, "user": "u1"}, {"time": 10, "data": ["u2"]}, {"user": "u3"}, {"time": 11}],
    )
    answers: list[dict[str, Any]] = []
    sink = ephemera.sinks.Callback(answers.append)
    dead = str(tmp_path / "dead")
    query = program.stream(spark, None, sink, checkpoint=str(tmp_path / "c"), dead_letters=dead).start()
    try:
        query.drain()
    finally:
        query.stop()
    assert found(answers) == sorted(DEAR, key=str)
    texts = [part.read_text(encoding="utf-8") for part in sorted((tmp_path / "dead").glob("*.jsonl"))]
    letters = "".join(texts).splitlines()
    assert [json.loads(letter)["event"] for letter in letters] == ['{"user": "u3"}']
