"""This module hunts for moments at which a kill loses or doubles something: many runs, each killed several times.

    python -m tests.spark.live_kill_hunt --runs 25 --kills 5

It prints a line for each run, in the end (and when it is stopped) a table of the steps at which kills fell, and fails
if a run was wrong. The folder of a wrong run stays.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from tests.spark.live_killing import Fallen, Ran, any_kills, run, table
from tests.spark.live_shop import Outcome, expected, found, history, write

CORES = (1, 2, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description="kills live runs at random and starts them again")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--kills", type=int, default=5, help="in each run")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the next has the next")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before all runs were done"))
    fallen: list[Fallen] = []
    right: list[bool] = []
    starts = 0
    try:
        for seed in range(chosen.seed, chosen.seed + chosen.runs):
            ran, is_right = _run(seed, chosen.kills)
            fallen += ran.fallen
            right.append(is_right)
            starts += ran.starts
    finally:
        print(table(one.told for one in fallen))
        print(f"{len(right)} runs, {starts} starts, {len(fallen)} kills, {right.count(False)} runs wrong", flush=True)
    return 0 if all(right) else 1


def _run(seed: int, kills: int) -> tuple[Ran, bool]:
    folder = Path(mkdtemp(prefix=f"live-kills-{seed}-"))
    dice = Random(seed)
    plan = any_kills(dice, kills)
    masters = [f"local[{dice.choice(CORES)},4]" for _ in range(99)]
    files = history(seed)
    write(files, folder / "in")
    begin = time.monotonic()
    small = ("0", "10000")  # of two starts one lets most batches run in one task, and the other none
    driver = ["tests.spark.live_shop", str(folder)]
    ran = run(lambda start: [*driver, masters[start], small[(seed + start) % 2]], plan, folder / "log")
    due, there = expected(files), found(folder)
    is_right = due == there
    print(
        f"run {seed}: {'right' if is_right else 'WRONG'}, {time.monotonic() - begin:.0f} s, {ran.starts} starts,",
        f"{len(ran.fallen)} kills at {', '.join(map(_shown, ran.fallen))}",
        f"({len(ran.left)} not reached, {len(ran.missed)} too late, gave up: {ran.gave_up})",
        flush=True,
    )
    if is_right:
        shutil.rmtree(folder)
    else:
        print(f"see {folder}: {_difference(due, there)}", flush=True)
    return ran, is_right


def _shown(one: Fallen) -> str:
    return f"{one.step} ({one.kill.victim}{'' if one.kill.is_planned else ', by chance'})"


def _difference(due: Outcome, there: Outcome) -> str:
    lost = (due.answers - there.answers) + (due.letters - there.letters)
    more = (there.answers - due.answers) + (there.letters - due.letters)
    return f"{sum(lost.values())} lost {list(lost)[:3]}, {sum(more.values())} too many {list(more)[:3]}"


if __name__ == "__main__":
    sys.exit(main())
