"""This module chooses how Hypothesis searches: the same examples every time, or a hunt for new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A slow machine is no bug, so nothing here watches the clock.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=200,
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
