"""This module measures whether memory stays bounded: ten times the stream at an equal rate must not need more of it.

All texts are distinct and the intervals are of mixed length, so that anything that is kept by value, or as long as its
longest neighbour, shows.

Then the queries on lifetimes, Q5m and Q5r, run unit by unit of time. What they store, what they take, and how many
candidates they examine for an answer must be the same in the second half of the stream as in the first.

PYTHONPATH=. python -m bench.memory [--events 20000] [--times 10] [--units 40]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import ephemera
from bench.data import Stream, lasting
from bench.feeding import MICROSECONDS, engine, parts
from bench.process import peak
from bench.queries import Case
from ephemera.engine.stats import stats_of

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
    at_work = ephemera.compile(PROGRAM).engine()
    before = peak()
    answers = sum(len(at_work.send_many(chunk)) for chunk in stream(events))
    grown = peak() - before
    stats = at_work.stats()
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


@dataclass(frozen=True, slots=True)
class Unit:
    """What a unit of time left behind."""

    answers: int
    stored: int
    """Tuples in the histories."""
    bytes: int
    """Of the histories."""
    examined: float
    """Pairs of tuples that were looked at in this unit, for each of its answers."""
    peak: float
    """Of the process, in MB."""


def units(query: str, count: int) -> list[Unit]:
    """A query on lifetimes over so many units of time, measured after each."""
    case = Case(query)
    whole = lasting("memory" if query == "Q5m" else "response")
    rows = whole.begin == 0
    kind, x = whole.kind[rows], whole.x[rows]
    at_work = engine(case.program)
    found: list[Unit] = []
    given, examined = 0, 0
    for number in range(count):
        begin = np.full(len(x), number)
        stream = Stream("AB", kind, np.arange(len(x)) + number * len(x), x, np.zeros_like(x), begin, begin + 2)
        at_work.load(parts(stream, case.columns))
        at_work.advance((number + 2) * MICROSECONDS - 1)
        stats = stats_of(at_work, 0, 0)
        new = stats.given - given
        per_answer = (stats.examined - examined) / max(new, 1)
        found.append(Unit(new, stats.stored, sum(h.bytes for h in stats.histories), per_answer, peak()))
        given, examined = stats.given, stats.examined
    return found


def flatness(found: list[Unit], of: Callable[[Unit], float]) -> float:
    """The most of the second half of a stream, in terms of the most of its first half."""
    half = len(found) // 2
    return max(map(of, found[half:])) / max(map(of, found[:half]))


def print_units(query: str, count: int) -> None:
    """Prints how flat a query on lifetimes is."""
    found = units(query, count)
    figures: dict[str, Callable[[Unit], float]] = {
        "stored": lambda u: u.stored,
        "bytes": lambda u: u.bytes,
        "examined for an answer": lambda u: u.examined,
        "peak": lambda u: u.peak,
    }
    flat = ", ".join(f"{name} {flatness(found, of):.2f}" for name, of in figures.items())
    last = found[-1]
    print(f"{query} over {count} units: {last.answers:,} answers in a unit, {last.stored:,} stored, ", end="")
    print(f"{last.examined:.2f} examined for an answer; second half against first: {flat}")


def main() -> None:
    """Prints both measurements and their ratio."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--times", type=int, default=10)
    options.add_argument("--units", type=int, default=40, help="at least 8: the first have no answers")
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
    for query in ("Q5m", "Q5r"):
        print_units(query, chosen.units)


if __name__ == "__main__":
    main()
