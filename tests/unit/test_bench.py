"""This module checks that the benchmark adds up every answer, however few the engine gives at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.feeding import run
from bench.queries import Case


@pytest.mark.parametrize("batch", [1, 3, 1_000])
@pytest.mark.parametrize("query", ["Q1", "Q2", "Q3", "Q4"])
def test_the_benchmark_counts_all_answers(query: str, batch: int, tmp_path: Path) -> None:
    case = Case(query, keys=5)
    stream = case.stream(200)
    stream.save(tmp_path)
    right = case.answers(stream)
    assert right.count > 0
    assert right.agree(run(case, tmp_path, batch).answers)
