"""This module hunts for changes of rules that lose answers, or give too much.

`python -m tests.hunt_changes [cases] [first] [spread]`: random programs follow each other in one engine, with one
source or with two, with restarts from snapshots in between. In some of them what rules lack is read from an archive of
all that has come, in others a type gets an attribute, and streams another watermark. With `spread` they run in several
places, whose number changes, too, and which know no archives.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.engine.following import Follower, followed, led
from tests.engine.following_spread import SpreadFollower
from tests.strategies.changes import Changing, make


def main() -> int:
    """Compares each stretch with the oracle; says how much was looked at, or the first case that differs."""
    warnings.simplefilter("ignore")
    count, first = (int(sys.argv[1]) if len(sys.argv) > 1 else 200), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    changes = exact = refused = answers = archived = immovable = 0
    for seed in range(first, first + count):
        case = make(Random(seed), streams=seed % 3 == 0, changes=1 + seed % 3, grows=seed % 7 < 3)
        archive = 0 if "spread" in sys.argv else (1, 0.5, 0, 0, 0)[seed % 5]
        follower = _spread(case, seed) if "spread" in sys.argv else _followed(case, seed, archive)
        wrong = follower.wrong()
        if any(wrong.values()) or (archive == 1 and follower.inexact):
            print(f"case {seed}: {wrong} {follower.inexact}")
            return 1
        archived += len(follower.refusals) - len(follower.immovable) if archive else 0
        immovable += len(follower.immovable)
        changes += len(follower.changes)
        exact += sum(bool(done.added) and not done.notes for done in follower.changes)
        refused += len(follower.refusals)
        answers += len(follower.given)
    told = f"{changes} changes, {exact} of which added rules that were exact at once, {refused} refusals"
    told += f" of which an archive helped with {archived}, and nothing with {immovable}"
    print(f"{count} cases from seed {first} on, {told}, {answers} answers, nothing found")
    return 0


def _followed(case: Changing, seed: int, archive: float) -> Follower:
    return followed(case, Random(seed), restarts=seed % 2 == 0, archive=archive)


def _spread(case: Changing, seed: int) -> Follower:
    with TemporaryDirectory() as folder:
        return led(SpreadFollower(case, Path(folder), Random(seed)), Random(seed), restarts=seed % 2 == 0)


if __name__ == "__main__":
    raise SystemExit(main())
