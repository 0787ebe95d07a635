"""This module checks that the benchmark of the planner runs, and that all plans have the same answers."""

from __future__ import annotations

import sys

import pytest

from bench import planner


def test_all_plans_of_the_benchmark_have_the_same_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["planner", "--events", "600", "--others", "3", "--repeat", "1"])
    planner.main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(planner.CASES)
