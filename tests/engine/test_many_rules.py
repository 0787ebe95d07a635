"""This module shows that a step which visits only some rules answers what visiting all of them would answer.

The rules are many and no two are alike, since each has a window of its own: constants in patterns and in conditions,
chains, absences, collections and recursion. Whatever is done for very many rules is done for these few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.engine import interest, upkeep
from ephemera.engine.engine import Engine
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.interest import Field, Interest, Within, in_events
from ephemera.engine.operators.join import RuleJoin
from ephemera.engine.operators.match import Query
from ephemera.engine.state.identity import program_of
from ephemera.engine.state.snapshot import restore, take
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.ranges import beginning_with
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import check
from ephemera.rewrite import alike_limits
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Value
from tests.engine.test_alike import DECLARED, events
from tests.engine.test_local import rows_at_a_time
from tests.strategies.cases import answers


@pytest.fixture(autouse=True, scope="module")
def _none_put_together() -> Iterator[None]:
    """Rules that differ in a window stay what they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike_limits, "MANY", 1 << 30)
        yield


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
FOUND = (
    "P{n}(i) <- a: A(i, x, v), w: extend(a, {w}), v >= {c}, v < {d};",
    "P{n}(i, j) <- a: A(i, x, v), b: B(j, x, u), a before[0, {w}] b, {c} <= v, u > {d}, u <= {c};",
    "P{n}(i, count(j)) <- a: A(i, x, v), w: extend(a, {w}), v > {c}, while w: collect B(j, x, _);",
    "DETECT P{n} {{ var I }} ON and {{"
    " event a: A {{{{ id {{ var I }}, v {{ /{r}/ }} }}}} event w: extend(a, {w}) }} END",
    "DETECT P{n} {{ var I, var V }} ON and {{ event a: A {{{{ id {{ var I }}, v {{ var V -> /{r}/ }} }}}}"
    " event b: B {{{{ v {{ {c} }} }}}} {{a, b}} within {w} }} END",
    "DETECT P{n} {{ var V }} ON event t: T {{{{ s {{ var V -> /{r}/ }}, u {{ {c} }} }}}} END",
    "DETECT P{n} {{ var V }} ON event t: T {{{{ u {{ var V }}, s {{{{ /{r}/ }}}} }}}} END",
    "DETECT P{n} {{ var V }} ON event t: var V {{{{ desc s {{ /{r}/ }} }}}} END",
    "P{n}(u) <- t: T(s: {c}, u: u);",
)
"""Rules that are found by ranges, by how texts begin, and by what terms hold."""
ENDS = ("0", "1", "2.5", '"a"', '"ab"', '"b"')
EXPRESSIONS = ("a.*", "ab?", "a|b", "(?i)A.*", "aa*", "[ab]b?", "a+b", "ab.*", ".*b", "a{{0,2}}", "a\\.b", "ab")


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


@st.composite
def found_rules(draw: st.DrawFn) -> Compiled:
    ends = st.sampled_from(ENDS)
    rule = st.tuples(st.sampled_from(FOUND), ends, ends, st.sampled_from(EXPRESSIONS))
    rules = [
        template.format(n=n, c=c, d=d, w=n + 2, r=r.format())
        for n, (template, c, d, r) in enumerate(draw(st.lists(rule, min_size=1, max_size=8)))
    ]
    checked = check(Source("many.eq", DECLARED + "EVENT T;\n" + "\n".join(rules)))
    assert checked.rules is not None, checked.report
    assert checked.plan is not None
    assert checked.facts is not None
    return prepare(checked.rules, checked.plan, checked.facts)


@st.composite
def terms(draw: st.DrawFn) -> list[Event]:
    """Events of a type without attributes: objects with fields that hold a text, several values, terms or nothing."""
    inside: list[Value] = ["a", "ab", "aab", "abc", "b", "", 1, 2.5, True, Term("s", ("ab",))]
    values = st.sampled_from(inside)
    fields = st.lists(st.tuples(st.sampled_from("sux"), st.lists(values, max_size=2)), max_size=3)
    found: list[Event] = []
    for own in draw(st.lists(fields, max_size=8)):
        children = tuple(Term(label, tuple(held)) for label, held in own)
        end = draw(st.integers(0, 20)) * 1_000_000
        term = Term("T", children or draw(st.sampled_from([(), ("ab",)])), ordered=draw(st.booleans()))
        found.append(Event(term, Interval(end, end), positional=False))
    return found


@contextmanager
def as_if_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "MANY", 0)
        patch.setattr(interest, "FEW_VALUES", 0)
        yield


@settings(max_examples=30)
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


@settings(max_examples=40)
@given(compiled=found_rules(), flat=events(), others=terms())
def test_rules_that_are_found_by_ranges_and_beginnings_answer_what_the_oracle_answers(
    compiled: Compiled, flat: list[Event], others: list[Event]
) -> None:
    stream = [*flat, *others]
    expected = answers(evaluate(compiled.rules, stream, World()))
    ends = sorted({e.time.end for e in stream})
    for stops, few in (([], 0), (ends, FEW), (ends[::3], 0)):
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


def visits(program: str, stream: list[tuple[str, int, Any]], monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
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


def test_an_event_visits_the_rules_whose_range_holds_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = "P{}(i, j) <- a: A(i, x, v), b: B(j, x, _), a before[0, {}] b, v >= {}, v < {};\n"
    rules = "".join(rule.format(n, n + 2, 10 * n, 10 * n + 5) for n in range(100))
    _, outside, inside, shared = visits(rules, [("A", 0, 17), ("A", 0, 17), ("A", 0, 23), ("A", 0, "a")], monkeypatch)
    assert outside == shared == Counter(Query=1)
    assert inside == Counter(Query=1, RuleJoin=1)


def test_a_text_visits_the_rules_that_ask_how_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = "DETECT P{} {{ var I }} ON event a: A {{{{ id {{ var I }}, v {{ /k{}-.*/ }} }}}} END\n"
    condition = 'Q{}(i) <- a: A(i, _, v), w: extend(a, {}), v >= "k{}-", v < "k{}.";\n'
    rules = "".join(pattern.format(n, n) for n in range(100))
    rules += "".join(condition.format(n, n + 2, n, n) for n in range(100))
    stream = [("A", 0, "x"), ("A", 0, "k7-a"), ("A", 0, "k7"), ("A", 0, "k71-"), ("A", 0, 7)]
    _, seven, none, other, number = visits(rules, stream, monkeypatch)
    assert seven == other == Counter(Query=2, RuleJoin=2)  # the query of all conditions, and one with its pattern
    assert none == number == Counter(Query=1)


def test_a_field_of_a_term_visits_the_rules_that_ask_how_it_begins() -> None:
    interest = Interest()
    for number in range(10):
        interest.add(number, Within(Field("s"), beginning_with(f"k{number}")))
    term = Term("T", (Term("s", ("k3", 5)), Term("u", ("k4",)), "k5"), ordered=False)
    (part,) = of_events([Event(term, Interval(0, 0), positional=False)], lambda _: None)
    assert list(interest.of(in_events(part))) == [3]
    interest.remove(3, Within(Field("s"), beginning_with("k3")))
    assert list(interest.of(in_events(part))) == []
