"""This module runs programs live between systems, kills the runs at random moments, and looks at what came of it."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
import uuid
from itertools import pairwise
from pathlib import Path

import psycopg
from deltalake import DeltaTable

from tests.systems.brokers import committed, make_topic, order, program_file, send

EVENTS = 3_000
PARTS = 6


def start(
    program: Path, folder: Path, where: str, *outputs: str, once: bool = False, engine: str = "local"
) -> subprocess.Popen[bytes]:
    command: list[object] = [sys.executable, "-m", "ephemera", "run", program, "--mode", "stream", "--engine", engine]
    command += ["--input", where, "--checkpoint", folder / "state", "--trigger", "once" if once else "0.02 sec"]
    command += [part for output in outputs for part in ("--output", output)]
    return subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE)


def commits(folder: Path) -> int:
    """The number of the last commit in the checkpoint, or of the last batch and one."""
    batches = [int(path.stem) for path in (folder / "state" / "progress").glob("[0-9]*.json")]
    if batches:
        return max(batches) + 1
    try:
        found = re.search(r'"number": ?(\d+)', (folder / "state" / "commit.json").read_text())
    except FileNotFoundError:
        return 0
    assert found is not None
    return int(found[1])


def await_commit(running: subprocess.Popen[bytes], folder: Path, before: int) -> None:
    """Waits until a run has made another commit."""
    until = time.monotonic() + 300
    while commits(folder) <= before:
        assert running.poll() is None, (running.communicate()[1] or b"").decode()
        assert time.monotonic() < until, "there is no commit"
        time.sleep(0.01)


def expected() -> list[str]:
    return sorted(f"o{number}" for number in range(EVENTS))


def feed(kafka: str, topic: str, first: int, last: int) -> None:
    for partition in (0, 1):
        send(kafka, topic, [order(n, n // 10) for n in range(first, last) if n % 2 == partition], partition)


def close(kafka: str, topic: str) -> None:
    for partition in (0, 1):
        send(kafka, topic, [order(EVENTS + partition, EVENTS)], partition)


def whole_after_kills(folder: Path, servers: tuple[str, str], engine: str, *, kills: int, seed: int) -> None:
    """Feeds a run from Kafka to Kafka, PostgreSQL, Delta Lake and, in one process, a file, and kills it so often.

    Then each answer must be everywhere once. The servers are those of Kafka and PostgreSQL.
    """
    (kafka, postgres), name = servers, f"t{uuid.uuid4().hex[:12]}"
    chance = random.Random(seed)
    where, out = make_topic(kafka, name), make_topic(kafka, f"{name}-out", partitions=1)
    program, answers = program_file(folder), folder / "answers.jsonl"
    targets = [out, f"{postgres}?table={name}", f"delta:{folder}/delta"]
    targets += [str(answers)] if engine == "local" else []
    for number in range(kills):
        before = commits(folder)
        running = start(program, folder, where, *targets, engine=engine)
        parts = [(number * PARTS + part) * EVENTS // (kills * PARTS) for part in range(PARTS + 1)]
        feed(kafka, name, parts[0], parts[1])
        await_commit(running, folder, before)
        for first, last in pairwise(parts[1:]):
            feed(kafka, name, first, last)
        time.sleep(chance.uniform(0, 0.3))  # which steps of a commit it falls into is for chance to say
        running.send_signal(signal.SIGKILL)
        with running:  # which closes its pipes
            pass
    close(kafka, name)
    whole = start(program, folder, where, *targets, once=True, engine=engine)
    _, told = whole.communicate(timeout=300)
    assert whole.returncode == 0, told.decode()
    assert sorted(answer["data"][0] for answer in committed(kafka, f"{name}-out")) == expected()
    assert engine == "spark" or len(answers.read_text().splitlines()) == EVENTS
    assert sorted(DeltaTable(str(folder / "delta")).to_pyarrow_table()["id"].to_pylist()) == expected()
    with psycopg.connect(postgres) as connection:
        assert connection.execute(f"SELECT count(*), count(DISTINCT id) FROM {name}").fetchone() == (EVENTS, EVENTS)
