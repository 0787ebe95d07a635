"""This module hunts for messages that are lost or out of order: `python -m tests.hunt_delivery [kills] [seed]`.

Senders are killed at random steps, in process; whatever falls is printed with its seed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.deliver.crashing import sent_with_kills

KILLS = 10


def main() -> int:
    """Runs until so many senders have been killed, or something falls."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    killed = 0
    while killed < wanted:
        with tempfile.TemporaryDirectory() as folder:
            done = sent_with_kills(Path(folder), seed, kills=KILLS)
            complaint = done.complaint()
        if complaint is not None:
            print(f"seed {seed}: {complaint}")
            return 1
        killed += done.killed
        seed += 1
    print(f"{killed} kills until seed {seed}: every message was taken or buried, and in order")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
