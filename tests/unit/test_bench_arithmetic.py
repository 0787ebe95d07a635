"""This module checks that the benchmark of arithmetic runs, and that its counts are those of all pairs."""

from __future__ import annotations

import sys

import pytest

from bench import arithmetic


def test_the_benchmark_of_arithmetic_has_right_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["arithmetic", "--events", "600", "--repeat", "1"])
    arithmetic.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(arithmetic.CASES) + 1 + 2 * len(arithmetic.COLLECTIONS)
