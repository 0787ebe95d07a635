"""This module kills workers and executors of Spark in mid-run, and looks for the same answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ephemera
from tests.spark.history import PROGRAM, events_of, write_history
from tests.spark.machine import PATIENCE, SOURCES, cluster
from tests.spark.running import local, plain

pytestmark = pytest.mark.slow

EVENTS = 20_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A history, and the answers to it."""
    path = tmp_path_factory.mktemp("history") / "orders.parquet"
    write_history(path, EVENTS)
    return path, local(ephemera.compile(PROGRAM), events_of(path))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running.url


@pytest.mark.parametrize("where", ["read", "answer"])
@pytest.mark.parametrize("victim", ["worker", "executor"])
def test_what_is_killed_on_a_cluster_is_done_again(
    master: str, run: tuple[Path, list[str]], tmp_path: Path, victim: str, where: str
) -> None:
    assert _killed(master, run[0], tmp_path, victim, where) == run[1]


def test_a_worker_that_is_killed_in_a_local_session_is_replaced(run: tuple[Path, list[str]], tmp_path: Path) -> None:
    assert _killed("local[2,4]", run[0], tmp_path, "worker", "answer") == run[1]


def _killed(master: str, history: Path, folder: Path, victim: str, where: str) -> list[str]:
    """Kills in mid-run what serves one of the tasks that wait there, lets the others go on, and gives the answers."""
    paths = f"{SOURCES}{os.pathsep}{SOURCES.parent}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.killing", master, str(history), where, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as driver:
        try:
            first = _waiting(driver, folder)
            _, daemon = json.loads(first.read_text())
            _kill(_children(daemon) if victim == "worker" else [_parent(daemon)])
            assert driver.poll() is None
            (folder / "go").touch()
            told, complaints = driver.communicate(timeout=3 * PATIENCE)
        finally:
            driver.kill()
    assert (driver.returncode, complaints) == (0, "")
    again = folder.glob(f"{first.name.rpartition('-')[0]}-*")
    assert [task for task in again if task != first], "the task that was killed was tried once more"
    rows = json.loads(told)
    assert len([line for kind, line in rows if kind == "stats" and line["events"]]) > 4
    return plain([line for kind, line in rows if kind == "answer"])


def _waiting(driver: subprocess.Popen[str], folder: Path) -> Path:
    """A task that has let something pass, and waits."""
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and driver.poll() is None:
        found = sorted(p for p in folder.glob("task-*") if not p.suffix)
        if found:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError(f"no task waits: {driver.communicate() if driver.poll() is not None else 'in vain'}")


def _kill(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and any(map(_is_there, processes)):
        time.sleep(0.02)


def _is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
