"""This module shows that timers as long as data say mean the same on every engine, however the input is cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.interpret import Given, events_of, interpret
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.formats.json_events import read_object, read_row
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.spreading import spread_over
from tests.strategies.cases import answers
from tests.strategies.lengths import told

Told = tuple[str, list[dict[str, Any]], dict[str, list[dict[str, Any]]]]


@given(case=told(), places=st.sampled_from([1, 3]))
@settings(max_examples=60)
def test_a_history_answers_what_the_oracle_answers(case: Told, places: int) -> None:
    program, given_events, tables = case
    found = check(Source("told.eq", program))
    assert found.rules is not None, found.report
    assert found.plan is not None
    assert found.facts is not None
    catalogue = found.rules.resolved.catalogue
    events = [event for e in given_events if isinstance(event := read_object(e, catalogue), Event)]
    schema = catalogue.tables["often"]
    world = World(tables={"often": [read_row(row, schema, catalogue) for row in tables["often"]]})
    expected = answers(evaluate(found.rules, events, world))
    compiled = prepare(found.rules, found.plan, found.facts)
    for cuts in ([], sorted({e.time.end for e in events})):
        assert answers(BatchRun(compiled, events, world).run(cuts)) == expected
    spread, _ = spread_over(found.rules, found.plan, found.facts, events, world, places)
    assert answers(spread) == expected
    points = interpret(found.plan, Given(events, world.tables))
    derived = {e for name, p in found.plan.points.items() if p.kind == "rule" for e in events_of(p, points[name])}
    assert derived == set(evaluate(found.rules, events, world).events)


@given(case=told(), one_by_one=st.booleans())
@settings(max_examples=40)
def test_live_it_answers_the_same(case: Told, one_by_one: bool) -> None:
    text, events, tables = case
    program = ephemera.compile(text)
    expected = program.run(events, tables=tables, engine="oracle")
    engine = program.engine(tables=tables)
    found: list[Mapping[str, Any]] = []
    in_order = sorted(events, key=lambda e: e["time"][1])
    for some in [[one] for one in in_order] if one_by_one else [in_order]:
        found += engine.send_many(some)
    found += engine.finish()
    assert _lines(found) == _lines(expected)


def _lines(found: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(answer) for answer in found)
