"""This module sends what is no event to programs: it goes to the dead letters with the reason, and nothing stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app

PROGRAM = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int) LASTS AT MOST 5;
EVENT note(text: any);
EVENT a;
EVENT n;
EVENT other;
seen(id, q) <- o: order(id, q);
noted(t) <- n: note(t);
"""
GOOD = [b'{"event": "order", "time": 1, "data": ["a", 1]}', b'{"event": "order", "time": 9, "data": ["b", 2]}']
DEEP = 10_000
SIZE = 10 * 1024 * 1024
BAD = {
    "wrong type": (b'{"event": "order", "time": 2, "data": ["x", "many"]}', "`qty` is int"),
    "wrong type by name": (b'{"event": "order", "time": 2, "data": {"id": 7, "qty": 1}}', "`id` is string"),
    "missing attribute": (b'{"event": "order", "time": 2, "data": ["x"]}', "has 2 attributes, not 1"),
    "begin after end": (b'{"event": "order", "time": [3, 2], "data": ["x", 1]}', "begins after its end"),
    "too long": (b'{"event": "order", "time": [2, 8], "data": ["x", 1]}', "lasts longer"),
    "no time": (b'{"event": "order", "data": ["x", 1]}', "a time is"),
    "no name": (b'{"time": 2, "data": ["x", 1]}', "a name under `event`"),
    "no object": (b"[1, 2]", "a name under `event`"),
    "not UTF-8": (b'{"event": "order", "time": 2, "data": ["\xff", 1]}', "not UTF-8"),
    "half a character": (b'{"event": "order", "time": 2, "data": ["\\ud800", 1]}', "half"),
    "beyond 64 bits": (b'{"event": "order", "time": 2, "data": ["x", 9223372036854775808]}', "out of range"),
    "thousands of digits": (b'{"event": "order", "time": 2, "data": ["x", ' + b"9" * 5_000 + b"]}", "out of range"),
    "time beyond 64 bits": (b'{"event": "order", "time": 1e300, "data": ["x", 1]}', "too far from 1970"),
    "time beyond all bounds": (b'{"event": "order", "time": 1e999999999, "data": ["x", 1]}', "too far from 1970"),
    "NaN": (b'{"event": "order", "time": 2, "data": ["x", NaN]}', "`NaN`"),
    "Infinity": (b'{"event": "order", "time": 2, "data": ["x", -Infinity]}', "Infinity"),
    "too large a double": (b'{"event": "note", "time": 2, "data": [1e999]}', ""),
    "deep arrays": (b'{"event": "note", "time": 2, "data": ' + b"[" * DEEP + b"]" * DEEP + b"}", "deep"),
    "deep objects": (b'{"event": "n", "time": 2, "data": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}", "deep"),
    "deep terms": (b'{"event": "a", "time": 2, "term": "' + b"a[" * DEEP + b"]" * DEEP + b'"}', "deep"),
    "deep XML": (b'{"event": "a", "time": 2, "xml": "' + b"<a>" * DEEP + b"</a>" * DEEP + b'"}', "deep"),
    "10 MB of no JSON": (b'{"event": "note", "time": 2, "data": ["' + b"x" * SIZE + b"}", "cannot be read"),
    "truncated": (b'{"event": "order", "time": 2, "da', "cannot be read"),
}


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "p.eq").write_text(PROGRAM, encoding="utf-8")
    return str(tmp_path / "p.eq")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("mode", ["batch", "stream"])
@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_event_goes_to_the_dead_letters(program: str, tmp_path: Path, mode: str, kind: str) -> None:
    bad, reason = BAD[kind]
    given, out, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead.jsonl"
    given.write_bytes(b"\n".join([GOOD[0], *([GOOD[1], bad] if kind == "truncated" else [bad, GOOD[1]])]))
    options = ["--input", str(given), "--output", str(out), "--dead-letter", str(dead)]
    result = CliRunner().invoke(app, ["run", program, "--engine", "local", "--mode", mode, *options])
    assert result.exit_code == 0, result.stderr
    assert [answer["data"] for answer in lines(out)] == [["a", 1], ["b", 2]]
    (letter,) = lines(dead)
    assert reason in letter["reason"]
    assert letter["event"] == bad.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_stops_nothing_in_python(kind: str) -> None:
    bad, reason = BAD[kind]
    compiled = ephemera.compile(PROGRAM)
    run = compiled.run_all([GOOD[0], bad, GOOD[1]])
    engine = compiled.engine()
    answers = engine.send_many([GOOD[0], bad, GOOD[1]]) + engine.finish()
    assert answers == run.answers
    assert len(answers) == 2
    assert run.bad == engine.bad
    assert [reason in one.reason for one in run.bad] == [True]


def nested() -> Any:
    inner: Any = 1
    for _ in range(DEEP):
        inner = {"a": inner}
    return inner


def circle() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["a"] = found
    return found


def objects() -> Iterator[Any]:
    """What only Python can give."""
    for value in (float("nan"), float("inf"), 2**63, object(), nested()):
        yield {"event": "note", "time": 2, "data": [value]}
    for data in (nested(), circle(), {1: 2}, {"text": {1: 2}}, 7):
        yield {"event": "other", "time": 2, "data": data}
    for time in (None, float("nan"), float("inf"), [1], [1, 2, 3], [2, 1], 2**80, True, "soon", "2026-13-01"):
        yield {"event": "order", "time": time, "data": ["x", 1]}
    yield from ({}, {"event": 7, "time": 1}, {"event": "order", "time": 1, "data": ["x", 1], "xml": "<order/>"})
    yield from (7, None, [], object(), "", b"")


def test_a_bad_object_stops_nothing() -> None:
    compiled = ephemera.compile(PROGRAM)
    given = [*GOOD[:1], *objects(), *GOOD[1:]]
    run = compiled.run_all(given)
    engine = compiled.engine()
    answers = engine.send_many(given) + engine.finish()
    assert [a["data"] for a in answers] == [["a", 1], ["b", 2]]
    assert answers == run.answers
    assert len(run.bad) == len(engine.bad) == len(given) - 2
    assert all(bad.reason for bad in run.bad)


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_a_message_of_ten_megabytes_is_an_event_like_others(program: str, tmp_path: Path, mode: str) -> None:
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text(json.dumps({"event": "note", "time": 1, "data": ["é" * (SIZE // 2)]}, ensure_ascii=False) + "\n")
    result = CliRunner().invoke(
        app, ["run", program, "--engine", "local", "--mode", mode, "--input", str(given), "--output", str(out)]
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert [len(answer["data"][0]) for answer in lines(out)] == [SIZE // 2]


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_a_line_that_a_file_cuts_off_does_not_run_into_the_next_file(program: str, tmp_path: Path, mode: str) -> None:
    first, second, dead = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "dead.jsonl"
    first.write_bytes(GOOD[0][:20])
    second.write_bytes(GOOD[1])
    options = ["--input", str(first), "--input", str(second), "--dead-letter", str(dead)]
    result = CliRunner().invoke(app, ["run", program, "--engine", "local", "--mode", mode, *options])
    assert [json.loads(line)["data"] for line in result.stdout.splitlines()] == [["b", 2]]
    assert [letter["event"] for letter in lines(dead)] == [GOOD[0][:20].decode()]
