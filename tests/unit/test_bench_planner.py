"""This module checks that the benchmark of the planner runs, and that all plans have the same answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

import ephemera
from bench import planner
from ephemera.engine.observe import planned_for
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import PhysicalPlan


def test_all_plans_of_the_benchmark_have_the_same_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["planner", "--events", "600", "--others", "3", "--repeat", "1"])
    planner.main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(planner.CASES) + len(planner.COMMON)


def test_the_chosen_plan_is_run_as_often_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    given = planner.events(planner.CASES[0], 300)
    chosen = planned_for(ephemera.compile(planner.CASES[0].program)._compiled, given, always=True).physical
    several = [chosen, *planner.plans(chosen, 2)]
    ran: list[int] = []

    def run(plan: PhysicalPlan, parts: Sequence[Events]) -> planner.Run:
        ran.append(next(k for k, one in enumerate(several) if one is plan))
        return 5.0 - len(ran) / 100, len(parts), {}

    monkeypatch.setattr(planner, "run", run)
    fastest = planner.measured("it", several, given, 3)
    assert ran == [*range(len(several))] * 3
    assert [seconds for seconds, _, _ in fastest] == [
        5.0 - (k + 1 + 2 * len(several)) / 100 for k in range(len(several))
    ]


def test_plans_of_several_rules_are_told_apart() -> None:
    (program, parts) = next((p, e) for name, p, e in planner.subjects(2_000) if name.startswith("Q2"))
    chosen = planned_for(ephemera.compile(program)._compiled, parts, always=True).physical
    others = planner.plans(chosen, 6)
    assert len(others) > 3
    assert all(one.rules != other.rules for k, one in enumerate(others) for other in others[:k])
    assert {planner.run(plan, parts)[1] for plan in [chosen, *others]} == {planner.run(chosen, parts)[1]}
