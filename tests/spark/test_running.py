"""This module shows that programs over files answer on Spark what they answer in one process, of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ephemera.language import compile
from ephemera.program import Program
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term
from tests.spark.running import collected, local, plain

SHOP = """
EVENT order(id: string, customer: int); EVENT paid(id: string); EVENT complaint(customer: int);
EVENT edge(source: int, target: int);
"""
OUTSIDE = "terms from outside"
LATE = "late(i, c) <- o: order(i, c), w: extend(o, 50), while w: not paid(i);"
PROGRAMS = {
    "one key": LATE,
    "levels with different keys": LATE + "angry(c) <- l: late(i, c), k: complaint(c), {l, k} within 900;",
    "three levels": LATE
    + "angry(c, d) <- l: late(i, c), k: complaint(c), m: complaint(d), {l, k, m} within 200;"
    + "lost(d, i) <- a: angry(c, d), o: order(i, d), {a, o} within 400;",
    "a key that answers do not show": "busy(c) <- o: order(i, c), p: paid(i), {o, p} within 90;",
    "no key": "near(i, d) <- o: order(i, c), k: complaint(d), {o, k} within 20;",
    "no key but equal times": "same(i, d) <- o: order(i, c), k: complaint(d), {o, k} within 0;",
    "a table": "TABLE vip(customer: int, name: string); known(i, n) <- o: order(i, c), vip(c, n);",
    "recursion": """
        path(x, y) <- e: edge(x, y);
        path(x, z) <- p: path(x, y), e: edge(y, z), {p, e} within 300;
        """,
    "absolute timers": """
        hour(h) <- t: timer:datetime(minute: 0, hour-of-day: h);
        next(i, h) <- o: order(i, c), t: timer:datetime(minute: 0, hour-of-day: h), o before t, {o, t} within 300;
        """,
    "a calendar": """
        busy(count(i)) <- d: cal:shift(), while d: collect order(i, c);
        at(i, c) <- d: cal:shift(), o: order(i, c), o during d;
        """,
    "messages": """
        RAISE to(recipient="desk", transport="console") { refund { var C } }
        ON and { event o: order {{ id { var I }, customer { var C } }}, event p: paid {{ id { var I } }} }
           where { o before p, {o, p} within 90 } END
        """,
    "constructed terms": """
        DETECT seen { @by { var C }, id { var I } } ON event o: order {{ id { var I }, customer { var C } }} END
        DETECT both { var I, note { "paid" } }
        ON and { event s: seen {{ id { var I } }}, event p: paid {{ id { var I } }} } where { {s, p} within 90 } END
        """,
    OUTSIDE: """
        DETECT coded { all code { var C }, of { var T } }
        ON event h: header {{ desc code { var C }, @port { var T } }} END
        DETECT parcel { var W } ON event h: box {{ size {{ weight { var W } }} }} END
        pair(x, y) <- a: loose(x), b: loose(y), a before b, {a, b} within 100;
        """,
    "heads without a value": "share(i, 6 / (c - 3)) <- o: order(i, c);",
    "collections": "sums(c, count(i), max(i)) <- k: complaint(c), x: extend(k, 500), while x: collect order(i, c);",
}
CALENDARS = {
    "cal:shift": [
        Event(Term("cal:shift"), Interval(a * 1_000_000, b * 1_000_000)) for a, b in ((0, 1000), (2000, 5000))
    ]
}
TABLES = {"vip": [{"customer": 1, "name": "Ada"}, {"customer": 4, "name": "Bob"}, {"customer": 4, "name": "B."}]}

FLAT: list[dict[str, Any]] = [
    *({"event": "order", "time": 17 * n, "data": [f"o{n}", n * 7 % 11]} for n in range(500)),
    *({"event": "paid", "time": 17 * n + (n * 13) % 90, "data": [f"o{n}"]} for n in range(500) if n % 3),
    *({"event": "complaint", "time": 101 * n, "data": [n % 13]} for n in range(80)),
    *({"event": "edge", "time": 150 * n, "data": [n * 3 % 7, n * 5 % 7]} for n in range(50)),
    *({"event": "order", "time": 17 * n, "data": [f"o{n}", n * 7 % 11]} for n in range(0, 500, 50)),
]
TERMS: list[dict[str, Any]] = [
    *(
        {"event": "header", "time": 9 * n, "xml": f'<header port="p{n % 3}"><c><code>{n}</code></c></header>'}
        for n in range(20)
    ),
    *({"event": "box", "time": 8 * n, "data": {"size": {"weight": n % 5, "unit": "kg"}}} for n in range(20)),
    *({"event": "loose", "time": 30 * n, "data": [n % 4]} for n in range(20)),
    *({"event": "loose", "time": 30 * n + 5, "term": f'loose [ "{n % 4}" ]'} for n in range(20)),
]
ONE_PLACE = {"no key", "no key but equal times", "a calendar"}
BAD: list[dict[str, Any]] = [
    {"event": "order", "time": 5, "data": ["x"]},
    {"event": "order", "time": 5, "data": ["x", "many"]},
    {"event": "paid", "time": "never", "data": ["o1"]},
]


def _compiled(names: Sequence[str]) -> list[Program]:
    return [compile((SHOP if name != OUTSIDE else "") + PROGRAMS[name], f"{name}.eq") for name in names]


def _world(name: str) -> dict[str, Any]:
    worlds: dict[str, dict[str, Any]] = {"a table": {"tables": TABLES}, "a calendar": {"calendars": CALENDARS}}
    return worlds.get(name, {})


def _jobs(names: Sequence[str], programs: Sequence[Program]) -> list[Job]:
    worlds = [program._world(**_world(name)) for name, program in zip(names, programs, strict=True)]
    return [Job(p._compiled.beside(world.calendars), world) for p, world in zip(programs, worlds, strict=True)]


def _lines(path: Path, events: Sequence[Mapping[str, Any]]) -> Input:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return Input(str(path))


def test_programs_of_every_kind_over_the_same_rows_answer_as_in_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [name for name in PROGRAMS if name != OUTSIDE]
    programs = _compiled(names)
    found = collected(start(spark, _jobs(names, programs), [_columns(spark, tmp_path, FLAT, "parquet")], 3))
    for name, program, came in zip(names, programs, found, strict=True):
        run = program.run_all(FLAT, **_world(name), allow_unbounded=True)
        assert run.output
        assert (name, plain(came.answers)) == (name, plain([answer for _, answer in run.output]))
        assert (name, len(came.dead), came.bad) == (name, len(run.undefined), [])
    assert {name for name, came in zip(names, found, strict=True) if came.busy == 1} == ONE_PLACE


def test_programs_over_the_same_lines_answer_as_in_one_process_and_tell_what_is_bad(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [OUTSIDE, "one key", "messages"]
    programs = _compiled(names)
    events = [*FLAT[::2], *BAD, *TERMS, *FLAT[1::2]]
    found = collected(start(spark, _jobs(names, programs), [_lines(tmp_path / "shop.jsonl", events)], 3))
    for name, program, came in zip(names, programs, found, strict=True):
        run = program.run_all(events, allow_unbounded=True)
        assert run.output
        assert (name, plain(came.answers)) == (name, plain([answer for _, answer in run.output]))
        assert sorted(b["reason"] for b in came.bad) == sorted(b.reason for b in run.bad)
    assert [came.busy for came in found] == [3, 3, 3]


FORMATS = ["levels with different keys", "no key", "absolute timers"]


@pytest.mark.parametrize("form", ["csv", "frame", "both"])
def test_programs_over_columns_answer_as_in_one_process(spark: SparkSession, tmp_path: Path, form: str) -> None:
    programs = _compiled(FORMATS)
    half = len(FLAT) // 2 if form == "both" else len(FLAT)
    inputs = [_columns(spark, tmp_path, FLAT[:half], form)]
    if form == "both":
        inputs.append(_lines(tmp_path / "rest.jsonl", FLAT[half:]))
    found = collected(start(spark, _jobs(FORMATS, programs), inputs, 3))
    for name, program, came in zip(FORMATS, programs, found, strict=True):
        assert (name, plain(came.answers), came.bad) == (name, local(program, FLAT), [])
    assert [came.busy for came in found] == [3, 1, 3]


def _columns(spark: SparkSession, folder: Path, events: Sequence[Mapping[str, Any]], form: str) -> Input:
    names = {"order": ["id", "customer"], "paid": ["id"], "complaint": ["customer"], "edge": ["source", "target"]}
    rows = [
        {"event": e["event"], "time": e["time"], **dict(zip(names[e["event"]], e["data"], strict=True))} for e in events
    ]
    schema = pa.schema([("event", pa.string()), ("time", pa.int64()), ("id", pa.string())])
    for name in ("customer", "source", "target"):
        schema = schema.append(pa.field(name, pa.int64()))
    table = pa.Table.from_pylist(rows, schema)
    match form:
        case "parquet" | "both":
            pq.write_table(table, folder / "shop.parquet", row_group_size=100)
            return Input(str(folder / "shop.parquet"))
        case "csv":
            pa_csv.write_csv(table, folder / "shop.csv")
            return Input(str(folder / "shop.csv"))
        case _:
            return Input(spark.createDataFrame(table))


def test_what_is_asked_for_is_all_that_is_given(spark: SparkSession, tmp_path: Path) -> None:
    (program,) = _compiled(["levels with different keys"])
    job = Job(program._planned(["angry"]), program._world())
    (came,) = collected(start(spark, [job], [_lines(tmp_path / "shop.jsonl", FLAT)], 2))
    assert plain(came.answers) == [a for a in local(program, FLAT) if json.loads(a)["event"] == "angry"]


def test_times_are_written_as_the_input_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    (program,) = _compiled(["one key"])
    events = [
        {**e, "time": f"2026-03-01T09:{e['time'] // 60:02}:{e['time'] % 60:02}Z"} for e in FLAT if e["time"] < 3600
    ]
    (came,) = collected(start(spark, [Job(program._compiled)], [_lines(tmp_path / "shop.jsonl", events)], 2))
    assert plain(came.answers) == local(program, events)
    assert '"2026-03-01T09:' in plain(came.answers)[0]


def test_no_events_are_no_answers(spark: SparkSession, tmp_path: Path) -> None:
    programs = _compiled(FORMATS)
    found = collected(start(spark, _jobs(FORMATS, programs), [_columns(spark, tmp_path, [], "parquet")], 2))
    assert [came.answers for came in found] == [[]] * len(FORMATS)
