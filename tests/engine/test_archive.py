"""Rules that are added to an engine that runs get what they need of the time before from an archive."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ephemera
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.hosts.live_engine import LiveEngine
from tests.engine.following import Follower, end_of, followed, oracle, told
from tests.engine.test_changes import DECLARED, JOIN, LATE, engine, stream
from tests.strategies.changes import changings

SLOW = "slow(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;"
COUNTED = "n(k, count(*)) <- i: b(k, _), w: extend-begin(i, 20), while w: collect a(k, u);"


def event(label: str, time: int, *data: int) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(data)}


def ruled(found: LiveEngine) -> dict[str, Any]:
    """The rules of an engine."""
    return {name: rule for lane in found._engine.lanes.values() for name, rule in lane.rules.items()}


@pytest.mark.parametrize(
    ("count", "ways", "restarts"),
    [(24, {}, False), (8, {"changes": 3}, True), (8, {"changes": 2, "streams": True}, True)],
    ids=["one", "several", "streams"],
)
def test_with_an_archive_of_all_that_has_come_added_rules_are_exact(
    count: int, ways: dict[str, Any], restarts: bool
) -> None:
    followers: list[Follower] = []
    for seed, case in enumerate(changings(count, **ways)):
        follower = followed(case, Random(seed), restarts=restarts, archive=1)
        assert (follower.wrong(), follower.inexact) == ({"lacking": set(), "too much": set()}, []), f"case {seed}"
        followers.append(follower)
    helped = sum(len(one.refusals) - len(one.immovable) for one in followers)
    assert helped > count // 4  # it is worth something
    assert not any("archive" in why for one in followers for why in one.immovable)


@pytest.mark.parametrize(
    "rules",
    [
        SLOW,
        COUNTED,
        "late2(k) <- i: a(k, _), w: extend(i, 20), while w: not c(k, _);",
        "d(k) <- i: a(k, _), w: extend(i, 3), while w: not c(k, _); p(k) <- i: d(k), j: c(k, _), {i, j} within 20;",
        "p(x, y) <- i: a(x, y); p(x, z) <- i: p(x, y), j: b(y, z), i before j, {i, j} within 3;",
        "".join(f"al(k, {n}) <- i: a(k, {n}), w: extend(i, 15), while w: not b(k, _);" for n in range(3)),
        "same(k, v) <- i: a(k, _), j: a(k, v), i != j, {i, j} within 12;",
    ],
    ids=["join", "count", "absence", "derived", "recursion", "alike", "same"],
)
@pytest.mark.parametrize("moment", [2, 50])
def test_answers_are_those_of_the_programs_each_in_its_time(rules: str, moment: int) -> None:
    events = stream(100)
    found, given = engine(JOIN, events[:moment])
    (bound,) = {lane.bound for lane in found._engine.lanes.values()}
    done = found.change(ephemera.compile(DECLARED + JOIN + rules), look_back=events[:moment])
    assert done.notes == ()
    given |= told(found.send_many(events[moment:])) | told(found.finish())
    before, after = oracle(DECLARED + JOIN, events), oracle(DECLARED + JOIN + rules, events)
    assert given == {a for a in before if end_of(a) <= bound} | {a for a in after if end_of(a) > bound}


def test_what_is_kept_and_in_the_archive_counts_once() -> None:
    before = [event("a", 1, 7, 0), event("a", 3, 7, 1), event("a", 3, 7, 2), event("c", 4, 0, 0)]
    found, _ = engine(LATE, before)  # keeps the `a` of the last 6 seconds for its own sake
    found.change(ephemera.compile(DECLARED + LATE + COUNTED), look_back=before)
    answers = found.send_many([event("b", 5, 7, 0), event("c", 6, 0, 0)])
    assert [one["data"] for one in answers if one["event"] == "n"] == [[7, 3]]


@pytest.mark.parametrize("way", ["file", "folder", "path", "source", "table", "list"])
def test_an_archive_is_whatever_events_are_read_from(tmp_path: Path, way: str) -> None:
    before = [event("a", 1, 7, 0), event("a", 3, 8, 0), event("b", 4, 1, 1)]
    (tmp_path / "june.jsonl").write_text("".join(json.dumps(one) + "\n" for one in before))
    rows = [{"event": one["event"], "time": one["time"], "k": one["data"][0], "v": one["data"][1]} for one in before]
    archives: dict[str, Any] = {
        "file": str(tmp_path / "june.jsonl"),
        "folder": f"{tmp_path}/",
        "path": tmp_path / "june.jsonl",
        "source": ephemera.sources.Files(tmp_path / "june.jsonl"),
        "table": pa.Table.from_pylist(rows),
        "list": before,
    }
    found, _ = engine(JOIN, before)
    found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=archives[way])
    answers = found.send_many([event("c", 30, 7, 0), event("c", 40, 8, 0)]) + found.finish()
    assert [(one["time"], one["data"]) for one in answers if one["event"] == "slow"] == [([1, 30], [7])]


def test_the_past_is_let_go_when_it_matters_no_longer() -> None:
    events = stream(60)
    found, _ = engine(JOIN, events)
    found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=events)
    held = found.held().histories
    assert sum(tuples for name, (tuples, _, _) in held.items() if name.endswith(" in the past of slow")) > 3
    last = events[-1]["time"]
    found.advance(last + 20)
    assert ruled(found)["slow"].since is not None
    found.advance(last + 31)
    assert (ruled(found)["slow"].since, ruled(found)["slow"].pasts) == (None, {})
    assert not any("past" in one.name for one in found.stats().histories)


def test_rules_that_began_later_are_like_others_when_that_matters_no_longer() -> None:
    found, _ = engine(JOIN, stream(50))
    program = ephemera.compile(DECLARED + JOIN + COUNTED)
    found.change(program, look_back="from-now")
    (lane,) = found._engine.lanes.values()
    bound = lane.bound
    found.advance(bound / 1_000_000 + 20)
    assert ruled(found)["n"].since == bound
    found.advance(bound / 1_000_000 + 21)
    assert ruled(found)["n"].since is None
    assert program.engine().restore(found.snapshot()).snapshot().manifest["lanes"] == found.snapshot().manifest["lanes"]


def test_a_past_is_in_snapshots_and_goes_through_further_changes() -> None:
    events = stream(100)
    found, given = engine(JOIN, events[:50])
    (bound,) = {lane.bound for lane in found._engine.lanes.values()}
    program = ephemera.compile(DECLARED + JOIN + SLOW + COUNTED)
    found.change(program, look_back=events[:50])
    first = found.snapshot()
    given |= told(found.send_many(events[50:56]))
    later = found.snapshot(since=first)
    assert any("past." in name for name in later.names)
    known = {name: table for name, table in first.segments.items() if name in later.names}
    again = program.engine().restore(type(later)(later.manifest, {**known, **later.segments}))
    assert {name: set(rule.pasts) for name, rule in ruled(again).items()} == {
        name: set(rule.pasts) for name, rule in ruled(found).items()
    }
    more = "q(k) <- i: c(k, _);"
    again.change(ephemera.compile(DECLARED + JOIN + COUNTED + more + SLOW))
    again.change(ephemera.compile(DECLARED + SLOW + COUNTED), look_back=events[:56])
    given |= told(again.send_many(events[56:])) | told(again.finish())
    expected = {a for a in oracle(DECLARED + SLOW + COUNTED, events) if end_of(a) > bound}
    assert {a for a in given if end_of(a) > bound and '"w"' not in a and '"q"' not in a} == expected


def test_what_reads_a_rule_that_is_not_exact_yet_is_not_exact_before_that_is() -> None:
    events = [event("a", 1, 7, 0), event("b", 2, 0, 0), event("b", 10, 0, 0), event("b", 12, 0, 0)]
    found, _ = engine(JOIN, events[:3])
    derived = DECLARED + JOIN + "d(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;"
    found.change(ephemera.compile(derived), look_back="from-now")  # `a` at 1 is nothing to it: exact from 40 on
    found.send(events[3])
    found = ephemera.compile(derived).engine().restore(found.snapshot())
    reader = "r(k) <- i: d(k), j: b(k, _), i before j, {i, j} within 5;"
    done = found.change(ephemera.compile(derived + reader), look_back=events)
    assert done.answers_from["`r` (rule 3)"] == pytest.approx(75, abs=0.01)  # it looks back 35 seconds
    assert done.notes == ("`r` (rule 3) reads what is derived by a rule that is not exact yet",)


def test_timers_of_the_clock_are_told_in_the_past_and_go_through_further_changes() -> None:
    declared = "TIME UNIT 1 hour; EVENT a(k: int); EVENT b(k: int);"
    kept = "w(k) <- i: a(k), j: b(k), i before j, {i, j} within 4;"
    rule = "d(k) <- t: timer:datetime(hour-of-day: 8), o: a(k), o before t, {o, t} within 20;"
    rules = rule + "x(k) <- i: d(k), j: b(k), {i, j} within 30;"
    events = [{"event": "ab"[n % 2], "time": 1_000 + 3 * n, "data": [n % 3]} for n in range(60)]
    found = ephemera.compile(declared + kept).engine()
    given = told(found.send_many(events[:30]))
    (bound,) = {lane.bound for lane in found._engine.lanes.values()}
    found.change(ephemera.compile(declared + kept + rules), look_back=events[:30])
    found.change(ephemera.compile(declared + rules + kept))
    given |= told(found.send_many(events[30:])) | told(found.finish())

    def end(answer: str) -> float:
        return end_of(answer) * 3_600

    before, after = oracle(declared + kept, events), oracle(declared + kept + rules, events)
    assert given == {a for a in before if end(a) <= bound} | {a for a in after if end(a) > bound}
    assert any('"x"' in a for a in given)


# ---- archives that do not help -----------------------------------------------------------------------------------


def test_an_archive_that_begins_later_says_from_when_on_rules_are_exact() -> None:
    events = [event("c", 1, 0, 0), event("a", 80, 1, 0), event("a", 95, 1, 0), event("c", 100, 0, 0)]
    found, _ = engine(JOIN, events)
    done = found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=events[1:])
    assert done.answers_from == {"`slow` (rule 2)": 110}  # 30 seconds behind the first event of the archive
    assert done.notes == ("`slow` (rule 2) needs more than the list has, which begins later",)


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        ([event("a", 1, 1, 0), event("a", 4, 1, 0)], "the list is not all that has come: it has no `a` that ends at 9"),
        ([], "there are no events of this program in the list, and some have come"),
    ],
    ids=["lacking", "empty"],
)
def test_an_archive_without_what_has_come_is_refused_and_the_engine_goes_on(archive: list[Any], why: str) -> None:
    events = [event("a", 1, 1, 0), event("a", 4, 1, 0), event("a", 9, 1, 0), event("c", 10, 0, 0)]
    found, _ = engine(JOIN, events)
    before = found.snapshot()
    with pytest.raises(ChangeRefused, match=why):
        found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=archive)
    assert found.snapshot().manifest["lanes"] == before.manifest["lanes"]


def test_an_expression_of_the_algebra_is_not_detected_in_an_archive() -> None:
    events = stream(20)
    found, _ = engine(JOIN, events)
    detecting = "p(k) <- e: algebra ((a(k, _); c(k, _))[30]);"
    with pytest.raises(ChangeRefused, match="an archive does not help with that"):
        found.change(ephemera.compile(DECLARED + JOIN + detecting), look_back=events)


def test_what_is_no_event_in_an_archive_is_told() -> None:
    events = [event("a", 1, 1, 0), event("c", 10, 0, 0)]
    found, _ = engine(JOIN, events)
    bad: list[Any] = [event("a", 1, 1), {"event": "a"}]
    done = found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=[*events, *bad])
    assert done.notes[0].startswith("2 of the rows in the list are no events of the program; the first: ")


def test_a_name_without_files_is_no_archive(tmp_path: Path) -> None:
    found, _ = engine(JOIN, stream(9))
    for name in (f"{tmp_path}/none/", "from_now"):
        with pytest.raises(ValueError, match='look_back is "refuse", "from-now", "available", or an archive'):
            found.change(ephemera.compile(DECLARED + JOIN + SLOW), look_back=name)
