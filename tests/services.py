"""This module has the real servers that tests need: started once, by `scripts/services`, whoever asks first.

A test that needs one names it by a fixture; one that restarts servers names `alone` besides, and first, and waits until
no other test uses any. Where a server cannot be had the test fails, with what `scripts/services`
says is missing: nothing is skipped, since a connector that nobody tried is no connector. The servers go on running when
the tests are over, so that the next run finds them; `scripts/services stop` ends them.
"""

from __future__ import annotations

import fcntl
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

SCRIPT = (Path(__file__).parent.parent / "scripts" / "services").resolve()


@cache
def address_of(service: str) -> str:
    """Where a service answers; it is started if it does not run, and workers that ask at once wait for one another."""
    done = subprocess.run([SCRIPT, "start", service], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"this test needs {service}, which could not be started:\n{done.stderr}", pytrace=False)
    return done.stdout.split()[1]


@contextmanager
def used(how: int) -> Iterator[None]:
    """While servers are used: by many at once, or by one who restarts them; workers are processes of their own."""
    SCRIPT.parent.parent.joinpath("build", "services").mkdir(parents=True, exist_ok=True)
    with (SCRIPT.parent.parent / "build" / "services" / "used").open("w") as file:
        fcntl.flock(file, how)
        yield


def restart(service: str) -> None:
    """Ends a service and starts it again, as if its machine had been restarted."""
    subprocess.run([SCRIPT, "stop", service], check=True)
    address_of.cache_clear()
    address_of(service)


@pytest.fixture
def alone() -> Iterator[None]:
    """No other test uses a server meanwhile."""
    with used(fcntl.LOCK_EX):
        yield


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """No other test restarts a server meanwhile."""
    if "alone" in request.fixturenames:
        yield
        return
    with used(fcntl.LOCK_SH):
        yield


@pytest.fixture
def kafka(shared: None) -> str:  # noqa: ARG001
    """The address of a broker, without a topic."""
    return address_of("kafka")


@pytest.fixture
def postgres(shared: None) -> str:  # noqa: ARG001
    """The address of a database."""
    return address_of("postgres")


@pytest.fixture
def mqtt(shared: None) -> str:  # noqa: ARG001
    """The address of a broker, without a topic."""
    return address_of("mqtt")


@pytest.fixture
def fresh() -> str:
    """A name that nobody has had: servers remember what earlier runs wrote."""
    return f"t{uuid.uuid4().hex[:12]}"
