"""This module shows that no rewrite changes what a program means: each alone, each omitted, all together and none.

Answers and dead letters are those of the oracle for every story and for random programs: in one process, from lines,
in several places, and live in several places whose workers forget and fail.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ephemera.connect.local_run import ProgramRun, run_local
from ephemera.connect.sink import Memory
from ephemera.connect.source import Memory as Listed
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import BatchRun
from ephemera.formats.json_events import write_event
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rewrite import ALL_REWRITES
from ephemera.rewrite.optimize import Rewrite, Rewritten, optimize_more
from ephemera.rules.outcome import Outcome
from ephemera.semantics.oracle import evaluate
from tests.engine.living import Beat, Host, cut
from tests.engine.rewriting import (
    IN_ONE_PLACE,
    IN_SEVERAL,
    STORIES,
    Subject,
    before_rewriting,
    distinct,
    of_path,
    random_subjects,
)
from tests.engine.spreading import outcome_of, run_spread

FEW, MANY = 12, 30
"""How many random programs of each of five kinds."""
LEAST = 5
"""So many of them at least are changed by every rewrite."""
OMITTED = 3
"""And so many have another plan without it: what it would do is often done by another."""


def check_in_one_place(subjects: Iterable[Subject]) -> None:
    for subject in subjects:
        expected = subject.expected()
        ends = sorted({event.time.end for event in subject.events})
        for choice, compiled in distinct(subject, IN_ONE_PLACE):
            found = BatchRun(compiled, subject.events, subject.world).run(ends[::3])
            _same(found, expected, subject, choice)


def check_in_several(subjects: Iterable[Subject]) -> None:
    for subject in subjects:
        expected = subject.expected()
        for choice, compiled in distinct(subject, IN_SEVERAL):
            found, _ = run_spread(compiled, subject.events, subject.world, 3)
            assert len(found.events) == len(set(found.events))
            _same(found, expected, subject, choice)


def check_live(subjects: Iterable[Subject]) -> None:
    for seed, subject in enumerate(subjects):
        expected, _ = subject.expected()
        for choice, compiled in distinct(subject, IN_SEVERAL):
            found = _live(compiled, subject, Random(seed))
            assert subject.told(found)[0] == expected, (choice, subject.name)


def _live(compiled: Compiled, subject: Subject, dice: Random) -> Outcome:
    spread = DistributedProgram(compiled, subject.world, 0, dice.choice([2, 3]), -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(sorted(subject.events, key=lambda e: e.time.end), dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    return outcome_of(subject.rules, subject.plan, host.carried)


def _same(found: Outcome, expected: object, subject: Subject, choice: str) -> None:
    assert subject.told(found) == expected, (choice, subject.name)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_means_the_same_with_any_rewrites(path: Path) -> None:
    subject = of_path(path)
    check_in_one_place([subject])
    check_in_several([subject])


@pytest.fixture(scope="module")
def plain() -> list[Rewritten]:
    """The plans of the random programs before anything is rewritten."""
    return [before_rewriting(subject) for subject in random_subjects(FEW)]


@pytest.mark.parametrize("law", ALL_REWRITES, ids=lambda law: law.__name__)
def test_every_rewrite_changes_several_of_the_random_programs(law: Rewrite, plain: list[Rewritten]) -> None:
    assert sum(law(before) != before for before in plain) >= LEAST


def test_every_rewrite_omitted_leaves_several_of_the_random_programs_with_another_plan(plain: list[Rewritten]) -> None:
    """In one place or in several: there what is split between keys leaves less to store."""
    differ: Counter[str] = Counter()
    for before in plain:
        differ.update({name for choice in (IN_ONE_PLACE, IN_SEVERAL) for name in _that_matter(before, choice)})
    assert {law.__name__: differ[law.__name__] for law in ALL_REWRITES if differ[law.__name__] < OMITTED} == {}


def _that_matter(before: Rewritten, choice: Mapping[str, Sequence[Rewrite]]) -> set[str]:
    """The laws without which a plan is another one."""
    whole = optimize_more(before, choice["all"])
    omitted = [(name.removeprefix("without "), own) for name, own in choice.items() if name.startswith("without ")]
    return {name for name, own in omitted if optimize_more(before, own) != whole}


def test_random_programs_mean_the_same_with_any_rewrites() -> None:
    check_in_one_place(random_subjects(FEW))


def test_random_programs_mean_the_same_in_several_places() -> None:
    check_in_several(random_subjects(FEW))


def test_random_programs_mean_the_same_live() -> None:
    check_live(random_subjects(FEW // 3))


def test_random_programs_mean_the_same_from_lines_of_which_not_all_is_read() -> None:
    for subject in random_subjects(FEW):
        written = {choice: _from_lines(subject, IN_ONE_PLACE[choice]) for choice in ("none", *_READING)}
        assert all(own == written["none"] for own in written.values()), subject.name
        outcome, catalogue = evaluate(subject.rules, subject.events, subject.world), subject.rules.resolved.catalogue
        outcome.only(subject.emit)
        expected = [(e.term.label, write_event(e, catalogue, as_numbers=True)["time"]) for e in outcome.events]
        assert Counter(map(str, expected)) == Counter(str((one["event"], one["time"])) for one in written["none"])


_READING = ("all", "only narrow_columns", "without narrow_columns")


def _from_lines(subject: Subject, rewrites: Sequence[Rewrite]) -> list[dict[str, Any]]:
    """The answers as they are written, messages left out."""
    catalogue = subject.rules.resolved.catalogue
    lines = [json.dumps(write_event(event, catalogue, as_numbers=True)) for event in subject.events]
    sink = Memory()
    run_local([ProgramRun(subject.prepared(rewrites), subject.world)], [Listed(lines)], sink)
    return [answer for answer in sink.answers if "recipient" not in answer]


@pytest.mark.slow
def test_many_random_programs_mean_the_same_with_any_rewrites() -> None:
    check_in_one_place(random_subjects(MANY))


@pytest.mark.slow
def test_many_random_programs_mean_the_same_in_several_places() -> None:
    check_in_several(random_subjects(MANY))


@pytest.mark.slow
def test_many_random_programs_and_every_story_mean_the_same_live() -> None:
    """What is late, and time that passes without events, are for the live stories on Spark to show."""
    check_live(random_subjects(MANY // 4))
    check_live(story for story in map(of_path, STORIES) if story.world.until is None and _comes_by_its_end(story))


def _comes_by_its_end(story: Subject) -> bool:
    """Whether all events of a story come in the order of their ends, and none is late by the story itself."""
    catalogue = story.rules.resolved.catalogue
    return not catalogue.sources and not any(schema.arrives_at_begin for schema in catalogue.events.values())
