"""This module shows that a step which visits only some rules answers what visiting all of them would answer.

The rules are many and no two are alike, since each has a window of its own: constants in patterns and in conditions,
chains, absences, collections and recursion. Whatever is done for very many rules is done for these few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.engine import agenda, upkeep
from ephemera.engine.engine import Engine
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.operators.join import RuleJoin
from ephemera.engine.operators.match import Query
from ephemera.engine.state.identity import program_of
from ephemera.engine.state.snapshot import restore, take
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import check
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from tests.engine.test_alike import DECLARED, events
from tests.engine.test_local import rows_at_a_time
from tests.strategies.cases import answers

TEMPLATES = (
    "P{n}(i, j) <- a: A(i, x, {c}), b: B(j, x, _), a before[0, {w}] b;",
    "P{n}(i, j) <- b: B(j, x, {d}), a: A(i, x, v), {{a,b}} within {w}, v = {c};",
    "P{n}(i, j) <- a: A(i, x, v), b: A(j, x, u), a before[0, {w}] b, v = {c}, {d} = u;",
    "P{n}(i) <- a: A(i, x, {c}), w: extend(a, {w}), while w: not B(_, x, {d});",
    "P{n}(i, count(j)) <- a: A(i, x, v), w: extend(a, {w}), v = {c}, while w: collect B(j, x, _);",
    "P{n}(i, j) <- a: A(i, x, {c}), b: B(j, x, _), c: B(_, _, {d}), a before[0, {w}] b, {{a,b,c}} within {w};",
    "R(i, v) <- a: A(i, x, v), w: extend(a, {w}), v = {c};",
    "P{n}(i) <- r: R(i, {c}), b: B(_, i, _), {{r,b}} within {w};",
    "S{n}(i, x) <- a: A(i, x, {c}), w: extend(a, {w});\nT{n}(i) <- s: S{n}(i, x), b: B(_, x, {d}), {{s,b}} within {w};",
    "L(i, x) <- a: A(i, x, {c}), w: extend(a, {w});\nL(i, y) <- l: L(i, x), b: B(x, y, {d}), {{l,b}} within {w};",
)
CONSTANTS = ("1", "2", "1.0", '"a"', "true")


@st.composite
def programs(draw: st.DrawFn) -> Compiled:
    constants = st.sampled_from(CONSTANTS)
    chosen = draw(st.lists(st.tuples(st.sampled_from(TEMPLATES), constants, constants), min_size=1, max_size=8))
    rules = [template.format(n=n, c=c, d=d, w=n + 2) for n, (template, c, d) in enumerate(chosen)]
    rules.append("R(i, v) <- a: A(i, x, v), w: extend(a, 1), x = 1;")
    checked = check(Source("many.eq", DECLARED + "\n".join(rules)))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    return prepare(checked.rules, checked.plan, checked.facts)


@contextmanager
def as_if_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "MANY", 0)
        patch.setattr(agenda, "FEW_VALUES", 0)
        yield


@settings(max_examples=60)
@given(compiled=programs(), stream=events(), data=st.data())
def test_rules_that_are_not_alike_answer_what_the_oracle_answers(
    compiled: Compiled, stream: list[Event], data: st.DataObject
) -> None:
    expected = answers(evaluate(compiled.rules, stream, World()))
    ends = sorted({e.time.end for e in stream})
    cuts = data.draw(st.lists(st.sampled_from(ends), unique=True).map(sorted)) if ends else []
    for stops, few in (([], 0), (ends, FEW), (cuts, 0)):
        with as_if_many(), rows_at_a_time(few):
            found = BatchRun(compiled, stream, World()).run(stops)
        assert answers(found) == expected


@settings(max_examples=30)
@given(compiled=programs(), stream=events(), data=st.data())
def test_rules_that_slept_wake_after_a_snapshot(compiled: Compiled, stream: list[Event], data: st.DataObject) -> None:
    with as_if_many():
        batch = BatchRun(compiled, stream, World())
        batch.engine.load(of_events(stream, compiled.plan.catalogue.attributes))
        everywhere = batch.engine.sources.names
        ends = sorted({e.time.end for e in stream})
        stop = data.draw(st.sampled_from(ends)) if ends else None
        for end in [*ends, FAR]:
            batch.take(batch.engine.advance(dict.fromkeys(everywhere, end)))
            if end == stop:
                program = program_of(compiled, World())
                taken = take(batch.engine, program)
                batch.engine = BatchRun(compiled, stream, World()).engine
                restore(batch.engine, program, compiled.plan.catalogue, taken)
        assert answers(batch.finish()) == answers(evaluate(compiled.rules, stream, World()))


# ---- who is visited ------------------------------------------------------------------------------------------


def visits(program: str, stream: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """For each event, which has a label, x and v, how many queries and rules it visits; the first visits all."""
    found: list[Counter[str]] = []
    for kind in (Query, RuleJoin):
        visit = kind.step

        def counted(self: object, *given: object, _visit: object = visit, _name: str = kind.__name__) -> object:
            found[-1][_name] += 1
            return _visit(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(kind, "step", counted)
    checked = check(Source("many.eq", DECLARED + program))
    assert checked.rules is not None
    assert checked.plan is not None
    assert checked.facts is not None
    engine = Engine(prepare(checked.rules, checked.plan, checked.facts).physical, World())
    for number, (label, x, v) in enumerate(stream):
        found.append(Counter())
        term = attributes_term(label, [("id", number), ("x", x), ("v", v)])
        time = number * 1_000_000
        engine.load(of_events([Event(term, Interval(time, time), positional=True)], checked.plan.catalogue.attributes))
        engine.advance(time)
    return found


def test_an_event_visits_the_rules_that_ask_for_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "".join(f"P{n}(i, j) <- a: A(i, x, {n}), b: B(j, x, _), a before[0, {n + 2}] b;\n" for n in range(100))
    stream = [("A", 0, 500), ("A", 0, 500), ("B", 0, 0), ("A", 0, 7), ("B", 0, 0), ("A", 1, 8), ("B", 1, 0)]
    _, none, asleep, seven, one, eight, both = visits(rules, stream, monkeypatch)
    assert none == Counter()
    assert asleep == Counter(Query=1)
    assert seven == Counter(Query=1, RuleJoin=1)
    assert one == Counter(Query=1, RuleJoin=1)
    assert eight == Counter(Query=1, RuleJoin=1)
    assert both == Counter(Query=1, RuleJoin=2)


def test_an_event_visits_the_rules_whose_conditions_ask_for_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "".join(f"P{n}(i) <- a: A(i, x, v), w: extend(a, {n + 2}), v = {n};\n" for n in range(100))
    _, none, seven, *waiting = visits(
        rules, [("A", 0, 500), ("A", 0, 500), ("A", 0, 7)] + [("A", 0, 500)] * 10, monkeypatch
    )
    assert none == Counter(Query=1)
    assert seven == Counter(Query=1, RuleJoin=1)
    assert sum(one["RuleJoin"] for one in waiting) == 1  # when its timer goes off
