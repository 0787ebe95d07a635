"""This module hunts for expressions that detectors get wrong: `python -m tests.hunt_algebra [cases] [first]`."""

from __future__ import annotations

import sys
import warnings
from random import Random
from typing import Any

from tests.engine import algebra_cases
from tests.engine.algebra_cases import make, plain, reference, reference_parts


def complaint(seed: int) -> tuple[str | None, int]:
    """What is wrong with a case, if anything, and how many answers it has."""
    case = make(Random(seed))
    expected, declared, parts = reference(case), reference(case.declaring()), reference_parts(case)
    times = sorted((begin, end) for begin, end, _ in expected)
    program, events = case.program(), list(case.events)
    local = plain(program.run(events, allow_unbounded=True))
    told: dict[str, tuple[Any, Any]] = {
        "local": (local, expected),
        "live": (algebra_cases.live(case, Random(seed), restarts=0.2), expected),
        "out of order": (algebra_cases.disordered(case, Random(seed)), declared),
        "all parts": (algebra_cases.parts(case, Random(seed)), parts),
        "definition 12": (algebra_cases.complaint_by_definition_12(case, local), None),
    }
    with algebra_cases.by_columns():
        told["columns"] = plain(program.run(events, allow_unbounded=True)), expected
        told["live columns"] = algebra_cases.live(case, Random(seed), restarts=0.2), expected
        told["columns, out of order"] = algebra_cases.disordered(case, Random(seed)), declared
        told["all parts by columns"] = algebra_cases.parts(case, Random(seed)), parts
    if seed % 5 == 0:
        told["oracle"] = plain(program.run(events, engine="oracle")), expected
    if seed % 5 == 1:
        told["shards"] = algebra_cases.sharded(case, Random(seed)), times
    for way, (found, right) in told.items():
        if found != right:
            return f"case {seed}, {way}\n{case.text}\n{case.events}\nfigure 2: {right}\n{way}: {found}", 0
    return None, len(expected)


def main() -> int:
    """Compares all ways with figure 2; says how many cases and answers there were, or the first that differs."""
    warnings.simplefilter("ignore")
    count, first = (int(sys.argv[1]) if len(sys.argv) > 1 else 1000), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    answers = 0
    for seed in range(first, first + count):
        wrong, found = complaint(seed)
        if wrong is not None:
            print(wrong)
            return 1
        answers += found
    print(f"{count} cases from seed {first} on, {answers} answers, nothing found")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
