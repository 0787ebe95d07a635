"""This module shows that random programs answer live on Spark what the oracle answers, however their input is cut."""

from __future__ import annotations

import json
import statistics
from itertools import islice
from random import Random

import pytest
from pyspark.sql import SparkSession

from ephemera.engine.cluster.message import LATE, Shipment
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.pipeline import Program, compile
from ephemera.semantics.oracle import evaluate
from ephemera.spark.batch.job import Job
from ephemera.spark.live.intake import told_line
from ephemera.spark.live.memory_sink import MemorySink
from ephemera.stories.on_stream import tell
from ephemera.terms.events import Event
from tests.engine.living import STREAMS, arriving, cut
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, sample

COUNT = 60


@pytest.mark.slow
@pytest.mark.parametrize("in_one_task", [False, True], ids=["in several tasks", "half in one task"])
def test_random_programs_answer_live_what_the_oracle_answers(spark: SparkSession, in_one_task: bool) -> None:
    assert spark is not None
    dice = Random(7)
    chosen = list(islice((case for case in sample(2 * COUNT) if case is not None), COUNT))
    programs = [compile(case.program + (STREAMS if n % 2 else "")) for n, case in enumerate(chosen)]
    batches = [_batches(n, case, programs[n], dice) for n, case in enumerate(chosen)]
    sizes = [sum(len(own[k]) for own in batches if k < len(own)) for k in range(max(map(len, batches)))]
    limit = round(statistics.median(sizes)) if in_one_task else 0
    assert min(sizes) < limit < max(sizes) or not in_one_task
    sink = MemorySink(writes=False)
    jobs = [Job(program.compiled, case.world) for program, case in zip(programs, chosen, strict=True)]
    tell(jobs, batches, sink, shards=3, small=limit)
    carried: list[list[Shipment]] = [[] for _ in chosen]
    for _, shipment in sink.rows:
        carried[shipment.program].append(shipment)
    assert sum(len({s.place for s in own}) > 1 for own in carried) > COUNT // 2
    for case, program, own in zip(chosen, programs, carried, strict=True):
        assert not [s for s in own if s.group == LATE]
        compiled = program.compiled
        found = outcome_of(compiled.rules, compiled.plan, own)
        assert len(found.events) == len(set(found.events)), case.program
        read = [e for event in case.events if isinstance(e := read_event(_line(event, program), compiled), Event)]
        assert answers(found) == answers(evaluate(compiled.rules, read, case.world)), case.program


def _batches(number: int, case: Case, program: Program, dice: Random) -> list[list[str]]:
    ordered = arriving(case.events, dice) if number % 2 else sorted(case.events, key=lambda e: e.time.end)
    parts = cut(ordered, dice)
    lines = [[told_line(number, _line(event, program)) for event in part] for part in parts]
    return [*lines, [told_line(number, ends=True)]]


def _line(event: Event, program: Program) -> str:
    return json.dumps(write_event(event, program.catalogue, as_numbers=True))
