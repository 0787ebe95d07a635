"""This module tests programs on tables: what they answer is what the same events as JSON are answered with."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.base.span import Source
from ephemera.engine.hosts.tables import TableRun, run_table
from ephemera.formats import decode_arrow
from ephemera.formats.json_events import read_time
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import check
from ephemera.rules.outcome import World
from ephemera.terms.events import Event

OVERDUE = """
    TIME UNIT 1 hour;
    EVENT order(id: string, qty: int);
    EVENT shipped(id: string);
    overdue(id) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id), q < 10;
"""
JOIN = """
    EVENT a(x: int, y: float) LASTS AT MOST 5;
    EVENT b(x: int, note: string) LASTS AT MOST 5;
    EVENT pair(x: int, y: float, note: string) LASTS ANY;
    pair(x, y, n) <- i: a(x, y), j: b(x, n), {i, j} within 10;
    many(x, count(*), sum(y)) <- i: b(x, n), w: extend-begin(i, 20), while w: collect a(x, y);
"""
DETECT = """
    DETECT alert { about { var I }, of { var N } } ON order {{ id { var I }, customer { var N } }} END
    RAISE to(recipient="ops", transport="mail") { late { var I } } ON order {{ id { var I } }} END
"""
CLOCK = """
    TIME ZONE "Europe/Berlin";
    EVENT a(x: int);
    seen(x) <- i: a(x), t: timer:datetime {{ minute { 30 } }}, i before t, {i, t} within 1h;
"""

Row = Mapping[str, Any]


def compiled(program: str) -> Compiled:
    checked = check(Source("program.eq", program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    return prepare(checked.rules, checked.plan, checked.facts)


def run(program: str, table: Any) -> TableRun:
    return run_table(compiled(program), table, World())


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of a table as the JSON objects that say the same."""
    found = []
    for row in rows:
        time = row["time"] if "time" in row else [row["begin"], row["end"]]
        data = {n: v for n, v in row.items() if n not in ("event", "time", "begin", "end") and v is not None}
        found.append({"event": row["event"], "time": time, "data": data})
    return found


def times(row: Row) -> Any:
    return row["begin"] if row["begin"] == row["end"] else [row["begin"], row["end"]]


def test_an_order_that_is_not_shipped_is_overdue() -> None:
    table = pa.table(
        {"event": ["order", "order", "shipped"], "time": [1, 2, 8], "id": ["a", "b", "b"], "qty": [3, 3, None]}
    )
    answers = ephemera.compile(OVERDUE).run(table)
    assert isinstance(answers, pa.Table)
    assert answers.to_pylist() == [{"event": "overdue", "begin": 1, "end": 7, "id": "a"}]
    assert answers.schema.field("begin").type == pa.int64()


JOINED: list[Row] = [
    {"event": "a", "begin": 1, "end": 3, "x": 1, "y": 0.5, "note": None},
    {"event": "a", "begin": 2, "end": 4, "x": 1, "y": 1.5, "note": None},
    {"event": "a", "begin": 2, "end": 4, "x": None, "y": 1.5, "note": None},
    {"event": "b", "begin": 5, "end": 6, "x": 1, "y": None, "note": "n"},
    {"event": "b", "begin": 9, "end": 14, "x": 1, "y": None, "note": "m"},
    {"event": "a", "begin": 3, "end": 4, "x": 2, "y": 7.0, "note": None},
    {"event": "b", "begin": 3, "end": 4, "x": 2, "y": None, "note": None},
    {"event": "b", "begin": 3, "end": 4, "x": 2, "y": None, "note": None},
]
SHAPES = {"pair": ("x", "y", "note"), "many": ("x", "count", "sum_y")}


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_answers_are_those_of_the_same_events_as_json(engine: str) -> None:
    program = ephemera.compile(JOIN)
    answers = program.run(pa.Table.from_pylist(JOINED), engine=engine)
    assert answers.column_names == ["event", "begin", "end", "x", "y", "note", "count", "sum_y"]
    written = [
        {"event": r["event"], "time": times(r), "data": [r[n] for n in SHAPES[r["event"]]]} for r in answers.to_pylist()
    ]
    expected = program.run(as_json(JOINED), engine="oracle")
    assert written == expected
    assert {e["event"] for e in expected} == {"pair", "many"}


def test_events_of_no_declared_type_are_the_terms_of_what_is_not_null() -> None:
    rows: list[Row] = [
        {"event": "order", "time": 1, "id": 1, "customer": "John", "extra": None},
        {"event": "order", "time": 2, "id": 2, "customer": None, "extra": 1.5},
        {"event": "order", "time": 2, "id": 3, "customer": "Jane", "extra": 1.5},
    ]
    program = ephemera.compile(DETECT)
    answers = program.run(pa.Table.from_pylist(rows))
    expected = program.run_all(as_json(rows), engine="oracle")
    assert answers.column_names == ["event", "begin", "end", "data", "recipient", "transport"]
    found = [
        {"event": r["event"], "time": times(r), "data": json.loads(r["data"])}
        | ({} if r["recipient"] is None else {"recipient": r["recipient"], "transport": r["transport"]})
        for r in answers.to_pylist()
    ]
    assert [a for a in found if "recipient" not in a] == expected.answers
    assert [m["recipient"] for m in found if "recipient" in m] == ["ops"] * 3
    assert [r["end"] for r in answers.to_pylist()] == [1, 1, 2, 2, 2]


def test_answers_by_the_clock_end_with_the_input() -> None:
    begin = datetime(2026, 3, 1, 9, 10, tzinfo=UTC)
    stamps = [begin, begin.replace(hour=10), begin.replace(hour=10, minute=40)]
    table = pa.table({"event": ["a"] * 3, "time": pa.array(stamps, pa.timestamp("ms", tz="UTC")), "x": [1, 2, 3]})
    program = ephemera.compile(CLOCK)
    answers = program.run(table)
    objects = [{"event": "a", "time": t.isoformat(), "data": [x]} for x, t in enumerate(stamps, 1)]
    expected = program.run(objects, engine="oracle")
    assert [(r["begin"].isoformat(), r["end"].isoformat(), r["x"]) for r in answers.to_pylist()] == [
        (*(t.replace("Z", "+00:00") for t in e["time"]), *e["data"]) for e in expected
    ]
    assert [e["data"] for e in expected] == [[1], [2]]


# ---- time --------------------------------------------------------------------------------------------------


IN_UTC = 'TIME ZONE "UTC"; '
ECHO = "EVENT a(x: int); EVENT p(x: int); p(x) <- a(x);"


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        (pa.array([1_500], pa.timestamp("ms")), 1_500_000),
        (pa.array([1_500], pa.timestamp("ms", tz="Europe/Berlin")), 1_500_000),
        (pa.array([1], pa.timestamp("s", tz="UTC")), 1_000_000),
        (pa.array([1_999], pa.timestamp("ns")), 1),
        (pa.array([-1], pa.timestamp("ns")), -1),
        (pa.array([1], pa.date32()), 86_400_000_000),
        (pa.array([86_400_000], pa.date64()), 86_400_000_000),
        (pa.array(["1970-01-01T01:00:01+01:00"]), 1_000_000),
    ],
)
def test_timestamps_are_instants_finer_ones_are_floored(stamps: Any, expected: int) -> None:
    answers = ephemera.compile(IN_UTC + ECHO).run(pa.table({"event": ["a"], "time": stamps, "x": [1]}))
    assert answers.schema.field("end").type == pa.timestamp("us", tz="UTC")
    assert answers["end"].cast(pa.int64()).to_pylist() == [expected]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.float64(), pa.decimal128(25, 1)])
def test_numbers_count_the_unit_and_come_back_as_such(kind: Any) -> None:
    table = pa.table({"event": ["a"], "time": pa.array([2]).cast(kind), "x": [1]})
    answers = ephemera.compile("TIME UNIT 1 hour;" + ECHO).run(table)
    assert answers.select(["begin", "end"]).to_pylist() == [{"begin": 2, "end": 2}]
    assert answers.schema.field("begin").type == pa.int64()


def test_answers_that_no_whole_number_tells_have_doubles() -> None:
    program = ephemera.compile("TIME UNIT 1 hour; EVENT a(x: int); p(x) <- i: a(x), w: extend(i, 30 min);")
    answers = program.run(pa.table({"event": ["a"], "time": [1], "x": [1]}))
    assert answers.select(["begin", "end"]).to_pylist() == [{"begin": 1.0, "end": 1.5}]
    assert answers.schema.field("begin").type == pa.float64()


# ---- types -------------------------------------------------------------------------------------------------


TYPES = """
    EVENT a(i: int, f: float, s: string, b: bool, t: time, v: any);
    EVENT p(i: int, f: float, s: string, b: bool, t: time, v: any);
    p(i, f, s, b, t, v) <- a(i, f, s, b, t, v);
"""


ALL_TYPES = compiled(TYPES)


def in_microseconds(value: int | str | None) -> int | None:
    return value if value is None else read_time(value, 1_000_000)


def test_values_of_all_types_come_back_and_so_do_nulls() -> None:
    table = pa.table(
        {
            "event": pa.array(["a", "a", "a"]).dictionary_encode(),
            "time": [1, 2, 3],
            "i": pa.array([1.0, None, 2.0]),
            "f": pa.array([1, None, 2**53], pa.int64()),
            "s": pa.array(["x", None, "é"], pa.string_view()),
            "b": [True, None, False],
            "t": pa.array([10, None, 20], pa.timestamp("s")),
            "v": ["x", None, "y"],
        }
    )
    answers = ephemera.compile(IN_UTC + TYPES).run(table)
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", tz="UTC"), pa.string()]
    assert answers.schema.types[3:] == kinds
    assert answers.drop_columns(["event", "begin", "end", "t"]).to_pylist() == [
        {"i": 1, "f": 1.0, "s": "x", "b": True, "v": "x"},
        {"i": None, "f": None, "s": None, "b": None, "v": None},
        {"i": 2, "f": 2.0**53, "s": "é", "b": False, "v": "y"},
    ]
    assert answers["t"].cast(pa.int64()).to_pylist() == [10_000_000, None, 20_000_000]


def test_a_missing_column_is_null_if_that_is_lenient_and_others_are_ignored() -> None:
    table = pa.table({"event": ["a"], "time": [1], "i": [1], "unknown": pa.array([b"?"])})
    (answer,) = ephemera.compile(TYPES).run(table, lenient=True).to_pylist()
    assert answer == {"event": "p", "begin": 1, "end": 1, "i": 1, "f": None, "s": None, "b": None, "t": None, "v": None}


@pytest.mark.parametrize(
    ("name", "values", "good", "reason"),
    [
        ("i", pa.array([1, 2.5]), 1, "`i` is int, and 2.5 is not"),
        ("i", pa.array(["1"]), 0, '`i` is int, and "1" is not'),
        ("i", pa.array([True]), 0, "`i` is int, and true is not"),
        ("i", pa.array([1, 2**64 - 1], pa.uint64()), 1, "integers have 64 bits, other numbers are finite"),
        ("f", pa.array([2**53 + 1, 2**60]), 1, "`f` is float, and 9007199254740993 is not"),
        ("f", pa.array([float("nan"), 1.0]), 1, "integers have 64 bits, other numbers are finite"),
        ("f", pa.array([Decimal("1.5"), Decimal(2)]), 2, None),
        ("s", pa.array([1]), 0, "`s` is string, and 1 is not"),
        ("b", pa.array([1]), 0, "`b` is bool, and 1 is not"),
        ("t", pa.array(["2026-01-01T00:00:00"]), 1, None),
        ("t", pa.array(["2026-01-01T00:00:60"]), 0, "`2026-01-01T00:00:60` is no time"),
        ("t", pa.array(["2026-01-01T00:00:00Z"]), 1, None),
        ("t", pa.array([5]), 1, None),
        ("i", pa.array([0], pa.timestamp("s")), 0, '`i` is int, and "1970-01-01T00:00:00Z" is not'),
        ("v", pa.array([float("inf"), 1.5]), 1, "integers have 64 bits, other numbers are finite"),
        ("v", pa.array([b"x"]), 0, "an attribute by position is a text, a number"),
        ("v", pa.array([{"x": 1}]), 1, None),
    ],
)
def test_a_value_converts_without_loss_or_its_row_is_bad(name: str, values: Any, good: int, reason: str | None) -> None:
    given = pa.table({"event": ["a"] * len(values), "time": range(len(values)), name: values})
    found = run_table(ALL_TYPES, given, World(), lenient=True)
    assert found.answers.num_rows == good
    assert len(found.bad) == len(values) - good
    assert reason is None or found.bad[0].reason.startswith(reason)


VALUES: dict[Any, Any] = {
    pa.int64(): st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None]),
    pa.uint64(): st.sampled_from([0, 1, 2**63, 2**64 - 1, None]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e17, float("nan"), float("inf"), None]),
    pa.string(): st.sampled_from(["", "1", "é", "2026-01-01T00:00:00Z", "2026-01-01", None]),
    pa.bool_(): st.sampled_from([True, False, None]),
    pa.null(): st.none(),
}


@given(st.data())
def test_what_is_read_by_columns_is_what_is_read_as_json(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 4))
    columns: dict[str, Any] = {"event": ["a"] * length, "time": range(length)}
    for name in data.draw(st.sets(st.sampled_from("ifsbtv"))):
        kind = data.draw(st.sampled_from(list(VALUES)))
        columns[name] = pa.array(data.draw(st.lists(VALUES[kind], min_size=length, max_size=length)), kind)
    table = pa.table(columns)
    found = run_table(ALL_TYPES, table, World(), lenient=True)
    expected = ephemera.compile(TYPES).run_all(as_json(table.to_pylist()), engine="oracle")
    assert [bad.reason for bad in found.bad] == [bad.reason for bad in expected.bad]
    is_instant = pa.types.is_timestamp(found.answers.schema.field("t").type)
    stamps = (found.answers["t"].cast(pa.int64()) if is_instant else found.answers["t"]).to_pylist()
    unit = 1 if is_instant else 1_000_000
    assert [
        (r["end"], r["i"], r["f"], r["s"], r["b"], None if t is None else t * unit, r["v"])
        for r, t in zip(found.answers.drop_columns(["t"]).to_pylist(), stamps, strict=True)
    ] == [(e["time"], *e["data"][:4], in_microseconds(e["data"][4]), e["data"][5]) for e in expected.answers]


def test_lists_and_instants_of_undeclared_events_are_read_as_json_would_be() -> None:
    lists = ephemera.compile(IN_UTC + "EVENT a(x: int[], t: time[]); p(v) <- a {{ x { var v } }};")
    stamps = pa.array([[0]], pa.list_(pa.timestamp("us")))
    answers = lists.run(pa.table({"event": ["a"], "time": [1], "x": [[1, 2]], "t": stamps}))
    assert answers["v"].to_pylist() == [1, 2]
    instants = ephemera.compile(IN_UTC + "p(v) <- a {{ t { var v } }};")
    answers = instants.run(pa.table({"event": ["a"], "time": [1], "t": pa.array([7], pa.timestamp("us"))}))
    assert answers["v"].cast(pa.int64()).to_pylist() == [7]


# ---- bad rows ----------------------------------------------------------------------------------------------


def test_bad_rows_are_told_with_their_number_and_reason() -> None:
    program = "EVENT a(x: int) LASTS AT MOST 2; p(x) <- a(x);"
    table = pa.table(
        {
            "event": ["a", "a", "a", None, "a", "other", "a"],
            "begin": [1, 5, 1, 1, None, 3, 2**60],
            "end": [1, 4, 4, 1, 1, 9, 2**60],
            "x": [1] * 7,
        }
    )
    found = run(program, table)
    assert found.answers["x"].to_pylist() == [1]
    assert [(bad.row, bad.label, bad.reason) for bad in found.bad] == [
        (1, "a", "it begins after its end"),
        (2, "a", "it lasts longer than declared"),
        (3, None, "an event has a name in the column `event`"),
        (4, "a", "a time is a number or a text such as 2026-03-01T09:00:00Z"),
        (6, "a", ephemera.compile(program).run_all(as_json(table.slice(6).to_pylist())).bad[0].reason),
    ]


def test_an_event_longer_than_rules_make_it_is_bad() -> None:
    program = "EVENT a(x: int); d(x) <- a(x); p(v) <- i: d {{ x { var v } }}, j: a(v), {i, j} within 5;"
    limited = compiled(program)
    table = pa.table({"event": ["d"], "begin": [0], "end": [9], "x": [1]})
    found = run_table(limited, table, World())
    expected = ephemera.compile(program).run_all(as_json(table.to_pylist()))
    assert [bad.reason for bad in found.bad] == [bad.reason for bad in expected.bad]
    assert len(found.bad) == 1


def test_a_table_that_cannot_be_read_says_what_would_help() -> None:
    program = ephemera.compile(OVERDUE)
    with pytest.raises(ValueError, match="name a column `time`, or two `begin` and `end`"):
        program.run(pa.table({"event": ["order"], "begin": [1]}))
    with pytest.raises(ValueError, match="declares 2 types of input; add the column"):
        program.run(pa.table({"time": [1]}))
    with pytest.raises(ValueError, match="several columns `id`; rename"):
        program.run(pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], ["time", "id", "id"]))
    with pytest.raises(ValueError, match="there is no engine `fast`"):
        program.run(pa.table({"event": ["order"], "time": [1]}), engine="fast")


# ---- columns of answers ------------------------------------------------------------------------------------


def test_one_declared_type_needs_no_column_event() -> None:
    table = pa.table({"time": [1, 2], "x": [1, 2]})
    assert ephemera.compile("EVENT a(x: int); p(x) <- a(x);").run(table)["x"].to_pylist() == [1, 2]
    assert ephemera.compile(ECHO).run(table)["x"].to_pylist() == [1, 2], "what rules derive is no input"


@pytest.mark.parametrize(
    ("heads", "columns"),
    [
        ("p(x, y)", ["x", "y"]),
        ("p(x, x)", ["value1", "value2"]),
        ("p(x, x + y)", ["x", "value2"]),
        ("p(y, x) p(x, x)", ["y", "x"]),
        ("p(x + 1, x) p(x, y)", ["value1", "x"]),
        ("p(x) p(x, y) q(y)", ["x", "y"]),
        ("p(value2, x + 1)", ["value1", "value2"]),
        ("p(begin, x)", ["value1", "x"]),
    ],
)
def test_columns_are_named_after_variables_or_positions(heads: str, columns: list[str]) -> None:
    rules = [head + ")" for head in heads.split(")") if head]
    body = "a(x, y, value2, begin)"
    program = "EVENT a(x: int, y: int, v: int, w: int);" + "".join(f"{rule} <- {body};" for rule in rules)
    answers = ephemera.compile(program).run(pa.table({"time": [1], "x": [1], "y": [2], "v": [3], "w": [4]}))
    assert answers.column_names == ["event", "begin", "end", *columns]
    assert answers.num_rows >= len(rules) - 1


def test_columns_of_aggregates_and_functions_say_what_was_computed() -> None:
    program = """
        EVENT a(x: int, v: float);
        p(x, avg(v), count(*), sum(v * 2), begin(i), concat(x, u), concat(x, 1)) <-
            i: a(x, u), w: extend-begin(i, 5), while w: collect a(x, v);
        p(x, u, 1, 2, 3, x, x) <- i: a(x, u);
    """
    answers = ephemera.compile(program).run(pa.table({"time": [1], "x": [1], "v": [0.5]}))
    shown = ["x", "avg_v", "count", "value4", "begin_i", "concat_x_u", "value7"]
    assert answers.column_names == ["event", "begin", "end", *shown]


def test_a_column_of_several_kinds_is_json() -> None:
    program = ephemera.compile("EVENT a(x: int, s: string); p(x) <- a(x, s); p(s) <- a(x, s); q(1.5) <- a(x, s);")
    answers = program.run(pa.table({"time": [1], "x": [1], "s": ["t"]}))
    assert answers.select(["event", "x", "value1"]).to_pylist() == [
        {"event": "p", "x": "1", "value1": None},
        {"event": "p", "x": '"t"', "value1": None},
        {"event": "q", "x": None, "value1": 1.5},
    ]


def test_an_empty_table_is_answered_with_one_of_the_same_columns() -> None:
    table = pa.table({"event": pa.array([], pa.string()), "time": pa.array([], pa.int64())})
    answers = ephemera.compile(JOIN).run(table)
    assert answers.num_rows == 0
    assert answers.column_names == ["event", "begin", "end", "x", "y", "note", "count", "sum_y"]
    assert answers.schema.field("y").type == pa.float64()
    assert ephemera.compile(ECHO).run(pa.table({"event": [], "time": []})).num_rows == 0


def test_many_rows_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a row was read by itself")

    def none(events: Sequence[Event], *_: object) -> list[Any]:
        assert not events
        return []

    monkeypatch.setattr(decode_arrow, "read_object", refuse)
    monkeypatch.setattr(decode_arrow, "listed", refuse)
    monkeypatch.setattr(decode_arrow, "of_events", none)
    half = 100_000
    ids = [f"order {k}" for k in range(half)]
    table = pa.table(
        {
            "event": ["order"] * half + ["shipped"] * half,
            "time": [*range(half), *range(half)],
            "id": ids + ids[: half - 5] + ["?"] * 5,
            "qty": [1] * half + [None] * half,
        }
    )
    answers = ephemera.compile(OVERDUE).run(table)
    assert answers["id"].to_pylist() == ids[-5:]


# ---- kinds of tables ---------------------------------------------------------------------------------------


TABLE = pa.table({"event": ["a", "a"], "time": [1, 2], "x": [1, 2]})
ANSWERS = [{"event": "p", "begin": k, "end": k, "x": k} for k in (1, 2)]


def test_arrow_in_arrow_out() -> None:
    program = ephemera.compile(ECHO)
    reader = program.run(TABLE.to_reader())
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().to_pylist() == ANSWERS
    batch = program.run(TABLE.to_batches()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pylist() == ANSWERS
    batch.validate(full=True)
    chunks = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 1)])
    assert program.run(chunks).to_pylist() == ANSWERS


def test_duckdb_in_duckdb_out_on_the_same_connection() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 'a' AS event, range AS time, range AS x FROM range(1, 3)")
        answers = ephemera.compile(ECHO).run(relation)
        assert isinstance(answers, duckdb.DuckDBPyRelation)
        assert answers.columns == ["event", "begin", "end", "x"]
        assert answers.fetchall() == [("p", 1, 1, 1), ("p", 2, 2, 2)]
        assert answers.aggregate("sum(x)").fetchall() == [(3,)]
        answers.create("kept")
        assert connection.sql("SELECT count(*) FROM kept").fetchall() == [(2,)]
        again = ephemera.compile("EVENT p(x: int); q(x) <- p(x);").run(answers)
        assert again.fetchall() == [("q", 1, 1, 1), ("q", 2, 2, 2)]


def test_pandas_in_pandas_out() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"event": ["a", "a"], "time": [1, 2], "x": [1, 2]})
    answers = ephemera.compile(ECHO).run(frame)
    assert isinstance(answers, pandas.DataFrame)
    assert answers.to_dict("records") == ANSWERS


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_in_polars_out(lazy: bool) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"event": ["a", "a"], "time": [1, 2], "x": [1, 2]})
    answers = ephemera.compile(ECHO).run(frame.lazy() if lazy else frame)
    assert isinstance(answers, polars.LazyFrame if lazy else polars.DataFrame)
    assert (answers.collect() if lazy else answers).to_dicts() == ANSWERS


def test_frames_are_known_by_their_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the libraries, so that the way through their documented interface is tested all the same."""

    class Frame:
        def __init__(self, table: pa.Table) -> None:
            self.to_arrow = lambda: table

    frame: Any = type("DataFrame", (Frame,), {"__module__": "polars.dataframe.frame"})
    library = ModuleType("polars")
    library.from_arrow = frame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", library)
    answers = ephemera.compile(ECHO).run(frame(TABLE))
    assert type(answers) is frame
    assert answers.to_arrow().to_pylist() == ANSWERS


# ---- live --------------------------------------------------------------------------------------------------

STREAMS = """
    EVENT a(x: int, y: float) LASTS AT MOST 5;
    EVENT b(x: int, note: string) LASTS AT MOST 5;
    EVENT s(x: int) LASTS AT MOST 5 ARRIVES AT BEGIN;
    EVENT tags(of: string[]);
    STREAM one CARRIES a, b WATERMARK 3;
    STREAM two CARRIES s, tags WATERMARK 1;
    pair(x, n) <- i: a(x, y), j: b(x, n), {i, j} within 10;
    within(x) <- i: a(x, y), j: s(x), i during j;
    tagged(t) <- i: tags(t);
"""


@st.composite
def arrivals(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for k in range(draw(st.integers(0, 30))):
        label = draw(st.sampled_from(["a", "b", "s", "tags", "other", None]))
        begin = k + draw(st.integers(-8, 3))
        length = draw(st.sampled_from([0, 0, 0, 2, 5, 6, -1])) if label != "tags" else 0
        row = {"event": label, "begin": begin, "end": begin + length, "x": draw(st.integers(0, 2)), "y": 0.5}
        rows.append({**row, "note": draw(st.sampled_from(["p", "q", None])), "of": ["t"]})
    return rows


@given(rows=arrivals(), size=st.integers(1, 31))
def test_a_live_engine_takes_tables_as_it_takes_rows(rows: list[dict[str, Any]], size: int) -> None:
    """Whichever way they come, the answers, what is late and what is bad are the same, and all totals."""
    fields = [("event", pa.string()), ("begin", pa.int64()), ("end", pa.int64()), ("x", pa.int64())]
    fields += [("y", pa.float64()), ("note", pa.string()), ("of", pa.list_(pa.string()))]
    by_rows, by_table = (ephemera.compile(STREAMS).engine() for _ in range(2))
    for k in range(0, len(rows), size):
        part = rows[k : k + size]
        one = by_rows.send_many(as_json(part))
        assert by_table.send_many(pa.Table.from_pylist(part, pa.schema(fields))) == one
        assert {late.event for late in by_table.late} == {late.event for late in by_rows.late}
        assert [bad.reason for bad in by_table.bad if bad.label] == [bad.reason for bad in by_rows.bad if bad.label]
        assert by_table.stats() == by_rows.stats()
    assert by_table.finish() == by_rows.finish()
    stats = by_table.stats()
    assert stats.received == len(rows)


def test_a_bad_or_late_row_is_kept_as_it_was() -> None:
    engine = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);").engine()
    table = pa.table({"event": ["a", "a", "a"], "time": [5, 6, 4], "x": [1.0, 1.5, 2.0]})
    assert engine.send_many(table) == []
    assert engine.finish() == [{"event": "p", "time": 5, "data": [1]}]
    (bad,), (late,) = engine.bad, engine.late
    assert json.loads(bad.original) == {"event": "a", "time": 6, "x": 1.5}
    assert json.loads(late.original) == {"event": "a", "time": 4, "data": [2]}


def test_the_rows_of_a_table_are_stamped_when_they_arrive() -> None:
    now = 7_000_000
    engine = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);").engine(stamp="arrival", now=lambda: now)
    answers = engine.send_many(pa.table({"x": [1, 2], "time": [0, 0]}))
    assert [(a["time"], a["data"]) for a in answers] == [("1970-01-01T00:00:07Z", [k]) for k in (1, 2)]


def test_rows_of_flat_types_go_to_a_live_engine_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_arrow, "read_object", lambda *_: pytest.fail("a row was read by itself"))
    engine = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x), x > 1;").engine()
    found = engine.send_many(pa.table({"event": ["a"] * 3, "time": [1, 2, 3], "x": [1, 2, 3]}))
    assert [a["data"] for a in found + engine.finish()] == [[2], [3]]


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb", "arrow"])
def test_a_live_engine_takes_every_kind_of_table(kind: str) -> None:
    columns = {"event": ["a", "a", "a"], "time": [1, 2, 3], "x": [1, 2, 3]}
    table: Any = pa.table(columns)
    if kind == "duckdb":
        table = duckdb.connect().from_arrow(table)
    elif kind != "arrow":
        table = pytest.importorskip(kind).DataFrame(columns)
    engine = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x), x > 1;").engine()
    assert [a["data"] for a in engine.send_many(table) + engine.finish()] == [[2], [3]]


LABELS = ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    "numbered",
    [
        pa.array(LABELS).dictionary_encode(),
        pa.array(LABELS, pa.large_string()).dictionary_encode(),
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", "a", "b"]).dictionary_encode()]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(["a", "b", "a"])),
        pa.DictionaryArray.from_arrays(pa.array([3, 1, 3, 1]), pa.array(["x", "b", "y", "a"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1]), pa.array(["a", "b", None])),
    ],
    ids=["plain", "large", "in chunks", "one label twice", "unused labels", "null among them"],
)
def test_labels_may_be_numbered_already(numbered: pa.Array) -> None:
    program = ephemera.compile(
        "TIME UNIT 1 sec; EVENT a(x: int); EVENT b(x: int); c(x) <- i: a(x), j: b(x), {i, j} within 10;"
    )
    rest = {"time": [1, 2, 3, 4], "x": [1, 1, 2, 2]}
    expected = program.run(pa.table({"event": LABELS, **rest})).to_pylist()
    assert [answer["x"] for answer in expected] == [1, 2]
    assert program.run(pa.table({"event": numbered, **rest})).to_pylist() == expected


def test_an_attribute_may_be_called_event() -> None:
    program = ephemera.compile("TIME UNIT 1 sec; EVENT a(event: string); c(x) <- i: a(x);")
    table = pa.table({"event": pa.array(["a"]).dictionary_encode(), "time": [1]})
    assert [answer["x"] for answer in program.run(table).to_pylist()] == ["a"]
