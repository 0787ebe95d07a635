"""This module shows what `explain` expects of a plan, and how `--analyze` puts what was seen beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def rules_of(program: str, events: list[dict[str, Any]], **options: Any) -> dict[str, dict[str, dict[str, float]]]:
    """What was expected of each rule and seen, in the whole time of the events."""
    plain = ephemera.compile(program).explain_json("physical", analyze=events, **options)
    seconds = plain["span"] / 1_000_000
    return {
        one["rule"]: {
            when: {what: round(number * seconds, 6) for what, number in one[when].items()}
            for when in ("expected", "seen")
        }
        for one in plain["rules"]
    }


TEN = [{"event": "ab"[second % 2], "time": second, "data": [second // 2]} for second in range(11)]
"""Pairs of events with one value, a second apart."""


def test_answers_are_counted_by_rule_not_by_what_it_derives() -> None:
    program = """
        EVENT a(x: int); EVENT b(x: int);
        p(x) <- i: a(x), j: b(x), {i, j} within 5 sec;
        p(x) <- k: b(x), x > 900;
        p(x) <- k: b(x), x <= 1;
        all(x) <- i: p(x);
    """
    seen = {name: one["seen"]["answers"] for name, one in rules_of(program, TEN).items()}
    assert seen == {"p#1": 5, "p#2": 0, "p#3": 2, "all": 7}


def test_what_several_matches_answer_is_one_answer() -> None:
    program = "EVENT a(x: int); EVENT b(x: int); p() <- i: b(_), w: shift-backward(i, 1 sec);"
    program += "q(1) <- i: a(_), j: a(_), k: a(_), i before j, j before k, {i, k} within 8 sec;"
    assert {name: one["seen"]["answers"] for name, one in rules_of(program, TEN).items()} == {
        "p": 5,
        "q": len(ephemera.compile(program).run(TEN)) - 5,
    }


def test_tuples_of_stored_joins_are_counted() -> None:
    program = """
        EVENT a(x: int); EVENT b(x: int);
        q(x) <- i: a(x), j: b(x), k: a(_), {i, j, k} within 2 sec, i before j, j before k;
    """
    seen = rules_of(program, TEN, points="joins")
    assert seen["q[i,j]"]["seen"]["answers"] == 5
    assert seen["q"]["seen"]["answers"] == 5


def test_rules_that_run_as_one_are_counted_together() -> None:
    program = """
        EVENT r(k: int, v: int);
        one(k) <- e: r(k, 1), f: r(k, 2), {e, f} within 1 sec;
        two(k) <- e: r(k, 2), f: r(k, 3), {e, f} within 1 sec;
        six(k) <- e: r(k, 1), f: r(k, 3), {e, f} within 1 sec;
    """
    events = [{"event": "r", "time": second, "data": [0, second % 3 + 1]} for second in range(13)]
    whole = rules_of(program, events)
    assert whole.keys() == {"one and 2 more"}
    assert whole["one and 2 more"]["seen"]["answers"] == len(ephemera.compile(program).run(events)) == 12
    # In 12 seconds each of the three waits for one in 9 pairs of the 2 * 13 * 13 / 12 that lie within a second.
    assert whole["one and 2 more"]["expected"]["answers"] == pytest.approx(3 / 9 * 2 * 13 * 13 / 12)


def test_messages_are_counted_by_the_rule_that_sends_them() -> None:
    program = """
        EVENT a(x: int); EVENT b(x: int);
        RAISE to(recipient="r", transport="console") { m { var X } } ON event e: a {{ x { var X } }} END
    """
    (sent,) = rules_of(program, TEN).values()
    assert sent["seen"]["answers"] == 6


def test_input_is_for_analyzing(files: Path) -> None:
    told = command("explain", files / "p.eq", "--input", files / "events.jsonl")
    assert told.exit_code == 2
    assert "--analyze" in told.stderr


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_whatever_is_stored_answers_are_the_same(files: Path, engine: str) -> None:
    found = set()
    few = files / "few.jsonl"  # the oracle tries all combinations
    few.write_text("".join(json.dumps(event) + "\n" for event in EVENTS[:60]), encoding="utf-8")
    for points in ([], ["--points", "rules"], ["--points", "joins"]):
        told = command("run", files / "p.eq", "--input", few, "--engine", engine, *points)
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


DELAYS = (Path(__file__).parents[1] / "golden" / "physical" / "delays.eq").read_text(encoding="utf-8")


def test_answers_lag_behind_as_far_as_is_told() -> None:
    """Of orders that come every ten minutes, and what is shipped a second before, one is looked at."""
    program = ephemera.compile(DELAYS)
    told = {
        rule["rules"][0]["point"]: rule["delay"]["behind"] // 1_000_000
        for group in program.explain_json("physical")["groups"]
        for rule in group["rules"]
    }
    ids = {("shipped", 1): "one", ("order", 1): "one", ("shipped", 2): "one", ("order", 3): "alone"}
    last = {"taken": 599, "sent": 1199, "overdue": 1800}  # of all others it is the order at 600
    seen: dict[str, int] = {}
    with program.engine() as engine:
        for number in range(60):
            for label, at in (("shipped", 600 * number - 1), ("order", 600 * number)):
                answers = engine.send({"event": label, "time": at, "data": [ids.get((label, number), "other")]})
                for answer in answers:
                    name, (about,) = answer["event"], answer["data"][:1]
                    if about == ("alone" if name == "overdue" else "one"):
                        seen.setdefault(name, at - last.get(name, 600))
    assert told == {
        "placed": 600,
        "taken": 0,
        "reminder": 6 * 3600 + 600,
        "overdue": 6 * 3600 + 600,
        "second": 7 * 3600 + 600,
        "parcels": 2 * 3600 + 600,
        "before": 600,
        "sent": 600,
    }
    assert seen.keys() == told.keys()
    assert all(told[name] <= at <= told[name] + 600 + 1 for name, at in seen.items()), seen


def test_a_lane_says_what_it_waits_for() -> None:
    plain = ephemera.compile(DELAYS).explain_json("physical")
    shop = {"source": "shop", "watermark": 600_000_000, "idle": 60_000_000}
    store = {"source": "store", "watermark": 0, "idle": None}
    assert [lane["waits_for"] for lane in plain["lanes"]] == [[shop], [store], [shop, store]]
    alone = ephemera.compile("EVENT c(id: int); p(i) <- a: c(i);")
    assert alone.explain_json("physical")["lanes"][0]["waits_for"] == [{"source": None, "watermark": 0, "idle": None}]
    assert "waits for" not in alone.explain("physical")
