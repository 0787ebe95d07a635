"""This module hunts for counterexamples with fresh randomness, apart from CI: `scripts/hunt [minutes] [arguments]`."""

from __future__ import annotations

import os
import sys
import time

import pytest


def main() -> int:
    """Runs the properties again and again until the minutes are over or something falls."""
    minutes, arguments = (float(sys.argv[1]), sys.argv[2:]) if len(sys.argv) > 1 else (5.0, [])
    os.environ["EPHEMERA_HYPOTHESIS"] = "hunt"
    deadline = time.monotonic() + 60 * minutes
    rounds = 0
    while time.monotonic() < deadline:
        outcome = pytest.main(["-q", "-x", "-n", "2", "tests/properties", *arguments])
        if outcome != pytest.ExitCode.OK:
            return int(outcome)
        rounds += 1
    print(f"{rounds} rounds, nothing found")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
