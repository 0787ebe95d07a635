"""This module shows that the workers of Spark need no more memory for a history that is four times as long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.history import write_history
from tests.spark.machine import SOURCES

pytestmark = pytest.mark.slow

EVENTS = 2_000_000


def test_the_memory_of_workers_does_not_grow_with_the_history(tmp_path: Path) -> None:
    short, long = (_measured(tmp_path / f"{times}.parquet", times * EVENTS) for times in (1, 4))
    assert long["answers"] > 3.9 * short["answers"]
    assert short["workers"] == long["workers"] > 1
    assert long["peak"] <= 1.15 * short["peak"], (short, long)


def _measured(history: Path, events: int) -> dict[str, int]:
    write_history(history, events)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{SOURCES.parent}"}
    command = [sys.executable, "-m", "tests.spark.measuring", str(history)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    (row,) = json.loads(run.stdout)
    found: dict[str, int] = row
    return found
