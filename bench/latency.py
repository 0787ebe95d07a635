"""This module measures how long one event takes in the live engine, with one rule and with many that are alike.

The rules ask for the same two event types and differ in a constant, which stands in a pattern or in a condition. Times
are CPU microseconds of `send`, so that other work on the machine does not count.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Literal

import ephemera

Form = Literal["pattern", "condition"]
HEADER = "TIME UNIT 1 ms;\nEVENT A(id: int, x: int, v: int);\nEVENT B(id: int, x: int, v: int);\n"
KEYS = 10
VALUES = 1_000


@dataclass(frozen=True, slots=True)
class Latency:
    """What one event takes, in microseconds, and what it takes to get there, in seconds."""

    rules: int
    form: Form
    compile: float
    start: float
    events: int
    answers: int
    median: float
    high: float
    """Of a hundred events 99 take no longer."""


def program(rules: int, form: Form) -> str:
    """Pairs of A and B on the same key within a second, for a number of values of A."""
    found = [HEADER]
    for k in range(rules):
        value, condition = (str(k), "") if form == "pattern" else ("v", f", v = {k}")
        found.append(f"Q{k}(i, j) <- a: A(i, x, {value}), b: B(j, x, _), {{a,b}} within 1 sec{condition};\n")
    return "".join(found)


def latency(rules: int, form: Form, events: int) -> Latency:
    """Sends events one by one; a tenth of them only to warm up."""
    start = time.process_time()
    compiled = ephemera.compile(program(rules, form))
    ready = time.process_time()
    engine = compiled.engine()
    started = time.process_time()
    numbers = random.Random(7)
    taken: list[int] = []
    answers = 0
    for k in range(events):
        # With one rule a tenth of the values are its own, so that it has something to do.
        value = numbers.randrange(VALUES) if rules > 1 else numbers.randrange(10)
        event = {"event": "AB"[k % 2], "time": 10 * k, "data": [k, numbers.randrange(KEYS), value]}
        before = time.thread_time_ns()
        found = engine.send(event)
        taken.append(time.thread_time_ns() - before)
        answers += len(found)
    counted = sorted(taken[events // 10 :])
    median, high = (counted[int(share * len(counted))] / 1_000 for share in (0.5, 0.99))
    return Latency(rules, form, ready - start, started - ready, events, answers, median, high)
