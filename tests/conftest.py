"""This module chooses how Hypothesis searches, always the same or as a hunt, heeds Ctrl-C, and sums up kills."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Scripts that run in the background have it ignored, and so would the commands that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no bug, so nothing here watches the clock.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Keeps Hypothesis' database, so that the next hunt begins with what the last one caught.
settings.register_profile(
    "hunt",
    derandomize=False,
    deadline=None,
    max_examples=5000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("EPHEMERA_HYPOTHESIS", "ci"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says at which steps live runs were killed, if some were."""
    reports = [one for found in terminalreporter.stats.values() for one in found if getattr(one, "when", "") == "call"]
    fallen = [fall for one in reports for name, value in one.user_properties if name == "kills" for fall in value]
    if fallen:
        from tests.spark.live_killing import table  # noqa: PLC0415 - only where there is Spark

        terminalreporter.section("steps at which live runs were killed")
        terminalreporter.write_line(table(fallen))
