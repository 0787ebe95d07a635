"""This module shows what `--points` does on Spark: rules run in other places, by other joins, and answer the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark.sql import SparkSession

from ephemera.algebra.nodes import Points
from ephemera.cli.main import app
from ephemera.engine.hosts.batch import span
from ephemera.language import compile
from ephemera.rules.outcome import World
from ephemera.spark.batch.job import Job, start_lines
from tests.spark.running import outcomes
from tests.strategies.cases import answers

CHOICES: tuple[Points | None, ...] = (None, "rules", "joins")
PROGRAM = """
EVENT order(id: int, item: string);
EVENT shipped(id: int, parcel: int);
EVENT delivered(parcel: int);

completed(id, item) <- o: order(id, item), s: shipped(id, parcel), d: delivered(parcel),
    o before s, s before d, {o, d} within 1 hour;
"""
EVENTS: list[dict[str, Any]] = [
    {"event": label, "time": 60 * number + minute, "data": data}
    for number in range(12)
    for minute, label, data in (
        (0, "order", [number, "tea"]),
        (10, "shipped", [number, 100 + number]),
        (20 if number % 3 else 5000, "delivered", [100 + number]),  # each third comes days later
    )
]


def test_the_program_is_one_that_is_split_between_keys() -> None:
    program = compile(PROGRAM)
    placed = {
        points: [
            (rule["stored_join"], group["partitions"])
            for group in program.explain_json("physical", points=points)["groups"]
            for rule in group["rules"]
        ]
        for points in CHOICES
    }
    assert placed == {
        None: [(True, "all"), (False, "all")],
        "rules": [(False, "slices")],
        "joins": [(True, "all"), (False, "all")],
    }
    assert "no variable stands in all its events" in program.explain("physical", points="rules")


def test_points_change_where_rules_run_on_spark_and_not_what_they_answer(spark: SparkSession) -> None:
    program = compile("TIME UNIT 1 min;\n" + PROGRAM)
    jobs = [Job(program._planned((), points), World()) for points in CHOICES]
    lines = [json.dumps(event) for event in EVENTS]
    ends = [event["time"] * 60_000_000 for event in EVENTS]
    found = outcomes(start_lines(spark, jobs, [lines] * 3, [span(ends, World())] * 3, 3))
    assert [len(outcome.events) for outcome, _ in found] == [8, 8, 8]
    assert len({answers(outcome) for outcome, _ in found}) == 1
    assert [busy > 1 for _, busy in found] == [True, False, True]


def test_a_command_on_spark_takes_points(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    files = {"p.eq": "TIME UNIT 1 min;\n" + PROGRAM, "events.jsonl": "".join(json.dumps(e) + "\n" for e in EVENTS)}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    told = {points: _run(tmp_path, points) for points in ("rules", "joins")}
    assert told["rules"] == told["joins"]
    assert len(told["rules"]) == 8


def _run(folder: Path, points: str) -> list[Mapping[str, Any]]:
    words = ["run", folder / "p.eq", "--input", folder / "events.jsonl", "--engine", "spark", "--points", points]
    told = CliRunner().invoke(app, list(map(str, words)))
    assert told.exit_code == 0, told.output
    return [json.loads(line) for line in told.stdout.splitlines()]
