"""A live run in one process delivers its messages with its commits: again after a crash, and from another start on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.systems.brokers import make_topic, order, program_file, send

RAISING = """
    EVENT order(id: string, qty: int);
    STREAM shop CARRIES order WATERMARK 1 sec;
    RAISE to(recipient="{box}", transport="file") {{ big {{ id {{ var I }} }} }}
    ON event o: order {{{{ id {{ var I }}, qty {{ var Q }} }}}} where {{ var Q > 0 }} END
"""


def run(program: Path, where: str, *more: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ephemera", "run", str(program), "--mode", "stream", "--engine", "local"]
    command += [
        "--input",
        where,
        "--trigger",
        "once",
        "--output",
        str(program.parent / "answers.jsonl"),
        *map(str, more),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def received(box: Path) -> list[str]:
    return [json.loads(line)["data"]["id"] for line in box.read_text().splitlines()]


def test_messages_of_a_run_between_systems_are_delivered(kafka: str, fresh: str, tmp_path: Path) -> None:
    where, box = make_topic(kafka, fresh, partitions=1), tmp_path / "box.jsonl"
    program = program_file(tmp_path, RAISING.format(box=box))
    send(kafka, fresh, [order(n, n) for n in range(20)])
    run(program, where, "--checkpoint", tmp_path / "state")
    assert received(box) == [f"o{n}" for n in range(18)]  # the watermark holds back what may not be the last
    send(kafka, fresh, [order(n, n) for n in range(20, 30)])
    run(program, where, "--checkpoint", tmp_path / "state")
    assert received(box) == [f"o{n}" for n in range(28)]


def test_an_outbox_that_outlives_its_run_takes_the_messages_of_the_next(kafka: str, fresh: str, tmp_path: Path) -> None:
    where, box = make_topic(kafka, fresh, partitions=1), tmp_path / "box.jsonl"
    program = program_file(tmp_path, RAISING.format(box=box))
    send(kafka, fresh, [order(n, n) for n in range(20)])
    for _ in range(2):
        run(program, where, "--outbox", tmp_path / "outbox")
        (tmp_path / "answers.jsonl").unlink()  # which a run that begins anew does not write over
    assert received(box) == [f"o{n}" for n in range(18)] * 2


def test_messages_are_not_delivered_where_that_is_not_wanted(kafka: str, fresh: str, tmp_path: Path) -> None:
    where, box = make_topic(kafka, fresh, partitions=1), tmp_path / "box.jsonl"
    send(kafka, fresh, [order(n, n) for n in range(20)])
    run(program_file(tmp_path, RAISING.format(box=box)), where, "--no-deliver")
    assert not box.exists()
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 18
