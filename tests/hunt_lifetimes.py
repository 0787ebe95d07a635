"""This module hunts for relations that keep too much or too little: `python -m tests.hunt_lifetimes [minutes] [seed]`.

Streams are random: relations, lengths, rates, keys and batches are drawn, and whatever falls is printed.
"""

from __future__ import annotations

import sys
import time
from random import Random

from tests.engine.keeping import kept
from tests.strategies.lifetimes import FORMS, Setting

MOST = 1.1


def main() -> int:
    """Runs until the minutes are over or something falls."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    dice = Random(seed)
    deadline = time.monotonic() + 60 * minutes
    rounds, worst = 0, 0.0
    while time.monotonic() < deadline:
        setting = Setting(dice.choice(FORMS), (dice.randrange(1, 14), dice.randrange(1, 14)), dice.random() < 0.5)
        rate, at_once = dice.choice([(3, 1), (8, 1), (30, 60), (60, 300)])
        stream = setting.stream(dice.randrange(1 << 30), rate * dice.randrange(20, 60), rate, dice.randrange(1, 20))
        found = kept(setting, stream, at_once)
        is_few = found.held - found.needed < 20  # of next to nothing a single one is much
        if found.answers != setting.answers(stream) or found.missing or (found.ratio > MOST and not is_few):
            print(f"seed {seed}, round {rounds}: {setting}, rate {rate}, {at_once} at once: {found.ratio:.3f}")
            print(f"{found.missing} were missing; {len(found.answers ^ setting.answers(stream))} answers differ")
            return 1
        worst = max(worst, 0.0 if is_few else found.ratio)
        rounds += 1
    print(f"{rounds} rounds with seed {seed}, nothing found; at most {worst:.3f} of what must be kept")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
