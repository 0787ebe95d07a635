"""Rules change while they run in several places, and places become more or fewer: with the answers of one engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.attributes import occurrence
from ephemera.engine.change.moved_lanes import Immovable
from ephemera.engine.cluster.gathered_state import united
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.kernels.columns import Batch, Column, ints, objects
from ephemera.kernels.event_columns import END, REFERENCE
from ephemera.kernels.history import FAR
from tests.engine.following import led
from tests.engine.following_spread import SpreadFollower, respread_host
from tests.engine.living import STREAMS, Beat, Host, arriving, cut
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, cases
from tests.strategies.changes import Changing, changings


@pytest.mark.parametrize(
    ("count", "ways", "restarts"),
    [(16, {}, False), (10, {"changes": 3, "grows": True}, True), (10, {"changes": 2, "streams": True}, True)],
    ids=["one", "several", "streams"],
)
def test_what_is_exact_in_several_places_is_what_the_oracle_says(
    count: int, ways: dict[str, Any], restarts: bool
) -> None:
    _are_followed(changings(count, **ways), restarts=restarts)


def test_with_an_archive_added_rules_are_exact_in_several_places_too() -> None:
    _are_followed(changings(12, changes=2), restarts=True, archive=1)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
def test_many_are_what_the_oracle_says(streams: bool) -> None:
    _are_followed(changings(150, changes=3, streams=streams, grows=streams), restarts=True)


@pytest.mark.slow
def test_many_with_archives_are_what_the_oracle_says() -> None:
    _are_followed(changings(120, changes=3), restarts=True, archive=0.5)


def _are_followed(cases: Iterable[Changing], *, restarts: bool, archive: float = 0) -> None:
    changes = kept = 0
    for seed, case in enumerate(cases):
        with TemporaryDirectory() as folder:
            own = SpreadFollower(case, Path(folder), Random(seed))
            follower = led(own, Random(seed), restarts=restarts, archive=archive)
        assert follower.wrong() == {"lacking": set(), "too much": set()}, f"case {seed}"
        assert archive < 1 or not follower.inexact, f"case {seed}"
        changes += len(follower.changes)
        kept += sum(bool(done.kept) for done in follower.changes)
    assert kept > changes // 4  # there is something to move


DECLARED = "TIME UNIT 1 sec; EVENT a(k: int, v: int); EVENT b(k: int, v: int); EVENT c(k: int, v: int);"
PLAIN = "q(k, v) <- i: c(k, v);"


@pytest.mark.parametrize(
    "kept",
    [
        "p(k) <- e: algebra ((a(k, _); b(k, _))[9]);",
        "p() <- e: algebra ((a(_, _); b(_, _))[9]);",
        "p(x, y) <- i: a(x, y); p(x, z) <- i: p(x, y), j: b(y, z), i before j, {i, j} within 3;",
        "p(k, v) <- i: a(k, _), j: b(k, _), l: c(_, v), i before j, j before l, {i, l} within 9;",
        "p(k, v) <- i: a(k, v), j: a(v, k), i != j, {i, j} within 9;",
        "p(k, v) <- i: a(k, _), j: a(_, v), i != j, {i, j} within 4; o(k) <- i: a(k, _), w: extend(i, 4), "
        "while w: not b(k, _);",
        "p(k, count(*)) <- i: a(k, _), w: extend(i, 9), while w: collect b(_, u);",
        "p(k) <- t: timer:datetime(second: 20), i: a(k, _), i before t, {i, t} within 20;",
    ],
    ids=["algebra", "algebra of all", "recursion", "keys", "other places", "two groups", "collected", "by the clock"],
)
@pytest.mark.parametrize("moment", [1, 25, 50])
def test_kept_rules_go_on_in_several_places(kept: str, moment: int, tmp_path: Path) -> None:
    dice, time, events = Random(moment), 0, []
    for _ in range(70):
        time += dice.choice((0, 1, 1, 2))
        events.append({"event": dice.choice("abc"), "time": time, "data": [dice.randrange(3), dice.randrange(3)]})
    labels = re.findall(r"(\w+)\([^)]*\) <-", kept)
    rules = tuple(zip(labels, [kept, *([""] * len(labels))], strict=False))
    case = Changing((DECLARED,) * 3, (rules, (*rules, ("q", PLAIN)), rules), tuple(events), (moment, moment + 10))
    follower = led(SpreadFollower(case, tmp_path, dice), dice, restarts=True)
    assert follower.wrong() == {"lacking": set(), "too much": set()}
    assert all(len(done.kept) >= len(labels) for done in follower.changes)
    assert len(follower.changes) + len(follower.immovable) == 2


# ---- tuples of several groups ----------------------------------------------------------------------------------


def rows(*told: tuple[int, int], events: bool = False) -> Batch:
    """Tuples of a reference and an end."""
    columns: dict[str, Column] = {
        REFERENCE: ints(np.array([r for r, _ in told])),
        END: ints(np.array([e for _, e in told])),
    }
    if events:
        columns[occurrence("$")] = Column(objects([object() for _ in told]), "any")
    return Batch(columns, len(told))


def test_what_two_groups_have_of_one_event_is_there_once() -> None:
    found = united([rows((0, 5), (1, 5), (2, 7)), rows((10, 5), (11, 8))])
    assert sorted(zip(found[REFERENCE].tolist(), found[END].tolist(), strict=True)) == [(0, 5), (1, 5), (2, 7), (11, 8)]


def test_a_tuple_is_there_as_often_as_where_it_is_most_often() -> None:
    found = united([rows((0, 5)), rows((10, 5), (11, 5), (12, 5))])
    assert sorted(found[REFERENCE].tolist()) == [10, 11, 12]


def test_tuples_without_the_events_that_are_kept_must_lack_nothing() -> None:
    found = united([rows((0, 5)), rows((10, 5), (11, 7), events=True)], whole=True)
    assert sorted(found[REFERENCE].tolist()) == [10, 11]
    with pytest.raises(Immovable, match="whole events of a type"):
        united([rows((0, 5), (1, 9)), rows((10, 5), events=True)], whole=True)


# ---- another number of places ----------------------------------------------------------------------------------


@settings(max_examples=12)
@given(case=cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_places_become_more_and_fewer(case: Case, seed: int, streams: bool) -> None:
    _check_places(case, seed, streams=streams)


@pytest.mark.slow
@settings(max_examples=150)
@given(case=cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_places_of_many_programs_become_more_and_fewer(case: Case, seed: int, streams: bool) -> None:
    _check_places(case, seed, streams=streams)


def _check_places(case: Case, seed: int, *, streams: bool) -> None:
    """Any program gives what the oracle gives, however often its state is cut otherwise."""
    dice = Random(seed)
    compiled = ephemera.compile(case.program + (STREAMS if streams else ""))._compiled.beside(case.world.calendars)
    spread = DistributedProgram(compiled, case.world, 0, dice.choice([1, 2, 3]), -FAR, FAR)
    in_time = sorted(case.events, key=lambda e: e.time.end)
    carried: list[Shipment] = []
    with TemporaryDirectory() as place:
        folder = Path(place)
        host = Host(spread, _new(folder), dice)
        for part in cut(arriving(case.events, dice) if streams else in_time, dice):
            host.beat(Beat(part))
            if dice.random() < 0.4:
                carried += host.carried
                host = respread_host(host, _new(folder), dice.choice([1, 2, 3, 4]))
        host.beat(Beat(ends=True))
    found = outcome_of(compiled.rules, compiled.plan, [*carried, *host.carried])
    assert len(found.events) == len(set(found.events))
    assert answers(found) == answers(case.outcome())


def _new(folder: Path) -> Path:
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    return made
