"""This module measures what computing costs: rules that compute with several events beside rules that do not.

Equations between two events, which are keys, are measured beside a plain join, an inequality beside one without a sum,
a head with a product beside one that shows a variable, and one rule of three events beside the same in two rules. These
count the engine alone, planned for the events as a run over a history is; the rule of three events is also measured as
it is planned live, with `RATE` and with nothing known. Conditions of a collection are measured beside the same
collection without one, once with all that a run does from objects to answers, and once the engine alone: there a window
without a condition is never unfolded. Every count of answers is compared with one that numpy has from all pairs.

scripts/bench arithmetic [--events 20000] [--repeat 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ephemera
from ephemera.algebra.attributes import position
from ephemera.engine.engine import Engine
from ephemera.engine.observe import planned_for
from ephemera.kernels.columns import Array, Batch, ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World

SECOND = 1_000_000
WITHIN = 160
WINDOW = 400
VALUES = 1_000
JOIN = "EVENT c(id: int, v: int);\nEVENT d(id: int, w: int);\n"
CHAIN = JOIN + "EVENT e(id: int, u: int);\n"
RATED = CHAIN.replace(");", ") RATE {};")
"""The same with how many events come of each type."""
COLLECT = "EVENT a(id: int, v: int);\nEVENT b(id: int, y: int);\n"
PAIR = "p(i, j) <- a: c(i, v), b: d(j, w), {{a,b}} within {} sec, {};"
Test = Callable[[Any, Array], Array]


@dataclass(frozen=True, slots=True)
class Case:
    """A rule that computes, the rule beside which it is measured, and which pairs are right."""

    name: str
    program: str
    beside: str
    is_right: Test | None = None


PLAIN = PAIR.format(WITHIN, "v = w")
CASES = [
    Case("v + w = 999", PAIR.format(WITHIN, "v + w = 999"), PLAIN, lambda v, w: v + w == 999),
    Case("w = 999 - v", PAIR.format(WITHIN, "w = 999 - v"), PLAIN, lambda v, w: v + w == 999),
    Case("v = w + 1", PAIR.format(WITHIN, "v = w + 1"), PLAIN, lambda v, w: v == w + 1),
    Case("v = 2 * w", PAIR.format(WITHIN, "v = 2 * w"), PLAIN, lambda v, w: v == 2 * w),
    Case(
        "v > w + 990",
        PAIR.format(WITHIN, "v > w + 990"),
        PAIR.format(WITHIN, "v > w, v > 990"),
        lambda v, w: v > w + 990,
    ),
    Case(
        "head v * w + 1",
        PAIR.format(WITHIN // 8, "v > w").replace("p(i, j)", "p(i, j, v * w + 1)"),
        PAIR.format(WITHIN // 8, "v > w").replace("p(i, j)", "p(i, j, v)"),
    ),
]
THREE = "q(i, j, k) <- {}, f: e(k, _), {{{}}} within {} sec{};"
ONE_RULE = THREE.format("a: c(i, v), b: d(j, w)", "a,b,f", WITHIN, ", v + w = 999")
TWO_RULES = PAIR.format(WITHIN, "v + w = 999") + "\n" + THREE.format("a: p(i, j)", "a,f", WITHIN, "")
THIRDS = "ecedeeee"
"""The types of events of which three meet, in turn, one a second."""
SHARES = [f"{3600 * THIRDS.count(label) // len(THIRDS)} per hour" for label in "cde"]
THREES = [
    ("three events in one rule, not two", CHAIN + ONE_RULE, True),
    ("the same with RATE, live", RATED.format(*SHARES) + ONE_RULE, False),
    ("the same without RATE, live", CHAIN + ONE_RULE, False),
]
"""One rule as it is planned over a history, by what it declares, and by nothing."""
WINDOWED = "p(i, {}) <- n: a(i, v), w: extend(n, {} sec), while w: collect b(_, y){};"
COLLECTIONS = {
    "sum(y), y > v": ("sum(y)", " where { y > v }"),
    "sum(y), y > v + 1": ("sum(y)", " where { y > v + 1 }"),
    "sum(y * 2)": ("sum(y * 2)", ""),
}


def events(labels: str, count: int) -> list[Events]:
    """Events one a second, their types in turn, with an id and a number below a thousand."""
    values = np.random.default_rng(7).integers(0, VALUES, count)
    kinds = np.arange(count) % len(labels)
    found: list[Events] = []
    for label in dict.fromkeys(labels):
        rows = np.flatnonzero(np.isin(kinds, [k for k, one in enumerate(labels) if one == label]))
        stamps = ints(rows * SECOND)
        columns = {BEGIN: stamps, END: stamps, position(0): ints(rows), position(1): ints(values[rows])}
        names = ("id", {"c": "v", "d": "w", "e": "u", "a": "v", "b": "y"}[label])
        found.append(Events(label, Batch(columns, len(rows)), 2, names))
    return found


def objects(parts: Sequence[Events]) -> list[dict[str, Any]]:
    """The same as the objects that a run takes."""
    rows = [(k, p.label, n, v) for p in parts for k, n, v in _values(p)]
    return [{"event": label, "time": second, "data": [n, v]} for second, label, n, v in sorted(rows)]


def _values(part: Events) -> list[tuple[int, int, int]]:
    columns = (part.batch[END] // SECOND, part.batch[position(0)], part.batch[position(1)])
    return list(zip(*(c.tolist() for c in columns), strict=True))


def alone(program: str, parts: Sequence[Events], label: str = "p", *, looks: bool = True) -> tuple[float, int]:
    """Seconds of CPU in the engine, and the number of answers; it is planned as a run is, which looks at the events."""
    compiled = ephemera.compile(program, "bench.eq")._compiled
    at_work = Engine((planned_for(compiled, parts) if looks else compiled).physical, World())
    at_work.load(list(parts))
    start = time.process_time()
    found = at_work.advance(FAR)
    seconds = time.process_time() - start
    return seconds, sum(len(p) for p in found.events if p.label == label) + len(found.few)


def whole(program: str, rows: list[dict[str, Any]]) -> tuple[float, int]:
    """Seconds of CPU from objects to answers, and the number of answers."""
    compiled = ephemera.compile(program, "bench.eq")
    start = time.process_time()
    answers = compiled.run(rows)
    return time.process_time() - start, len(answers)


def right(parts: Sequence[Events], is_right: Test) -> int:
    """How many pairs within the time are right, of all that there are."""
    c, d = (p.batch for p in parts)
    total = 0
    for at, v in zip(c[END].tolist(), c[position(1)].tolist(), strict=True):
        first, last = np.searchsorted(d[END], [at - WITHIN * SECOND, at + WITHIN * SECOND + 1])
        total += int(is_right(v, d[position(1)][first:last]).sum())
    return total


def best(measure: Callable[[], tuple[float, int]], repeat: int) -> tuple[float, int]:
    """The fastest of several times."""
    return min(measure() for _ in range(repeat))


def line(name: str, mine: tuple[float, int], beside: tuple[float, int]) -> str:
    """A row of the table."""
    ratio = mine[0] / max(beside[0], 1e-9)
    return f"| {name} | {mine[1]:,} | {mine[0]:.4f} | {beside[0]:.4f} | {ratio:.1f} |"


def main() -> None:
    """Prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--repeat", type=int, default=3)
    chosen = options.parse_args()
    two = events("cd", chosen.events)
    print("| | answers | CPU s | without | ratio |\n|---|--:|--:|--:|--:|")
    for case in CASES:
        mine = best(lambda case=case: alone(JOIN + case.program, two), chosen.repeat)  # type: ignore[misc]
        beside = best(lambda case=case: alone(JOIN + case.beside, two), chosen.repeat)  # type: ignore[misc]
        if case.is_right is not None and mine[1] != right(two, case.is_right):
            raise SystemExit(f"{case.name}: {mine[1]} answers, and {right(two, case.is_right)} are right")
        print(line(case.name, mine, beside), flush=True)
    three = events(THIRDS, chosen.events)
    beside = best(lambda: alone(CHAIN + TWO_RULES, three, "q"), chosen.repeat)
    for name, program, looks in THREES:
        mine = best(lambda p=program, s=looks: alone(p, three, "q", looks=s), chosen.repeat)  # type: ignore[misc]
        if mine[1] != beside[1]:
            raise SystemExit(f"{mine[1]} answers of one rule, and {beside[1]} of two")
        print(line(name, mine, beside), flush=True)
    windows = events("abbbbbbbbb", chosen.events)
    rows = objects(windows)
    for name, (shown, condition) in COLLECTIONS.items():
        programs = [COLLECT + WINDOWED.format(*one) for one in ((shown, WINDOW, condition), ("sum(y)", WINDOW, ""))]
        runs = [best(lambda p=p: whole(p, rows), chosen.repeat) for p in programs]  # type: ignore[misc]
        print(line(f"{name}, whole run", *runs), flush=True)
        engines = [best(lambda p=p: alone(p, windows), chosen.repeat) for p in programs]  # type: ignore[misc]
        print(line(f"{name}, engine", *engines), flush=True)


if __name__ == "__main__":
    main()
