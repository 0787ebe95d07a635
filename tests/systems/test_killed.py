"""A live run, in one process or on Spark, that is killed at any moment loses nothing and gives no answer twice.

`python -m tests.hunt_systems` kills more of them.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psycopg
import pytest

from tests.services import restart
from tests.systems.brokers import committed, make_topic, program_file
from tests.systems.killing import EVENTS, await_commit, close, expected, feed, start, whole_after_kills

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_run_that_is_killed_is_whole_when_it_goes_on(kafka: str, postgres: str, tmp_path: Path, engine: str) -> None:
    whole_after_kills(tmp_path, (kafka, postgres), engine, kills=5, seed=18)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_broker_and_a_database_that_are_restarted_are_waited_for(  # noqa: PLR0913, PLR0917 - fixtures
    alone: None,  # noqa: ARG001
    kafka: str,
    postgres: str,
    fresh: str,
    tmp_path: Path,
    engine: str,
) -> None:
    where, out = make_topic(kafka, fresh), make_topic(kafka, f"{fresh}-out", partitions=1)
    running = start(program_file(tmp_path), tmp_path, where, out, f"{postgres}?table={fresh}", engine=engine)
    half = EVENTS // 2
    feed(kafka, fresh, 0, half)
    await_commit(running, tmp_path, 0)
    restart("postgres")
    restart("kafka")
    feed(kafka, fresh, half, EVENTS)
    close(kafka, fresh)
    until = time.monotonic() + 300
    while len(committed(kafka, f"{fresh}-out")) < EVENTS:
        assert running.poll() is None, (running.communicate()[1] or b"").decode()
        assert time.monotonic() < until, "answers are missing"
        time.sleep(0.5)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=120)
    assert running.returncode == 0, told.decode()
    assert sorted(answer["data"][0] for answer in committed(kafka, f"{fresh}-out")) == expected()
    with psycopg.connect(postgres) as connection:
        assert connection.execute(f"SELECT count(*), count(DISTINCT id) FROM {fresh}").fetchone() == (EVENTS, EVENTS)
