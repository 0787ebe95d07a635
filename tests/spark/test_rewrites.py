"""This module shows that no rewrite changes what programs mean on Spark: each alone, each omitted, all and none."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle

import pytest
from pyspark.sql import SparkSession

from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.physical.plan import Compiled
from ephemera.spark.batch.job import Job, start_lines
from ephemera.terms.events import Event
from tests.engine.rewriting import IN_SEVERAL, STORIES, Subject, distinct, of_path, random_subjects
from tests.spark.running import outcomes

PROGRAMS = 8
"""How many random programs of each of four kinds."""


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 3])
def test_random_programs_mean_the_same_with_any_rewrites(spark: SparkSession, places: int) -> None:
    subjects = [_read(subject) for subject in random_subjects(PROGRAMS)]
    _check(spark, [(s, choice, own) for s in subjects for choice, own in distinct(s, IN_SEVERAL)], places)


@pytest.mark.slow
def test_every_story_means_the_same_with_some_rewrites(spark: SparkSession) -> None:
    subjects = (_read(of_path(path)) for path in STORIES)
    turns = zip(subjects, cycle(IN_SEVERAL.items()), strict=False)
    _check(spark, [(s, choice, s.prepared(rewrites)) for s, (choice, rewrites) in turns], 3)


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
    catalogue = subject.rules.resolved.catalogue
    return [json.dumps(write_event(event, catalogue, as_numbers=True)) for event in subject.events]
