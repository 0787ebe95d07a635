"""This module hunts for expressions that detectors get wrong: `python -m tests.hunt_algebra [cases] [first]`."""

from __future__ import annotations

import sys
import warnings
from random import Random

from ephemera.engine.operators import detect
from tests.engine import algebra_cases
from tests.engine.algebra_cases import Case, make, plain, reference


def runs(case: Case, seed: int) -> dict[str, list[object]]:
    """The answers of all ways."""
    program, events = case.program(), list(case.events)
    found = {"local": plain(program.run(events, allow_unbounded=True))}
    found["live"] = algebra_cases.live(case, Random(seed), restarts=0.2)
    before = detect.FEW, detect.SMALL
    detect.FEW = detect.SMALL = -1
    found["columns"] = plain(program.run(events, allow_unbounded=True))
    found["live columns"] = algebra_cases.live(case, Random(seed), restarts=0.2)
    detect.FEW, detect.SMALL = before
    if seed % 5 == 0:
        found["oracle"] = plain(program.run(events, engine="oracle"))
    return found


def main() -> int:
    """Compares all ways with figure 2; says how many cases and answers there were, or the first that differs."""
    warnings.simplefilter("ignore")
    count, first = (int(sys.argv[1]) if len(sys.argv) > 1 else 1000), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    answers = told = 0
    for seed in range(first, first + count):
        case = make(Random(seed))
        expected = reference(case)
        if expected is None:
            continue
        told += 1
        answers += len(expected)
        for way, found in runs(case, seed).items():
            if found != expected:
                print(f"case {seed}, {way}\n{case.text}\n{case.events}\nfigure 2: {expected}\n{way}: {found}")
                return 1
    print(f"{told} cases, {answers} answers, nothing found")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
