"""This module makes up the programs and streams of the benchmark of slices: all that lies in one place without them.

Each has so many events a second that engines take most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DECLARED = """
TIME UNIT 1 ms;
EVENT a(k: int, x: int); EVENT b(k: int, y: int); EVENT c(x: int, y: int) LASTS AT MOST 20 sec; EVENT d(d: float);
"""
LAST = 10**12
"""When time ends: behind all answers."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and what its stream is like."""

    what: str
    rule: str
    rate: float
    """Events in a second."""
    values: int = 1_000
    """How many values attributes have."""
    hot: float = 0.0
    """The share of the events that have one key."""

    @property
    def program(self) -> str:
        """Its text."""
        return DECLARED + self.rule


CASES = {
    "chain": Case(
        "a chain over two keys",
        "p(x, y) <- i: a(m, x), j: c(x, y), l: b(n, y), {i, j, l} within 1 min, m > n + 99900;",
        rate=6_000,
        values=4_000,
    ),
    "pairs": Case(
        "no key, within 10 seconds",
        "p(x, y) <- i: a(_, x), j: b(_, y), i before j, {i, j} within 10 sec, x > y + 990;",
        rate=1_200,
    ),
    "hour": Case(
        "an average over all events of an hour",
        "p(x, avg(d)) <- i: a(_, x), w: extend-begin(i, 1 hour), while w: collect d(d);",
        rate=6,
    ),
    "hot": Case(
        "one key with 50 % of the events",
        "p(x, y) <- i: a(k, x), j: b(k, y), i before j, {i, j} within 10 sec, x > y + 990;",
        rate=2_400,
        hot=0.5,
    ),
    "during": Case(
        "an interval join without a key",
        "p(x, y) <- i: a(_, x), j: c(y, _), i during j, x > y + 990;",
        rate=2_000,
    ),
}
"""What must run on every core, though all of it is in one place, or half of it; the chain has two keys that spread."""


def stream(case: Case, events: int) -> pa.Table:
    """Events in the order of their ends: points, and one in ten that lasts up to twenty seconds; one ends it all.

    Those of the last type have the place of `b`, if the rule asks for them.
    """
    dice = np.random.default_rng(7)
    ends = np.sort(dice.integers(0, int(events / case.rate * 1_000), events))
    kinds = dice.choice(3, events, p=[0.45, 0.45, 0.1])
    lengths = np.where(kinds == 2, dice.integers(0, 20_000, events), 0)
    keys = np.where(dice.random(events) < case.hot, 0, dice.integers(1, 100_000, events))
    x, y = (dice.integers(0, case.values, events) for _ in range(2))
    table = {
        "event": pa.array(np.array(list("adc" if "d(d)" in case.rule else "abc"))[kinds]),
        "begin": ends - lengths,
        "end": ends,
        "k": keys,
        "x": x,
        "y": y,
        "d": dice.random(events),
    }
    last = {"event": ["a"], "begin": [LAST], "end": [LAST], "k": [-1], "x": [case.values], "y": [-1], "d": [0.0]}
    whole = pa.table(table)
    return pa.concat_tables([whole, pa.table(last).cast(whole.schema)])
