"""This module shows what comes of events that are known at their begin: joined from then on, told when they have ended.

`check` and `explain` promise of them what engines keep that are given events as they come.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ephemera
from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program

RELATIONS = ["a starts b", "a before[0, 3] b", "a meets b", "{a, b} within 9"]


def program(relation: str, lasts: str, arrives: str = " ARRIVES AT BEGIN") -> str:
    declared = "".join(f"EVENT {label}(x: int) {lasts}{arrives};\n" for label in ("i", "j"))
    return f"TIME UNIT 1 sec;\n{declared}p(x) <- a: i(x), b: j(x), {relation};"


def events(length: int) -> list[dict[str, Any]]:
    return [{"event": "ij"[k % 2], "time": [k, k + length], "data": [k]} for k in range(200)]


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_promised_of_such_events_is_what_is_kept(relation: str) -> None:
    checked = check(Source("a.eq", program(relation, "LASTS AT MOST 6")), unbounded="error")
    assert checked.facts is not None
    promised = {r.input: r.minimal for r in checked.facts.relevance}
    engine = Program(checked).engine()
    for event in events(4):
        engine.send(event)
    lane = next(iter(engine._engine.lanes.values()))
    now = lane.bound + 1
    for name, history in lane.histories.items():
        rows = [row for batch in history.batches() for row in batch.rows()]
        assert history.collected > 50
        assert promised[name]
        for bound in promised[name]:
            assert bound.time is not None
            side = f"$.{bound.stamp[-1]}"
            assert all(row[side] >= now - bound.time.bound for row in rows)


@pytest.mark.parametrize("relation", ["a starts b", "a before[0, 3] b", "a meets b"])
def test_that_it_is_known_at_its_begin_bounds_what_its_end_would_not(relation: str) -> None:
    at_begin = check(Source("a.eq", program(relation, "LASTS ANY")), unbounded="error")
    assert not at_begin.report.failed, render_text(at_begin.report)
    at_end = check(Source("a.eq", program(relation, "LASTS ANY", "")), unbounded="error")
    assert "error[unbounded-relevance]: i `a` would be kept forever" in render_text(at_end.report)


def test_what_is_kept_forever_anyway_is_used_at_its_end_and_the_check_says_so() -> None:
    found = check(Source("a.eq", program("a before b", "LASTS ANY")), unbounded="error")
    assert found.report.failed
    text = render_text(found.report)
    assert "error[unbounded-relevance]: i `a` would be kept forever" in text
    assert "i as a: kept forever" in ephemera.compile(program("a before b", "LASTS ANY")).explain("relevance")


def test_answers_appear_when_they_have_ended_and_not_before() -> None:
    engine = ephemera.compile(program("a starts b", "LASTS AT MOST 9")).engine()
    assert engine.send_many([told("i", 1, 3), told("j", 1, 8)]) == []
    assert engine.advance(7) == []
    assert engine.stats().pending == 1
    assert engine.stats().stored == 0
    assert engine.advance(8) == [{"event": "p", "time": [1, 8], "data": [0]}]


@pytest.mark.parametrize(
    "body",
    [
        "a: i(x), while a: not j(x)",
        "a: i(x), while a: collect j(x)",
        "a: i(x), w: extend(a, 2), while w: not k(x)",
        "a: i(x), b: j(x), a starts b, while b: not k(x)",
        "a: i(x), b: j(x), a overlaps b, w: extend(a, 3), while w: not k(x)",
        "a: i(x), b: j(x), c: k(x), a overlaps b, {a, b, c} within 9",
    ],
)
def test_windows_and_timers_around_such_events_answer_what_they_answer_over_a_history(body: str) -> None:
    text = program("", "LASTS AT MOST 5").partition("p(x)")[0] + f"EVENT k(x: int) LASTS AT MOST 2;\np(x) <- {body};"
    dice = Random(body)
    stream = [
        told(label, at := dice.randrange(60), at + dice.randrange(3 if label == "k" else 6))
        for label in (dice.choice("iijjk") for _ in range(90))
    ]
    compiled = ephemera.compile(text)
    engine = compiled.engine()
    given = []
    for event in sorted(stream, key=lambda e: (e["time"][e["event"] == "k"], e["event"])):
        given += engine.send(event)
    given += engine.finish()
    assert not engine.late
    assert sorted(given, key=str) == sorted(compiled.run(stream, engine="oracle"), key=str)
    assert given


def told(label: str, begin: int, end: int) -> dict[str, Any]:
    return {"event": label, "time": [begin, end], "data": [0]}
