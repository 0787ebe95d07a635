"""This module runs several programs in one command: apart from each other, on one reading of the input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ephemera.cli.main import app

COUNTS = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
big(id) <- o: order(id, q), q > 5;
both(1) <- o: order(i, q);
"""
TEXTS = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: string);
EVENT big(id: string);
text(q) <- o: order(id, q);
both(2) <- b: big(id);
"""
MODES = ["batch", "stream"]


def line(time: float, *values: object) -> str:
    return json.dumps({"event": "order", "time": time, "data": list(values)})


@pytest.fixture
def programs(tmp_path: Path) -> list[str]:
    for name, text in (("counts.eq", COUNTS), ("texts.eq", TEXTS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [str(tmp_path / "counts.eq"), str(tmp_path / "texts.eq")]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in text.splitlines()]


@pytest.mark.parametrize("mode", MODES)
def test_a_line_may_be_bad_for_one_program_and_good_for_another(programs: list[str], tmp_path: Path, mode: str) -> None:
    dead = tmp_path / "dead.jsonl"
    given = "\n".join([line(1, "a", 7), line(2, "b", "many"), line(3, "c", None), "no json"])
    result = CliRunner().invoke(
        app, ["run", *programs, "--engine", "local", "--mode", mode, "--dead-letter", str(dead)], input=given
    )
    assert result.exit_code == 0
    found = {(a["event"], json.dumps(a["time"]), json.dumps(a["data"])) for a in lines(result.stdout)}
    both = {("both", t, "[1]") for t in ("1", "3")}
    assert found == {("big", "1", '["a"]'), ("text", "2", '["many"]'), ("text", "3", "[null]"), *both}
    letters = [(Path(x["program"]).name, x["event"]) for x in lines(dead.read_text(encoding="utf-8"))]
    assert sorted(letters) == sorted(
        [
            ("counts.eq", line(2, "b", "many")),
            ("counts.eq", "no json"),
            ("texts.eq", line(1, "a", 7)),
            ("texts.eq", "no json"),
        ]
    )


def test_the_answers_of_all_programs_are_sorted_together(programs: list[str]) -> None:
    given = [line(1, "a", "x"), line(2, "b", 9), line(3, "c", "y"), line(4, "d", 8)]
    result = CliRunner().invoke(app, ["run", *programs, "--engine", "local"], input="\n".join(given))
    found = [(a["time"], a["event"]) for a in lines(result.stdout)]
    assert found == [(1, "text"), (2, "big"), (2, "both"), (3, "text"), (4, "big"), (4, "both")]
    assert "program" not in result.stderr
