"""This module shows that no rewrite changes what programs mean on Spark: each alone, each omitted, all and none.

Over a history, and live.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from random import Random

import pytest
from pyspark.sql import SparkSession

from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.physical.plan import Compiled
from ephemera.rewrite import ALL_REWRITES
from ephemera.spark.batch.job import Job, start_lines
from ephemera.spark.live.host import QuerySinks
from ephemera.spark.live.intake import told_line
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.spark.sinks.folder_sink import FolderSink
from ephemera.stories.on_stream import tell
from ephemera.terms.events import Event
from tests.engine.living import cut
from tests.engine.rewriting import IN_SEVERAL, STORIES, Subject, distinct, of_path, planned_subjects, random_subjects
from tests.engine.spreading import outcome_of
from tests.spark.running import outcomes
from tests.spark.test_live_random import Carrying

PROGRAMS = 8
"""How many random programs of each of five kinds."""
LIVE, EACH = 10, 3
"""Of so many programs that leave a choice so many are run live under each choice."""
BATCHES = 6
"""So many batches are cut anywhere; what is left is one."""


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 3])
def test_random_programs_mean_the_same_with_any_rewrites(spark: SparkSession, places: int) -> None:
    subjects = [_read(subject) for subject in random_subjects(PROGRAMS)]
    _check(spark, [(s, choice, own) for s in subjects for choice, own in distinct(s, IN_SEVERAL)], places)


@pytest.mark.slow
def test_every_story_means_the_same_with_any_rewrites(spark: SparkSession) -> None:
    """Each under all choices that change its plan, or what is read; of most stories that is two."""
    subjects = [_read(of_path(path)) for path in STORIES]
    given = [(s, choice, own) for s in subjects for choice, own in distinct(s, IN_SEVERAL, reads=True)]
    assert len(given) > 2 * len(subjects)
    _check(spark, given, 3)


@pytest.mark.slow
def test_random_programs_mean_the_same_live_with_any_rewrites(spark: SparkSession) -> None:
    """All in one live query, in batches that are cut anywhere, with every law alone and every one omitted."""
    assert spark is not None
    dice = Random(3)
    given = list(_some_of_each_choice())
    assert {choice for _, choice, _ in given} >= {f"only {law.__name__}" for law in ALL_REWRITES}
    batches = [_batches(number, subject, dice) for number, (subject, _, _) in enumerate(given)]
    shipped: list[Shipment] = []

    def sinks(spreads: Sequence[DistributedProgram], query: str) -> AbstractContextManager[QuerySinks]:
        return nullcontext(Carrying(FolderSink(forms_of(spreads), query), rows=shipped))

    tell([Job(own, subject.world) for subject, _, own in given], batches, sinks, shards=3, small=0)
    carried: list[list[Shipment]] = [[] for _ in given]
    for shipment in shipped:
        carried[shipment.program].append(shipment)
    assert sum(len({s.place for s in own}) > 1 for own in carried) > len(given) // 2
    wrong = []
    for (subject, choice, compiled), own in zip(given, carried, strict=True):
        answers, _ = subject.told(outcome_of(compiled.rules, compiled.plan, own))
        if answers != subject.expected()[0]:
            wrong.append((choice, subject.name))
    assert wrong == []


def _some_of_each_choice() -> Iterator[tuple[Subject, str, Compiled]]:
    """Programs that leave a choice, under a few of the choices that make a difference: of each choice as many."""
    taken: Counter[str] = Counter()
    for subject in map(_read, planned_subjects(LIVE)):
        for choice, own in distinct(subject, IN_SEVERAL, reads=taken["only narrow_columns"] < EACH):
            if taken[choice] < EACH:
                taken[choice] += 1
                yield subject, choice, own


def _batches(number: int, subject: Subject, dice: Random) -> list[list[str]]:
    parts = cut(sorted(subject.events, key=lambda e: e.time.end), dice)
    told = [[told_line(number, _line(event, subject)) for event in part] for part in parts]
    told = [*told[:BATCHES], [line for part in told[BATCHES:] for line in part]]
    return [*told, [told_line(number, ends=True)]]


def _check(spark: SparkSession, given: list[tuple[Subject, str, Compiled]], places: int) -> None:
    """Everything in one job."""
    jobs = [Job(own, subject.world) for subject, _, own in given]
    spans = [span([e.time.end for e in subject.events], subject.world) for subject, _, _ in given]
    found = outcomes(start_lines(spark, jobs, [_lines(subject) for subject, _, _ in given], spans, places))
    wrong = []
    for (subject, choice, _), (outcome, _) in zip(given, found, strict=True):
        if subject.told(outcome) != subject.expected():
            wrong.append((choice, subject.name))
    assert wrong == []


def _read(subject: Subject) -> Subject:
    """The same with the events as lines tell them: some are bad, and others have another form."""
    plain = subject.prepared(())
    return replace(subject, events=tuple(e for t in _lines(subject) if isinstance(e := read_event(t, plain), Event)))


def _lines(subject: Subject) -> list[str]:
    return [_line(event, subject) for event in subject.events]


def _line(event: Event, subject: Subject) -> str:
    return json.dumps(write_event(event, subject.rules.resolved.catalogue, as_numbers=True))
