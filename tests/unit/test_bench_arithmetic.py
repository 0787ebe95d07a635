"""This module checks that the benchmark of arithmetic runs, and that its counts are those of all pairs."""

from __future__ import annotations

import sys

import pytest

import ephemera
from bench import arithmetic
from ephemera.engine.observe import planned_for


def test_the_benchmark_of_arithmetic_has_right_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["arithmetic", "--events", "600", "--repeat", "1"])
    arithmetic.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(arithmetic.CASES) + len(arithmetic.THREES) + 2 * len(arithmetic.COLLECTIONS)


def test_one_rule_of_three_events_is_planned_by_what_is_known_of_them() -> None:
    three = arithmetic.events(arithmetic.THIRDS, 600)
    stored = {}
    for name, program, looks in arithmetic.THREES:
        compiled = ephemera.compile(program)._compiled
        plan = (planned_for(compiled, three) if looks else compiled).physical.plan
        stored[name] = [point.name for point in plan.points.values() if point.kind == "join"]
    assert list(stored.values()) == [["q[a,b]"], ["q[a,b]"], []]
