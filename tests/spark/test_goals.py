"""This module shows that programs answer on Spark what they are asked for, over history and live."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.engine.cluster.message import LateInput, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.language import compile
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.spark.batch.job import Job, start_lines
from ephemera.spark.live.checkpoint import WrongCheckpoint
from ephemera.spark.live.host import QuerySinks
from ephemera.spark.live.intake import told_line
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.stories.on_stream import tell
from ephemera.terms.events import Event
from tests.engine.living import cut
from tests.engine.spreading import outcome_of
from tests.spark.running import outcomes
from tests.spark.test_live_random import Carrying
from tests.strategies.cases import Answers, answers
from tests.strategies.goals import Goal, goals

COUNT = 40


@dataclass(frozen=True, slots=True)
class Told:
    """A goal as a job and lines of JSON, and what the oracle answers to these."""

    goal: Goal
    job: Job
    events: list[Event]
    lines: list[str]
    expected: Answers


@pytest.fixture(scope="module")
def told() -> list[Told]:
    return [_told(goal) for goal in islice(goals(2 * COUNT), COUNT)]


def _told(goal: Goal) -> Told:
    program = compile(goal.program)
    compiled = program._planned(goal.emit)
    lines = [json.dumps(write_event(e, program.catalogue, as_numbers=True)) for e in goal.events]
    read = [e for line in lines if isinstance(e := read_event(line, compiled), Event)]
    outcome = evaluate(goal.checked.rules, read)
    outcome.only(goal.emit)
    return Told(goal, Job(compiled), read, lines, answers(outcome))


def test_the_goals_are_of_all_kinds(told: list[Told]) -> None:
    plans = [one.job.compiled.physical.rewritten for one in told]
    assert sum(bool(one.expected) for one in told) > COUNT // 3
    assert all(sum(map(bool, kind)) > 2 for kind in zip(*((p.unasked, p.pushed, p.fused) for p in plans), strict=True))


def test_goals_are_met_over_history(spark: SparkSession, told: list[Told]) -> None:
    spans = [span([e.time.end for e in one.events], World()) for one in told]
    started = start_lines(spark, [one.job for one in told], [one.lines for one in told], spans, 3)
    found = [outcome for outcome, _ in outcomes(started)]
    wrong = [one.goal for one, own in zip(told, found, strict=True) if answers(own) != one.expected]
    assert wrong == []


def test_goals_are_met_live(spark: SparkSession, told: list[Told]) -> None:
    assert spark is not None
    dice = Random(5)
    batches: list[list[list[str]]] = []
    for number, one in enumerate(told):
        program = compile(one.goal.program)
        ordered = sorted(one.events, key=lambda e: e.time.end)
        lines = [
            [json.dumps(write_event(e, program.catalogue, as_numbers=True)) for e in p] for p in cut(ordered, dice)
        ]
        batches.append(
            [*([told_line(number, line) for line in part] for part in lines), [told_line(number, ends=True)]]
        )
    shipped: list[Shipment] = []

    def sinks(spreads: Sequence[DistributedProgram], query: str) -> AbstractContextManager[QuerySinks]:
        return nullcontext(Carrying(FolderSink(forms_of(spreads), query), rows=shipped))

    tell([one.job for one in told], batches, sinks, shards=3)
    assert not [s for s in shipped if isinstance(s, LateInput)]
    for number, one in enumerate(told):
        own = [s for s in shipped if s.program == number]
        found = outcome_of(one.job.compiled.rules, one.job.compiled.plan, own)
        assert answers(found) == one.expected, (one.goal.program, one.goal.emit)


def test_a_checkpoint_belongs_to_what_was_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(
        "EVENT order(id: string, qty: int); EVENT paid(id: string); large(id, q) <- o: order(id, q);"
        "bill(id) <- l: large(id, q), p: paid(id), {l, p} within 9, q > 10; small(id) <- l: large(id, q), q < 3;"
    )
    (tmp_path / "in").mkdir()

    def run(*emit: str) -> None:
        sink = ephemera.sinks.Folder(str(tmp_path / "out"))
        made = program.stream(
            spark, str(tmp_path / "in"), sink, checkpoint=str(tmp_path / "check"), trigger="once", shards=2, emit=emit
        )
        made.start().query.awaitTermination()

    def put(name: str, *events: dict[str, object]) -> None:
        (tmp_path / "in" / name).write_text("".join(json.dumps(event) + "\n" for event in events))

    put("1.jsonl", *({"event": "order", "time": 1, "data": [name, n]} for name, n in (("a", 20), ("b", 2))))
    run("bill")
    for emit in (("small",), ("bill", "small"), ()):
        with pytest.raises(WrongCheckpoint, match="asked for other events"):
            run(*emit)
    put("2.jsonl", *({"event": "paid", "time": 3, "data": [name]} for name in "ab"))
    put("3.jsonl", {"event": "order", "time": 30, "data": ["c", 1]})
    run("bill")
    given = [json.loads(line) for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    assert [(one["event"], one["data"]) for one in given] == [("bill", ["a"])]
