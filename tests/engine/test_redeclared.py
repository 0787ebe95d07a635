"""Declarations change while a program runs, as far as rules mean the same by them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app
from ephemera.engine.change.compared import ChangeRefused
from tests.engine.following import Follower, end_of, followed, oracle, told
from tests.strategies.changes import changings

OLD = "TIME UNIT 1 sec; EVENT a(k: int, v: int); EVENT b(k: int);"
NEW = "TIME UNIT 1 sec; EVENT a(k: int, v: int, u: int); EVENT b(k: int);"
STREAMS = "TIME UNIT 1 sec; EVENT a(k: int); EVENT b(k: int); STREAM s CARRIES a WATERMARK 2 sec; STREAM t CARRIES b;"
LATE = "late(k) <- i: a(k), w: extend(i, 3), while w: not b(k);"
WITHIN = "i before j, {i, j} within 9;"


def event(label: str, time: int, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(data)}


def stream(count: int, moment: int) -> list[dict[str, Any]]:
    """Events in the order of time; from a moment on `a` has a third value."""
    dice, time, found = Random(1), 0, []
    for place in range(count):
        time += dice.choice((0, 1, 1, 2))
        label = dice.choice("ab")
        more = [dice.randrange(3), dice.randrange(2) if place >= moment else None] if label == "a" else []
        found.append(event(label, time, dice.randrange(3), *more))
    return found


def narrow(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same as they were declared before."""
    return [{**one, "data": one["data"][:2]} for one in events]


@pytest.mark.parametrize(
    ("ways", "count"), [({"changes": 2}, 6), ({"changes": 1, "streams": True}, 6)], ids=["one", "streams"]
)
def test_random_rules_go_on_with_more_attributes_and_other_watermarks(ways: dict[str, Any], count: int) -> None:
    followers: list[Follower] = []
    for seed, case in enumerate(changings(count, grows=True, **ways)):
        follower = followed(case, Random(seed), restarts=True, archive=seed % 2)
        assert (follower.wrong(), follower.inexact) == ({"lacking": set(), "too much": set()}, []), f"case {seed}"
        followers.append(follower)
    assert sum(len(done.kept) for one in followers for done in one.changes) > count


@pytest.mark.parametrize(
    ("rules", "grown"),
    [
        ("p(k) <- i: a(k, _), w: extend(i, 3), while w: not b(k);", "a(k, _, _)"),
        ("p(k) <- i: a(k: k), w: extend(i, 3), while w: not b(k);", None),
        ("p(k, count(*)) <- i: b(k), w: extend-begin(i, 5), while w: collect a(k: k, v: x);", None),
        ("d(k) <- i: a(k: k, v: 1); p(j) <- i: d(k), j: b(j), " + WITHIN, None),
        ("p(k, j) <- i: a(k, _), j: b(j), " + WITHIN, "a(k, _, _)"),
        ("p(k) <- e: algebra ((a(k, _); b(k))[9]);", "a(k, _, _)"),
        ("".join(f"p(k, {n}) <- i: a(k: k, v: {n}), w: extend(i, 5), while w: not b(k);" for n in range(3)), None),
    ],
    ids=["absence", "named", "count", "derived", "join", "algebra", "alike"],
)
def test_rules_go_on_that_do_not_ask_for_a_new_attribute(rules: str, grown: str | None) -> None:
    moment, events = 40, stream(80, 40)
    changed = rules if grown is None else rules.replace("a(k, _)", grown)
    found = ephemera.compile(OLD + rules).engine()
    given = told(found.send_many(narrow(events[:moment])))
    (bound,) = {lane.bound for lane in found._engine.lanes.values()}
    done = found.change(ephemera.compile(NEW + changed))
    assert (done.removed, done.added) == ((), ())
    given |= told(found.send_many(events[moment:])) | told(found.finish())
    before, after = oracle(OLD + rules, narrow(events)), oracle(NEW + changed, events)
    assert given == {a for a in before if end_of(a) <= bound} | {a for a in after if end_of(a) > bound}


def test_what_asks_for_a_new_attribute_is_another_rule_to_which_it_was_null() -> None:
    found = ephemera.compile(OLD + "p(k) <- i: a(k, _), j: b(k), " + WITHIN).engine()
    found.send_many([event("a", 1, 1, 5), event("a", 5, 2, 5)])
    done = found.change(ephemera.compile(NEW + "p(k, u) <- i: a(k, _, u), j: b(k), " + WITHIN))
    assert (done.removed, done.added, done.notes) == (("`p` (rule 1)",), ("`p` (rule 1)",), ())
    answers = found.send_many([event("a", 6, 2, 5, 7), event("b", 8, 2), event("b", 9, 1)]) + found.finish()
    found_then = [(one["time"], one["data"]) for one in answers]
    assert found_then == [([5, 8], [2, None]), ([6, 8], [2, 7]), ([1, 9], [1, None])]


def test_a_longer_watermark_moves_no_bound_backwards() -> None:
    found = ephemera.compile(STREAMS + LATE).engine()
    found.send_many([event("a", 10, 1), event("b", 20, 0)])
    done = found.change(ephemera.compile(STREAMS.replace("WATERMARK 2", "WATERMARK 6") + LATE))
    assert done.kept == ("`late` (rule 1)",)
    bounds = found._engine.sources.bounds
    assert bounds["s"] == 7_999_999  # just before 10 less 2
    found.send(event("a", 13, 2))
    assert bounds["s"] == 7_999_999  # 13 less 6 lies before
    found.send_many([event("a", 7, 3), event("a", 8, 4), event("a", 15, 5)])
    assert [one.event.time.end for one in found.late] == [7_000_000]
    assert bounds["s"] == 8_999_999
    assert sorted(one["data"] for one in found.finish()) == [[k] for k in (1, 2, 4, 5)]


def test_a_shorter_watermark_counts_from_the_next_event_on() -> None:
    found = ephemera.compile(STREAMS + LATE).engine()
    found.send_many([event("a", 10, 1), event("b", 20, 0)])
    found.change(ephemera.compile(STREAMS.replace("WATERMARK 2 sec", "WATERMARK 1 sec") + LATE))
    assert found._engine.sources.bounds["s"] == 7_999_999
    assert found.send(event("a", 15, 2)) == [{"event": "late", "time": [10, 13], "data": [1]}]


def test_a_source_that_may_be_silent_now_holds_no_one_back_when_it_is() -> None:
    now = [0]
    found = ephemera.compile(STREAMS + LATE).engine(now=lambda: now[0])
    found.send_many([event("a", 10, 1), event("a", 20, 2), event("b", 10, 0)])
    assert found.tick() == []
    found.change(ephemera.compile(STREAMS.replace("CARRIES b", "CARRIES b IDLE 5 sec") + LATE))
    now[0] += 4_000_000
    assert found.tick() == []
    now[0] += 6_000_000  # silent for 5 seconds more than it may: it has come to 15
    assert found.tick() == [{"event": "late", "time": [10, 13], "data": [1]}]
    found.change(ephemera.compile(STREAMS + LATE))
    now[0] += 90_000_000
    assert found.tick() == []


def test_another_rate_changes_no_answer() -> None:
    rates = "EVENT a(k: int) RATE 9 per sec; EVENT b(k: int) RATE 1 per hour;"
    rule = "p(k) <- i: a(k), j: b(k), h: a(k), i before j, j before h, {i, h} within 20;"
    declared = "TIME UNIT 1 sec; EVENT a(k: int); EVENT b(k: int);"
    events = [event("ab"[t % 2], t, t % 3) for t in range(60)]
    found = ephemera.compile(declared + rule).engine()
    given = told(found.send_many(events[:30]))
    assert found.change(ephemera.compile(f"TIME UNIT 1 sec; {rates} {rule}")).kept == ("`p` (rule 1)",)
    assert given | told(found.send_many(events[30:])) | told(found.finish()) == oracle(declared + rule, events)


def test_an_attribute_that_is_gone_is_refused_with_the_reason() -> None:
    found = ephemera.compile(NEW + "p(k) <- i: a(k: k);").engine()
    found.send(event("a", 1, 1, 2, 3))
    with pytest.raises(ChangeRefused, match=r"`EVENT a` has lost an attribute, or has them in another order"):
        found.change(ephemera.compile(OLD + "p(k) <- i: a(k: k);"))


def test_explain_says_what_is_declared_otherwise(tmp_path: Path) -> None:
    old, new = tmp_path / "old.eq", tmp_path / "new.eq"
    rule = LATE.replace("a(k)", "a(k: k)")
    changed = STREAMS.replace("WATERMARK 2", "WATERMARK 9").replace("CARRIES b", "CARRIES b IDLE 5 sec")
    old.write_text(STREAMS + rule, encoding="utf-8")
    new.write_text(changed.replace("a(k: int)", "a(k: int, u: int) RATE 4 per sec") + rule, encoding="utf-8")
    result = CliRunner().invoke(app, ["explain", "--change", str(old), str(new)])
    assert result.stdout.splitlines()[:5] == [
        "declared `a` has `u`, null in what has come before",
        "declared `a` has another `RATE`: how rules are joined may change with it, and no answer",
        "declared `s` has `WATERMARK 9s`, before 2s: it counts for what comes, and time does not go back",
        "declared `t` has `IDLE 5s`, before no `IDLE`",
        "kept     `late` (rule 1)",
    ]
