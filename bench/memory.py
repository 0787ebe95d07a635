"""This module measures whether memory stays bounded: ten times the stream at an equal rate must not need more of it.

All texts are distinct and the intervals are of mixed length, so that anything that is kept by value, or as long as its
longest neighbour, shows.

PYTHONPATH=. python -m bench.memory [--events 20000] [--times 10]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ephemera
from bench.process import peak

PROGRAM = """\
TIME UNIT 1 ms;
EVENT opened(id: string, x: int) LASTS AT MOST 1 min;
EVENT closed(id: string, x: int) LASTS AT MOST 1 min;
pair(i, j) <- a: opened(i, x), b: closed(j, x), a before b, {a,b} within 90 sec;
alone(i) <- a: opened(i, x), w: extend(a, 5 sec), while w: not closed(_, x);
"""
CHUNK = 1_000
KEYS = 500
STEP = 20
"""Milliseconds between two ends."""
LENGTHS = (0, 0, 0, 10, 500, 5_000, 60_000)


def stream(events: int) -> Iterator[list[dict[str, Any]]]:
    """Events in the order of their ends, some at a time."""
    numbers = random.Random(7)
    for first in range(0, events, CHUNK):
        yield [
            {
                "event": ("opened", "closed")[k % 2],
                "time": [STEP * k + 60_000 - numbers.choice(LENGTHS), STEP * k + 60_000],
                "data": [f"event-{k:012d}", numbers.randrange(KEYS)],
            }
            for k in range(first, min(first + CHUNK, events))
        ]


def measure(events: int) -> dict[str, float]:
    """Peak memory of this process beyond that of an engine that has seen nothing, in MB; what is stored at the end."""
    engine = ephemera.compile(PROGRAM).engine()
    before = peak()
    answers = sum(len(engine.send_many(chunk)) for chunk in stream(events))
    grown = peak() - before
    stats = engine.stats()
    return {"events": events, "answers": answers, "grown": grown, "peak": before + grown, "stored": stats.stored}


def apart(events: int) -> dict[str, float]:
    """The same in a process of its own, as peaks never sink."""
    command = [sys.executable, "-m", "bench.memory", "--only", str(events)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ratio(events: int = 20_000, times: int = 10) -> tuple[float, dict[str, float], dict[str, float]]:
    """How many times as much memory a stream that is so many times as long needs, and both measurements."""
    short, long = apart(events), apart(events * times)
    return long["peak"] / short["peak"], short, long


def main() -> None:
    """Prints both measurements and their ratio."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--times", type=int, default=10)
    options.add_argument("--only", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.only:
        print(json.dumps(measure(chosen.only)))
        return
    found, *both = ratio(chosen.events, chosen.times)
    for m in both:
        print(f"{m['events']:>12,.0f} events  {m['answers']:>12,.0f} answers  {m['stored']:>8,.0f} stored", end="")
        print(f"  peak {m['peak']:.0f} MB, grown by {m['grown']:.1f} MB")
    print(f"{chosen.times} times the stream needs {found:.2f} times the memory")


if __name__ == "__main__":
    main()
