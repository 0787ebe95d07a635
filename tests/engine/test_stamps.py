"""This module reads events whose streams declare under which keys or columns their times stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app

PROGRAM = """
EVENT order(id: string); EVENT stay(id: string) LASTS ANY; EVENT note(id: string); EVENT due(id: string, at: int);
STREAM shop CARRIES order, due TIME at;
STREAM hotel CARRIES stay TIME arrival, departure;
got(id) <- o: order(id); got(id) <- s: stay(id); got(id) <- n: note(id); got(id) <- d: due(id, a);
"""
EVENTS: list[dict[str, Any]] = [
    {"event": "order", "at": 1, "data": ["a"]},
    {"event": "order", "at": 2, "time": 99, "data": ["b"]},
    {"event": "order", "time": 3, "data": ["c"]},
    {"event": "stay", "arrival": 4, "departure": 6, "data": ["d"]},
    {"event": "stay", "time": [5, 7], "data": ["e"]},
    {"event": "note", "time": 8, "at": 99, "data": ["f"]},
]
ANSWERS = [(1, 1, "a"), (2, 2, "b"), (3, 3, "c"), (4, 6, "d"), (5, 7, "e"), (8, 8, "f")]
TABLE: dict[str, Sequence[Any]] = {
    "event": ["order", "stay", "note", "due", "order", "stay"],
    "time": [99, 99, 8, 99, 99, 99],
    "at": [1, None, 99, 9, None, None],
    "arrival": [None, 4, None, None, None, 4],
    "departure": [None, 6, None, None, None, None],
    "id": ["a", "d", "f", "g", "bad", "bad"],
}
ROWS = [(1, 1, "a"), (4, 6, "d"), (8, 8, "f"), (9, 9, "g")]
CSV = "\n".join(
    [
        ",".join(TABLE),
        *(",".join("" if v is None else str(v) for v in row) for row in zip(*TABLE.values(), strict=True)),
    ]
)


def as_rows(answers: Sequence[Any]) -> list[tuple[Any, ...]]:
    stamps = [answer["time"] if isinstance(answer["time"], list) else [answer["time"]] * 2 for answer in answers]
    return sorted((*stamp, *answer["data"]) for stamp, answer in zip(stamps, answers, strict=True))


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_objects_give_their_times_under_the_keys_of_their_stream(engine: Any) -> None:
    run = ephemera.compile(PROGRAM).run_all(EVENTS, engine=engine)
    assert as_rows([answer for _, answer in run.output]) == ANSWERS
    assert not run.bad


def test_half_an_interval_is_bad() -> None:
    run = ephemera.compile(PROGRAM).run_all([{"event": "stay", "arrival": 4, "data": ["a"]}])
    assert [bad.reason for bad in run.bad] == ["a time is a number or a text such as 2026-03-01T09:00:00Z"]


def test_times_under_other_keys_say_how_answers_write_theirs() -> None:
    run = ephemera.compile(PROGRAM).run_all([{"event": "order", "at": "1970-01-01T00:00:01Z", "data": ["a"]}])
    assert [answer["time"] for _, answer in run.output] == ["1970-01-01T00:00:01Z"]


def test_tables_give_their_times_in_the_columns_of_the_stream() -> None:
    found = ephemera.compile(PROGRAM).run_all(pa.table(TABLE)).answers  # two rows are bad
    names = ("begin", "end", "id")
    assert sorted(zip(*(found[name].to_pylist() for name in names), strict=True)) == ROWS


def test_a_table_may_have_the_columns_of_a_stream_alone() -> None:
    table = pa.table({"at": [1, 2], "id": ["a", "b"]})
    text = "EVENT order(id: string); STREAM shop CARRIES order TIME at; got(id) <- o: order(id);"
    assert ephemera.compile(text).run(table)["begin"].to_pylist() == [1, 2]
    text = "EVENT order(id: string); STREAM shop TIME at; got(id) <- o: order(id);"
    assert ephemera.compile(text).run(table)["begin"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="does not say when events happen"):
        ephemera.compile(text.replace("at;", "when;")).run(table)


def test_what_is_stamped_on_arrival_does_not_say_when() -> None:
    text = "EVENT order(id: string); STREAM shop CARRIES order TIME at; got(id) <- o: order(id);"
    engine = ephemera.compile(text).engine(stamp="arrival", now=count(5_000_000, 1_000_000).__next__)
    answers = [*engine.send({"event": "order", "at": 1, "data": ["a"]})]
    answers += engine.send_many(pa.table({"at": [1], "id": ["b"]}))
    assert [a["data"] for a in answers] == [["a"], ["b"]]
    assert min(a["time"] for a in answers) >= "1970-01-01T00:00:05Z"


def written(folder: Path) -> list[Path]:
    """The same events as lines, as Parquet and as CSV."""
    (folder / "p.eq").write_text(PROGRAM, encoding="utf-8")
    (folder / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)), encoding="utf-8")
    pq.write_table(pa.table(TABLE), folder / "events.parquet")
    (folder / "events.csv").write_text(CSV, encoding="utf-8")
    return [folder / "events.jsonl", folder / "events.parquet", folder / "events.csv"]


def test_files_give_their_times_as_streams_declare(tmp_path: Path) -> None:
    for path, right in zip(written(tmp_path), [ANSWERS, ROWS, ROWS], strict=True):
        args = ["run", str(tmp_path / "p.eq"), "--input", str(path), "--engine", "local"]
        done = CliRunner().invoke(app, [*args, "--dead-letter", str(tmp_path / "dead.jsonl")])
        assert done.exit_code == 0, done.output
        assert as_rows([json.loads(line) for line in done.stdout.splitlines()]) == right
        dead = (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(dead) == (0 if path.suffix == ".jsonl" else 2)
