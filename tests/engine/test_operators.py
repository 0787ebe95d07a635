"""This module shows that operators own their state: they give it away and take it back, and nobody else writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ephemera
from ephemera.engine.engine import Engine
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.engine.state.changelog import Changelog
from ephemera.engine.state.stored_tables import lane_name, tables_of

SOURCES = Path(ephemera.__file__).parent / "engine"
PROGRAM = """
TIME UNIT 1 sec;
EVENT a(x: int, y: int);
EVENT b(x: int, y: int);
STREAM s CARRIES a WATERMARK 5 sec;
STREAM t CARRIES b WATERMARK 9 sec;
pair(x) <- f: a(x, _), g: b(x, _), f before g, {f, g} within 40;
late(x) <- f: a(x, _), w: extend(f, 30 sec), while w: not b(x, _);
sums(x, sum(v)) <- f: a(x, _), w: extend(f, 20 sec), while w: collect g: b(x, v);
again(x) <- p: pair(x), q: b(x, _), p before q, {p, q} within 60;
steps(n) <- s: algebra (a(n, _) ; b(n, _)), {s} within 25;
"""


def made() -> tuple[LiveEngine, Engine]:
    live = ephemera.compile(PROGRAM).engine()
    return live, live._engine


def batches() -> Iterator[list[dict[str, Any]]]:
    """A few events at a time, and now and then many."""
    for k in range(24):
        count = 40 if k % 8 == 5 else 4
        yield [
            {"event": "ab"[n % 2], "time": 6 * k + 6 * n // count, "data": [(7 * k + n) % 5, n % 3]}
            for n in range(count)
        ]


def living(engine: Engine) -> dict[tuple[str, ...], list[str]]:
    """The rows that an engine keeps and still may need, by stored names."""
    found: dict[tuple[str, ...], list[str]] = {}
    for sources, lane in engine.lanes.items():
        for key, table in tables_of(lane).items():
            rows = found[lane_name(sources), *key] = []
            for run in table.checkpoint():
                ends = table.expiry(run.batch)
                alive = run.batch if ends is None else run.batch.take(ends > lane.bound)
                rows += [repr(sorted(row.items())) for row in alive.rows()]
            rows.sort()
    return found


def test_a_whole_state_goes_into_another_engine_table_by_table() -> None:
    (live, engine), (_, other) = made(), made()
    for events in batches():
        live.send_many(events)
    for names, lane in engine.lanes.items():
        for table, copy in zip(tables_of(lane).values(), tables_of(other.lanes[names]).values(), strict=True):
            for run in table.checkpoint():
                copy.restore(run.batch, run.step, run.number)
        other.lanes[names].restore(lane.checkpoint())
        assert other.lanes[names].checkpoint() == lane.checkpoint()
    found = living(engine)
    assert living(other) == found
    assert {kind for (_, kind, _), rows in found.items() if rows} == {"h", "p"}


@pytest.mark.parametrize("alone", [0, 12], ids=["new", "warm"])
def test_what_is_added_brings_another_engine_to_the_same_state(alone: int) -> None:
    """The other one is new, or has come half the way by itself."""
    (live, engine), (second, other) = made(), made()
    log, copy = Changelog(engine, "x"), Changelog(other, "x")
    for number, events in enumerate(batches()):
        live.send_many(events)
        added, words = log.take(), log.words()
        if number < alone:
            second.send_many(events)
            copy.take()
            continue
        copy.recall(words, added)
        assert copy.take() == []
        theirs = copy.words()
        for lane in (*words["lanes"].values(), *theirs["lanes"].values()):
            lane.pop("histories")  # what is dead is dropped, and runs are merged, once more
        assert theirs == words
    assert living(other) == living(engine)
    assert max(rule.examined for lane in other.lanes.values() for rule in lane.rules.values()) > 0


def _written(path: Path) -> list[str]:
    """The attributes that a module sets of what is not its own."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                found += targets
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                found.append(target)
    parts = [part for target in found for part in ast.walk(target) if isinstance(part, ast.Attribute)]
    return [text for part in parts if not (text := ast.unparse(part)).startswith("self.") or text.count(".") > 1]


@pytest.mark.parametrize(
    "path", sorted([*(SOURCES / "state").glob("*.py"), SOURCES / "stats.py"]), ids=lambda p: p.stem
)
def test_who_stores_state_or_tells_of_it_writes_nothing_into_lanes_and_operators(path: Path) -> None:
    assert _written(path) == []
