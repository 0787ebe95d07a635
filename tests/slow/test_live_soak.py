"""This module shows that a live program holds no more after thirty days than after two.

The days are simulated, and pass in minutes. What each batch held and took is told by the reports of the query; what the
processes take is asked of the system.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ephemera.kernels.history import SHORT
from tests.spark.machine import SOURCES
from tests.spark.soaking import BATCHES, DAYS, ROWS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for the memory of processes"),
]

SHARDS = 2
SECOND = 1_000_000
"""In microseconds."""
SPARE = 1.125
"""Histories drop whole runs, which span up to an eighth of the time for which they matter."""


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What thirty days left behind."""
    folder = tmp_path_factory.mktemp("soak")
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{SOURCES.parent}"}
    command = [sys.executable, "-m", "tests.spark.soaking", str(folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1_800, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_all_answers_are_there_and_nothing_was_turned_away(soaked: dict[str, Any]) -> None:
    assert len(soaked["batches"]) == BATCHES
    assert {batch["turned away"] for batch in soaked["batches"]} == {0}
    assert soaked["answers"] == soaked["right"]
    assert min(soaked["answers"].values()) > 10_000


def test_histories_hold_what_their_reach_and_rates_allow(soaked: dict[str, Any]) -> None:
    names = {name for batch in soaked["batches"] for name in batch["histories"]}
    assert {name.partition("(")[0] for name in names} >= {"order", "paid", "shipped", "bought"}
    for name in names:
        told = [batch["histories"][name] for batch in soaked["batches"] if name in batch["histories"]]
        reach = told[-1][2]
        rate = soaked["rates"][name.partition("(")[0]] / (DAYS * 86_400)
        allowed = soaked["holders"][name] * (SPARE * rate * reach / SECOND + ROWS + SHARDS * SHORT)
        assert reach > 0
        assert max(tuples for tuples, _, _ in told) <= allowed, name
        assert max(size for _, size, _ in told) <= allowed * _width(name), name
        assert _later([size for _, size, _ in told]) <= 1.1 * _earlier([size for _, size, _ in told]), name


@pytest.mark.parametrize("what", ["live", "pending", "waiting", "segments", "written"])
def test_the_state_is_in_the_last_week_what_it_was_in_the_one_before(soaked: dict[str, Any], what: str) -> None:
    told = [batch[what] for batch in soaked["batches"]]
    assert _later(told) <= 1.1 * _earlier(told)


@pytest.mark.parametrize("process", ["driver", "java", "workers"])
def test_processes_grow_no_more_in_the_second_half(soaked: dict[str, Any], process: str) -> None:
    told = [batch[process] for batch in soaked["batches"]]
    assert min(told) > 0
    assert _later(told) <= 1.1 * _earlier(told)


def _width(name: str) -> int:
    """The bytes of a tuple: its variables, when it begins and ends, and which event it is, all of them numbers."""
    return 8 * (3 + len(name.partition("(")[2].split(",")))


def _earlier(told: list[float]) -> float:
    """The mean of the third quarter."""
    return statistics.fmean(told[len(told) // 2 : 3 * len(told) // 4])


def _later(told: list[float]) -> float:
    """The mean of the last quarter."""
    return statistics.fmean(told[3 * len(told) // 4 :])
