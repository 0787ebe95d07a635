"""This module shows what `explain` expects of a plan, and how `--analyze` puts what was seen beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app

PROGRAM = """
EVENT c(id: int, v: int) RATE 5 per sec; EVENT d(id: int, w: int); EVENT e(u: int);
q(i, j, u) <- a: c(i, v), b: d(j, w), f: e(u), {a, b, f} within 1 min, v + w = 9;
"""
EVENTS = [
    {"event": label, "time": second, "data": [second % 3] if label == "e" else [second, second % 10]}
    for second in range(300)
    for label in ("ccdeeee"[second % 7],)
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "p.eq").write_text(PROGRAM, encoding="utf-8")
    lines = "".join(json.dumps(event) + "\n" for event in EVENTS)
    (tmp_path / "events.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def test_what_is_seen_stands_beside_what_was_expected(files: Path) -> None:
    given: list[str | Path] = [
        "explain",
        files / "p.eq",
        "--stage",
        "physical",
        "--analyze",
        "--input",
        files / "events.jsonl",
    ]
    told = command(*given, "--format", "json")
    assert told.exit_code == 0, told.output
    plain = json.loads(told.stdout)
    answers = ephemera.compile(PROGRAM).run(EVENTS)
    assert plain["events"] == 300
    assert plain["answers"] == len(answers) > 0
    assert [(one["label"], one["known"]) for one in plain["types"]] == [("c", "seen"), ("d", "seen"), ("e", "seen")]
    for one in plain["types"]:
        assert one["expected"] == pytest.approx(one["seen"], rel=0.01)
    assert all(one["seen"]["tuples"] > 0 for one in plain["histories"])
    text = command(*given).stdout
    assert text.startswith("ran 300 events of 4m59s, ")
    assert "kept at most" in text


def test_analyzing_from_python_says_the_same(files: Path) -> None:
    program = ephemera.load(files / "p.eq")
    plain = program.explain_json("physical", analyze=EVENTS)
    assert plain["events"] == 300
    assert program.explain("physical", analyze=EVENTS).startswith("ran 300 events")
    with pytest.raises(ValueError, match="is to be explained"):
        program.explain("rules", analyze=EVENTS)


def test_input_is_for_analyzing(files: Path) -> None:
    told = command("explain", files / "p.eq", "--input", files / "events.jsonl")
    assert told.exit_code == 2
    assert "--analyze" in told.stderr


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_whatever_is_stored_answers_are_the_same(files: Path, engine: str) -> None:
    found = set()
    for points in ([], ["--points", "rules"], ["--points", "joins"]):
        told = command("run", files / "p.eq", "--input", files / "events.jsonl", "--engine", engine, *points)
        assert told.exit_code == 0, told.output
        found.add(told.stdout)
    assert len(found) == 1
    assert found != {""}


def test_points_say_what_is_stored() -> None:
    program = ephemera.compile(PROGRAM)
    assert "stored join" not in program.explain("physical", points="rules")
    assert "stored join" in program.explain("physical", points="joins")


def test_expectations_follow_from_rates() -> None:
    plain = ephemera.compile(PROGRAM).explain_json("physical", points="rules")
    assert plain["expected"] == [
        {"label": "c", "per_second": 5.0, "known": "declared"},
        {"label": "d", "per_second": 1.0, "known": "assumed"},
        {"label": "e", "per_second": 1.0, "known": "assumed"},
    ]
    (lane,) = plain["lanes"]
    kept = {one["history"]: one["expected"]["tuples"] for one in lane["histories"]}
    assert kept == {"c(v1, v2)": 300.0, "d(v1, v2)": 60.0, "e(v1)": 60.0}
    ways = [way for group in plain["groups"] for rule in group["rules"] for way in rule["ways"]]
    assert len(ways) == 4
    assert [way["cost"] for way in ways] == sorted(way["cost"] for way in ways)
    assert sum(way["taken"] for way in ways) == 1


def test_a_watermark_is_how_far_answers_lag_behind() -> None:
    program = ephemera.compile('EVENT c(id: int); STREAM s FROM "s.csv" CARRIES c WATERMARK 10 min; p(i) <- a: c(i);')
    assert "gives answers 10m behind the latest event" in program.explain("physical")
