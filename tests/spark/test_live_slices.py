"""This module shows that live batches on Spark that are cut along time give what they give whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random

import pytest
from pyspark.sql import SparkSession

from ephemera.engine.cluster.live_slices import FORCED
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
from ephemera.spark.live.report import BatchReport
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.stories.on_stream import tell
from ephemera.terms.events import Event
from tests.engine.spreading import outcome_of
from tests.spark.test_live_random import Carrying
from tests.strategies.cases import answers
from tests.strategies.short_answers import short_sample


@pytest.mark.parametrize("count", [6, pytest.param(80, marks=pytest.mark.slow)])
def test_random_programs_answer_live_in_slices_what_the_oracle_answers(spark: SparkSession, count: int) -> None:
    assert spark is not None
    chosen = [case for case, _ in short_sample(count)]
    programs = [compile(case.program) for case in chosen]
    told = [_batches(n, case.events, programs[n], Random(n)) for n, case in enumerate(chosen)]
    jobs = [Job(program._compiled, case.world) for program, case in zip(programs, chosen, strict=True)]
    shipped: list[Shipment] = []
    reports: list[BatchReport] = []

    def sinks(spreads: Sequence[DistributedProgram], query: str) -> AbstractContextManager[QuerySinks]:
        return nullcontext(Carrying(FolderSink(forms_of(spreads), query), rows=shipped))

    tell(jobs, told, sinks, shards=3, slicing=FORCED, watch=reports.append)
    assert [report.slices for report in reports] == [1, 2, 2, 2]
    carried: list[list[Shipment]] = [[] for _ in chosen]
    for shipment in shipped:
        carried[shipment.program].append(shipment)
    for case, program, own in zip(chosen, programs, carried, strict=True):
        assert not [s for s in own if isinstance(s, LateInput)]
        compiled = program._compiled
        found = outcome_of(compiled.rules, compiled.plan, own)
        assert len(found.events) == len(set(found.events)), case.program
        read = [e for event in case.events if isinstance(e := read_event(_line(event, program), compiled), Event)]
        assert answers(found) == answers(evaluate(compiled.rules, read, case.world)), case.program


def _batches(number: int, events: Sequence[Event], program: Program, dice: Random) -> list[list[str]]:
    """Three batches and the end, each told as it comes."""
    ordered = sorted(events, key=lambda e: e.time.end)
    cuts = sorted(dice.randrange(len(ordered) + 1) for _ in range(2))
    parts = [ordered[: cuts[0]], ordered[cuts[0] : cuts[1]], ordered[cuts[1] :]]
    lines = [[told_line(number, _line(event, program)) for event in part] for part in parts]
    return [*lines, [told_line(number, ends=True)]]


def _line(event: Event, program: Program) -> str:
    return json.dumps(write_event(event, program.catalogue, as_numbers=True))
