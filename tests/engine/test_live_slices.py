"""This module shows that a live batch that is cut along time gives what it gives whole, whoever forgets or fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.engine.cluster.live_slices import FORCED, WORTHWHILE, Loads, visited_next
from ephemera.engine.cluster.message import EngineStats, LateInput, UndefinedHead
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress
from ephemera.formats.json_events import read_object
from ephemera.kernels.history import FAR
from ephemera.language import compile
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, arriving, of_kind
from tests.engine.spreading import outcome_of
from tests.engine.test_shard import spread_of
from tests.strategies.cases import Case, answers
from tests.strategies.short_answers import short_cases, short_sample

SECOND = 1_000_000
STREAMS = "\nSTREAM s CARRIES a, b WATERMARK 2 sec;\nSTREAM t CARRIES c WATERMARK 3 sec;\n"
WATERMARKS = {"a": 2 * SECOND, "b": 2 * SECOND, "c": 3 * SECOND}


@settings(max_examples=15)
@given(drawn=short_cases(), seed=st.integers(0, 1_000_000), streams=st.booleans())
def test_a_random_program_answers_in_slices_of_batches_what_the_oracle_answers(
    drawn: tuple[Case, tuple[int, ...]], seed: int, streams: bool
) -> None:
    _check(drawn[0], Random(seed), streams)


def test_most_of_many_programs_are_cut_live_and_answer_what_the_oracle_answers() -> None:
    counts: Counter[str] = Counter()
    for seed, (case, _) in enumerate(short_sample(20)):
        host = _check(case, Random(seed), streams=bool(seed % 2))
        counts += Counter(sliced=bool(host.sliced), answering=bool(host.sliced and case.outcome().events))
    assert counts["sliced"] > 12
    assert counts["answering"] > 10


def _check(case: Case, dice: Random, streams: bool) -> Host:
    rules = compile(case.program + STREAMS)._compiled.rules if streams else case.ruleset
    spread = spread_of(rules, case.world, dice.choice([2, 3, 4]))
    in_time = sorted(case.events, key=lambda e: e.time.end)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice, cuts=True)
        for part in _large(arriving(case.events, dice, WATERMARKS) if streams else in_time, dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    assert not of_kind(host.carried, LateInput)
    found = outcome_of(rules, spread.compiled.plan, host.carried)
    assert len(found.events) == len(set(found.events))
    assert len(found.messages) == len(set(found.messages))
    assert answers(found) == answers(case.outcome())
    return host


def _large(events: Sequence[Event], dice: Random) -> list[Sequence[Event]]:
    found: list[Sequence[Event]] = []
    while events:
        size = dice.choice([1, 4, 8, 16, 40])
        found.append(events[:size])
        events = events[size:]
    return found


# ---- what is given once, and counted -----------------------------------------------------------------------

PAIRS = """
EVENT a(x: int); EVENT b(y: int);
pair(x, y) <- i: a(x), j: b(y), i before j, {i, j} within 10;
ratio(x / y) <- i: a(x), j: b(y), {i, j} within 10;
quiet(x) <- i: a(x), w: extend(i, 5), while w: not b(_);
once(x) <- i: a(x), x = 77;
"""


def _read(rows: Sequence[tuple[str, int, int]], program: DistributedProgram) -> list[Event]:
    given = [{"event": label, "time": time, "data": [value]} for label, time, value in rows]
    return [e for g in given if isinstance(e := read_object(g, program.plan.catalogue), Event)]


def _spread(program: str, places: int = 4) -> DistributedProgram:
    return DistributedProgram(compile(program)._compiled, World(), 0, places, -FAR, FAR)


def test_letters_and_matches_and_answers_are_those_of_whole_batches() -> None:
    dice = Random(3)
    rows = [(dice.choice("ab"), 2 * k, dice.randrange(3)) for k in range(120)]
    rows[13] = ("a", 26, 77)
    told: list[tuple[set[bytes], set[int], object]] = []
    for cuts in (False, True):
        spread = _spread(PAIRS)
        events = _read(rows, spread)
        with TemporaryDirectory() as folder:
            host = Host(spread, Path(folder), Random(1), workers=1, fails=False, cuts=cuts)
            for k in range(0, len(events), 40):
                host.beat(Beat(events[k : k + 40]))
            host.beat(Beat(ends=True))
        assert (host.sliced > 3) == cuts
        letters = {one.first for one in of_kind(host.carried, UndefinedHead)}
        engines = [one for stats in of_kind(host.carried, EngineStats) for one in stats.stats["engines"]]
        found = outcome_of(spread.compiled.rules, spread.compiled.plan, host.carried)
        told.append((letters, {n for one in engines for n in one["matched"]}, answers(found)))
        assert answers(found) == answers(evaluate(spread.compiled.rules, events, World()))
    assert told[0] == told[1]
    assert len(told[0][0]) > 2
    assert told[0][1] == {1, 2, 3, 4}


def test_a_late_event_is_turned_away_once_though_the_batch_is_cut() -> None:
    # What no stream carries and rules derive waits in every lane, where it may be late for some.
    program = """
        EVENT a(x: int); EVENT b(y: int); STREAM s CARRIES a, b WATERMARK 0;
        pair(x) <- i: a(x), j: b(y), {i, j} within 4;
        two(x) <- p: pair(x), q: b(y), {p, q} within 9;
    """
    spread = _spread(program, 3)
    rows = [("ab"[k % 2], k, k) for k in range(40)]
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), Random(1), workers=1, fails=False, cuts=True)
        host.beat(Beat(_read(rows[:20], spread)))
        host.beat(Beat([*_read(rows[20:], spread), *_read([("pair", 3, 5)], spread)]))
        host.beat(Beat(ends=True))
    assert host.sliced
    assert len(of_kind(host.carried, LateInput)) == 1


# ---- what is worth it --------------------------------------------------------------------------------------


def _next(loads: Loads, moved: int = 1_000, cores: int = 2, program: str = PAIRS) -> object:
    spread = _spread(program)
    before, after = ({0: Progress({"": time * SECOND})} for time in (0, moved))
    return visited_next([spread], loads, before, after, cores)


def test_what_takes_more_than_its_share_is_cut() -> None:
    assert _next({(0, 0, 1): 2.0}) == {0: {(0, 1): 2}}
    assert _next({(0, 0, 1): 2.0}, cores=8) == {0: {(0, 1): 4}}
    keyed = "EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x), j: b(x), {i, j} within 10;"
    assert _next({(0, 0, 0): 0.5, (0, 0, 1): 2.0}, program=keyed) == {0: {(0, 1): 2}}


@pytest.mark.parametrize(
    ("loads", "moved", "cores"),
    [({(0, 0, 1): 0.1}, 1_000, 2), ({(0, 0, 1): 2.0}, 12, 2), ({(0, 0, 1): 2.0}, 1_000, 1), ({}, 1_000, 2)],
    ids=["little to do", "the look-back is longer", "one core", "nothing"],
)
def test_what_gains_nothing_is_not_cut(loads: Loads, moved: int, cores: int) -> None:
    assert _next(loads, moved, cores) == {}


def test_what_spreads_is_not_cut() -> None:
    keyed = "EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x), j: b(x), {i, j} within 10;"
    assert _next({(0, 0, k): 2.0 for k in range(4)}, program=keyed) == {}
    far = "EVENT a(x: int); EVENT b(y: int); p(x) <- i: a(x), j: b(y), i before j;"
    assert _next({(0, 0, 1): 2.0}, program=far) == {}
    assert WORTHWHILE.least > FORCED.least
