"""This module kills live queries at every step of a change of their programs, and looks for each answer once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.live_changing import expected, found
from tests.spark.live_killing import Kill, run

pytestmark = pytest.mark.slow

WRITING = ("change begins", "segment write", "segment sync", "segment rename", "folder sync")
COUNTING = ("change counts", "ledger write", "ledger sync", "ledger rename")
BEHIND = ("batch begins", "engines", "segment rename", "ledger rename", "batch done")


@pytest.mark.parametrize(
    "steps",
    [WRITING, (*COUNTING, "ledger folder sync"), ("segment rename", "change tidy", *BEHIND)],
    ids=["writing", "counting", "behind"],
)
def test_a_change_that_is_killed_anywhere_counts_once(tmp_path: Path, steps: tuple[str, ...]) -> None:
    kills = [Kill("machine", step, batch=1) for step in steps]
    masters = ("local[2]", "local[1]", "local[3]")
    ran = run(lambda start: ["tests.spark.live_changing", str(tmp_path), masters[start % 3]], kills, tmp_path / "log")
    assert (ran.left, ran.gave_up) == ([], [])
    assert [one.step for one in ran.fallen] == list(steps)
    assert found(tmp_path) == expected()
