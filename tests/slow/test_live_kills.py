"""This module kills live runs with SIGKILL and starts them again, and looks for each answer and dead letter once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.live_killing import STEPS, Kill, plans, run
from tests.spark.live_shop import expected, found, history, rows_due, rows_found, write, write_with_past

pytestmark = pytest.mark.slow

RUNS = 6
SEED = 7
PLANS = plans(RUNS, SEED)
LARGE = 10_000
"""More events than a batch has."""
MASTERS = ("local[2,4]", "local[1,4]", "local[3,4]")


def test_the_plans_hit_every_step() -> None:
    planned = [kill for plan in PLANS for kill in plan if kill.is_planned]
    assert {kill.step for kill in planned} == set(STEPS)
    assert {kill.victim for kill in planned} == {"worker", "driver", "machine"}


@pytest.mark.parametrize("number", range(RUNS))
def test_what_is_killed_anywhere_gives_each_answer_once(
    tmp_path: Path, number: int, record_property: Callable[[str, object], None]
) -> None:
    files = history(SEED + number)
    write(files, tmp_path / "in")
    ran = run(
        lambda start: _driver(tmp_path, MASTERS[(start + number) % 3], start + number), PLANS[number], tmp_path / "log"
    )
    record_property("kills", [one.told for one in ran.fallen])
    assert ran.left == []
    assert [one.step for one in ran.fallen if one.kill.is_planned] == [k.step for k in PLANS[number] if k.is_planned]
    assert len(ran.gave_up) <= sum(one.kill.victim == "worker" for one in ran.fallen) // 4, ran.gave_up
    assert found(tmp_path) == expected(files)


@pytest.mark.parametrize("number", range(2))
def test_what_is_killed_in_the_past_or_behind_it_gives_each_answer_once(tmp_path: Path, number: int) -> None:
    files = history(SEED + number)
    write_with_past(files, tmp_path)
    steps = ("engines", "segment rename", "ledger rename", "batch done") if number else ("answers rename", "past ends")
    kills = [Kill("machine", step) for step in steps]
    ran = run(lambda start: _driver(tmp_path, MASTERS[start % 3], start), kills, tmp_path / "log")
    assert (ran.left, ran.gave_up) == ([], [])
    given, right = found(tmp_path), expected(files, past=True)
    assert given.answers == right.answers
    assert given.letters == right.letters  # a past that was committed is not read again for its report


def test_a_run_goes_on_with_another_number_of_cores(tmp_path: Path) -> None:
    files = history(SEED)
    write(files, tmp_path / "in")
    kill = Kill("machine", "segment rename", 30)
    ran = run(lambda start: _driver(tmp_path, "local[3]" if start else "local[1]"), [kill], tmp_path / "log")
    assert (ran.starts, ran.gave_up, ran.left) == (2, [], [])
    assert found(tmp_path) == expected(files)


def test_a_table_has_each_answer_once(tmp_path: Path) -> None:
    files = history(SEED)
    write(files, tmp_path / "in")
    machine = [Kill("machine", "table write", 2), *(Kill("machine", "table write", 2, after) for after in (0.2, 0.4))]
    ran = run(lambda _: [*_driver(tmp_path, "local[2,4]"), "answers"], machine, tmp_path / "log")
    assert (ran.gave_up, ran.left) == ([], [])
    assert rows_found(tmp_path) == rows_due(expected(files))


def _driver(folder: Path, master: str, start: int = 0) -> list[str]:
    """Of two starts one lets most batches run in one task, and the other none."""
    return ["tests.spark.live_shop", str(folder), master, str(LARGE if start % 2 else 0)]
