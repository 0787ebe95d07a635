"""This module shows that rules, keys and state are named by what rules mean: a state goes on in other words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import ephemera
from ephemera.algebra.fingerprint import fingerprints
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.state.identity import DETAILS, AnotherProgram, compare, compared, program_of
from ephemera.engine.state.snapshot import WrongSnapshot, restore, take
from ephemera.formats.answer_keys import RulePrints
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import prepare
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import Outcome, World
from tests.engine.living import Beat, Host, cut
from tests.engine.spreading import outcome_of
from tests.strategies.cases import Case, answers, compiled, sample
from tests.strategies.rewritings import in_other_words, with_a_rule_more

CASES = 24


class Planned:
    """A program with its plan, worked out once."""

    def __init__(self, rules: Ruleset) -> None:
        self.rules = rules
        self.plan = lower(rules)
        self.facts = derive(self.plan)
        self.prints = Counter(one.fingerprint for one in fingerprints(self.plan).values())
        self.compiled = prepare(rules, self.plan, self.facts)
        self.names = self.compiled.physical.rewritten.names
        self.program = program_of(self.compiled, World())

    def batch(self, case: Case) -> BatchRun:
        return BatchRun(self.compiled, case.events, case.world)

    def spread(self, case: Case) -> DistributedProgram:
        return DistributedProgram(self.compiled, case.world, 0, 3, -FAR, FAR)

    def key(self, label: str) -> tuple[str, ...]:
        return RulePrints(self.compiled.physical).of(label, None)


def rewritten(case: Case, seed: int, *, more: bool = False) -> Planned:
    dice = Random(seed)
    text = in_other_words(case.program, dice)
    rules = compiled(with_a_rule_more(text, dice) if more else text)
    assert rules is not None, text
    return Planned(rules)


def layout(spread: DistributedProgram) -> dict[str, object]:
    names = spread.plan.rewritten.names.histories
    return {
        name: (group.level, {names[query]: cut for query, cut in group.cuts.items()})
        for name, group in zip(spread.group_names, spread.stages.groups, strict=True)
    }


@pytest.fixture(scope="module")
def chosen() -> list[tuple[Case, Planned, Planned]]:
    """Cases, each as it was made and in other words."""
    found = [(seed, case) for seed, case in enumerate(sample(CASES)) if case is not None]
    assert len(found) > CASES // 2
    return [(case, Planned(case.ruleset), rewritten(case, seed)) for seed, case in found]


Chosen = list[tuple[Case, Planned, Planned]]


def test_names_and_order_leave_fingerprints_keys_and_names_of_state_alike(chosen: Chosen) -> None:
    for case, own, other in chosen:
        assert own.prints == other.prints, case.program
        assert all(own.key(label) == other.key(label) for label in case.ruleset.resolved.catalogue.derived)
        assert sorted(own.names.rules.values()) == sorted(other.names.rules.values())
        assert sorted(own.names.histories.values()) == sorted(other.names.histories.values())
        compare(own.program, other.program, "state")
        assert compared(own.program) == compared(other.program)
        assert layout(own.spread(case)) == layout(other.spread(case)), case.program


def test_a_rule_more_leaves_the_names_of_all_others(chosen: Chosen) -> None:
    for seed, (case, own, _) in enumerate(chosen[::3]):
        larger = rewritten(case, seed, more=True)
        assert len(larger.prints - own.prints) == 1
        assert not own.prints - larger.prints
        assert all(own.key(label) == larger.key(label) for label in case.ruleset.resolved.catalogue.derived)
        assert set(own.names.rules.values()) <= set(larger.names.rules.values())
        if all(point.label is not None for point in own.plan.points.values() if point.kind == "query"):
            assert set(own.names.histories.values()) <= set(larger.names.histories.values())
        with pytest.raises(AnotherProgram, match="it lacks `unrelated-answer`"):
            compare(own.program, larger.program, "state")


def test_a_snapshot_goes_on_in_other_words(chosen: Chosen) -> None:
    held = 0
    for case, own, other in chosen:
        ends = sorted({e.time.end for e in case.events})
        half = len(ends) // 2
        before, after = own.batch(case), other.batch(case)
        before.engine.load(of_events(case.events, own.plan.catalogue.attributes))
        everywhere = before.engine.sources.names
        for end in ends[:half]:
            before.take(before.engine.advance(dict.fromkeys(everywhere, end)))
        taken = take(before.engine, own.program)
        held += len(taken.segments)
        restore(after.engine, other.program, other.plan.catalogue, taken)
        again = take(after.engine, other.program)
        assert set(again.segments) == set(taken.segments)
        for name, table in again.segments.items():
            assert sorted(table.column_names) == sorted(taken.segments[name].column_names)
        for end in [*ends[half:], FAR]:
            after.take(after.engine.advance(dict.fromkeys(everywhere, end)))
        found = both(before.finish(), after.finish())
        assert answers(found) == answers(case.outcome()), case.program
    assert held > len(chosen)


def both(first: Outcome, second: Outcome) -> Outcome:
    return Outcome([*first.events, *second.events], [*first.messages, *second.messages], [])


def test_shards_go_on_in_other_words(chosen: Chosen) -> None:
    for seed, (case, own, other) in enumerate(chosen[::3]):
        dice = Random(seed)
        first, second = own.spread(case), other.spread(case)
        parts = cut(sorted(case.events, key=lambda e: e.time.end), dice)
        with TemporaryDirectory() as folder:
            host = Host(first, Path(folder), dice)
            for part in parts[: len(parts) // 2]:
                host.beat(Beat(part))
            so_far = len(host.carried)
            host.spread, host.shards = second, {}
            for part in parts[len(parts) // 2 :]:
                host.beat(Beat(part))
            host.beat(Beat(ends=True))
        found = both(
            outcome_of(own.rules, own.plan, host.carried[:so_far]),
            outcome_of(other.rules, other.plan, host.carried[so_far:]),
        )
        assert answers(found) == answers(case.outcome()), case.program


# ---- what has a meaning ------------------------------------------------------------------------------------

PROGRAM = """
TIME UNIT 1 min; TIME ZONE "UTC";
NAMESPACE n = "urn:n";
EVENT order(id: int, price: float); EVENT paid(id: int) LASTS AT MOST 2; TABLE vip(id: int);
late(i, begin(o) + 1) <- o: order(i, p), w: extend(o, 6), while w: not q: paid(i), vip(i), p > 3.5, {o, w} within 9;
many(i, count(*)) <- t: timer:datetime [[ hour { 9 } ]], o: order(i, _), o before[1, 5] t, while o: collect c: paid(i);
RAISE to(recipient="desk", transport="mail") { letter { var I } } ON event a: n:call {{ id { var I } }} END
odd(i) <- e: algebra ((order(i, x); paid(i))[3]);
"""
PINNED_DETAILS = "309b275c6b61fc8790692cb376ecab71"
PINNED = {
    "late": "979dcd258c930a49b7d25a2cdcb7dc42",
    "many": "9646b4bb08cd3c0b3ee53ccadae730f5",
    "message letter": "a500839d46b64fd53b7d8aea13468e80",
    "odd": "de8d6bdd731fedb11f2e3f1482eab3de",
}
EDITS = {
    "late": [
        ("p > 3.5", "p >= 3.5"),
        ("p > 3.5", "p > 3.25"),
        ("p > 3.5", "i > 3.5"),
        ("within 9", "within 8"),
        ("extend(o, 6)", "extend(o, 7)"),
        ("extend(o, 6)", "shift-forward(o, 6)"),
        ("while w: not", "while(excl,incl) w: not"),
        ("while w: not", "while o: not"),
        ("not q: paid(i)", "not q: paid(_)"),
        ("vip(i), p", "not vip(i), p"),
        ("vip(i), p", "p"),
        ("late(i, begin(o) + 1)", "late(i, end(o) + 1)"),
        ("late(i, begin(o) + 1)", "late(begin(o) + 1, i)"),
        ("late(i, begin(o) + 1)", "lately(i, begin(o) + 1)"),
        ("price: float", "price: int"),
        ("price: float", "cost: float"),
        ("LASTS AT MOST 2", "LASTS AT MOST 3"),
        ("LASTS AT MOST 2", "LASTS AT MOST 2 ARRIVES AT BEGIN"),
        ("TABLE vip(id: int)", "TABLE vip(id: float)"),
        ("UNIT 1 min", "UNIT 2 min"),
    ],
    "many": [
        ('"UTC"', '"Asia/Tokyo"'),
        ("hour { 9 }", "hour { 8 }"),
        ("before[1, 5]", "before[1, 4]"),
        ("o before[1, 5] t", "t before[1, 5] o"),
        ("count(*)", "count(i)"),
        ("collect c", "collect optional c"),
        ("UNIT 1 min", "UNIT 2 min"),
    ],
    "message letter": [
        ('"desk"', '"shop"'),
        ('"mail"', '"console"'),
        ("letter { var I }", "letter [ var I ]"),
        ("urn:n", "urn:m"),
        ("{{ id { var I } }}", "{ id { var I } }"),
        ("{{ id { var I } }}", "{{ name { var I } }}"),
    ],
    "odd": [("; paid", "+ paid"), ("))[3]", "))[4]"), ("(order(i, x); paid(i))", "(paid(i); order(i, x))")],
}


def of(text: str) -> dict[str, str]:
    return {name: one.fingerprint for name, one in fingerprints(ephemera.compile(text)._compiled.plan).items()}


@pytest.mark.parametrize("rule", EDITS)
def test_what_has_a_meaning_changes_the_fingerprint(rule: str) -> None:
    known = {of(PROGRAM)[rule]}
    for old, new in EDITS[rule]:
        text = PROGRAM.replace(old, new)
        assert text != PROGRAM
        found = of(text)
        changed = found.get(rule, found.get("lately"))
        assert changed is not None
        assert changed not in known, (old, new)
        known.add(changed)
        untouched = {name: one for name, one in found.items() if name in EDITS and old not in _rule(name)}
        if old.split()[0] not in ("UNIT", "price:", "LASTS", "TABLE", '"UTC"', "urn:n"):
            assert all(of(PROGRAM)[name] == one for name, one in untouched.items() if name != rule)


def _rule(name: str) -> str:
    start = {"message letter": "RAISE"}.get(name, name)
    return next(line for line in PROGRAM.splitlines() if line.startswith(start))


def test_a_fingerprint_is_the_same_in_every_version_of_python_and_on_every_machine() -> None:
    """A change here gives every checkpoint of that rule up, and changes the keys of its answers: say so."""
    assert of(PROGRAM) == PINNED


def test_a_column_of_another_name_changes_neither_rules_nor_state() -> None:
    text = (
        "EVENT order(id: int, qty: int); TABLE stock(id: int, left: int); few(i) <- o: order(i, q), stock(i, n), n < q;"
    )
    other = text.replace("qty: int", 'qty: int FROM "how many"').replace("left: int", 'left: int FROM "rest"')
    assert other.count("FROM") == 2
    assert of(other) == of(text)
    programs = [program_of(ephemera.compile(one)._compiled, World()) for one in (text, other)]
    assert programs[0] == programs[1]


DECLARED = "TIME UNIT 1 min; EVENT order(id: int, qty: int); big(i) <- o: order(i, q), q > 9;"
SENT = """
EVENT order(id: int, qty: int);
TRANSPORT audit IS http(url="{url}", retries={retries});
WRITE big TO "{place}";
big(i) <- o: order(i, q), q > 9;
RAISE to(recipient="audit", transport="audit") {{ alarm {{ var I }} }} ON order {{{{ id {{ var I }} }}}} END
"""


def test_declarations_have_the_digest_that_the_version_before_gave_them() -> None:
    """A change here refuses every checkpoint and snapshot that there is: say so."""
    assert program_of(ephemera.compile(DECLARED)._compiled, World())[DETAILS] == PINNED_DETAILS


def test_a_recipient_that_has_moved_is_no_other_program() -> None:
    texts = [
        SENT.format(url="http://127.0.0.1/a", retries=3, place="big.jsonl"),
        SENT.format(url="http://127.0.0.1/b", retries=9, place="great.jsonl"),
    ]
    first, second = (program_of(ephemera.compile(text)._compiled, World()) for text in texts)
    assert first == second


# ---- rules that run as one, the clock, algebra, and rules that mean the same -------------------------------

HELD = """
TIME UNIT 1 min; EVENT reading(s: string, v: int); EVENT off(s: string);
hot(s, v) <- r: reading(s, v), w: extend(r, 5), s = "a", while w: not o: off(s);
hot(s, v) <- r: reading(s, v), w: extend(r, 5), s = "b", while w: not o: off(s);
warm(s, v) <- r: reading(s, v), w: extend(r, 5), s = "c", while w: not o: off(s);
bad(s) <- r: reading(s, v), w: extend(r, 9), v / 0 > 1 or v > 2;
pair(s) <- e: algebra ((reading(s, v); off(s))[9]), w: extend(e, 4);
pair(s) <- e: algebra ((reading(s, v); off(s))[9]), w: extend(e, 4);
"""
OTHER = """
pair(k) <- m: algebra ((reading(k, z); off(k))[9]), a: extend(m, 4);
warm(sensor, value) <- x: reading(sensor, value), a: extend(x, 5), sensor = "c", while a: not b: off(sensor);
pair(s) <- e: algebra ((reading(s, v); off(s))[9]), w: extend(e, 4);
hot(v, s) <- w: reading(v, s), r: extend(w, 5), v = "b", while r: not e: off(v);
bad(s) <- r: reading(s, v), w: extend(r, 9), v / 0 > 1 or v > 2;
hot(s, v) <- r: reading(s, v), w: extend(r, 5), s = "a", while w: not o: off(s);
EVENT off(s: string); TIME UNIT 1 min; EVENT reading(s: string, v: int);
"""


def test_rules_that_run_as_one_go_on_in_other_words_each() -> None:
    events = [
        {"event": "reading", "time": k, "data": ["abcd"[k % 4], k]}
        if k % 5
        else {"event": "off", "time": k, "data": ["abcd"[k // 5 % 4]]}
        for k in range(40)
    ]
    whole = [ephemera.compile(program).run(events) for program in (HELD, OTHER)]
    assert _sorted(whole[0]) == _sorted(whole[1])
    for program in (HELD, OTHER):
        compiled = ephemera.compile(program)._compiled
        (alike,) = compiled.physical.rewritten.alike.values()
        assert len(alike.members) == 3
    first, second = ephemera.compile(HELD).engine(), ephemera.compile(OTHER).engine()
    found = first.send_many(events[:21])
    taken = first.snapshot()
    columns = {name for table in taken.segments.values() for name in table.column_names}
    assert not {"s", "w.e", "r.e", "#r#0"} & columns
    assert any(name.startswith("pending") for name in taken.segments)
    second.restore(taken)
    found = [*found, *second.send_many(events[21:]), *second.finish()]
    assert _sorted(found) == _sorted(whole[0])


def _sorted(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(str, found))


def test_what_has_no_value_is_told_with_the_names_of_its_author() -> None:
    text = "low(v / (s - 1)) <- r: reading(s, v), v < 3; high(b / (a - 1)) <- x: reading(a, b), b < 4;"
    program = ephemera.compile(f"EVENT reading(s: int, v: int); {text}")
    assert program._compiled.physical.rewritten.alike
    letters = program.run_all([{"event": "reading", "time": 1, "data": [1, 2]}]).undefined
    assert {letter.rule: dict(letter.variables) for letter in letters} == {1: {"s": 1, "v": 2}, 2: {"a": 1, "b": 2}}


def test_a_changed_rule_is_refused_by_its_name_with_a_way_out() -> None:
    engine = ephemera.compile(HELD).engine()
    taken = engine.snapshot()
    changed = ephemera.compile(HELD.replace("extend(e, 4)", "extend(e, 3)")).engine()
    with pytest.raises(WrongSnapshot, match=r"(?s)`pair#1` was\n.*4m.*and is\n.*3m.*bring the old program back"):
        changed.restore(taken)
    fewer = ephemera.compile(
        HELD.replace("bad(s) <- r: reading(s, v), w: extend(r, 9), v / 0 > 1 or v > 2;", "")
    ).engine()
    with pytest.raises(WrongSnapshot, match=r"it has `bad.*`, and this has not"):
        fewer.restore(taken)
