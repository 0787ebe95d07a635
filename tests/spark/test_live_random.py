"""This module shows that random programs answer live on Spark what the oracle answers, however their input is cut."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from ephemera.engine.cluster.message import LateInput, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.language import compile
from ephemera.program import Program
from ephemera.semantics.oracle import evaluate
from ephemera.spark.batch.job import Job
from ephemera.spark.live.host import QuerySinks
from ephemera.spark.live.intake import told_line
from ephemera.spark.live.task import BatchPlace, Last
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.stories.on_stream import tell
from ephemera.terms.events import Event
from tests.engine.living import STREAMS, arriving, cut
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, sample

COUNT = 60


@dataclass(frozen=True, slots=True)
class Carrying(QuerySinks):
    """Brings all shipments here as they are, with the places that they come from."""

    rows: list[Shipment] = field(default_factory=list)

    @property
    def last(self) -> Last:
        def as_they_came(shipments: Iterable[Shipment], at: BatchPlace) -> Iterator[Shipment]:
            del at
            yield from shipments

        return as_they_came  # one that has no name elsewhere travels to workers, which do not know the tests

    def take(self, at: BatchPlace, rows: Sequence[Shipment], frame: DataFrame | None) -> None:
        del at, frame
        self.rows.extend(rows)


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
    jobs = [Job(program._compiled, case.world) for program, case in zip(programs, chosen, strict=True)]
    shipped: list[Shipment] = []

    def sinks(spreads: Sequence[DistributedProgram], query: str) -> AbstractContextManager[QuerySinks]:
        return nullcontext(Carrying(FolderSink(forms_of(spreads), query), rows=shipped))

    tell(jobs, batches, sinks, shards=3, small=limit)
    carried: list[list[Shipment]] = [[] for _ in chosen]
    for shipment in shipped:
        carried[shipment.program].append(shipment)
    assert sum(len({s.place for s in own}) > 1 for own in carried) > COUNT // 2
    for case, program, own in zip(chosen, programs, carried, strict=True):
        assert not [s for s in own if isinstance(s, LateInput)]
        compiled = program._compiled
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
