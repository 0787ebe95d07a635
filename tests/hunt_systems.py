"""This module hunts for answers that kills lose or repeat: `python -m tests.hunt_systems [kills] [seed] [engine]`.

Runs from Kafka to Kafka, PostgreSQL and Delta Lake are killed with SIGKILL at random moments, ten times each, and
started again, in one process or on Spark (`local` or `spark`). Whatever falls is printed with its seed. The servers are
started by `scripts/services`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.services import address_of
from tests.systems.killing import whole_after_kills

KILLS = 10


def main() -> int:
    """Runs until so many runs have been killed, or something falls."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    engine = sys.argv[3] if len(sys.argv) > 3 else "local"
    servers = address_of("kafka"), address_of("postgres")
    killed = 0
    while killed < wanted:
        kills = min(KILLS, wanted - killed)
        with tempfile.TemporaryDirectory() as folder:
            try:
                whole_after_kills(Path(folder), servers, engine, kills=kills, seed=seed)
            except AssertionError as error:
                print(f"seed {seed}, {engine}: {error}")
                return 1
        killed += kills
        print(f"{killed} kills until seed {seed}", flush=True)
        seed += 1
    print(f"{killed} kills, {engine}: each answer is there once")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
