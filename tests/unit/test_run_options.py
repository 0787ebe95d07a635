"""This module shows options of `run` in all engines of this process: until when, packed names, and what is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app

DAILY = """
EVENT order(id: string);
noon(1) <- t: timer:datetime(time: "12:00");
"""
ORDER = {"event": "order", "time": "2026-03-02T09:00:00Z", "data": ["a"]}
ORDERS = "EVENT order(id: string, qty: int); seen(i) <- o: order(i, q);"


def run(folder: Path, program: str, *options: str) -> Result:
    (folder / "p.eq").write_text(program, encoding="utf-8")
    return CliRunner().invoke(app, ["run", str(folder / "p.eq"), *options])


def answers(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_the_clock_runs_until_the_time_that_is_named(tmp_path: Path, engine: str) -> None:
    (tmp_path / "e.jsonl").write_text(json.dumps(ORDER), encoding="utf-8")
    given = ["--engine", engine, "--input", str(tmp_path / "e.jsonl")]
    assert answers(run(tmp_path, DAILY, *given)) == []
    until = "2026-03-04T13:00:00Z"
    found = answers(run(tmp_path, DAILY, *given, "--until", until))
    assert len(found) == 3
    assert found == ephemera.compile(DAILY).run([ORDER], until=until)
    whole = json.dumps({**ORDER, "time": 0})
    (tmp_path / "e.jsonl").write_text(whole, encoding="utf-8")
    counted = answers(run(tmp_path, DAILY, *given, "--until", "100000"))
    assert counted == ephemera.compile(DAILY).run([{**ORDER, "time": 0}], until=100_000) != []


@pytest.mark.parametrize("until", ["soon", "nan", "inf", "1e300", "", "99999999999999999999"])
def test_a_time_that_is_none_is_told(tmp_path: Path, until: str) -> None:
    result = run(tmp_path, DAILY, "--engine", "local", "--until", until)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("--until: ")
    assert "Traceback" not in result.stderr


def test_a_live_run_has_no_end_to_name(tmp_path: Path) -> None:
    result = run(tmp_path, DAILY, "--mode", "stream", "--until", "5")
    assert result.exit_code == 2
    assert "--until is for runs over a history" in result.stderr


@pytest.mark.parametrize("engine", ["local", "oracle", "spark"])
@pytest.mark.parametrize("option", ["--output", "--dead-letter"])
@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_nothing_is_written_unpacked_to_a_packed_name(tmp_path: Path, engine: str, option: str, mode: str) -> None:
    target = tmp_path / "a.jsonl.GZ"
    result = run(tmp_path, ORDERS, "--engine", engine, "--mode", mode, option, str(target))
    assert result.exit_code == 2
    assert f"are not packed; name `{target}` without its last ending" in result.stderr
    assert not target.exists()


def test_names_count_in_any_letters(tmp_path: Path) -> None:
    (tmp_path / "E.CSV.GZ").write_bytes(gzip.compress(b"event,time,id,qty\norder,1,a,2\n"))
    target = tmp_path / "A.CSV"
    result = run(tmp_path, ORDERS, "--engine", "local", "--input", str(tmp_path / "E.CSV.GZ"), "--output", str(target))
    assert result.exit_code == 0, result.stderr
    assert target.read_text(encoding="utf-8") == '"event","begin","end","i"\n"seen",1,1,"a"\n'


def test_one_column_of_all_cells_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "semi.csv").write_text("time;id;qty;note\n1;a;2;x\n", encoding="utf-8")
    result = run(tmp_path, ORDERS, "--engine", "local", "--input", str(tmp_path / "semi.csv"))
    assert result.exit_code == 1
    assert "are cells divided by commas?" in result.stderr
    assert "did you mean" not in result.stderr
