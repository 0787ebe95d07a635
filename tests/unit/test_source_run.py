"""This module shows that programs run from Python from sources to sinks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ephemera
from ephemera import sinks, sources

PROGRAM = ephemera.compile("""
    EVENT order(id: string, qty: int);
    EVENT shipped(id: string);
    overdue(id, q) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id);
    rate(id, 1 / q) <- o: order(id, q);
""")
EVENTS: list[dict[str, Any]] = [
    {"event": "order", "time": 9, "data": ["a", 3]},
    {"event": "order", "time": 1, "data": ["b", 0]},
    {"event": "shipped", "time": 4, "data": ["b"]},
    {"event": "order", "time": 5, "data": ["c", "many"]},
]


@pytest.fixture
def files(tmp_path: Path) -> sources.Files:
    path = tmp_path / "orders.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
    return sources.Files([str(path)])


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_a_source_is_answered_with_answers(files: sources.Files, kind: str) -> None:
    found = PROGRAM.run_all(files if kind == "files" else sources.Memory(EVENTS))
    expected = PROGRAM.run_all(EVENTS)
    assert found.answers == expected.answers
    assert found.answers["overdue"] == expected.answers["overdue"]
    told = [repr(one).replace("orders.jsonl, line 4: ", "") for one in found.dead_letters]
    assert told == [repr(one) for one in expected.dead_letters]
    assert (found.read, found.notes) == (expected.read, expected.notes)


def test_answers_go_to_a_sink_and_are_not_returned(files: sources.Files, tmp_path: Path) -> None:
    target = tmp_path / "answers.parquet"
    run = PROGRAM.run_all(files, sink=sinks.File(str(target)))
    assert (run.answers, len(run.dead_letters)) == ([], 2)
    assert pq.read_table(target).column("id").to_pylist() == ["a", "a"]
    memory = sinks.Memory()
    with pytest.warns(ephemera.EphemeraWarning, match="1 of 4 events could not be used"):
        assert PROGRAM.run(EVENTS, sink=memory) == []
    assert memory.answers == PROGRAM.run_all(EVENTS).answers
    table = pa.table({"event": ["order"], "time": [1], "id": ["a"], "qty": [1]})
    given: list[dict[str, Any]] = []
    PROGRAM.run(table, sink=sinks.Callback(given.append), emit=["rate"])
    assert given == [{"event": "rate", "time": 1, "data": ["a", 1.0]}]


@pytest.mark.parametrize("engine", ["oracle", "spark"])
def test_other_engines_take_no_sources_and_no_sinks(files: sources.Files, engine: str) -> None:
    with pytest.raises(ValueError, match=f"sources are read by the engine `local`, and `{engine}` is asked for"):
        PROGRAM.run(files, engine=engine)
    with pytest.raises(ValueError, match="answers go to a sink from the engine `local`"):
        PROGRAM.run(EVENTS, engine=engine, sink=sinks.Memory())
