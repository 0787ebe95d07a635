"""This module shows that looking at an engine does not change it: what is only read stays where and as it was."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ephemera
from ephemera.engine.engine import Engine
from ephemera.engine.stats import stats_of
from ephemera.kernels.tail import Row

SOURCES = Path(ephemera.__file__).parent
PAIRS = """
TIME UNIT 1 sec;
EVENT a(x: int);
EVENT b(x: int);
pair(x) <- f: a(x), g: b(x), f before g, {f, g} within 100;
"""
SPECIAL = {"__len__", "__iter__", "__contains__", "__bool__", "__eq__", "__hash__", "__repr__", "__str__"}
CHANGING = {"append", "add", "clear", "discard", "extend", "insert", "pop", "popleft", "remove", "setdefault", "update"}


def state(engine: Engine) -> list[tuple[list[int], list[tuple[int, Row, int]], int]]:
    histories = [history for lane in engine.lanes.values() for history in lane.histories.values()]
    tails = [history.tail.entries() if history.tail is not None else [] for history in histories]
    return [([run.number for run in h.stored], tail, h.next_number) for h, tail in zip(histories, tails, strict=True)]


def test_statistics_leave_the_newest_rows_where_they_are() -> None:
    live = ephemera.compile(PAIRS).engine()
    for time in range(1, 8):
        live.send({"event": "a", "time": time, "data": [time]})
    engine = live._engine
    before = state(engine)
    assert any(entries for _, entries, _ in before)
    first, second = stats_of(engine, 7, 0), stats_of(engine, 7, 0)
    assert first == second
    assert (first.stored, first.waiting) == (6, 1)
    assert sum(h.bytes for h in first.histories) > 0
    assert state(engine) == before


def _changes(function: ast.FunctionDef) -> list[str]:
    """What a function does to its object, as far as its text shows."""
    found = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets):
                found += [ast.unparse(one) for one in targets if ast.unparse(one).startswith("self.")]
            case ast.AugAssign(target=target) if ast.unparse(target).startswith("self."):
                found.append(ast.unparse(target))
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if ast.unparse(owner).startswith("self"):
                found += [ast.unparse(node)] if name in CHANGING or name.startswith(("take", "flush", "drop")) else []
    return found


@pytest.mark.parametrize("package", ["kernels", "physical", "engine", "spark", "io"])
def test_properties_and_lengths_change_nothing(package: str) -> None:
    found = [
        f"{path.name}: {one.name}: {changes}"
        for path in sorted((SOURCES / package).rglob("*.py"))
        for kind in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(kind, ast.ClassDef)
        for one in kind.body
        if isinstance(one, ast.FunctionDef)
        if one.name in SPECIAL or any(ast.unparse(d) == "property" for d in one.decorator_list)
        if (changes := _changes(one))
    ]
    assert found == []
