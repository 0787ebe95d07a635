"""This module holds the oracle to what must be true of every program and stream."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.rules.outcome import Outcome
from ephemera.semantics.oracle import evaluate
from ephemera.syntax.format import format
from ephemera.syntax.nodes import Program, Rule
from ephemera.syntax.parser import parse
from ephemera.terms.events import Event
from ephemera.terms.values import Term
from tests.strategies.cases import Case, answers, cases, compiled, formed
from tests.strategies.denormalize import denormalize
from tests.strategies.streams import arrivals


def _ends(outcome: Outcome) -> list[int]:
    return [e.time.end for e in outcome.events] + [m.event.time.end for m in outcome.messages]


def _until(outcome: Outcome, limit: int) -> Outcome:
    """What an outcome answers by a time."""
    return Outcome(
        [e for e in outcome.events if e.time.end <= limit],
        [m for m in outcome.messages if m.event.time.end <= limit],
    )


@settings(max_examples=30)
@given(cases())
def test_what_ends_by_then_is_known_then(case: Case) -> None:
    _check_what_is_known_by_then(case)


@pytest.mark.slow
@given(cases())
def test_what_ends_by_then_is_known_then_in_many_cases(case: Case) -> None:
    _check_what_is_known_by_then(case)


def _check_what_is_known_by_then(case: Case) -> None:
    assume(case.events)
    limits = sorted({e.time.end for e in case.events} | set(_ends(case.outcome())))
    full = evaluate(case.ruleset, case.events, replace(case.world, until=limits[-1]))
    for limit in limits:
        known = [e for e in case.events if e.time.end <= limit]
        cut = evaluate(case.ruleset, known, replace(case.world, until=limit))
        assert answers(_until(cut, limit)) == answers(_until(full, limit))


@settings(max_examples=20)
@given(cases(), st.data())
def test_order_and_repetition_of_the_input_mean_nothing(case: Case, data: st.DataObject) -> None:
    order = data.draw(arrivals(case.events)).events
    again = data.draw(st.lists(st.sampled_from(order), max_size=3)) if order else []
    assert formed(evaluate(case.ruleset, [*order, *again], case.world)) == formed(case.outcome())


@settings(max_examples=30)
@given(cases(), st.data())
def test_order_of_the_rules_means_nothing(case: Case, data: st.DataObject) -> None:
    statements = parse(Source("program.eq", case.program)).program.statements
    rules = data.draw(st.permutations([s for s in statements if isinstance(s, Rule)]))
    declarations = [s for s in statements if not isinstance(s, Rule)]
    turned = compiled(format(Program((*declarations, *rules))))
    assert turned is not None
    assert answers(evaluate(turned, case.events, case.world)) == answers(case.outcome())


@given(cases())
def test_normal_forms_answer_the_same(case: Case) -> None:
    assert answers(evaluate(denormalize(case.ruleset), case.events, case.world)) == answers(case.outcome())


@settings(max_examples=30)
@given(cases(), st.data())
def test_an_event_that_no_rule_speaks_of_changes_nothing(case: Case, data: st.DataObject) -> None:
    assume(case.events and "any label" not in case.features)
    time = data.draw(st.sampled_from([e.time for e in case.events]))
    other = Event(Term("stranger", data.draw(st.sampled_from(case.events)).term.children), time)
    assert answers(evaluate(case.ruleset, [*case.events, other], case.world)) == answers(case.outcome())
