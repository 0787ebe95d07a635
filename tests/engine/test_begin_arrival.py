"""This module shows that `check` and `explain` promise for events known at their begin what engines keep of them."""

from __future__ import annotations

from typing import Any

import pytest

import ephemera
from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program

RELATIONS = ["a starts b", "a before[0, 3] b", "a meets b", "{a, b} within 9"]


def program(relation: str, lasts: str) -> str:
    declared = "".join(f"EVENT {label}(x: int) {lasts} ARRIVES AT BEGIN;\n" for label in ("i", "j"))
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
def test_known_at_its_begin_alone_bounds_nothing_and_the_check_says_so(relation: str) -> None:
    found = check(Source("a.eq", program(relation, "LASTS ANY")), unbounded="error")
    assert found.report.failed
    text = render_text(found.report)
    assert "error[unbounded-relevance]: i `a` would be kept forever" in text
    assert "`b` is known when it begins, and used when it has ended" in text
    assert "LASTS AT MOST" in text
    compiled = ephemera.compile(program(relation, "LASTS ANY"))
    assert "i as a: kept forever" in compiled.explain("relevance")
