"""This module shows that a program is planned once, and that what is explained is what runs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

import ephemera
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.engine import Engine
from ephemera.engine.hosts.batch import BatchRun
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.physical import explain, explain_text, plan
from ephemera.physical.nodes import Wanted, WindowPlan
from ephemera.physical.placement import stages
from ephemera.physical.plan import Compiled, PhysicalPlan, physical_plan
from ephemera.rewrite import REWRITES
from ephemera.rewrite.optimize import optimize
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from ephemera.terms.nodes import Var
from tests.strategies.cases import answers, sample

PROGRAM = """
TIME UNIT 1 min;
EVENT order(id: string, item: string);
EVENT paid(id: string);
EVENT sent(id: string, to: string);
apple(id) <- o: order(id, "apple"), p: paid(id), {o, p} within 5;
pear(id) <- o: order(id, "pear"), p: paid(id), {o, p} within 5;
lost(id) <- o: order(id, _), w: extend(o, 9), while w: not sent(id, _);
busy(count(i)) <- o: order(id, "plum"), w: extend(o, 3), while w: collect paid(i);
"""
EVENTS = [
    {"event": "order", "time": 1, "data": ["a", "apple"]},
    {"event": "order", "time": 2, "data": ["b", "plum"]},
    {"event": "paid", "time": 3, "data": ["a"]},
]


def test_the_plan_that_is_explained_is_the_one_that_runs() -> None:
    program = ephemera.compile(PROGRAM)
    own = program._compiled.physical
    for engine in (Engine(own, World()), DistributedProgram(program._compiled, World(), 0, 3, -FAR, FAR).engine(0, 1)):
        running = {name: rule.plan for lane in engine.lanes.values() for name, rule in lane.rules.items()}
        assert running
        assert all(rule is own.rules[name] for name, rule in running.items())
        lanes = own.lanes.of(running)
        assert {sources: lane.plan for sources, lane in engine.lanes.items()} == lanes
        assert {name for lane in engine.lanes.values() for name in lane.histories} == {
            name for lane in lanes.values() for name in lane.histories
        }
    assert program.explain_json("physical") == explain.as_json(own)
    assert program.explain("physical") == explain_text.as_text(own)
    apples = own.rules["apple and 1 more"]
    shown = next(r for g in explain.as_json(own)["groups"] for r in g["rules"] if len(r["rules"]) > 1)
    assert [order["new"] for order in shown["orders"]] == [leaf.name for leaf in apples.leaves]
    rules = {r["rules"][0]["point"]: r for g in explain.as_json(own)["groups"] for r in g["rules"]}
    for name, kind in (("lost", "absence"), ("busy", "collection")):
        (((window,),),) = rules[name]["attempts"]
        (((planned,),),) = own.rules[name].attempts
        assert isinstance(planned, WindowPlan)
        assert (window["kind"], window["exact"], window["by"]) == (kind, True, list(planned.keys))
        assert [r["of"] for r in window["ranges"]] == [r.known for r in planned.ranges] == ["w.s", "w.e"]
        assert rules[name]["timers"] == [f"timer w: extend(o, {'9m' if name == 'lost' else '3m'})"]
    (lane,) = explain.as_json(own)["lanes"]
    (planned_lane,) = own.lanes.plans.values()
    assert {h["kept"] for h in lane["histories"]} == {h.reach for h in planned_lane.histories.values()}
    assert len(lane["histories"]) == len(planned_lane.histories)


def test_a_window_of_which_only_a_summary_is_asked_is_planned_so() -> None:
    text = PROGRAM + "much(count(*), max(i)) <- o: order(id, _), w: extend(o, 3), while w: collect paid(i);"
    (((window,),),) = ephemera.compile(text)._compiled.physical.rules["much"].attempts
    assert isinstance(window, WindowPlan)
    assert (window.kind, window.is_exact, window.wanted, window.tests) == (
        "summary",
        True,
        (Wanted.of("max", Var("i")),),
        (),
    )
    lasting = text.replace("EVENT paid(id: string)", "EVENT paid(id: string) LASTS AT MOST 5")
    (((window,),),) = ephemera.compile(lasting)._compiled.physical.rules["much"].attempts
    assert isinstance(window, WindowPlan)
    assert (window.kind, window.is_exact, window.wanted, len(window.tests)) == ("collection", False, (), 1)


def test_a_part_of_a_lane_holds_what_its_rules_need() -> None:
    own = ephemera.compile(PROGRAM)._compiled.physical
    (whole,) = own.lanes.plans.values()
    (same,) = own.lanes.of(own.rules).values()
    assert same is whole
    (part,) = own.lanes.of({"lost"}).values()
    assert list(part.uses) == ["lost"]
    assert [members for members, _ in part.schedule] == [("order(v1, v2)",), ("sent(v1, v2)",), ("lost",)]
    assert part.histories.keys() == part.queries.keys() == {"order(v1, v2)", "sent(v1, v2)"}
    assert [h.reach for h in part.histories.values()] == [9 * 60_000_000] * 2
    assert own.lanes.of(set()) == {}


def test_a_program_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(*given: object, **more: object) -> object:
        nonlocal made
        made += 1
        return original(*given, **more)  # type: ignore[arg-type]

    original = optimize
    monkeypatch.setattr(plan, "optimize", counted)
    program = ephemera.compile(PROGRAM)
    assert made == 0
    assert [answer["event"] for answer in program.run(EVENTS)] == ["apple", "busy", "lost", "lost"]
    program.explain("physical")
    program.engine().send_many(EVENTS)
    elsewhere: DistributedProgram = pickle.loads(
        pickle.dumps(DistributedProgram(program._compiled, World(), 0, 3, -FAR, FAR))
    )
    for place in range(3):
        elsewhere.engine(0, place)
    assert made == 1


def test_rules_are_spread_when_a_cluster_asks_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(*given: object) -> object:
        nonlocal made
        made += 1
        return original(*given)  # type: ignore[arg-type]

    original = stages
    monkeypatch.setattr(plan, "stages", counted)
    program = ephemera.compile(PROGRAM)
    program.run(EVENTS)
    program.engine().send_many(EVENTS)
    assert made == 0
    elsewhere: DistributedProgram = pickle.loads(
        pickle.dumps(DistributedProgram(program._compiled, World(), 0, 3, -FAR, FAR))
    )
    elsewhere.engine(0, 1)
    assert elsewhere.stages == program._compiled.physical.stages
    program.explain("physical")
    assert made == 1


def test_a_plan_travels() -> None:
    own = ephemera.compile(PROGRAM)._compiled.physical
    copy: PhysicalPlan = pickle.loads(pickle.dumps(own))
    assert copy == own
    assert explain.as_json(copy) == explain.as_json(own)
    with pytest.raises(AttributeError):
        own.reach = 1  # type: ignore[misc]
    json.dumps(explain.as_json(own))


def without(one: Compiled, number: int) -> Compiled:
    rewrites = [rewrite for k, rewrite in enumerate(REWRITES) if k != number]
    return replace(one, physical=physical_plan(one.rules, one.plan, one.facts, (), rewrites))


@pytest.mark.parametrize("number", range(len(REWRITES)), ids=[rewrite.__name__ for rewrite in REWRITES])
def test_answers_are_the_same_without_a_rewrite(number: int) -> None:
    program = ephemera.compile(PROGRAM)
    events = [event for given in EVENTS if isinstance(event := read_event(given, program._compiled), Event)]
    found = BatchRun(without(program._compiled, number), events, World()).run(())
    assert len(found.events) == 4
    assert answers(found) == answers(BatchRun(program._compiled, events, World()).run(()))


def test_random_programs_answer_the_same_without_rewrites() -> None:
    for case in sample(24):
        if case is not None:
            program = ephemera.compile(case.program)
            plain = replace(
                program._compiled,
                physical=physical_plan(case.ruleset, program._compiled.plan, program._compiled.facts, (), ()),
            )
            assert answers(BatchRun(plain, case.events, case.world).run(())) == answers(case.outcome()), case.program
