"""This module shows which recursion ends, and that all other is stopped, the same on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.interpret import Given, interpret
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.operators import step_events
from ephemera.kernels import history
from ephemera.physical.plan import prepare
from ephemera.rules import series
from ephemera.rules.outcome import Endless, World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term
from tests.strategies.cases import answers
from tests.strategies.graphs import Graph, graphs

Rows = list[dict[str, Any]]

EDGES = "EVENT edge(x: int, y: int); EVENT start(x: int); "
REACH = EDGES + "reach(y) <- s: start(y); reach(y) <- r: reach(x), e: edge(x, y), {r, e} within 1 day;"
PATH = EDGES + "path(x, y) <- e: edge(x, y); path(x, z) <- p: path(x, y), e: edge(y, z), {p, e} within 1 day;"
COUNT = "count(n) <- s: start(n); count(n + 1) <- c: count(n), n < {most};"
WRAP = "DETECT p { var X } ON event a: var X END"


def event(label: str, time: int, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": time, "data": list(data)}


def at_once(text: str, rows: Rows) -> Rows:
    return ephemera.compile(text).run(rows, engine="local", allow_unbounded=True)


def one_by_one(text: str, rows: Rows) -> Rows:
    engine = ephemera.compile(text).engine(allow_unbounded=True)
    return [*(answer for row in rows for answer in engine.send(row)), *engine.finish()]


def by_the_oracle(text: str, rows: Rows) -> Rows:
    return ephemera.compile(text).run(rows, engine="oracle")


def by_the_plan(text: str, rows: Rows) -> Rows:
    program = ephemera.compile(text)
    given = [Event(Term(r["event"], tuple(r["data"])), Interval(r["time"], r["time"])) for r in rows]
    found = interpret(lower(program._compiled.rules), Given(given))
    return [{"event": name} for name, relation in found.items() for _ in relation]


ENGINES = [at_once, one_by_one, by_the_oracle]
EVERY = [*ENGINES, by_the_plan]


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("apart", [0, 1])
def test_a_path_may_have_any_number_of_edges(run: Callable[[str, Rows], Rows], apart: int) -> None:
    edges = [event("edge", k * apart, k, k + 1) for k in range(1_100)]
    found = run(REACH, [event("start", 0, 0), *edges])
    assert sorted(a["data"][0] for a in found) == list(range(1_101))


def test_a_recursive_label_may_come_from_outside_any_number_of_times() -> None:
    rows = [event("p", k, k) for k in range(100_001)]
    found = at_once("p(x) <- i: p(x), j: q(x);", [*rows, event("q", 100_001, 7)])
    assert [a["data"] for a in found] == [[7]]


@pytest.mark.parametrize("run", ENGINES)
def test_dense_graphs_come_to_their_end(run: Callable[[str, Rows], Rows]) -> None:
    rows = [event("edge", 1, x, y) for x in range(7) for y in range(7)]
    assert len(run("path(x, y) <- e: edge(x, y); path(x, z) <- p: path(x, y), q: path(y, z);", rows)) == 49


def test_what_a_fixpoint_looks_at_grows_with_what_it_gives() -> None:
    engine = ephemera.compile(PATH).engine(allow_unbounded=True)
    engine.send_many([event("edge", 1, k, k + 1) for k in range(200)])
    found = engine.finish()
    assert len(found) == 200 * 201 // 2
    assert engine.stats().examined < 3 * len(found)


@settings(max_examples=40)
@given(graph=graphs(), data=st.data())
def test_recursion_of_size_answers_what_the_oracle_answers(graph: Graph, data: st.DataObject) -> None:
    expected = answers(evaluate(graph.ruleset, graph.events))
    plan = lower(graph.ruleset)
    ends = sorted({e.time.end for e in graph.events})
    cuts = sorted(data.draw(st.lists(st.sampled_from(ends), unique=True)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "FEW", data.draw(st.sampled_from([0, 2, 16])))
        patch.setattr(history, "MANY", 5)
        patch.setattr(step_events, "PORTION", data.draw(st.sampled_from([1, 16])))
        found = BatchRun(prepare(graph.ruleset, plan, derive(plan)), graph.events, World()).run(cuts)
    assert answers(found) == expected


# ---- what does not end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", EVERY)
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (COUNT.replace(", n < {most}", ""), r"rule 2 \(count\) makes ever new events of `n`.*count { "),
        ("a(n) <- s: start(n); a(n + 2.5) <- b(n); b(n) <- a(n);", r"rules 2 \(a\), 3 \(b\) make .* of `n`"),
        ('a("x") <- s: start(n); a(concat(t, "y")) <- a(t);', r"rule 2 \(a\) .* of `t`"),
        (WRAP, r"rule 1 \(p\) makes ever new events of `X`, .*p { p { p {"),
        ("DETECT p { var X, var X } ON event a: var X END", "of `X`, .*p { p { p {"),
        ("DETECT p { a { var X } } ON or { event: start[[ var X ]], event: p {{ var X }} } END", "of `X`"),
    ],
)
def test_what_does_not_end_is_stopped_with_its_rules_and_what_grows(
    run: Callable[[str, Rows], Rows], text: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if run is by_the_plan:  # it works out everything anew in each round
        monkeypatch.setattr(series, "LONGEST", 20)
        monkeypatch.setattr(series, "LARGEST", 1_000)
    with pytest.raises(Endless, match=f"^the recursion does not end: .*{told}") as raised:
        run(text, [event("start", 1, 0)])
    assert len(str(raised.value)) < 300


def test_doubled_texts_are_stopped_while_they_are_small() -> None:
    with pytest.raises(Endless, match="1,000,000 elements and characters large"):
        at_once('a("x") <- s: start(n); a(concat(t, t)) <- a(t);', [event("start", 1, 0)])


@pytest.mark.parametrize("run", EVERY)
def test_the_limit_is_of_series_and_not_of_rounds_steps_or_events(
    run: Callable[[str, Rows], Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each place has its own series, and each time; of one with as many answers as may be nothing is lost."""
    monkeypatch.setattr(series, "LONGEST", 5)
    text = "n(x, k) <- s: start(x, k); n(x, k + 1) <- c: n(x, k), k < {most};"
    rows = [event("start", time, x, 0) for time in range(3) for x in range(4)]
    assert len(run(text.replace("{most}", "5"), rows)) >= 12 * 6
    with pytest.raises(Endless):
        run(text.replace("{most}", "6"), rows)


def test_hops_are_counted_along_any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "LONGEST", 50)
    text = "way(x, y, 1) <- e: edge(x, y); way(x, z, n + 1) <- w: way(x, y, n), e: edge(y, z);"
    found = at_once(text, [event("edge", 1, k, k + 1) for k in range(70)])
    assert len(found) == 70 * 71 // 2
    with pytest.raises(Endless, match="of `n`"):
        at_once(text, [event("edge", 1, k, (k + 1) % 3) for k in range(3)])


def test_a_timer_on_what_comes_of_it_is_refused_so_times_do_not_grow() -> None:
    with pytest.raises(ephemera.ProgramError, match="depends on itself"):
        ephemera.compile("a() <- x: a(), w: extend(x, 1h);")


@pytest.mark.parametrize(
    ("text", "growing"),
    [
        (PATH, {}),
        (REACH, {}),
        ("a(end(x), y) <- x: a(_, y);", {}),
        ("a(n * 2) <- x: a(n), y: b(n);", {}),
        ("a(x, n + m) <- a(x, n), b(m);", {1: (("n",), ("m", "x"))}),
        ("EVENT p(id: int, n: int); p(i, n + 1) <- p(id: i, n: n);", {1: (("n",), ("i",))}),
        ("a(n + 1) <- b(n); b(n) <- a(n);", {1: (("n",), ())}),
        (WRAP, {1: (("X",), ())}),
        ("DETECT p { a { var X } } ON event: p {{ a { var X } }} END", {}),
        ("DETECT p { a { var X } } ON event: p {{ desc a { var X } }} END", {}),
        ("DETECT p { a { var X } } ON event: p {{ desc var X }} END", {1: (("X",), ())}),
        (
            "DETECT w { from { var X }, n { var N + 1 } } ON event: w {{ from { var X }, n { var N } }} END",
            {1: (("N",), ("X",))},
        ),
    ],
)
def test_only_what_is_made_of_itself_may_grow(text: str, growing: dict[int, Any]) -> None:
    found = ephemera.compile(text)._compiled.plan.growth
    assert {number: (g.grows, g.fixed) for number, g in found.items()} == growing
