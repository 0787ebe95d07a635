"""This module is a driver that changes the program of a live query while it runs, and that others kill on its way.

However often it is started: it goes on with the program that the checkpoint has, changes it if that is the first one,
then lets the second half of the events arrive, and ends when they have been read.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.runtime.session import session
from tests.engine.following import end_of, oracle
from tests.spark.live_shop import SMALL

DECLARED = "TIME UNIT 1 sec; EVENT a(k: int, v: int); EVENT b(k: int, v: int); EVENT c(k: int, v: int);\n"
LATE = "late(k) <- i: a(k, _), w: extend(i, 6), while w: not b(k, _);\n"
JOIN = "w(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 9;\n"
SHORTER = "soon(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 4;\n"
FIRST, SECOND = LATE + JOIN, SHORTER + LATE
HALF = 30


def events() -> list[dict[str, Any]]:
    """In the order of time."""
    dice, time, found = Random(11), 0, []
    for _ in range(2 * HALF):
        time += dice.choice((1, 1, 2))
        found.append({"event": dice.choice("abc"), "time": time, "data": [dice.randrange(3), dice.randrange(9)]})
    return found


def expected() -> list[str]:
    """Each answer once: those of the first program up to the change, and those of the second behind it."""
    every = events()
    change, last = every[HALF - 1]["time"] - 0.5, every[-1]["time"] - 0.5
    before, after = oracle(DECLARED + FIRST, every), oracle(DECLARED + SECOND, every)
    early = {one for one in before if end_of(one) / 1e6 <= change}
    return sorted(early | {one for one in after if change < end_of(one) / 1e6 <= last})


def found(folder: Path) -> list[str]:
    """All that was given."""
    lines = [line for path in (folder / "out").glob("part-*") for line in path.read_text().splitlines()]
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def _arrive(folder: Path, number: int) -> None:
    path = folder / "in" / f"{number}.jsonl"
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    some = events()[HALF * number : HALF * (number + 1)]
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(json.dumps(one) + "\n" for one in some))
    os.utime(hidden, (1_000_000 + number, 1_000_000 + number))
    hidden.rename(path)


def main(place: str, master: str) -> None:
    """Until all is read."""
    folder = Path(place)
    _arrive(folder, 0)
    ledger = Checkpoint(f"{place}/checkpoint")
    is_changed = ledger.is_there and ledger.content.get("version", 0) > 0
    program = ephemera.compile(DECLARED + (SECOND if is_changed else FIRST))
    spark = session(master, more=SMALL)
    source, sink = ephemera.sources.Folder(f"{place}/in"), ephemera.sinks.Folder(f"{place}/out")
    try:
        query = program.stream(spark, source, sink, checkpoint=f"{place}/checkpoint", shards=2, small=0).start()
        query.drain()
        if not is_changed:
            query.change(ephemera.compile(DECLARED + SECOND))
        _arrive(folder, 1)
        query.drain()
        query.stop()
    except EphemeraError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
