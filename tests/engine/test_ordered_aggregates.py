"""This module shows that the order of time is the same by columns, row by row, and to the oracle."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ephemera as eph
from ephemera.engine.operators import head

PROGRAM = """
EVENT d(g: string) LASTS ANY;
EVENT b(g: string, k: string, v: int, f: float) LASTS AT MOST 3;
numbers(g, first(v), last(v), nth(v, 2), first(v * 2)) <- d: d(g), while d: collect b(g, _, v, _);
texts(g, first(k), last(k)) <- d: d(g), while d: collect b(g, k, _, _);
doubles(g, first(f), last(f)) <- d: d(g), while d: collect b(g, _, _, f);
lists(g, list(v), list(f), top(v, 2 by f), top(f, 1)) <- d: d(g), while d: collect b(g, _, v, f);
words(g, list(k), top(k, 2 by v)) <- d: d(g), while d: collect b(g, k, v, _);
times(g, list(v), top(k, 2 by f), list(end(e))) <- d: d(g), while d: collect e: b(g, k, v, f);
"""


def stream(seed: int) -> list[dict[str, Any]]:
    """Events of which many happen together, some with null and with zeros of both signs."""
    dice = Random(seed)
    numbers = (0, 1, 2, None) if seed % 2 else (0, 1, 2)
    doubles = (0.0, -0.0, 1.5) if seed % 3 else (0.5, 1.5, 2.5)
    given = [{"event": "d", "time": [0, dice.randrange(4, 16)], "data": [g]} for g in "xy"]
    for _ in range(dice.randrange(1, 18)):
        begin = dice.randrange(4 + seed % 5)
        data = [dice.choice("xy"), dice.choice("abc"), dice.choice(numbers), dice.choice(doubles)]
        given.append({"event": "b", "time": [begin, begin + dice.randrange(3)], "data": data})
    return given


def test_the_order_of_time_is_the_same_by_columns_and_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    program = eph.compile(PROGRAM)
    ways = {True: 0, False: 0}
    by_columns = head.HeadBuilder._by_columns

    def counted(self: head.HeadBuilder, *given: Any) -> Any:
        found = by_columns(self, *given)
        ways[found is not None] += 1
        return found

    monkeypatch.setattr(head.HeadBuilder, "_by_columns", counted)
    for seed in range(40):
        given = stream(seed)
        found = program.run(given, allow_unbounded=True)
        assert repr(found) == repr(program.run(given, allow_unbounded=True, engine="oracle")), given
    assert all(ways.values())
