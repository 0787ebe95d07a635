"""This module shows what answers are in hand: a list of objects, and tables with named columns."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import ephemera

SHOP = """
    EVENT order(id: string, qty: int, due: time);
    EVENT shipped(id: string);
    EVENT overdue(order: string) LASTS ANY;
    overdue(id) <- o: order(id, q, d), w: extend(o, 6h), while w: not shipped(id);
    load(id, count(i), d) <- o: overdue(id), p: order(id, q, d), w: extend-begin(o, 24h), while w: collect shipped(i),
        {o, p} within 1 week;
    odd(q / 2, q) <- o: order(id, q, d), q > 1;
    odd(1, 2) <- o: shipped("never");
"""
ORDERS = [
    {"event": "order", "time": "2026-03-02T09:00:00Z", "data": ["a", 3, "2026-03-09T00:00:00Z"]},
    {"event": "order", "time": "2026-03-02T10:00:00Z", "data": ["b", 4, "2026-03-10T00:00:00Z"]},
    {"event": "shipped", "time": "2026-03-02T11:00:00Z", "data": ["b"]},
    {"event": "order", "time": "2026-03-02T12:00:00Z", "data": ["c", "many", None]},
]


@pytest.fixture
def answers() -> ephemera.Answers:
    return ephemera.compile(SHOP, "shop.eq").run_all(ORDERS).answers  # type: ignore[no-any-return]


def test_answers_are_a_list_of_objects(answers: ephemera.Answers) -> None:
    assert answers == list(answers)
    assert isinstance(answers, list)
    assert [one["event"] for one in answers] == ["odd", "odd", "load", "overdue"]
    assert answers[-1] == {"event": "overdue", "time": ["2026-03-02T09:00:00Z", "2026-03-02T15:00:00Z"], "data": ["a"]}
    assert answers[:1] == [answers[0]]


def test_answers_of_an_event_are_a_table_with_named_columns(answers: ephemera.Answers) -> None:
    begin, end = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 15, tzinfo=UTC)
    overdue = answers["overdue"]
    assert overdue.to_pylist() == [{"begin": begin, "end": end, "order": "a"}]
    load = answers["load"]
    assert load.column_names == ["begin", "end", "id", "count_i", "d"]
    assert str(load.schema.field("d").type) == "timestamp[us, tz=UTC]"
    assert load.to_pylist()[0]["d"] == datetime(2026, 3, 9, tzinfo=UTC)
    assert answers["odd"].column_names == ["begin", "end", "value1", "q"], "the first head names them"
    assert answers["odd"]["value1"].to_pylist() == [1.5, 2.0]


def test_all_answers_are_one_table_as_arrow_would_be_answered(answers: ephemera.Answers) -> None:
    table = answers.to_arrow()
    assert table["event"].to_pylist() == [one["event"] for one in answers]
    assert table.column_names[:3] == ["event", "begin", "end"]
    assert set(table.column_names[3:]) == {"order", "id", "count_i", "d", "value1", "q"}
    assert list(answers.to_pandas().columns) == table.column_names


def test_columns_are_those_of_tables_that_programs_answer() -> None:
    program = ephemera.compile(
        "EVENT a(x: int, y: float); p(x, avg(y)) <- i: a(x, z), w: extend(i, 2), while w: "
        "collect a(x, y); q(y, x + 1) <- i: a(x, y);"
    )
    rows = [{"event": "a", "time": t, "data": [t % 2, t / 4]} for t in range(5)]
    table = pa.table(
        {"event": ["a"] * 5, "time": range(5), "x": [t % 2 for t in range(5)], "y": [t / 4 for t in range(5)]}
    )
    expected = program.run(table)
    found = program.run(rows).to_arrow()
    assert found.select(expected.column_names).to_pylist() == expected.to_pylist()
    assert [found.schema.field(n).type for n in expected.column_names] == list(expected.schema.types)


def test_an_event_without_answers_is_an_empty_table_and_an_unknown_one_is_told() -> None:
    answers = ephemera.compile(SHOP).run([])
    assert answers["load"].num_rows == 0
    assert answers["load"].column_names == ["begin", "end", "id", "count_i", "d"]
    assert str(answers["load"].schema.field("count_i").type) == "int64"
    with pytest.raises(KeyError, match=r"no rule derives `overdu`; did you mean `overdue`\?"):
        _ = answers["overdu"]
    with pytest.raises(KeyError, match=r"no rule derives `xyz`\. There are overdue, load, odd"):
        _ = answers["xyz"]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_an_event_without_answers_has_the_columns_that_it_has_with_some(engine: str) -> None:
    program = ephemera.compile("""
        EVENT o(i: string, q: int);
        small(i, begin(o)) <- o: o(i, q), q < 10;
        big(i, q) <- o: o(i, q), q > 10;
        DETECT deep { items { var I } } ON o: o {{ i { var I }, q { 7 } }} END
    """)
    some, few = (
        program.run([{"event": "o", "time": "2026-03-02T09:00:00Z", "data": ["a", q]} for q in counts], engine=engine)
        for counts in ((1, 7, 20), (20,))
    )
    for name in ("small", "big", "deep"):
        assert few[name].schema == some[name].schema
    assert [str(few["small"].schema.field(name).type) for name in ("begin", "end")] == ["timestamp[us, tz=UTC]"] * 2
    assert few["deep"].column_names == ["begin", "end", "data"]
    none = program.run([{"event": "o", "time": "2026-03-02T09:00:00Z", "data": ["a", 10]}], engine=engine)
    assert none["small"].schema == some["small"].schema
    assert pickle.loads(pickle.dumps(none))["small"].schema == some["small"].schema


def test_columns_of_an_event_stand_in_the_order_of_its_head() -> None:
    program = ephemera.compile("EVENT o(i: string, q: int); sw(q, i) <- o: o(i, q); big(i, q) <- o: o(i, q);")
    answers = program.run([{"event": "o", "time": 1, "data": ["a", 3]}])
    assert answers["sw"].column_names == ["begin", "end", "q", "i"]
    assert answers["big"].column_names == ["begin", "end", "i", "q"]
    table = pa.table({"event": ["o"], "time": [1], "i": ["a"], "q": [3]})
    assert program.run(table, emit=["big"]).column_names == ["event", "begin", "end", "i", "q"]
    assert answers.to_arrow().column_names == program.run(table).column_names


def test_terms_are_json_and_declared_ones_have_columns() -> None:
    program = ephemera.compile("""
        EVENT x(v: int); EVENT flat(a: int, b: string);
        DETECT deep { items { item { var X }, item { "y" } } } ON x {{ v { var X } }} END
        DETECT flat { a { var X }, b { "t" } } ON x {{ v { var X } }} END
    """)
    answers = program.run([{"event": "x", "time": 1, "data": [7]}])
    assert answers["deep"].to_pylist() == [{"begin": 1, "end": 1, "data": '{"items": {"item": [7, "y"]}}'}]
    assert answers["flat"].to_pylist() == [{"begin": 1, "end": 1, "a": 7, "b": "t"}]


def test_what_could_not_be_used_is_told_with_the_answers(answers: ephemera.Answers) -> None:
    (letter,) = answers.dead_letters
    assert isinstance(letter, ephemera.DeadLetter)
    assert (letter.reason, letter.rule) == ('`qty` is int, and "many" is not', 0)
    assert letter.event is not None
    assert '"many"' in letter.event
    assert "never matched: rule 4 `odd` (shop.eq:9)" in answers.notes


def test_bad_rows_of_a_table_are_told_with_the_reason() -> None:
    program = ephemera.compile("EVENT a(x: int); p(1 / x) <- i: a(x);")
    run = program.run_all(pa.table({"event": ["a", "a", None], "time": [1, 2, 3], "x": [1, 0, 2]}))
    assert run.answers["value1"].to_pylist() == [1.0]
    assert [repr(letter) for letter in run.dead_letters] == [
        "<DeadLetter bad event: an event has a name in the column `event`>",
        "<DeadLetter rule 1: division by zero>",
    ]
    assert repr(run) == "<Run: answers in a table, 1 bad, 1 undefined>"


def test_many_answers_are_shown_in_few_lines() -> None:
    program = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);")
    answers = program.run([{"event": "a", "time": t, "data": [t]} for t in range(5_000)])
    assert repr(answers).splitlines() == [
        "<Answers: 5,000 (5,000 p), the first:",
        "  {'event': 'p', 'time': 0, 'data': [0]}",
        "  {'event': 'p', 'time': 1, 'data': [1]}",
        "  {'event': 'p', 'time': 2, 'data': [2]}",
        "  …>",
    ]


def test_answers_can_be_copied_and_stored(answers: ephemera.Answers) -> None:
    for again in (copy.copy(answers), pickle.loads(pickle.dumps(answers))):
        assert again == answers
        assert again["load"] == answers["load"]
        assert again.dead_letters == answers.dead_letters


def test_values_of_several_kinds_are_json_and_times_between_units_are_doubles() -> None:
    program = ephemera.compile("TIME UNIT 1 hour; p(x) <- i: a(x), w: extend(i, 30 min);")
    answers = program.run([{"event": "a", "time": 1, "data": [v]} for v in (1, "t", None, True)])
    assert answers["p"].schema.types[:2] == [pa.int64(), pa.float64()]
    assert set(answers["p"]["x"].to_pylist()) == {"1", '"t"', None, "true"}
