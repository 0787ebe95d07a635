"""This module shows that detectors find what figure 2 of the paper finds, and keep no more than they say.

Long random runs are apart: `python -m tests.hunt_algebra [cases]`.
"""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import ephemera
from ephemera.algebra import instances
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.operators import detect
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine import algebra_cases
from tests.engine.algebra_cases import Case, make, plain, reference
from tests.engine.living import Beat, Host, cut
from tests.engine.spreading import outcome_of


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one event is taken by columns."""
    monkeypatch.setattr(detect, "FEW", -1)
    monkeypatch.setattr(detect, "SMALL", -1)


def _expected(case: Case) -> tuple[list[Any], bool]:
    """What figure 2 finds, or the oracle where it depends on values that come later; and which of the two."""
    known = reference(case)
    if known is not None:
        return known, True
    return plain(case.program().run(list(case.events), engine="oracle")), False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_all_ways_find_what_figure_2_finds_with_all_parts(seed: int) -> None:
    case = make(Random(seed))
    expected, is_causal = _expected(case)
    assert plain(case.program().run(list(case.events), engine="oracle")) == expected, case.text
    assert plain(case.program().run(list(case.events), allow_unbounded=True)) == expected, case.text
    if is_causal:
        assert algebra_cases.live(case, Random(seed), restarts=0.2) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("by_columns")
@pytest.mark.parametrize("seed", range(60))
def test_columns_find_what_figure_2_finds_whatever_the_cut(seed: int) -> None:
    case = make(Random(seed))
    expected, is_causal = _expected(case)
    assert plain(case.program().run(list(case.events), allow_unbounded=True)) == expected, case.text
    if is_causal:
        assert algebra_cases.live(case, Random(seed), restarts=0.3) == expected, case.text


def test_events_out_of_order_within_the_watermark_change_nothing() -> None:
    for seed in range(20):
        dice = Random(seed)
        case = make(dice)
        expected, is_causal = _expected(case)
        if not is_causal or not case.points:
            continue
        text = case.text.replace("p(", "STREAM s CARRIES a, b, c WATERMARK 3 sec;\np(", 1)
        engine = ephemera.compile(text).engine(allow_unbounded=True)
        arriving = sorted(case.events, key=lambda e: e["time"] + 2.9 * dice.random())
        found = [answer for event in arriving for answer in engine.send(event)] + engine.finish()
        assert not engine.late
        assert plain(found) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_shards_that_forget_and_fail_find_the_same(seed: int) -> None:
    """What they have written down is all that they go on from."""
    dice = Random(seed)
    case = make(dice)
    expected, is_causal = _expected(case)
    if not is_causal:
        return
    compiled = ephemera.compile(case.text)._compiled
    spread = DistributedProgram(compiled, World(), 0, dice.choice([1, 2, 3]), -FAR, FAR)
    events = [event for one in case.events if isinstance(event := read_event(one, compiled), Event)]
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice, cuts=dice.random() < 0.5)
        for part in cut(events, dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    found = outcome_of(compiled.rules, compiled.plan, host.carried).events
    times = sorted((e.time.begin // 1_000_000, e.time.end // 1_000_000) for e in found)
    assert times == sorted((begin, end) for begin, end, _ in expected), case.text


# ---- what is kept ------------------------------------------------------------------------------------------


def _peak(program: str, events: list[dict[str, object]]) -> int:
    engine = ephemera.compile(program).engine(allow_unbounded=True)
    peak = 0
    for event in events:
        engine.send(event)
        peak = max(peak, engine.stats().stored)
    return peak


def _many(label: str, count: int) -> list[dict[str, object]]:
    return [{"event": label, "time": k, "data": [1]} for k in range(count)]


POINTS = "TIME UNIT 1 sec;\nEVENT a(x: int);\nEVENT b(x: int);\nEVENT d(x: int);\n"


@pytest.mark.parametrize(
    ("expression", "most"),
    [("a(_); b(_)", 2), ("a(_) + b(_)", 2), ("(a(x); b(x))[10 sec] - d(x)", 2), ("a(x) - b(x)", 2)],
)
def test_an_adversary_cannot_make_a_detector_keep_more(expression: str, most: int) -> None:
    """The histories of instances and of what has just ended hold one more at times."""
    for label in ("a", "b", "d"):
        assert _peak(f"{POINTS}p() <- e: algebra ({expression});", _many(label, 300)) <= most


def test_a_sequence_of_intervals_keeps_what_may_still_be_followed() -> None:
    program = (
        "TIME UNIT 1 sec;\nEVENT a(x: int);\nEVENT b(x: int) LASTS AT MOST 10 sec;\np() <- e: algebra (a(_); b(_));"
    )
    assert 9 <= _peak(program, _many("a", 300)) <= 12


def test_keys_that_are_over_are_forgotten() -> None:
    program = f"{POINTS}p(x) <- e: algebra ((a(x); b(x))[10 sec] - d(x));"
    events: list[dict[str, object]] = [{"event": "abd"[k % 3], "time": k, "data": [k]} for k in range(2000)]
    assert _peak(program, events) < 30


def test_nothing_of_an_evaluation_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[object] = weakref.WeakSet()
    build = instances._Streams.__init__

    def remembered(self: object, *arguments: object) -> None:
        alive.add(self)
        build(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(instances._Streams, "__init__", remembered)
    engine = ephemera.compile(f"{POINTS}p() <- e: algebra unrestricted ((a(_); b(_))[2 sec]);").engine()
    for k in range(10_000):
        engine.send({"event": "ab"[k % 2], "time": k, "data": [1]})
    gc.collect()
    assert len(alive) <= 1


@pytest.mark.parametrize("most", [1, 1 << 22])
def test_many_events_at_one_instant_are_told_apart_by_columns(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Of many that begin and end together the greatest is picked, whatever portions they are taken in."""
    monkeypatch.setattr(detect, "MOST_SERVED", most)
    dice = Random(1)
    text = (
        "TIME UNIT 1 sec;\nEVENT a(k: int, id: int);\nEVENT b(k: int, id: int);\nEVENT c(id: int);\n"
        "p(x, i, j) <- e: algebra ((a(x, i); b(x, j))[9 sec] - c(1));\nq(i, j) <- e: algebra (c(i); b(_, j));"
    )
    events = []
    for k in range(1500):
        label = dice.choice("aabbc")
        data = [dice.randrange(9)] if label == "c" else [dice.randrange(5), dice.randrange(9)]
        events.append({"event": label, "time": k // 40, "data": data})
    program = ephemera.compile(text)
    right = plain(program.run(events, engine="oracle"))
    assert len(right) > 50
    assert plain(program.run(events)) == right


@pytest.mark.parametrize(
    ("declared", "expression", "verdict"),
    [
        ("", "a(_); b(_)", "bounded"),
        ("", "(a(x); b(x))[10 sec]", "bounded"),
        ("", "a(x); b(x)", "one row per key"),
        ("", "a(x) - b(x)", "bounded"),
        ("", "(a(x); a(x)) - b(x)", "one row per key"),
        (" LASTS ANY", "a(_); b(_)", "unbounded"),
        (" LASTS ANY", "a(_); (b(_))[10 sec]", "bounded"),
    ],
)
def test_there_are_three_verdicts(declared: str, expression: str, verdict: str) -> None:
    head = "TIME UNIT 1 sec;\nEVENT a(x: int);\n"
    program = ephemera.compile(f"{head}EVENT b(x: int){declared};\np() <- e: algebra ({expression});")
    assert f": {verdict}\n" in program.explain("relevance")
    if verdict == "bounded":
        program.engine()
    else:
        with pytest.raises(ephemera.ProgramError):
            program.engine()


def test_what_is_called_unbounded_grows_and_what_is_not_does_not() -> None:
    program = "TIME UNIT 1 sec;\nEVENT a(x: int);\nEVENT b(x: int) LASTS ANY;\np() <- e: algebra (a(_); {});"
    assert _peak(program.format("b(_)"), _many("a", 300)) >= 299
    assert _peak(program.format("(b(_))[10 sec]"), _many("a", 300)) <= 12
