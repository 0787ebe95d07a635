"""This module does one measurement in a process of its own, so that memory and caches of one do not touch another."""

from __future__ import annotations

import json
import pickle
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from bench.data import load
from bench.duckdb_queries import answer, connect, variants
from bench.feeding import run
from bench.frames import frames
from bench.latency import Form, latency
from bench.queries import Case
from bench.reference import Answers

MEMORY = 12 << 30
"""Bytes that the engine may have; a query that needs more has failed."""
TOO_MUCH = 3
"""What a process ends with that wants more."""
NO_CASE = Case("Q1", 1)
NO_ANSWERS = Answers(0, 0)


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be measured."""

    kind: Literal["reference", "duckdb", "engine", "latency", "frame"]
    case: Case = NO_CASE
    folder: Path = Path()
    batch: int = 100_000
    repeat: int = 1
    limit: int | None = None
    """Seconds after which the process ends."""
    right: Answers = NO_ANSWERS
    form: Form = "pattern"
    rules: int = 1
    events: int = 0


def apart(task: Task, *, may_fail: bool = False) -> Any:
    """What a process of its own finds, or None if it may take too long or too much memory, and does."""
    with tempfile.TemporaryFile() as given:
        given.write(pickle.dumps(task))
        given.seek(0)
        command = [sys.executable, "-m", "bench.worker"]
        try:
            done = subprocess.run(command, stdin=given, stdout=subprocess.PIPE, check=False, timeout=task.limit)
        except subprocess.TimeoutExpired:
            if may_fail:
                return None
            raise
    if done.returncode:
        if may_fail and done.returncode == TOO_MUCH:
            return None
        raise SystemExit(f"{task.kind} of {task.case.name} failed")
    return json.loads(done.stdout)


def work(task: Task) -> Any:
    """Does a task here."""
    match task.kind:
        case "reference":
            return asdict(task.case.answers(load(task.folder)))
        case "duckdb":
            return _duckdb(task)
        case "engine":
            return _engine(task)
        case "latency":
            return asdict(latency(task.rules, task.form, task.events))
        case "frame":
            return asdict(frames(task.case, task.folder, task.repeat, task.right))


def _duckdb(task: Task) -> dict[str, float]:
    connection = connect(load(task.folder))
    found: dict[str, float] = {}
    for name, sql in variants(task.case).items():
        runs = [answer(connection, task.case, sql) for _ in range(task.repeat)]
        for answers, _ in runs:
            _compare(f"DuckDB ({name})", task, answers)
        found[name] = min(seconds for _, seconds in runs)
    return found


def _engine(task: Task) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    measured = run(task.case, task.folder, task.batch)
    _compare("the engine", task, measured.answers)
    return measured.as_json()


def _compare(who: str, task: Task, found: Answers) -> None:
    if not task.right.agree(found):
        raise SystemExit(f"{who} answers {task.case.name} with {found}; right is {task.right}")


if __name__ == "__main__":
    try:
        print(json.dumps(work(pickle.load(sys.stdin.buffer))))
    except MemoryError:
        sys.exit(TOO_MUCH)
