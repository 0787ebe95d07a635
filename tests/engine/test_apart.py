"""This module shows that events which come too close to others are judged alike by all engines, whatever the cut.

Rules are cut by other attributes than those by which events are told apart, so that judging has a place of its own.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import ephemera
from ephemera.analysis.detectors import rows
from ephemera.engine import separation
from ephemera.engine.cluster.message import BadInput
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.program import Program
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.algebra_cases import LABELS, by_columns, make, text
from tests.engine.living import Beat, Host, arriving, cut, of_kind
from tests.engine.spreading import outcome_of

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 25))]
CLAUSES = ("AT LEAST 3 APART", "AT LEAST 4 APART PER k", "AT LEAST 2 APART PER l", "AT LEAST 5 APART PER k, l")
RULES = """
pair(x, y) <- i: a(x, y), j: b(x, _), i before j, {i, j} within 9;
other(y) <- i: a(_, y), j: b(_, y), {i, j} within 4;
only(y) <- i: a(1, y);
quiet(x) <- j: b(x, _), w: extend(j, 3), while w: not a(x, _);
last(x) <- e: algebra ((a(x, _); b(x, _))[6]);
"""


def _program(dice: Random, more: str = "") -> Program:
    lasts = dice.choice(["", " LASTS AT MOST 3"])
    declared = (
        f"EVENT a(k: any, l: any){lasts} {dice.choice(CLAUSES)};\nEVENT b(k: any, l: any) {dice.choice(CLAUSES)};"
    )
    return ephemera.compile(f"{declared}{more}{RULES}")


def _events(dice: Random, program: Program, count: int) -> list[dict[str, Any]]:
    has_length = program.catalogue.events["a"].longest
    latest = dice.choice([8, 30])
    found = []
    for _ in range(count):
        begin, label = dice.randrange(latest), dice.choice("ab")
        time = [begin, begin + dice.randrange(4)] if has_length and label == "a" else begin
        data = [dice.choice([1, 2, 1.0, None]), dice.choice([1, 2, "s"])]
        found.append({"event": label, "time": time, "data": data})
    return found


def _plain(answers: Any) -> list[str]:
    return sorted(json.dumps(answer, sort_keys=True).replace(".0", "") for answer in answers)


def _bad(run: Any) -> list[tuple[str, str]]:
    return sorted((_normal(one.original), one.reason.replace(".0", "")) for one in run.bad)


def _normal(original: str) -> str:
    return original.replace(".0", "")


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("seed", SEEDS)
def test_events_are_judged_as_the_oracle_judges_them(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, and by columns."""
    monkeypatch.setattr(separation, "FEW", few)
    dice = Random(seed)
    program = _program(dice)
    events = _events(dice, program, dice.choice([5, 20, 60]))
    expected = program.run_all(events, engine="oracle")
    found = program.run_all(events)
    assert _plain(found.answers) == _plain(expected.answers)
    assert _bad(found) == _bad(expected)
    engine = program.engine()
    answers: list[Any] = []
    in_time = sorted(events, key=lambda e: e["time"][-1] if isinstance(e["time"], list) else e["time"])
    bad: list[Any] = []
    while in_time:
        size = dice.choice([1, 1, 2, 5, 30])
        answers += engine.send_many(in_time[:size])
        in_time = in_time[size:]
        if dice.random() < 0.3:
            bad += engine.bad
            engine = program.engine().restore(engine.snapshot())
    answers += engine.finish()
    engine.bad += bad
    assert _plain(answers) == _plain(expected.answers)
    assert _bad(engine) == _bad(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_shards_that_forget_and_fail_judge_the_same(seed: int) -> None:
    dice = Random(seed)
    streams = "\nSTREAM apart CARRIES a WATERMARK 4;\nSTREAM t CARRIES b WATERMARK 2;\n" if dice.random() < 0.5 else ""
    program = _program(dice, streams)
    compiled = program._compiled
    given = _events(dice, program, dice.choice([5, 20, 60]))
    events = [event for one in given if isinstance(event := read_event(one, compiled), Event)]
    expected = program.run_all(given, engine="oracle")
    watermarks = {"a": 4_000_000, "b": 2_000_000} if streams else {}
    spread = DistributedProgram(compiled, World(), 0, dice.choice([1, 2, 3]), -FAR, FAR)
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice)
        for part in cut(arriving(events, dice, watermarks), dice):
            host.beat(Beat(part))
        host.beat(Beat(ends=True))
    found = outcome_of(compiled.rules, compiled.plan, host.carried)
    as_given = [write_event(e, program.catalogue, as_numbers=True) for e in found.events]
    assert _plain(as_given) == _plain(expected.answers)
    letters = [json.loads(one.first) for one in of_kind(host.carried, BadInput)]
    assert sorted((_normal(one["event"]), one["reason"].replace(".0", "")) for one in letters) == _bad(expected)


def test_what_nothing_can_be_too_close_to_is_forgotten() -> None:
    program = ephemera.compile("EVENT a(k: int) AT LEAST 5 APART PER k; p(k) <- i: a(k);")
    engine = program.engine()
    for k in range(2_000):
        engine.send({"event": "a", "time": k, "data": [k]})
        assert len(engine._engine.separations["a"]) <= 5
    assert not engine.bad


def test_only_the_last_good_one_of_each_value_is_kept_at_any_rate() -> None:
    program = ephemera.compile("EVENT a(k: int) AT LEAST 5 APART PER k; p(k) <- i: a(k);")
    for rate in (1, 10):
        engine = program.engine()
        most = 0
        for k in range(1_000):
            engine.send({"event": "a", "time": k / rate, "data": [k % 3]})
            most = max(most, len(engine._engine.separations["a"]))
        assert most == 3


# ---- bounds ------------------------------------------------------------------------------------------------


def _kept(engine: Any) -> int:
    return sum(len(one) for lane in engine._engine.lanes.values() for one in lane.records.values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_rows_are_kept_than_explain_says(seed: int, *, columns: bool) -> None:
    """Whatever comes: far more than is declared, of which most is bad, one by one and many at once."""
    with by_columns() if columns else nullcontext():
        _keeps_what_is_explained(Random(seed))


def _keeps_what_is_explained(dice: Random) -> None:
    tree = make(dice).tree
    declared = "".join(
        f"EVENT {label}(k: any, id: int){dice.choice(['', ' LASTS AT MOST 4'])} AT LEAST {dice.choice([1, 2, 5])} APART"
        f"{dice.choice(['', ' PER k'])};\n"
        for label in LABELS
    )
    within = dice.choice(["", "[6 sec]"])
    program = ephemera.compile(f"{declared}p() <- e: algebra (({text(tree)}){within});")
    (detectors,) = program._compiled.facts.detectors(program._compiled.plan).values()
    most = [rows(one) for one in detectors.values()]
    if not most or most[0] is None:
        return
    (found,) = detectors.values()
    engine = program.engine(allow_unbounded=True)
    keys: set[int] = set()
    time = 0
    while time < 60:
        batch = []
        for _ in range(dice.choice([1, 1, 1, 3, 20])):
            time += dice.choice([0, 0, 0, 1, 1, 3])
            keys.add(key := dice.randrange(3))
            label = dice.choice(LABELS)
            length = dice.randrange(5) if program.catalogue.events[label].longest else 0
            batch.append({"event": label, "time": [max(time - length, 0), time], "data": [key, dice.randrange(9)]})
        engine.send_many(batch)
        values = len(keys) + found.serves_all if found.shared else 1
        assert _kept(engine) <= most[0] * values, (text(tree), declared)
