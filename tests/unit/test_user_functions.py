"""This module shows how functions that people wrote are declared and called, and what is wrong with some."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera as eph
from ephemera.cli.main import app
from ephemera.terms.user_functions import NoFunction

HERE = "tests.unit.test_user_functions"


def tomorrow(time: datetime.datetime) -> datetime.datetime:
    return time + datetime.timedelta(days=1)


def zone(time: datetime.datetime) -> str:
    return str(time.utcoffset())


def kind(value: Any) -> str:
    return type(value).__name__


def fails(value: Any) -> None:
    raise KeyError(value)


def program(takes: str, gives: str, name: str, declared: str = "") -> eph.Program:
    return eph.compile(f'{declared} FUNCTION f({takes}): {gives} FROM "{HERE}:{name}"; p(f(x)) <- e: a(x);')


def given(*values: Any) -> list[dict[str, Any]]:
    return [{"event": "a", "time": k, "data": [value]} for k, value in enumerate(values)]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_times_are_datetimes_in_the_zone_of_the_program(engine: str) -> None:
    declared = 'TIME ZONE "Europe/Berlin"; EVENT a(x: time);'
    events = [{"event": "a", "time": "2026-03-01T00:00:00Z", "data": ["2026-07-01T12:00:00Z"]}]
    later = program("time", "time", "tomorrow", declared).run(events, engine=engine)
    assert [answer["data"] for answer in later] == [["2026-07-02T12:00:00Z"]]
    away = program("time", "string", "zone", declared).run(events, engine=engine)
    assert [answer["data"] for answer in away] == [["2:00:00"]]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_what_is_declared_as_any_comes_as_it_is(engine: str) -> None:
    answers = program("any", "string", "kind").run(given(1, 1.5, "x", True, None), engine=engine)
    assert [answer["data"] for answer in answers] == [["int"], ["float"], ["str"], ["bool"], ["NoneType"]]


def test_an_exception_is_a_dead_letter_with_what_was_raised() -> None:
    run = program("any", "any", "fails").run_all(given("x"))
    assert run.answers == []
    assert [letter.reason for letter in run.undefined] == ["`f` raised KeyError: 'x'"]


def test_a_result_of_another_type_is_a_dead_letter() -> None:
    run = program("any", "int", "kind").run_all(given(5))
    assert [letter.reason for letter in run.undefined] == ["`f` gave 'int', which is no value of type int"]


@pytest.mark.parametrize("place", ["nowhere_at_all:f", f"{HERE}:nothing"])
def test_a_function_that_is_not_there_is_told_before_anything_is_read(place: str, tmp_path: Path) -> None:
    text = f'FUNCTION f(int): int FROM "{place}"; p(f(x)) <- e: a(x);'
    with pytest.raises(NoFunction, match=r"nowhere_at_all|no function `nothing`"):
        eph.compile(text).run(given(1))
    (tmp_path / "p.eq").write_text(text, encoding="utf-8")
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    options = ["--engine", "local", "--input", "-", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "p.eq"), *options], input="")
    assert (result.exit_code, (tmp_path / "out").read_text(encoding="utf-8")) == (1, "mine")
    assert "nowhere_at_all" in result.stderr or "nothing" in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('FUNCTION upper(string): string FROM "m:f";', "`upper` is a function of the language"),
        ('FUNCTION f(int): int FROM "m:f"; FUNCTION f(int): int FROM "m:g";', "declared twice"),
        ('FUNCTION f(int): int FROM "m";', "`m` is no function of a module"),
        ('FUNCTION f(integer): int FROM "m:f";', "`integer` is no type"),
        ('FUNCTION f(int, int): int FROM "m:f";', "`f` takes 2 arguments, not 1"),
        ('EVENT a(x: string); FUNCTION f(int): int FROM "m:f";', "`f` takes a number here, and this is a string"),
    ],
)
def test_what_is_wrong_with_a_declaration_or_a_call_is_told(text: str, told: str) -> None:
    with pytest.raises(eph.ProgramError, match=told):
        eph.compile(f"{text} p(f(x)) <- e: a(x);")


def test_another_function_of_the_same_name_is_another_rule() -> None:
    one, other = (program("any", "any", name, "EVENT a(x: int);") for name in ("kind", "fails"))
    engine = one.engine()
    assert engine.change(one).kept != ()
    changed = engine.change(other)
    assert (changed.kept, len(changed.removed), len(changed.added)) == ((), 1, 1)


def test_a_declaration_is_written_in_one_layout() -> None:
    text = 'FUNCTION  f( int,float ) : any   FROM "m.n:f";\np(f(x, y)) <- e: a(x, y);\n'
    assert eph.format(text) == 'FUNCTION f(int, float): any FROM "m.n:f";\np(f(x, y)) <- e: a(x, y);\n'
