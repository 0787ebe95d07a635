"""This module shows that selections choose what their definitions say, found by looking at every pair of events."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import ephemera as eph

PROGRAM = """
EVENT a(k: int) LASTS AT MOST 3;
EVENT b(k: int, v: int) LASTS AT MOST 3;
next-of-all(k, v) <- i: a(k), j: next b(_, v) after i within 6;
next-of-k(k, v) <- i: a(k), j: next b(k, v) after i within 6;
next-above(k, v) <- i: a(k), j: next b(_, v) after i within 6 where { v > k };
last-of-all(k, v) <- i: a(k), j: last b(_, v) before i within 6;
last-of-k(k, v) <- i: a(k), j: last b(k, v) before i within 6;
first-in(k, v) <- i: a(k), w: extend(i, 4), j: first b(k, v) in w;
last-in(k, v) <- i: a(k), w: extend(i, 4), j: last b(_, v) in w;
"""
Pair = tuple[tuple[int, int], list[int]]


def before(i: tuple[int, int], j: tuple[int, int]) -> bool:
    return i[1] < j[0]


def chosen(a: Pair, events: list[Pair]) -> Iterator[tuple[str, tuple[int, int], list[int]]]:
    """What each rule answers for an event, straight from the definition."""
    i, (k,) = a
    w = (i[0], i[1] + 4)
    for j, (n, v) in events:
        whole = (min(i[0], j[0]), max(i[1], j[1]))
        near = whole[1] - whole[0] <= 6
        like = {
            "of-all": [e for e, _ in events],
            "of-k": [e for e, (m, _) in events if m == k],
            "above": [e for e, (_, u) in events if u > k],
        }
        is_like = {"of-all": True, "of-k": n == k, "above": v > k}
        for kind, others in like.items():
            if near and is_like[kind] and before(i, j) and not any(before(i, e) and before(e, j) for e in others):
                yield f"next-{kind}", whole, [k, v]
            if near and is_like[kind] and before(j, i) and not any(before(j, e) and before(e, i) for e in others):
                yield f"last-{kind}", whole, [k, v]
        if w[0] <= j[0] and j[1] <= w[1]:
            inside = {kind: [e for e in own if w[0] <= e[0] and e[1] <= w[1]] for kind, own in like.items()}
            if n == k and not any(before(e, j) for e in inside["of-k"]):
                yield "first-in", w, [k, v]
            if not any(before(j, e) for e in inside["of-all"]):
                yield "last-in", w, [k, v]


@pytest.mark.parametrize("seed", range(12))
def test_selections_choose_what_their_definitions_say(seed: int) -> None:
    dice = Random(seed)

    def times() -> tuple[int, int]:
        begin = dice.randrange(14)
        return begin, begin + (dice.randrange(4) if seed % 2 else 0)

    firsts: list[Pair] = [(times(), [dice.randrange(3)]) for _ in range(5)]
    others: list[Pair] = [(times(), [dice.randrange(3), dice.randrange(4)]) for _ in range(9)]
    given: list[dict[str, Any]] = [{"event": "a", "time": list(t), "data": data} for t, data in firsts]
    given += [{"event": "b", "time": list(t), "data": data} for t, data in others]
    names = {line.split("(")[0] for line in PROGRAM.splitlines() if "<-" in line}
    wanted = {(n, t, tuple(d)) for a in firsts for n, t, d in chosen(a, others) if n in names}
    found = eph.compile(PROGRAM).run(given)
    assert {(e["event"], _interval(e["time"]), tuple(e["data"])) for e in found} == wanted


def _interval(time: Any) -> tuple[int, int]:
    return (time[0], time[1]) if isinstance(time, list) else (time, time)
