"""This module shows that engines let go of what they have worked out: no cache outlives the events that it is of."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import ephemera
from ephemera.algebra import instances
from ephemera.terms.events import Event

PROGRAM = "TIME UNIT 1 sec; EVENT a(x: int); EVENT b(x: int); p(x) <- e: algebra {options} ((a(x); b(x))[5]);"


def alive(kind: type) -> int:
    gc.collect()
    return sum(type(o) is kind for o in gc.get_objects())


@pytest.mark.parametrize("options", ["", "unrestricted"])
def test_evaluations_of_the_algebra_are_let_go(options: str) -> None:
    engine = ephemera.compile(PROGRAM.replace("{options}", options)).engine()
    counts: list[tuple[int, int]] = []
    answers = 0
    for part in range(4):
        for k in range(part * 40, part * 40 + 40):
            answers += len(engine.send({"event": "ab"[k % 2], "time": k, "data": [k // 2 % 3]}))
        counts.append((alive(instances._Streams), alive(Event)))
    assert answers > 60
    assert [streams for streams, _ in counts] == [0, 0, 0, 0]
    assert max(events for _, events in counts) <= (40 if options else counts[0][1])  # of 160; see `detect_whole.SPARE`


def test_caches_of_functions_have_a_limit_or_stand_here() -> None:
    """`_names_as_written` takes as many arguments as elements may have attributes, the others one or none."""
    without = {"_names_as_written", "_secret", "do_without_pandas", "keep_memory"}
    assert set(unlimited()) == without


def unlimited() -> Iterator[str]:
    for path in Path(ephemera.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {ast.unparse(d).removeprefix("functools.") for d in node.decorator_list}
                if names & {"cache", "lru_cache(maxsize=None)", "lru_cache(None)"}:
                    yield node.name
