"""This module shows programs being run: from Python, from files, with tables, calendars, bad events and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app
from ephemera.formats.json_events import read_time, write_time
from ephemera.rules.outcome import Endless
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term

LATE = "TIME UNIT 1 hour;\nlate(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);\n"
HOUR = 3_600_000_000


def event(label: str, time: Any, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(data)}


def run(tmp_path: Path, program: str, lines: list[Any], *options: str) -> tuple[int, list[Any], str]:
    (tmp_path / "program.eq").write_text(program, encoding="utf-8")
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (tmp_path / "events.jsonl").write_text(text, encoding="utf-8")
    command = [
        "run",
        str(tmp_path / "program.eq"),
        "--input",
        str(tmp_path / "events.jsonl"),
        "--engine",
        "local",
        *options,
    ]
    result = CliRunner().invoke(app, command)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_answers_come_sorted_by_their_end(tmp_path: Path) -> None:
    events = [event("order", 5, "b"), event("order", 1, "a"), event("shipped", 3, "c")]
    code, answers, _ = run(tmp_path, LATE, events)
    assert code == 0
    assert answers == [event("late", [1, 7], "a"), event("late", [5, 11], "b")]


def test_times_come_back_as_they_were_given(tmp_path: Path) -> None:
    code, answers, _ = run(tmp_path, LATE, [event("order", "2026-03-01T09:00:00+01:00", "a")])
    assert code == 0
    assert answers == [event("late", ["2026-03-01T08:00:00Z", "2026-03-01T14:00:00Z"], "a")]


def test_bad_events_are_kept_with_the_reason_and_never_fatal(tmp_path: Path) -> None:
    program = "EVENT order(id: string, qty: int);\nseen(i) <- o: order(i, _);\n"
    wrong = [
        "no json",
        "[]",
        {"time": 1},
        event("order", 1, "a"),
        event("order", 1, "a", "three"),
        event("order", [3, 1], "a", 3),
        event("order", [1, 2], "a", 3),
        event("order", "yesterday", "a", 3),
        event("order", "2026-03-01T09:00:60Z", "a", 3),
        {"event": "order", "time": 1, "xml": "<order>"},
        {"event": "order", "time": 1, "term": "other { }"},
        '{"event": "order", "time": 1, "data": ["a", 1e999]}',
        '{"event": "order", "time": NaN, "data": ["a", 1]}',
    ]
    letters = tmp_path / "dead.jsonl"
    code, answers, _ = run(tmp_path, program, [*wrong, event("order", 1, "good", 3)], "--dead-letter", str(letters))
    assert code == 0
    assert answers == [event("seen", 1, "good")]
    kept = [json.loads(line) for line in letters.read_text().splitlines()]
    assert len(kept) == len(wrong)
    assert all(letter["reason"] for letter in kept)
    assert kept[0]["event"] == "no json"


def test_without_a_dead_letter_file_the_first_is_told(tmp_path: Path) -> None:
    code, _, stderr = run(tmp_path, LATE, ["no json"])
    assert code == 0
    assert "1 event" in stderr
    assert "--dead-letter" in stderr


def test_a_head_without_a_value_makes_no_event_and_a_dead_letter(tmp_path: Path) -> None:
    letters = tmp_path / "dead.jsonl"
    events = [event("r", 1, 4, 2), event("r", 2, 4, 0)]
    code, answers, _ = run(tmp_path, "q(a / b) <- r(a, b);\n", events, "--dead-letter", str(letters))
    assert code == 0
    assert answers == [event("q", 1, 2.0)]
    (letter,) = [json.loads(line) for line in letters.read_text().splitlines()]
    assert (letter["rule"], letter["variables"]) == (1, {"a": 4, "b": 0})


def test_only_what_is_asked_for_is_emitted(tmp_path: Path) -> None:
    program = LATE + "known(id) <- order(id);\n"
    code, answers, _ = run(tmp_path, program, [event("order", 1, "a")], "--emit", "known")
    assert code == 0
    assert [a["event"] for a in answers] == ["known"]


def test_an_output_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "answers.jsonl"
    code, answers, _ = run(tmp_path, LATE, [event("order", 1, "a")], "--output", str(target))
    assert (code, answers) == (0, [])
    assert [json.loads(line) for line in target.read_text().splitlines()] == [event("late", [1, 7], "a")]


def test_tables_are_read_from_files_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("sensor,area\ns1,7\ns2,8\n", encoding="utf-8")
    program = 'TABLE place(sensor: string, area: int) FROM "places.csv";\nin(a) <- smoke(s), place(s, a);\n'
    code, answers, _ = run(tmp_path, program, [event("smoke", 1, "s2")])
    assert (code, answers) == (0, [event("in", 1, 8)])


def test_messages_carry_their_recipient(tmp_path: Path) -> None:
    program = 'RAISE to(recipient="ops", transport="console") { fire { var A } } ON event s: smoke [ var A ] END\n'
    code, answers, _ = run(tmp_path, program, [event("smoke", 1, 7)])
    assert code == 0
    assert answers == [
        {"event": "fire", "time": 1, "term": "fire { 7 }", "recipient": "ops", "transport": "console"},
    ]


def test_a_wrong_program_is_told_and_nothing_runs(tmp_path: Path) -> None:
    code, answers, stderr = run(tmp_path, "late(x) <- o: order(id);\n", [event("order", 1, "a")])
    assert (code, answers) == (1, [])
    assert "unbound-variable" in stderr


def test_a_missing_input_is_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "program.eq").write_text(LATE, encoding="utf-8")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "program.eq"), "--input", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2


def test_calendars_are_events_and_conditions() -> None:
    program = ephemera.compile(
        "TIME UNIT 1 hour;\n"
        "busy(count(i)) <- d: cal:shift(), while d: collect order(i);\n"
        "same(i, j) <- a: order(i), b: order(j), a before b, {a, b} in cal:shift();\n"
    )
    shifts = [Event(Term("cal:shift"), Interval(0, 8 * HOUR)), Event(Term("cal:shift"), Interval(8 * HOUR, 16 * HOUR))]
    events = [event("order", t, name) for t, name in ((1, "a"), (7, "b"), (9, "c"), (20, "d"))]
    assert program.run(events, calendars={"cal:shift": shifts}, allow_unbounded=True) == [
        event("same", [1, 7], "a", "b"),
        event("busy", [0, 8], 2),
        event("busy", [8, 16], 1),
    ]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_a_recursion_without_end_is_stopped_and_names_its_rules(engine: str) -> None:
    program = ephemera.compile("count(n) <- start(n); count(n + 1) <- count(n);")
    with pytest.raises(Endless, match=r"rule 2 \(count\) makes ever new events of `n`"):
        program.run([event("start", 1, 0)], engine=engine)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="the engines are local, oracle"):
        ephemera.compile(LATE).run([], engine="abacus")


@pytest.mark.parametrize(
    ("given", "microseconds"),
    [
        (1, HOUR),
        (0.5, HOUR // 2),
        (-2, -2 * HOUR),
        (0.29, 29 * HOUR // 100),  # the double is a little less
        ("1970-01-01T00:00:00.0000019Z", 1),
        ("1969-12-31T23:59:59Z", -1_000_000),
    ],
)
def test_times_are_whole_microseconds(given: float | str, microseconds: int) -> None:
    assert read_time(given, HOUR) == microseconds


def test_times_are_written_in_the_unit_or_as_iso_8601() -> None:
    assert write_time(HOUR // 2, HOUR, as_numbers=True) == 0.5
    assert write_time(2 * HOUR, HOUR, as_numbers=True) == 2
    assert write_time(1_500_000, HOUR, as_numbers=False) == "1970-01-01T00:00:01.5Z"


def test_lines_are_judged_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "program.eq").write_text("seen(i) <- o: order(i);\n", encoding="utf-8")
    good = '{"event": "order", "time": 1, "data": ["a\u2028b"]}'.encode()
    (tmp_path / "events.jsonl").write_bytes(good + b'\n{"event": "order", "time": 1, "data": ["\xff"]}\n')
    letters = tmp_path / "dead.jsonl"
    command = ["run", str(tmp_path / "program.eq"), "--input", str(tmp_path / "events.jsonl"), "--engine", "local"]
    result = CliRunner().invoke(app, [*command, "--dead-letter", str(letters)])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == event("seen", 1, "a\u2028b")
    assert "\\xff" in json.loads(letters.read_text())["event"]


@pytest.mark.parametrize("time", [10**400, -(10**30), [1], [1, 2, 3], True, None, {}])
def test_an_impossible_time_is_a_bad_event(time: Any) -> None:
    run = ephemera.compile("seen(i) <- o: order(i);").run_all([{"event": "order", "time": time, "data": ["a"]}])
    assert (run.answers, len(run.bad)) == ([], 1)


def test_python_tuples_are_lists() -> None:
    program = ephemera.compile("seen(i) <- o: order(i);")
    assert program.run([{"event": "order", "time": (1, 2), "data": ("a",)}]) == [event("seen", [1, 2], "a")]


def test_a_term_at_a_position_keeps_its_text() -> None:
    program = ephemera.compile("seen(x) <- o: order(x);")
    assert program.run([{"event": "order", "time": 1, "data": {"id": 7}}]) == [event("seen", 1, {"id": 7})]


def test_a_table_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="no table `t`"):
        ephemera.compile("seen(x) <- o: order(x);").run([], tables={"t": []})


def test_time_that_passes_moves_only_the_end() -> None:
    program = ephemera.compile("TIME UNIT 1 hour; tick() <- t: timer:datetime(minute: 0), w: extend(t, 1);")
    events = [event("order", 5, "a"), event("order", 6, "b")]
    assert program.run(events, until=1) == program.run(events)
