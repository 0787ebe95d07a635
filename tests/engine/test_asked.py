"""This module shows what it means that nobody asked for what a rule derives: for letters, notes, reading and state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app
from ephemera.engine.state.snapshot import WrongSnapshot
from ephemera.stories.judge import judge
from ephemera.stories.read import read_story

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))
SHOP = """
EVENT order(id: string, qty: int);
EVENT paid(id: string, cents: int);
EVENT news(text: string);
late(id) <- o: order(id, q), w: extend(o, 6), while w: not paid(id, _);
share(id, 100 / c) <- p: paid(id, c);
rich(id) <- s: share(id, x), x > 50;
heard(t) <- n: news(t);
RAISE to(recipient="r", transport="console") { alarm { var I } } ON event o: order(var I, 0) END
"""
EVENTS = [
    {"event": "order", "time": 1, "data": ["a", 0]},
    {"event": "paid", "time": 2, "data": ["a", 0]},
    {"event": "order", "time": 3, "data": ["b", 1]},
    {"event": "news", "time": 4, "data": [5]},
]
ENGINES = ["local", "oracle"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_nobody_asked_for_has_no_letters_and_counts_nowhere(engine: str) -> None:
    program = ephemera.compile(SHOP, "shop.eq")
    whole = program.run_all(EVENTS, engine=engine)
    assert ([letter.rule for letter in whole.undefined], whole.never_run) == ([2], ())
    asked = program.run_all(EVENTS, engine=engine, emit=["late"])
    assert [answer["data"] for answer in asked.answers] == [["b"]]
    assert (asked.undefined, asked.messages, asked.never_run) == ([], [], (2, 3, 4))
    assert asked.notes == ("3 rules were not run: nobody asked for `share`, `rich`, `heard`",)
    (bad,) = asked.bad
    assert (bad.label, bad.reason) == ("news", whole.bad[0].reason)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_needed_for_what_is_asked_for_is_run(engine: str) -> None:
    asked = ephemera.compile(SHOP).run_all(EVENTS, engine=engine, emit=["rich"])
    assert ([letter.rule for letter in asked.undefined], asked.never_run, asked.never_matched) == ([2], (1, 4), (3,))


def test_messages_are_sent_whatever_is_asked_for() -> None:
    plan = ephemera.compile(SHOP)._planned(["heard"]).physical
    assert plan.rules.keys() == {"heard", "message alarm"}
    assert plan.running == {4, 5}


def test_what_only_rules_read_that_are_not_run_is_not_looked_at() -> None:
    columns = ephemera.compile(SHOP)._planned(["late"]).physical.rewritten.columns
    assert columns is not None
    assert {label: set(names) for label, names in columns.items()} == {"order": {"id", "qty"}, "paid": {"id"}}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_derived_event_from_outside_may_last_any_time_if_nobody_reads_it(engine: str) -> None:
    program = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x); q(x) <- i: p(x); r(x) <- i: a(x);")
    events = [{"event": "a", "time": 1, "data": [1]}, {"event": "p", "time": [1, 9], "data": [2]}]
    for emit, bad in (((), ["p"]), (("q",), ["p"]), (("r",), [])):
        assert [one.label for one in program.run_all(events, engine=engine, emit=emit).bad] == bad


def test_a_program_that_has_nothing_of_what_is_asked_for_runs_no_rule(tmp_path: Path) -> None:
    (tmp_path / "shop.eq").write_text(SHOP.partition("RAISE")[0])
    (tmp_path / "other.eq").write_text("EVENT order(id: string, qty: int); seen(id) <- o: order(id, _);")
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    programs = [str(tmp_path / "shop.eq"), str(tmp_path / "other.eq"), "--input", str(tmp_path / "in.jsonl")]
    for way in (["--engine", "local"], ["--engine", "oracle"], ["--engine", "local", "--mode", "stream"]):
        result = CliRunner().invoke(app, ["run", *programs, *way, "--emit", "seen", "--progress"])
        assert result.exit_code == 0, result.stderr
        assert [json.loads(line)["data"] for line in result.stdout.splitlines()] == [["a"], ["b"]]
        told = f"4 rules were not run: nobody asked for `late`, `share`, `rich`, `heard` (in {tmp_path / 'shop.eq'})"
        assert f"note: {told}" in result.stderr


# ---- live ------------------------------------------------------------------------------------------------------

CHAIN = """
EVENT order(id: string, qty: int);
EVENT paid(id: string);
large(id, q) <- o: order(id, q);
bill(id) <- l: large(id, q), p: paid(id), {l, p} within 9, q > 10;
small(id) <- l: large(id, q), q < 3;
"""


def order(time: int, name: str, quantity: int) -> dict[str, Any]:
    return {"event": "order", "time": time, "data": [name, quantity]}


def test_a_live_engine_gives_what_is_asked_for() -> None:
    engine = ephemera.compile(SHOP).engine(emit=["late"])
    given = [answer for event in EVENTS for answer in engine.send(event)] + engine.finish()
    assert [(answer["event"], answer["data"]) for answer in given] == [("late", ["b"])]
    assert engine.never().run == (2, 3, 4)
    with pytest.raises(ValueError, match="did you mean `late`"):
        ephemera.compile(SHOP).engine(emit=["lat"])


def test_a_snapshot_belongs_to_what_was_asked_for(tmp_path: Path) -> None:
    program = ephemera.compile(CHAIN)
    engine = program.engine(emit=["bill"])
    engine.send_many([order(1, "a", 20), order(2, "b", 2)])
    engine.snapshot().save(tmp_path / "state")
    renamed = CHAIN.replace("l: large(id, q)", "first: large(number, n)").replace(
        "paid(id), {l", "paid(number), {first"
    )
    renamed = renamed.replace("bill(id)", "bill(number)").replace("small(id)", "small(number)")
    renamed = renamed.replace("q > 10", "n > 10").replace("q < 3", "n < 3")
    for text in (CHAIN, renamed):
        after = ephemera.compile(text).engine(emit=["bill"]).restore(tmp_path / "state")
        after.send_many([{"event": "paid", "time": 3, "data": [name]} for name in "ab"])
        assert [answer["data"] for answer in after.finish()] == [["a"]]
    for emit in (["small"], ["bill", "small"], ["large"], []):
        with pytest.raises(WrongSnapshot, match="asked for other events"):
            program.engine(emit=emit).restore(tmp_path / "state")
    whole = program.engine()
    whole.snapshot().save(tmp_path / "whole")
    with pytest.raises(WrongSnapshot, match="asked for other events: it has all of `large`, `small`"):
        program.engine(emit=["bill"]).restore(tmp_path / "whole")
    program.engine(emit=["bill", "small", "large"]).restore(tmp_path / "whole")  # the same rules, by their names


# ---- stories ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_stories_hold_if_they_are_asked_for_one_event_only(path: Path) -> None:
    story = read_story(path.read_text(encoding="utf-8"))
    if "pair" in story.bad:
        return  # it is bad since it is longer than those that rules derive, if somebody reads them; see above
    for label in sorted({answer["event"] for answer in story.answers}):
        rows = [(a, row) for a, row in zip(story.answers, story.after, strict=True) if a["event"] == label]
        asked = replace(story, emit=frozenset([label]), answers=[a for a, _ in rows], after=[row for _, row in rows])
        assert judge(asked, path.name, engine="local") == [], label
