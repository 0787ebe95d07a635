"""This module shows that random programs answer on Spark what the oracle answers, in 1, 2 and 7 partitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice

import pytest
from pyspark.sql import SparkSession

from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.language import compile
from ephemera.semantics.oracle import evaluate
from ephemera.spark.batch.job import Job, start_lines
from ephemera.terms.events import Event
from tests.spark.running import outcomes
from tests.strategies.cases import Answers, Case, answers, sample

COUNT = 80


@dataclass(frozen=True, slots=True)
class Told:
    """A case as lines of JSON, and what the oracle answers to these."""

    case: Case
    job: Job
    lines: list[str]
    span: tuple[int, int]
    expected: Answers


@pytest.fixture(scope="module")
def told() -> list[Told]:
    return [_told(case) for case in islice((case for case in sample(2 * COUNT) if case is not None), COUNT)]


def _told(case: Case) -> Told:
    program = compile(case.program)
    lines = [json.dumps(write_event(e, program.catalogue, as_numbers=True)) for e in case.events]
    read = [e for line in lines if isinstance(e := read_event(line, program._compiled), Event)]
    assert len(read) == len(lines)
    expected = answers(evaluate(case.ruleset, read, case.world))
    return Told(case, Job(program._compiled, case.world), lines, span([e.time.end for e in read], case.world), expected)


@pytest.mark.parametrize("places", [1, 2, 7])
def test_random_programs_answer_what_the_oracle_answers(spark: SparkSession, told: list[Told], places: int) -> None:
    assert len(told) == COUNT
    assert sum(bool(t.expected) for t in told) > COUNT // 2
    spans = [t.span for t in told]
    found = outcomes(start_lines(spark, [t.job for t in told], [t.lines for t in told], spans, places))
    wrong = [t.case.program for t, (outcome, _) in zip(told, found, strict=True) if answers(outcome) != t.expected]
    assert wrong == []
    assert all(len(outcome.events) == len(set(outcome.events)) for outcome, _ in found)
    several = sum(busy > 1 for _, busy in found)
    assert several > COUNT // 8 if places > 1 else several == 0
    assert max(busy for _, busy in found) <= places
