"""This module shows that detectors find what figure 2 of the paper finds, and keep no more than they say.

Long random runs are apart: `python -m tests.hunt_algebra [cases]`.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest

import ephemera
from ephemera.algebra import instances
from ephemera.engine.operators import detect
from ephemera.engine.operators.detect_kept import KeptRecords
from ephemera.engine.operators.detect_state import BEGIN, SLOT
from ephemera.kernels.columns import Batch
from tests.engine import algebra_cases
from tests.engine.algebra_cases import make, plain, reference, reference_parts


@pytest.fixture
def by_columns() -> Iterator[None]:
    """Even one event is taken by columns."""
    with algebra_cases.by_columns():
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_all_ways_find_what_figure_2_finds_with_all_parts(seed: int) -> None:
    case = make(Random(seed))
    expected = reference(case)
    assert plain(case.program().run(list(case.events), engine="oracle")) == expected, case.text
    assert plain(case.program().run(list(case.events), allow_unbounded=True)) == expected, case.text
    assert algebra_cases.live(case, Random(seed), restarts=0.2) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("by_columns")
@pytest.mark.parametrize("seed", range(60))
def test_columns_find_what_figure_2_finds_whatever_the_cut(seed: int) -> None:
    case = make(Random(seed))
    expected = reference(case)
    assert plain(case.program().run(list(case.events), allow_unbounded=True)) == expected, case.text
    assert algebra_cases.live(case, Random(seed), restarts=0.3) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_events_out_of_order_within_the_watermark_change_nothing(seed: int) -> None:
    """Points and intervals, row by row and by columns."""
    case = make(Random(seed))
    expected = reference(case.declaring())
    assert algebra_cases.disordered(case, Random(seed)) == expected, case.text
    with algebra_cases.by_columns():
        assert algebra_cases.disordered(case, Random(seed)) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(300, 340))
def test_all_parts_are_as_figure_2_has_them_also_those_that_no_head_may_say(seed: int) -> None:
    """A variable of one side of `|` only has no value in some instances."""
    case = make(Random(seed))
    expected = reference_parts(case)
    assert algebra_cases.parts(case, Random(seed)) == expected, case.text
    with algebra_cases.by_columns():
        assert algebra_cases.parts(case, Random(seed)) == expected, case.text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_shards_that_forget_and_fail_find_the_same(seed: int) -> None:
    """What they have written down is all that they go on from."""
    case = make(Random(seed))
    found = algebra_cases.sharded(case, Random(seed))
    assert found == sorted((begin, end) for begin, end, _ in reference(case)), case.text


ONE_VALUE: list[dict[str, Any]] = [
    {"event": k, "time": t, "data": [1, n]} for t in range(8) for n in range(2) for k in ("ab", "b", "")[t % 3]
]


@pytest.mark.parametrize(
    "expression",
    [
        "(b(_, v) - b(x, _)); b(x, _)",  # what a value keeps out is not there when the value comes again
        "(a(_, v) | (b(_, v) - b(x, _))); a(x, _)",
        "((b(_, v) - b(x, _)) + a(x, _))[3 sec]",
        "a(x, v) - ((b(x, _); b(x, _)) | ((b(x, _); b(x, _)) + c(_, _)))",  # `c` is left out of what is detected
        "(c(_, v) - c(_, _)) | a(x, v); b(x, _)",
    ],
)
def test_values_that_come_again_begin_where_they_ended(expression: str) -> None:
    events = [dict(e, data=[k, *e["data"][1:]]) for e in ONE_VALUE for k in (1, 2) if (e["time"] + k) % 4]
    labels = "".join(f"EVENT {label}(k: int, id: int);\n" for label in "abc")
    text = f"TIME UNIT 1 sec;\n{labels}p() <- e: algebra ({expression});"
    program = ephemera.compile(text)
    expected = program.run(events, engine="oracle")

    def live() -> list[Any]:
        engine = program.engine(allow_unbounded=True)
        found: list[Any] = []
        for event in events:
            found += engine.send(event)
            engine = program.engine(allow_unbounded=True).restore(engine.snapshot())
        return found + engine.finish()

    assert plain(program.run(events, allow_unbounded=True)) == plain(expected)
    assert plain(live()) == plain(expected)
    with algebra_cases.by_columns():
        assert plain(program.run(events, allow_unbounded=True)) == plain(expected)
        assert plain(live()) == plain(expected)


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


def test_only_values_that_something_new_has_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 times 20 values, none of which an event has alone, and of these only what ends in the step."""
    evaluated: list[int] = []
    build = instances._Streams.__init__

    def counted(self: object, e: Any, choice: Any, *others: Any) -> None:
        evaluated.append(sum(map(len, choice.tuples)))
        build(self, e, choice, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(instances._Streams, "__init__", counted)
    head = "TIME UNIT 1 sec;\nEVENT a(x: int, y: int);\nEVENT b(x: int, y: int);\nEVENT c(y: int);\n"
    program = ephemera.compile(f"{head}p(x, y) <- e: algebra ((a(x, y); b(x, y); c(y))[60 sec]);")
    dice = Random(1)
    events: list[dict[str, Any]] = []
    for k in range(480):
        label = dice.choice("abc")
        data = [dice.randrange(20) for _ in ("y" if label == "c" else "xy")]
        events.append({"event": label, "time": k / 4, "data": data})
    engine = program.engine()
    found = [answer for event in events for answer in engine.send(event)]
    assert plain(found) == plain(program.run(events, engine="oracle"))
    assert len(evaluated) <= 480
    assert max(evaluated) < 60  # of the 240 that are kept


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


@pytest.mark.parametrize("many", [False, True])
def test_records_of_keys_that_do_not_come_are_left_alone(monkeypatch: pytest.MonkeyPatch, *, many: bool) -> None:
    """Of 400 keys, which are numbers of both kinds and texts, a few come in each step; and what is dead goes."""
    taken: list[int] = []
    take = KeptRecords.take

    def counted(self: KeptRecords, *arguments: Any) -> Batch:
        found = take(self, *arguments)
        taken.append(len(found))
        return found

    monkeypatch.setattr(KeptRecords, "take", counted)
    monkeypatch.setattr(detect, "MUCH", 2)
    dice = Random(7)
    keys = [k if k % 3 == 0 else f"k{k}" if k % 3 == 1 and many else float(k) for k in range(400)]
    text = (
        "TIME UNIT 1 sec;\nEVENT a(k: any, id: int);\nEVENT b(k: any, id: int);\nEVENT d(k: any, id: int);\n"
        "p(x, i, j) <- e: algebra ((a(x, i); b(x, j))[200 sec] - d(x, _));"
    )
    events: list[dict[str, Any]] = [
        {"event": dice.choice("aabbd"), "time": n // 4, "data": [dice.choice(keys), n]} for n in range(6000)
    ]
    program = ephemera.compile(text)
    found: list[Any] = []
    engine = program.engine()
    most = 0
    with algebra_cases.by_columns():
        for first in range(0, len(events), 40):
            found += engine.send_many(events[first : first + 40])
            (detecting,) = (one for lane in engine._engine.lanes.values() for one in lane.records.values())
            most = max(most, len(detecting))
    found += engine.finish()
    assert plain(found) == plain(program.run(events))
    assert len(taken) > 100
    assert sum(taken) / len(taken) < 110  # of about 500 that are kept
    assert most <= 2 * 400 + 400


@pytest.mark.parametrize(
    ("declared", "expression", "verdict"),
    [
        ("", "a(_); b(_)", "bounded, at most 2 rows"),
        ("", "(a(x); b(x))[10 sec]", "bounded, at most 2 rows for each x"),
        ("", "a(x); b(x)", "one row per key, at most 2 rows for each x"),
        ("", "a(x) - b(x)", "bounded, at most 1 row for each x"),
        ("", "(a(x); a(x)) - b(x)", "one row per key, at most 3 rows for each x"),
        (" LASTS ANY", "a(_); b(_)", "unbounded"),
        (" LASTS ANY", "a(_); (b(_))[10 sec]", "bounded"),
        (" LASTS ANY", "b(_); (b(_))[10 sec]", "bounded"),
        (" LASTS ANY AT LEAST 3 sec APART", "b(_); (b(_))[10 sec]", "bounded, at most 5 rows"),
        (" LASTS ANY AT LEAST 3 sec APART PER x", "b(_); (b(_))[10 sec]", "bounded"),
    ],
)
def test_there_are_three_verdicts(declared: str, expression: str, verdict: str) -> None:
    head = "TIME UNIT 1 sec;\nEVENT a(x: int);\n"
    program = ephemera.compile(f"{head}EVENT b(x: int){declared};\np() <- e: algebra ({expression});")
    assert f": {verdict}\n" in program.explain("relevance")
    if verdict.startswith("bounded"):
        program.engine()
    else:
        with pytest.raises(ephemera.ProgramError):
            program.engine()


def test_what_is_called_unbounded_grows_and_what_is_not_does_not() -> None:
    program = "TIME UNIT 1 sec;\nEVENT a(x: int);\nEVENT b(x: int) LASTS ANY;\np() <- e: algebra (a(_); {});"
    assert _peak(program.format("b(_)"), _many("a", 300)) >= 299
    assert _peak(program.format("(b(_))[10 sec]"), _many("a", 300)) <= 12


# ---- the paper, point by point -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_what_an_engine_reports_is_a_restriction_by_definition_12(seed: int) -> None:
    """Part of the meaning; something for each end, that begins no earlier; of one end only one."""
    case = make(Random(seed))
    reported = plain(case.program().run(list(case.events), allow_unbounded=True))
    assert algebra_cases.complaint_by_definition_12(case, reported) is None, case.text


HEARD = "TIME UNIT 1 sec;\nEVENT knock();\nEVENT bell();\nEVENT phone();\n"
TWICE = f"{HEARD}twice() <- e: algebra ((knock(); knock())[2 sec] - (bell() | phone()));"
"""The expression of example 2, which figure 4 detects with l and q of its sequence and t of its absence."""

Second = int
STEPS: list[tuple[Second, str, list[Second], list[Second], list[Second]]] = [
    # when, what comes; the knock that is kept (l, of which q is part: `;0`), the time that is kept (t), what is found
    (1, "knock", [1], [], []),
    (2, "bell", [1], [2], []),
    (3, "knock", [3], [2], []),  # from 1 to 3, with the bell in it
    (4, "knock", [4], [], [3]),  # from 3 to 4; the bell at 2 cannot lie in what comes
    (5, "knock phone", [5], [5], []),  # what ends together is within, too
    (6, "knock", [6], [5], []),  # and what begins together
    (8, "knock", [8], [], [6]),  # as long as may be
    (11, "knock", [11], [], []),  # too long: the one at 8 is gone
    (12, "bell phone", [11], [12], []),
    (13, "bell", [], [13], []),  # a later time takes the place of another
    (14, "phone", [], [14], []),
    (17, "knock", [17], [], []),
]


@pytest.mark.parametrize("columns", [False, True])
def test_figure_4_detects_example_2_with_this_state_step_by_step(*, columns: bool) -> None:
    engine = ephemera.compile(TWICE).engine()
    with algebra_cases.by_columns() if columns else nullcontext():
        for now, labels, knocks, times, begins in STEPS:
            found = engine.send_many([{"event": label, "time": now, "data": []} for label in labels.split()])
            found += engine.advance(now)
            (detecting,) = (one for lane in engine._engine.lanes.values() for one in lane.records.values())
            kept = [row for run in detecting.checkpoint() for row in run.batch.rows()]
            assert sorted(r[BEGIN] // 1_000_000 for r in kept if r[SLOT] == 0) == knocks, now
            assert sorted(r[BEGIN] // 1_000_000 for r in kept if r[SLOT] == 1) == times, now
            assert [answer["time"] for answer in found] == [[begin, now] for begin in begins], now


def test_explain_prints_an_expression_as_it_is_written_and_as_it_is_detected() -> None:
    """Example 5, and example 2, which is changed in its label only."""
    written = f"{HEARD}twice() <- e: algebra ((knock(); knock())[2 sec] - (bell(); (bell() + phone())));"
    told = ephemera.compile(written).explain("plan")
    assert "detect e: restricted ((knock ; knock)[2s] - (bell ; (bell + phone)))\n" in told
    assert "e is detected as ((knock ;0 knock)[2s] - (bell ;2s (bell + phone)[2s]))" in told.splitlines()[-1]
    assert "e is detected as ((knock ;0 knock)[2s] - (bell | phone))" in ephemera.compile(TWICE).explain("plan")


def test_figure_3_is_the_detector_of_its_expression() -> None:
    """`(T | P) - B` keeps one time, and finds what the figure does, written out."""
    program = ephemera.compile(
        "EVENT t() LASTS AT MOST 4 sec; EVENT p() LASTS AT MOST 4 sec; EVENT b() LASTS AT MOST 4 sec;"
        "found() <- e: algebra ((t() | p()) - b());"
    )
    ((detector,),) = (found.values() for found in program._compiled.facts.detectors(program._compiled.plan).values())
    (slot,) = detector.slots
    assert slot.is_time
    dice = Random(3)
    for _ in range(20):
        times = {}
        for _ in range(30):
            end = dice.randrange(60)
            times[dice.choice("tpb"), end] = max(end - dice.randrange(5), 0)
        t5, expected = -1, []
        for now in range(60):
            a1, a2, a4 = (times.get((label, now), -1) for label in "tpb")
            a3 = max(a2, a1)
            t5 = max(t5, a4)
            if t5 < a3:
                expected.append((a3, now, "[]"))
        events = [{"event": k, "time": [begin, end], "data": []} for (k, end), begin in times.items()]
        assert plain(program.run(events)) == sorted(expected)


APART = """
TIME UNIT 1 sec;
EVENT a(x: int) LASTS AT MOST 3 sec AT LEAST 1 sec APART PER x;
EVENT b(x: int) LASTS AT MOST 4 sec;
EVENT d(x: int) LASTS AT MOST 2 sec;
"""


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("declared", "most", "least"), [(POINTS, 3, 1), (APART, 6, 4)], ids=["points", "intervals that keep a distance"]
)
def test_what_is_kept_for_a_key_does_not_grow_with_the_rate(
    declared: str, most: int, least: int, *, columns: bool
) -> None:
    """Of intervals as many are kept as may end within what follows them, which `;4s` says; what is too close is bad."""
    program = f"{declared}p(x) <- e: algebra ((a(x); b(x))[10 sec] - d(x));"
    found = ephemera.compile(program).explain("relevance")
    assert f"at most {most} rows for each x" in found
    lasts = {"a": 3, "b": 4, "d": 2} if declared == APART else {}
    peaks = []
    for rate in (1, 10):
        dice = Random(1)
        events: list[dict[str, object]] = []
        for k in range(600):
            label, end = dice.choice("aaabd"), k / rate
            begin = max(end - dice.choice([0, lasts.get(label, 0)]), 0)
            events.append({"event": label, "time": [begin, end], "data": [dice.randrange(2)]})
        with algebra_cases.by_columns() if columns else nullcontext():
            peaks.append(_records(program, events))
    assert all(2 * least <= peak <= 2 * most for peak in peaks), peaks


def _records(program: str, events: list[dict[str, object]]) -> int:
    """How many records there are at most."""
    engine = ephemera.compile(program).engine()
    peak = 0
    for event in events:
        engine.send(event)
        records = (one for lane in engine._engine.lanes.values() for one in lane.records.values())
        peak = max(peak, sum(map(len, records)))
    return peak


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(200, 210))
def test_a_restart_between_any_two_events_changes_nothing(seed: int) -> None:
    case = make(Random(seed))
    expected = reference(case)
    assert algebra_cases.live(case, Random(seed), restarts=1.0) == expected, case.text
    with algebra_cases.by_columns():
        assert algebra_cases.live(case, Random(seed), restarts=1.0) == expected, case.text
