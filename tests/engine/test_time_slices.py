"""This module shows that rules without a key answer the same in slices of time, wherever these are cut."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.limits import Limits
from ephemera.analysis.relevance import derive
from ephemera.base.errors import InternalError
from ephemera.engine.cluster.cut_along_time import cut_at
from ephemera.engine.cluster.message import Answers, EngineStats, EventsFor, Shipment, UndefinedHead
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.time_slices import (
    FORCED,
    PlacedSample,
    Slicing,
    TimeSlices,
    place_slices,
    sample_of,
    slice_places,
)
from ephemera.formats.json_events import read_object
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.placement import Placement
from ephemera.physical.plan import prepare
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.spreading import spread_over
from tests.plans.meaning import of_story
from tests.strategies.cases import Case, answers
from tests.strategies.short_answers import short_cases, short_sample

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))
SECOND = 1_000_000

# ---- the same answers --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=short_cases())
def test_a_random_program_answers_in_slices_what_the_oracle_answers(drawn: tuple[Case, tuple[int, ...]]) -> None:
    case, limits = drawn
    assert _in_slices(case, limits) == answers(case.outcome())


@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_most_of_many_programs_are_cut_and_answer_what_the_oracle_answers(count: int) -> None:
    counts: Counter[str] = Counter()
    for case, limits in short_sample(count):
        expected = answers(case.outcome())
        assert _in_slices(case, limits) == expected, case.program
        plan = lower(case.ruleset)
        stages = prepare(case.ruleset, plan, derive(plan)).physical.stages
        cut = [g for g in stages.groups if g.look_back is not None and None in g.cuts.values()]
        counts += Counter(cut=bool(cut), answering=bool(cut and expected), levels=bool(cut and stages.levels > 1))
    assert counts["cut"] > count // 2
    assert counts["answering"] > count // 2
    assert counts["levels"] > count // 8


def _in_slices(case: Case, limits: Sequence[int]) -> object:
    plan = lower(case.ruleset)
    found, _ = spread_over(case.ruleset, plan, derive(plan), case.events, case.world, 7, limits=limits)
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))
    return answers(found)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds_in_slices(path: Path) -> None:
    rules, events, world = of_story(path)
    plan = lower(rules)
    facts = derive(plan)
    allowed = Limits(plan, facts)
    events = [event for event in events if allowed.complaint(event) is None]  # as readers do
    expected = answers(evaluate(rules, events, world))
    ends = sorted({e.time.end for e in events})
    limits = sorted(Random(path.stem).sample(ends, min(4, len(ends))))
    found, _ = spread_over(rules, plan, facts, events, world, 5, limits=limits)
    assert answers(found) == expected
    assert len(found.events) == len(set(found.events))


# ---- what is given once, and counted -----------------------------------------------------------------------

PAIRS = """
EVENT a(x: int); EVENT b(y: int);
pair(x, y) <- i: a(x), j: b(y), i before j, {i, j} within 10;
ratio(x / y) <- i: a(x), j: b(y), {i, j} within 10;
quiet(x) <- i: a(x), w: extend(i, 5), while w: not b(_);
"""


def test_events_and_letters_and_matches_count_where_they_end() -> None:
    whole, cut = _counted(PAIRS, ()), _counted(PAIRS, [20 * SECOND, 40 * SECOND, 41 * SECOND])
    assert cut[0] == whole[0]
    assert cut[1] == whole[1]
    assert len(whole[1]) == 3
    assert sum(told["events"] for told in whole[2]) == sum(told["events"] for told in cut[2])
    assert sum(told["given"] for told in whole[2]) == sum(told["given"] for told in cut[2])
    assert [told["looked_back"] for told in whole[2]] == [0]
    assert sum(told["looked_back"] for told in cut[2]) > 0
    assert {n for told in whole[2] for n in told["matched"]} == {n for told in cut[2] for n in told["matched"]}


def test_a_rule_that_matches_only_in_what_is_passed_over_has_not_matched() -> None:
    # The look-back of the second slice begins behind the b that keeps the first rule silent.
    events = _read([("b", 1, 1), ("a", 2, 1), ("a", 9, 2), ("b", 9, 2)], PAIRS)
    told = "EVENT a(x: int); EVENT b(y: int); none(x) <- i: a(x), w: extend-begin(i, 5), while w: not b(_);"
    _, _, stats = _counted(told, [8 * SECOND], events)
    assert [one["matched"] for one in stats] == [[], []]
    assert [one["given"] for one in stats] == [0, 0]


def _read(rows: Iterable[tuple[str, int, int]], program: str) -> list[Event]:
    catalogue = ephemera.compile(program).catalogue
    given = [{"event": label, "time": time, "data": [value]} for label, time, value in rows]
    return [e for g in given if isinstance(e := read_object(g, catalogue), Event)]


def _counted(
    program: str, limits: Sequence[int], events: Sequence[Event] | None = None
) -> tuple[int, list[str], list[dict[str, Any]]]:
    """How many answers there were, the letters, and what engines told."""
    dice = Random(0)
    rows = [(dice.choice("ab"), dice.randrange(60), dice.randrange(3)) for _ in range(80)]
    events = _read(rows, program) if events is None else events
    spread = cut_at(DistributedProgram(ephemera.compile(program)._compiled, World(), 0, 5, -FAR, FAR), limits)
    carried: list[Shipment] = list(spread.route(of_events(events, spread.plan.catalogue.attributes)))
    for place in range(5):
        own = [s for s in carried if isinstance(s, EventsFor) and s.place == place]
        carried += spread.run(0, spread.pinned(0), place, sorted(own, key=lambda s: s.events.first)) if own else ()
    letters = {json.dumps(json.loads(s.first), sort_keys=True) for s in carried if isinstance(s, UndefinedHead)}
    given = sum(s.events.count for s in carried if isinstance(s, Answers))
    return given, sorted(letters), [dict(s.stats) for s in carried if isinstance(s, EngineStats)]


# ---- which rules -------------------------------------------------------------------------------------------


def test_the_look_back_is_the_longest_that_an_answer_may_last() -> None:
    found = _stages(PAIRS + "next(x) <- p: pair(x, y), q: pair(y, z), {p, q} within 30;")
    assert [(g.rules, g.look_back) for g in found.groups] == [(("pair", "ratio", "quiet", "next"), 30 * SECOND)]


@pytest.mark.parametrize(
    "rule",
    [
        "r(x) <- i: a(x), j: b(y), i before j;",
        "r(x) <- i: a(x), j: b(y), t: timer:datetime(minute: 0), {i, j, t} within 60;",
        "r(x) <- i: long(x), j: b(y), i before[0, 5] j;",
        "r(x) <- i: a(x), j: b(y), {i, j} within 9; r(x) <- i: r(x), j: r(y), x > y, {i, j} within 9;",
    ],
    ids=["nothing bounds it", "the clock", "any length", "recursion"],
)
def test_what_cannot_be_cut_along_time_has_one_place(rule: str) -> None:
    program = f"EVENT a(x: int); EVENT b(y: int); EVENT long(x: int) LASTS ANY; {rule}"
    groups = [g for g in _stages(program).groups if "r" in {name.split("#")[0] for name in g.rules}]
    assert any(g.look_back is None and None in g.cuts.values() for g in groups)


def test_rules_that_can_be_cut_along_time_do_not_share_a_group_with_others() -> None:
    found = _stages(PAIRS + "far(x) <- i: a(x), j: b(y), i before j;")
    assert [(g.rules, g.look_back) for g in found.groups] == [
        (("pair", "ratio", "quiet"), 10 * SECOND),
        (("far",), None),
    ]


def _stages(program: str) -> Placement:
    return ephemera.compile(program)._compiled.physical.stages


# ---- where and how often -----------------------------------------------------------------------------------


@given(
    limits=st.sets(st.integers(-5, 25), max_size=5),
    look_back=st.integers(0, 12),
    events=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=20),
)
def test_each_slice_has_what_begins_in_its_look_back_and_ends_in_time(
    limits: set[int], look_back: int, events: list[tuple[int, int]]
) -> None:
    slices = TimeSlices(tuple(sorted(limits)), look_back)
    begins = np.array([b for b, _ in events], dtype=np.int64)
    ends = begins + np.array([length for _, length in events], dtype=np.int64)
    rows, numbers = slices.needing(begins, ends)
    found = set(zip(rows.tolist(), numbers.tolist(), strict=True))
    assert len(found) == len(rows)
    for number in range(len(slices)):
        after, until = slices.span(number)
        for row, (b, e) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
            if e - b <= look_back:
                assert ((row, number) in found) == (e <= until and b > after - look_back)


def test_slices_have_about_as_many_events_and_are_as_many_as_pay() -> None:
    ends = np.sort(np.random.default_rng(1).integers(0, 10**9, 10_000))
    sample = _in_one_place([(ends, 5_000_000.0)])
    chosen = place_slices(sample, 10**6, 4, 2)[0]
    assert len(chosen) == 4
    assert np.bincount(np.searchsorted(chosen.limits, ends)).tolist() == [2500] * 4
    assert len(place_slices(sample, 2 * 10**8, 4, 2)[0]) == 2


def _in_one_place(parts: Sequence[tuple[Any, float]]) -> PlacedSample:
    return sample_of([(ends, np.zeros(len(ends), dtype=np.uint64), count / len(ends)) for ends, count in parts])


@pytest.mark.parametrize(
    ("count", "look_back", "cores"), [(1_000.0, 10, 2), (5e6, 10**9, 2), (5e6, 10, 1), (5e6, 8 * 10**8, 8)]
)
def test_what_is_not_worth_it_is_not_cut(count: float, look_back: int, cores: int) -> None:
    ends = np.arange(0, 10**9, 10**5)
    assert place_slices(_in_one_place([(ends, count)]), look_back, 2 * cores, cores) == {}
    assert place_slices(sample_of([]), look_back, 4, 2) == {}


def test_events_that_end_at_one_time_are_not_cut() -> None:
    assert place_slices(_in_one_place([(np.full(100, 7), 5e6)]), 10, 4, 2) == {}
    forced = place_slices(_in_one_place([(np.array([7, 8, 8, 9]), 4.0)]), 10**9, 9, 1, FORCED)
    assert forced == {0: TimeSlices((7, 8), 10**9)}


def test_inputs_count_by_how_many_events_they_have() -> None:
    sample = _in_one_place([(np.arange(100), 1e6), (np.arange(1_000, 1_010), 9e6)])
    assert 1_003 <= place_slices(sample, 1, 2, 2, Slicing())[0].limits[0] <= 1_006


def test_there_are_no_more_slices_than_places() -> None:
    spread = DistributedProgram(ephemera.compile(PAIRS)._compiled, World(), 0, 3, -FAR, FAR)
    assert [len(one) for one in cut_at(spread, [1, 2]).slices.values()] == [3]
    with pytest.raises(InternalError, match="more slices than 3 places"):
        cut_at(spread, [1, 2, 3])


def test_a_place_with_more_than_its_share_is_cut_and_no_other() -> None:
    ends = np.arange(10_000) * 10**5
    keys = np.where(ends // 10**5 % 2 == 0, 1, ends // 10**5).astype(np.uint64)
    sample = sample_of([(ends, keys, 500.0)])
    chosen = place_slices(sample, 10**6, 4, 2)
    assert list(chosen) == [1]
    assert len(chosen[1]) == 4
    even = sample_of([(ends, np.arange(10_000, dtype=np.uint64), 500.0)])
    assert place_slices(even, 10**6, 4, 2) == {}
    assert place_slices(sample, 10**9, 4, 2) == {}


def test_slices_are_in_places_of_their_own_and_the_last_at_home() -> None:
    assert slice_places(1, 4, 4) == [2, 3, 0, 1]
    assert slice_places(0, 2, 5) == [4, 0]
    assert slice_places(3, 1, 5) == [3]
