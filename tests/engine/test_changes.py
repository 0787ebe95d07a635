"""Rules change while they run: what goes on, what begins, what is refused, and what is kept for that."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ephemera
from ephemera.base.span import Source
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.engine.state.snapshot import WrongSnapshot
from ephemera.syntax.format import format
from ephemera.syntax.parser import parse
from tests.engine.following import Follower, end_of, followed, oracle, told
from tests.strategies.changes import changings

DECLARED = "TIME UNIT 1 sec; EVENT a(k: int, v: int); EVENT b(k: int, v: int); EVENT c(k: int, v: int);"
JOIN = "w(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 9;"
LATE = "late(k) <- i: a(k, _), w: extend(i, 6), while w: not b(k, _);"
PLAIN = "q(k) <- i: c(k, _);"


def stream(count: int, seed: int = 3, labels: str = "abc") -> list[dict[str, Any]]:
    """Events in the order of time."""
    dice, time, found = Random(seed), 0, []
    for _ in range(count):
        time += dice.choice((0, 1, 1, 2))
        found.append({"event": dice.choice(labels), "time": time, "data": [dice.randrange(3), dice.randrange(4)]})
    return found


def engine(rules: str, events: list[dict[str, Any]], declared: str = DECLARED) -> tuple[LiveEngine, set[str]]:
    """An engine that some events have come to, and what it gave."""
    found = ephemera.compile(declared + rules).engine()
    return found, told(found.send_many(events))


def changes_as_the_oracle(first: str, second: str, declared: str = DECLARED, moment: int = 40) -> None:
    """A change that is exact gives what the programs give, each in its time."""
    events = stream(100)
    found, given = engine(first, events[:moment], declared)
    bound = max(lane.bound for lane in found._engine.lanes.values())
    found.change(ephemera.compile(declared + second))
    given |= told(found.send_many(events[moment:])) | told(found.finish())
    before, after = oracle(declared + first, events), oracle(declared + second, events)
    assert given == {a for a in before if end_of(a) <= bound} | {a for a in after if end_of(a) > bound}


# ---- random programs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "ways", "restarts"),
    [(50, {}, False), (24, {"changes": 3}, True), (20, {"changes": 2, "streams": True}, True)],
    ids=["one", "several", "streams"],
)
def test_what_is_exact_is_what_the_oracle_says(count: int, ways: dict[str, Any], restarts: bool) -> None:
    followers: list[Follower] = []
    for seed, case in enumerate(changings(count, **ways)):
        follower = followed(case, Random(seed), restarts=restarts)
        assert follower.wrong() == {"lacking": set(), "too much": set()}, f"case {seed}"
        followers.append(follower)
    exact = sum(bool(done.added) and not done.notes for one in followers for done in one.changes)
    assert exact > count // 6  # it is worth something
    assert sum(len(one.refusals) for one in followers) > count // 6


def test_windows_are_kept_and_added() -> None:
    hop = "n(k, count(*)) <- w: window 6 every 2, while w: collect b(k, _);"
    tile = "m(k) <- t: every 4, i: a(k, _), i during t, while t: not b(k, _);"
    changes_as_the_oracle(LATE + hop, hop + PLAIN)
    changes_as_the_oracle(JOIN + hop, tile + hop)
    changes_as_the_oracle(JOIN + LATE + tile, tile + hop.replace("6 every", "3 every"))


# ---- kept, removed, added ------------------------------------------------------------------------------------


def test_rules_are_told_by_what_they_mean() -> None:
    found, _ = engine(JOIN + LATE, stream(30))
    other = "w(x) <- first: a(x, _), second: b(x, _), first before second, {first, second} within 9;"
    done = found.change(ephemera.compile(DECLARED + PLAIN + LATE + other))
    assert done.kept == ("`late` (rule 2)", "`w` (rule 3)")
    assert done.added == ("`q` (rule 1)",)
    assert done.removed == ()
    assert str(done).splitlines()[2].startswith("added    `q` (rule 1), exact from ")


def test_a_derivation_more_replaces_who_asks_that_nothing_was_derived() -> None:
    quiet = "quiet(k) <- i: a(k, _), w: extend(i, 4), while w: not d(k);"
    first = "d(k) <- j: b(k, 1);" + quiet
    found, _ = engine(first, stream(30))
    with pytest.raises(ChangeRefused, match=r"`quiet` \(rule 2\) needs 4s of `b`"):
        found.change(ephemera.compile(DECLARED + first + "d(k) <- j: c(k, 1);"))
    done = found.change(ephemera.compile(DECLARED + first + "d(k) <- j: c(k, 1);"), look_back="from-now")
    assert done.kept == ("`d` (rule 1)",)
    assert done.removed == ("`quiet` (rule 2)",)
    assert done.added == ("`quiet` (rule 2)", "`d` (rule 3)")


@pytest.mark.parametrize("moment", [1, 40, 77])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (JOIN, PLAIN + JOIN),
        (JOIN + LATE, LATE),
        (LATE, LATE.replace("late", "later").replace("6", "5") + LATE),
        (
            "".join(f"p(k) <- i: a(k, {n}), w: extend(i, 5), while w: not b(k, _);" for n in range(3)),
            "p(k) <- i: b(k, _);",
        ),
        ("p(k, count(*)) <- i: a(k, _), w: extend-begin(i, 9), while w: collect b(k, u);", PLAIN),
        ("p(k) <- e: algebra ((a(k, _); b(k, _))[9]);", "p(k) <- e: algebra ((a(k, _); b(k, _))[9]);" + PLAIN),
        ("p(x, y) <- i: a(x, y); p(x, z) <- i: p(x, y), j: b(y, z), i before j, {i, j} within 3;", JOIN),
        ("p(k, v) <- i: a(k, _), j: b(k, _), l: c(k, v), i before j, j before l, {i, l} within 9;", PLAIN),
    ],
    ids=["join", "removed", "shorter", "alike", "count", "algebra", "recursion", "three"],
)
def test_kept_rules_go_on(first: str, second: str, moment: int) -> None:
    kept = first if second in (PLAIN, JOIN) and first != JOIN else ""
    declared = DECLARED + "".join(f"RESERVE {label} 30 sec;" for label in "abc")
    changes_as_the_oracle(first, kept + second, declared, moment)


def alike(*limits: int) -> str:
    return "".join(f"al(k, {n}) <- i: a(k, {n}), w: extend(i, 5), while w: not b(k, _);" for n in limits)


def test_rules_join_those_that_are_alike_and_leave_them() -> None:
    declared = DECLARED + "RESERVE a 5 sec; RESERVE b 5 sec;"
    events = stream(120)
    found, given = engine(alike(1), events[:20], declared)
    expected: set[str] = set()
    last = -(1 << 62)
    for number, limits in enumerate([(1,), (1, 2), (0, 1, 2), (2, 0), (2,), (1, 3)]):
        if number:
            done = found.change(ephemera.compile(declared + alike(*limits)))
            assert not done.notes
        given |= told(found.send_many(events[20 * number : 20 * number + 20])) if number else set()
        bound = found._engine.lanes[frozenset(("",))].bound
        expected |= {a for a in oracle(declared + alike(*limits), events) if last < end_of(a) <= bound}
        last = bound
    assert given == expected
    assert any("and 1 more" in name for name in found._engine.lanes[frozenset(("",))].rules)


def test_a_thousand_changes_leave_nothing_behind() -> None:
    programs = [ephemera.compile(DECLARED + JOIN + alike(n, n + 1)) for n in range(5)]
    found = programs[0].engine()
    held: list[tuple[int, int]] = []
    for n in range(1_000):
        found.send({"event": "ab"[n % 2], "time": n, "data": [n % 3, n % 5]})
        found.change(programs[(n + 1) % 5], look_back="from-now")
        now = found.held()
        held.append((sum(tuples for tuples, _, _ in now.histories.values()), now.pending))
    assert max(held[100:]) <= max(held[:100])
    assert len(found._engine.lanes) == 1
    assert len(found._engine.lanes[frozenset(("",))].histories) <= 8


# ---- what is lacking -----------------------------------------------------------------------------------------


def test_a_refused_change_says_what_is_lacking_and_leaves_the_engine_as_it_was() -> None:
    events = stream(100)
    found, given = engine(JOIN, events[:50])
    before = found.snapshot()
    long = "slow(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;"
    with pytest.raises(ChangeRefused, match=r"`slow` \(rule 2\) needs 30s of `a`, 9s are kept") as refused:
        found.change(ephemera.compile(DECLARED + JOIN + long))
    assert "RESERVE" in str(refused.value)
    assert "would be exact from 2" in str(refused.value)
    after = found.snapshot()
    assert after.manifest["lanes"] == before.manifest["lanes"]
    given |= told(found.send_many(events[50:])) | told(found.finish())
    assert given == oracle(DECLARED + JOIN, events)


def test_from_now_only_what_ends_after_the_change_counts_though_more_is_kept() -> None:
    events = stream(100)
    found, _ = engine(JOIN + LATE, events[:50])
    bound = found._engine.lanes[frozenset(("",))].bound
    counted = "n(k, count(*)) <- i: b(k, _), w: extend-begin(i, 20), while w: collect a(k, u);"
    absent = "no(k) <- i: b(k, _), w: extend-begin(i, 20), while w: not a(k, _);"
    found.change(ephemera.compile(DECLARED + JOIN + LATE + counted + absent), look_back="from-now")
    given = {a for a in told(found.send_many(events[50:])) | told(found.finish()) if '"n' in a}
    later = [event for event in events if event["time"] * 1_000_000 > bound]
    assert given == oracle(DECLARED + counted + absent, later)


def test_what_begins_later_is_kept_apart_until_it_makes_no_difference() -> None:
    found, _ = engine(JOIN, stream(50))
    counted = "n(k, count(*)) <- i: b(k, _), w: extend-begin(i, 20), while w: collect a(k, u);"
    program = ephemera.compile(DECLARED + JOIN + counted)
    done = found.change(program, look_back="from-now")
    again = program.engine().restore(found.snapshot())
    (lane,) = again._engine.lanes.values()
    assert [rule.since for rule in lane.rules.values()] == [None, lane.bound]
    assert done.answers_from["`n` (rule 2)"] == pytest.approx(lane.bound / 1_000_000 + 20)


def test_available_uses_what_is_kept_and_says_from_when_on_it_is_exact() -> None:
    found, _ = engine(JOIN, stream(50))
    long = "slow(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;"
    done = found.change(ephemera.compile(DECLARED + JOIN + long), look_back="available")
    bound = found._engine.lanes[frozenset(("",))].bound / 1_000_000
    assert done.answers_from["`slow` (rule 2)"] == pytest.approx(bound + 21, abs=0.01)
    assert any("needs 30s of `a`" in note for note in done.notes)


def test_what_is_reserved_is_there_for_rules_that_come_later() -> None:
    declared = DECLARED + "RESERVE a 30 sec; RESERVE c 30 sec;"
    long = "slow(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;"
    changes_as_the_oracle(JOIN, JOIN + long, declared)
    derived = "d(k, v) <- i: a(k, v), w: extend(i, 3), while w: not c(k, _);"
    derived += "p(k) <- i: d(k, _), j: c(k, _), {i, j} within 20;"
    changes_as_the_oracle(JOIN, derived, declared)


def test_a_reserve_that_comes_later_is_filled_from_then_on() -> None:
    found, _ = engine(JOIN, stream(50))
    declared = DECLARED + "RESERVE a 30 sec; RESERVE c 30 sec;"
    found.change(ephemera.compile(declared + JOIN))
    slow = ephemera.compile(declared + JOIN + "slow(k) <- i: a(k, _), j: c(k, _), i before j, {i, j} within 30;")
    with pytest.raises(ChangeRefused, match="needs 30s of `a`"):
        found.change(slow)
    found.advance(200)
    assert not found.change(slow).notes


def test_what_no_rule_asked_for_was_read_all_the_same_and_can_be_looked_back_at() -> None:
    found = ephemera.compile(DECLARED + JOIN).engine()
    rows = [{"event": "a", "time": n, "k": n % 3, "v": n % 4} for n in range(300)]
    found.send_many(pa.Table.from_pylist(rows))
    shown = JOIN.replace("w(k)", "x(k, v)").replace("a(k, _)", "a(k, v)")
    assert not found.change(ephemera.compile(DECLARED + JOIN + shown)).notes
    answers = found.send_many([{"event": "b", "time": 300, "data": [1, 0]}]) + found.finish()
    assert {(a["time"][0], *a["data"]) for a in answers if a["event"] == "x"} == {(292, 1, 0), (295, 1, 3), (298, 1, 2)}


# ---- declarations ----------------------------------------------------------------------------------------------


def test_a_type_may_get_attributes_and_a_stream_another_watermark() -> None:
    old = "TIME UNIT 1 sec; EVENT a(k: int); EVENT b(k: int) RATE 1 per sec; STREAM s CARRIES a, b WATERMARK 2 sec;"
    new = (
        old.replace("a(k: int)", "a(k: int, w: int)").replace("WATERMARK 2", "WATERMARK 9").replace("RATE 1", "RATE 5")
    )
    late = "late(k) <- i: b(k), w: extend(i, 3), while w: not b(_);"
    found = ephemera.compile(old + late).engine()
    found.send_many([{"event": "b", "time": 10, "data": [1]}, {"event": "a", "time": 10, "data": [1]}])
    done = found.change(ephemera.compile(new + late + "seen(k, w) <- i: a(k, w);"))
    assert done.kept == ("`late` (rule 1)",)
    assert found.send({"event": "a", "time": 11, "data": [4, 5]}) == []  # the bound does not go back, and waits
    assert found._engine.sources.bounds["s"] == 7_999_999
    assert [a["data"] for a in found.finish() if a["event"] == "seen"] == [[1, None], [4, 5]]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("TIME UNIT 1 sec", "TIME UNIT 1 min", "`TIME UNIT`"),
        ('TIME ZONE "UTC"', 'TIME ZONE "Europe/Berlin"', "`TIME ZONE`"),
        ("EVENT a(k: int)", "EVENT a(j: int)", "lost an attribute"),
        ("EVENT a(k: int)", "EVENT a(k: int) LASTS AT MOST 3 sec", "may last another time"),
        ("EVENT a(k: int)", "EVENT a(k: int) AT LEAST 3 sec APART", "closer"),
        ("EVENT a(k: int) LASTS ANY", "EVENT a(k: int) LASTS ANY ARRIVES AT BEGIN", "known from another time"),
        ("EVENT a(k: int)", "EVENT a(k: int); STREAM s CARRIES a", "read from no stream"),
        ("EVENT a(k: int); TABLE t(x: int)", "EVENT a(k: int); TABLE t(y: int)", "other columns"),
        ('EVENT a(k: int); NAMESPACE n = "urn:n"', 'EVENT a(k: int); NAMESPACE n = "urn:m"', "prefix stands for"),
    ],
)
def test_other_declarations_are_refused_with_the_reason(old: str, new: str, why: str) -> None:
    rules = "p(x) <- i: a(x);" if "EVENT" in old else "EVENT a(k: int); p(x) <- i: a(x);"
    found = ephemera.compile(f"{old}; {rules}").engine()
    found.send({"event": "a", "time": 1, "data": [1]})
    with pytest.raises(ChangeRefused, match=why):
        found.change(ephemera.compile(f"{new}; {rules}"))


def test_an_input_that_has_ended_cannot_change() -> None:
    found, _ = engine(JOIN, stream(9))
    found.finish()
    with pytest.raises(ChangeRefused, match="has ended"):
        found.change(ephemera.compile(DECLARED + JOIN))
    with pytest.raises(ValueError, match="look_back"):
        found.change(ephemera.compile(DECLARED + JOIN), look_back="archive")


def test_a_program_that_keeps_something_for_ever_is_refused_as_ever() -> None:
    found, _ = engine(JOIN, stream(9))
    with pytest.raises(ephemera.ProgramError):
        found.change(ephemera.compile(DECLARED + "p(k) <- i: a(k, _), j: b(k, _), i before j;"))


# ---- sources that are not equally far ----------------------------------------------------------------------------

TWO = DECLARED + "STREAM s CARRIES a; STREAM t CARRIES b, c;"


def test_a_slow_source_holds_back_only_added_rules_that_need_it() -> None:
    alone = "p(k) <- i: a(k, _), w: extend(i, 5), while w: not a(k, 3);"
    found = ephemera.compile(TWO + alone).engine()
    found.send_many([{"event": "a", "time": t, "data": [1, 0]} for t in (1, 30)])
    found.send({"event": "b", "time": 4, "data": [1, 0]})
    both = "w(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 9;"
    with pytest.raises(ChangeRefused, match="is not kept where it is needed now"):
        found.change(ephemera.compile(TWO + alone + both))
    done = found.change(ephemera.compile(TWO + alone + both), look_back="from-now")
    assert done.kept == ("`p` (rule 1)",)
    answers = found.send_many(
        [
            {"event": "a", "time": 32, "data": [7, 0]},
            {"event": "b", "time": 33, "data": [7, 0]},
            {"event": "b", "time": 40, "data": [7, 0]},
            {"event": "a", "time": 41, "data": [7, 0]},
        ]
    )
    assert [a["time"] for a in answers if a["event"] == "w"] == [[32, 33]]


def test_a_rule_that_would_wait_for_a_slower_source_is_refused() -> None:
    alone = "p(k) <- i: a(k, _), w: extend(i, 5), while w: not a(k, 3);"
    found = ephemera.compile(TWO + alone).engine()
    found.send_many([{"event": "a", "time": t, "data": [1, 0]} for t in (1, 30)])
    found.send({"event": "b", "time": 4, "data": [1, 0]})
    with pytest.raises(ChangeRefused, match=r"`p` \(rule 1\) is to wait for other sources than before"):
        found.change(ephemera.compile(TWO + alone + "p(k) <- j: b(k, _);"), look_back="from-now")


# ---- beside the rules --------------------------------------------------------------------------------------------


def test_late_bad_and_dead_events_are_still_there_after_a_change() -> None:
    found, _ = engine("p(1 / k) <- i: a(k, _);", [{"event": "a", "time": 9, "data": [0, 0]}])
    found.send({"event": "a", "time": 3, "data": [1, 0]})
    found.send({"event": "a", "time": 9, "data": [1]})
    found.advance(20)
    found.change(ephemera.compile(DECLARED + PLAIN))
    stats = found.stats()
    assert (stats.received, stats.late, stats.bad) == (3, 1, 1)
    assert [letter.rule for letter in found.take_dead_letters()] == [1]
    assert len(found.late) == len(found.bad) == 1


def test_events_that_came_too_close_are_judged_by_those_before_the_change() -> None:
    declared = DECLARED.replace("EVENT a(k: int, v: int)", "EVENT a(k: int, v: int) AT LEAST 5 sec APART PER k")
    found, _ = engine(LATE, [{"event": "a", "time": 9, "data": [0, 0]}], declared)
    found.change(ephemera.compile(declared + LATE + PLAIN))
    found.send({"event": "a", "time": 11, "data": [0, 0]})
    found.advance(40)
    assert len(found.bad) == 1


def test_other_messages_are_refused_while_they_are_delivered() -> None:
    raised = 'RAISE to(recipient="desk", transport="python") { m { var K } } ON event e: a {{ k { var K } }} END'
    taken: list[Any] = []
    with ephemera.compile(DECLARED + raised).engine(deliver={"desk": taken.append}) as found:
        found.change(ephemera.compile(DECLARED + PLAIN + raised))
        with pytest.raises(ChangeRefused, match="messages are being delivered"):
            found.change(ephemera.compile(DECLARED + raised.replace("m {", "n {")))


# ---- the declaration ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("RESERVE aa 3 sec;", "no event `aa` is declared"),
        ("RESERVE q 3 sec;", "`q` is derived by rules"),
        ("RESERVE a 0 sec;", "for no time at all"),
        ("RESERVE a 3 sec; RESERVE a 4 sec;", "`a` is reserved twice"),
        ("RESERVE a;", "expected"),
    ],
)
def test_only_events_from_outside_are_reserved_for_some_time(declared: str, why: str) -> None:
    with pytest.raises(ephemera.ProgramError, match=why):
        ephemera.compile(DECLARED + PLAIN + declared)


def test_what_is_reserved_has_one_layout_and_counts_for_snapshots() -> None:
    parsed = parse(Source("p.eq", "RESERVE   a  90min ;"))
    assert format(parsed.program) == "RESERVE a 90 min;\n"
    found, _ = engine(PLAIN, stream(9), DECLARED + "RESERVE a 3 sec;")
    with pytest.raises(WrongSnapshot, match="RESERVE a"):
        ephemera.compile(DECLARED + PLAIN).engine().restore(found.snapshot())
