"""This module shows for random programs that what makes no sense in them is refused: a timer compared with an event."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ephemera.base.span import Source
from ephemera.base.tree import find
from ephemera.pipeline import check
from ephemera.rules.scope import bindings, definitions
from ephemera.syntax.format import format
from ephemera.syntax.nodes import And, Comparison, Program, Rule, Timer
from ephemera.syntax.parser import parse
from ephemera.terms.nodes import Name
from tests.strategies.cases import Case, cases


@settings(max_examples=10)
@given(cases(), st.data())
def test_a_timer_compared_with_an_event_is_refused(case: Case, data: st.DataObject) -> None:
    statements = parse(Source("program.eq", case.program)).program.statements
    places = [
        (k, timer, other)
        for k, rule in enumerate(statements)
        if isinstance(rule, Rule)
        for timer in sorted({t.name.name for t in find(rule.body, Timer) if t.name is not None})
        for other in sorted(definitions(rule.body).sure)
        if not {timer, other} & bindings(rule.body).all and timer in definitions(rule.body).sure
    ]
    assume(places)
    k, timer, other = data.draw(st.sampled_from(places))
    sides = data.draw(st.permutations((Name(timer), Name(other))))
    comparison = Comparison(data.draw(st.sampled_from(("=", "!="))), *sides)
    rule = statements[k]
    assert isinstance(rule, Rule)
    items = rule.body.items if isinstance(rule.body, And) else (rule.body,)
    changed = replace(rule, body=And((*items, comparison)))
    text = format(Program((*statements[:k], changed, *statements[k + 1 :])))
    found = check(Source("program.eq", text)).report.diagnostics
    assert {"mixed-comparison"} == {d.code for d in found if d.severity == "error"}
