"""This module makes the mistakes of the table in `mistakes`, with the local engine, the oracle, and as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ephemera.cli.main import app
from tests.unit.mistakes import ALL, COLUMNS, HEADERS, LINES, MESSAGES, PROGRAM, ROWS, Mistake

COMMANDS = [LINES[0], LINES[-1], LINES[-2], ROWS[0], ROWS[4], ROWS[8], HEADERS[0], HEADERS[4], COLUMNS[6], MESSAGES[0]]


def named(mistake: Mistake) -> str:
    return f"{mistake.file.partition('.')[2]}: {mistake.name}"


def test_there_are_a_hundred() -> None:
    assert len(ALL) >= 100
    assert len({named(mistake) for mistake in ALL}) == len(ALL)


@pytest.mark.parametrize("mistake", ALL, ids=named)
def test_a_mistake_is_told_and_no_good_event_is_lost(mistake: Mistake, tmp_path: Path) -> None:
    check(mistake, tmp_path, "local")


@pytest.mark.parametrize("mistake", COMMANDS, ids=named)
def test_the_oracle_is_told_the_same(mistake: Mistake, tmp_path: Path) -> None:
    check(mistake, tmp_path, "oracle")


def check(mistake: Mistake, folder: Path, engine: str) -> None:
    (folder / "p.eq").write_text(PROGRAM, encoding="utf-8")
    (folder / mistake.file).write_bytes(mistake.content)
    dead = folder / "dead.jsonl"
    args = ["run", str(folder / "p.eq"), "--input", str(folder / mistake.file), "--dead-letter", str(dead)]
    done = CliRunner().invoke(app, [*args, "--engine", engine])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    if mistake.kind == "error":
        assert done.exit_code == 1
        assert mistake.told in done.stderr
        assert not dead.exists()
        return
    assert done.exit_code == 0, done.stderr
    reasons = [json.loads(line)["reason"] for line in dead.read_text(encoding="utf-8").splitlines()]
    assert len(reasons) == mistake.letters
    assert all(mistake.told in reason for reason in reasons), reasons
    assert sorted(json.loads(line)["data"][0] for line in done.stdout.splitlines()) == sorted(mistake.good)
