"""This module holds the programs of the example to SQL: answers of the engine in one process are those of DuckDB."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ephemera.cli.main import app
from tests.nexmark.asking import FOLDER, QUERIES, answer, asked_in_sql, events, options, program, rows

NOT_DONE = {"q6", "q10", "q11", "q12", "q21", "q22"}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_the_answers_of_sql(query: str) -> None:
    expected = asked_in_sql(query)
    assert rows(program(query).run(events(query), **options(query))) == expected
    assert len(expected) > 2


@pytest.mark.parametrize("query", ["q5", "q7", "q9", "q20"])
def test_a_query_has_the_same_answers_live(query: str) -> None:
    asked = options(query)
    engine = program(query).engine(emit=[answer(query)])
    found = engine.send_many(events(query)) + engine.advance(asked["until"]) + engine.finish()
    assert not engine.late
    assert rows(found) == asked_in_sql(query)


def test_every_query_is_done_or_said_not_to_be() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (q\d+) +\|.*\| (yes|in part|no) +\|", told, re.MULTILINE))
    assert list(table) == [f"q{k}" for k in range(23)]
    assert {query for query, is_done in table.items() if is_done == "no"} == NOT_DONE
    assert set(QUERIES) == set(table) - NOT_DONE


def test_the_commands_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word, name in (("500", "events.jsonl"), ("side", "side.csv")):
        made = subprocess.run([sys.executable, FOLDER / "generate.py", word], capture_output=True, check=True)
        (tmp_path / name).write_bytes(made.stdout)
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == events("q5")[:500]
    for query in ("q5", "q13"):
        shutil.copy(FOLDER / f"{query}.eq", tmp_path)
        words = [
            "run",
            f"{query}.eq",
            "--input",
            "events.jsonl",
            "--emit",
            answer(query),
            "--engine",
            "local",
        ]
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, done.stderr) == (0, "")
        found = rows(json.loads(line) for line in done.stdout.splitlines())
        assert 0 < len(found & asked_in_sql(query)) == len(found)
